//go:build !amd64

package conv

func kernelsFor(string) *kernels { return &plain }

// line is the size of a cache line in bytes.
const line = 64
