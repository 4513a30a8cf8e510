// Package fence helps to test assembly, which no bounds check sees: its arrays end, or begin, at
// a page that cannot be touched, so that a kernel that reads or writes one
// element outside ends the test process.
package fence

// pages is how many pages an array may have.
const pages = 4

// Arrays is memory for a few arrays of float32.
type Arrays [][]float32

// Put copies x to the end of array i, or to its front, and returns the copy. The next Put to i
// takes the place of the last one.
func (f Arrays) Put(i int, x []float32, front bool) []float32 {
	out := f[i][len(f[i])-len(x):]
	if front {
		out = f[i][:len(x):len(x)]
	}
	copy(out, x)
	return out
}
