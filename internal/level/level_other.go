//go:build !amd64

package level

func hasAVX2() bool   { return false }
func hasAVX512() bool { return false }
