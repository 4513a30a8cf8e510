//go:build !amd64

package vec

func kernelsAt(string) *kernels { return &plain }
