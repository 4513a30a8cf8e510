//go:build !amd64

package conv

func kernelsFor(string) *kernels { return &plain }
