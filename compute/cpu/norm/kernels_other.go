//go:build !amd64

package norm

func kernelsAt(string) *kernels { return &plain }
