//go:build !linux

package fence

import "testing"

// New returns plain arrays where pages cannot be protected.
func New(_ testing.TB, n int) Arrays {
	f := make(Arrays, n)
	for i := range f {
		f[i] = make([]float32, pages*4096/4)
	}
	return f
}
