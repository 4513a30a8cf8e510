// Package sgemm multiplies single precision matrices on one core.
//
// # Idea
//
// It is Goto and van de Geijn's ("Anatomy of high-performance matrix
// multiplication", ACM TOMS 2008): a microkernel keeps a small tile of C in
// registers while it runs down k, and a block of B stays in the second cache
// while all rows of A pass by it, a few at a time; these few stay in the first cache
// while they pass along the block. A block of B is packed: copied into panels
// as wide as a tile, in the order in which they are read.
//
// Much of the time of a small product is packing, so as little as possible is
// packed:
//   - A is read where it is, row by row, unless it is transposed;
//   - the first rows of A multiply with B where it is and write the packed block
//     as they go, so that no pass over B is for packing alone;
//   - a transposed B is packed by transposing it, which with few rows of A is a
//     large part of the product: weights that serve many products are better
//     packed once, see [Packed].
//
// Three families of microkernels exist, chosen once per process by package
// level: AVX-512 with tiles of up to 8×48 and 14×32, AVX2 with FMA with 6×16,
// and plain Go with 2×4. The height and width of the tiles follow m and n, so
// that few elements are computed for nothing and no tile is too small to keep
// the multipliers busy.
//
// # Bits
//
// An element of C is the sum, in order, of partial sums over blocks of k; each
// partial sum starts at zero and takes the products in order of k. How k is cut
// is a function of k alone. So the bits of an element depend on the level, on
// the k products that make it, and, when accumulating, on its old value: not on
// m, n, strides, transposition, packing, or the tile it falls into. A caller may
// cut C among cores as it likes. The levels avx2 and avx512 give the same bits; plain
// rounds each product before it is added and so differs in the last bits.
//
// That rules out one trick for a transposed B and a small m: vectors along k,
// which need no transposition, but add in an order that depends on their length.
// Chosen by m, they would make a gradient depend on how its batch is cut;
// chosen by the transposition, on how a matrix is stored; and always on the
// processor. A factor that is packed once costs none of this.
//
// # Threads
//
// One call runs on one core, because to fork and join for each product costs
// more than it gains; calls from many goroutines at once are safe and share
// no lock. After the first calls nothing is allocated.
package sgemm

import (
	"fmt"

	"optimus/internal/level"
)

// Kernel is the implementation of one level.
type Kernel struct{ family *family }

// For returns the kernel of a level: level.Plain, level.AVX2 or level.AVX512. It
// fails if the name is unknown or the processor lacks the level.
func For(name string) (Kernel, error) {
	if err := level.Check(name); err != nil {
		return Kernel{}, err
	}
	return Kernel{familyFor(name)}, nil
}

// Current returns the kernel that Gemm uses. It fails if the environment
// variable OPTIMUS_CPU forces a level that does not exist here; programs ask at
// start, so that Gemm cannot fail later.
func Current() (Kernel, error) {
	name, err := level.Current()
	if err != nil {
		return Kernel{}, err
	}
	return Kernel{familyFor(name)}, nil
}

func must() Kernel {
	kn, err := Current()
	if err != nil {
		panic(err)
	}
	return kn
}

// Level returns the name of the level that Gemm uses, or "" where Current fails.
func Level() string {
	name, err := level.Current()
	if err != nil {
		return ""
	}
	return name
}

// Level returns the kernel's level.
func (kn Kernel) Level() string { return kn.family.level }

// Peak runs n rounds of independent multiply-adds on registers, which is as fast as
// the instructions of this level can be, and returns how many floating point
// operations those were: 0 at level plain, which has no such instructions.
func (kn Kernel) Peak(n int) int {
	if kn.family.peak == nil || n < 1 {
		return 0
	}
	return kn.family.peak(n)
}

// Gemm computes C = op(A)·op(B), or C += op(A)·op(B) if accumulate, in
// row-major order, with the kernel of this process.
//
// op(A) is m×k and op(B) is k×n; op(X) is X, or its transpose if transX. So a
// holds m rows of k elements (k rows of m if transA), lda elements apart; b
// holds k rows of n (n rows of k if transB), ldb apart; c m rows of n, ldc
// apart. With k = 0 the product is zero. C must not overlap A or B.
//
// Gemm panics if a slice is too short for its shape (an error of the
// programmer), or if Current fails.
func Gemm(transA, transB bool, m, n, k int, a []float32, lda int, b []float32, ldb int, accumulate bool, c []float32, ldc int) {
	must().Gemm(transA, transB, m, n, k, a, lda, b, ldb, accumulate, c, ldc)
}

// Gemm is the function Gemm with this kernel.
func (kn Kernel) Gemm(transA, transB bool, m, n, k int, a []float32, lda int, b []float32, ldb int, accumulate bool, c []float32, ldc int) {
	if done(m, n, k, accumulate, c, ldc) {
		return
	}
	f := kn.family
	g := f.grid(n, k)
	if transB && m*k <= 2*blockB {
		g = g.narrow(f) // all of A stays near, and the columns of a block lie together
	}
	p := product{
		family: f, grid: g, m: m, a: operand("A", m, k, a, lda, transA), b: operand("B", k, n, b, ldb, transB),
		accumulate: accumulate, c: c, ldc: ldc,
	}
	p.multiply()
}

// done checks the sizes and C, and does all there is to do if a size is zero.
func done(m, n, k int, accumulate bool, c []float32, ldc int) bool {
	if m < 0 || n < 0 || k < 0 {
		panic(fmt.Sprintf("sgemm: negative size m=%d n=%d k=%d", m, n, k))
	}
	if m == 0 || n == 0 {
		return true
	}
	check("C", m, n, len(c), ldc)
	if k == 0 && !accumulate {
		for i := range m {
			clear(c[i*ldc : i*ldc+n])
		}
	}
	return k == 0
}

// operand checks the slice of a factor, of which op(X) is rows×cols.
func operand(name string, rows, cols int, x []float32, ld int, trans bool) matrix {
	if trans {
		rows, cols = cols, rows
	}
	check(name, rows, cols, len(x), ld)
	return matrix{x, ld, trans}
}

// check panics unless a slice of length have holds rows×cols elements, ld apart.
// It is what the assembly relies on, and written so that it cannot overflow.
func check(name string, rows, cols, have, ld int) {
	if ld < cols {
		panic(fmt.Sprintf("sgemm: %s: stride %d is below its %d columns", name, ld, cols))
	}
	if have < cols || (have-cols)/ld < rows-1 {
		panic(fmt.Sprintf("sgemm: %s: %d elements are too few for %d×%d with stride %d", name, have, rows, cols, ld))
	}
}
