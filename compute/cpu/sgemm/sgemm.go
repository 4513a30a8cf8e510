// Package sgemm multiplies single precision matrices on one core.
//
// The idea is Goto and van de Geijn's ("Anatomy of high-performance matrix
// multiplication", ACM TOMS 2008): copy ("pack") a block of B that fits the
// outer caches and a block of A that fits the inner one into the order in which
// they are read, and let a microkernel keep a small tile of C in registers
// while it runs down k. Three families of microkernels exist, chosen once per
// process by package level: AVX-512, AVX2 with FMA, and plain Go.
//
// # Bits
//
// An element of C is the sum, in order, of partial sums over blocks of k; each
// partial sum starts at zero and takes the products in order of k. How k is cut
// is a function of k alone. So the bits of an element depend on the level, on
// the k products that make it, and, when accumulating, on its old value: not on
// m, n, strides, transposition, or the tile it falls into. A caller may cut C
// among cores as it likes. The levels avx2 and avx512 give the same bits; plain
// rounds each product before it is added and so differs in the last bits.
//
// # Threads
//
// One call runs on one core, because to fork and join for each product costs
// more than it gains; calls from many goroutines at once are safe.
package sgemm

import (
	"fmt"

	"optimus/internal/level"
)

// Kernel is one family of microkernels with its cache blocking.
type Kernel struct{ ks *kernels }

// For returns the kernel of a level: level.Plain, level.AVX2 or level.AVX512. It
// fails if the name is unknown or the processor lacks the level.
func For(name string) (Kernel, error) {
	if err := level.Check(name); err != nil {
		return Kernel{}, err
	}
	return kernelFor(name), nil
}

// Current returns the kernel that Gemm uses. It fails if the environment
// variable OPTIMUS_CPU forces a level that does not exist here; programs ask at
// start, so that Gemm cannot fail later.
func Current() (Kernel, error) {
	name, err := level.Current()
	if err != nil {
		return Kernel{}, err
	}
	return kernelFor(name), nil
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
func (kn Kernel) Level() string { return kn.ks.level }

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
	kn, err := Current()
	if err != nil {
		panic(err)
	}
	kn.Gemm(transA, transB, m, n, k, a, lda, b, ldb, accumulate, c, ldc)
}

// Gemm is the function Gemm with this kernel.
func (kn Kernel) Gemm(transA, transB bool, m, n, k int, a []float32, lda int, b []float32, ldb int, accumulate bool, c []float32, ldc int) {
	if m < 0 || n < 0 || k < 0 {
		panic(fmt.Sprintf("sgemm: negative size m=%d n=%d k=%d", m, n, k))
	}
	if m == 0 || n == 0 {
		return
	}
	check("C", m, n, len(c), ldc)
	if k == 0 {
		if !accumulate {
			for i := range m {
				clear(c[i*ldc : i*ldc+n])
			}
		}
		return
	}
	if transA {
		check("A", k, m, len(a), lda)
	} else {
		check("A", m, k, len(a), lda)
	}
	if transB {
		check("B", n, k, len(b), ldb)
	} else {
		check("B", k, n, len(b), ldb)
	}
	kn.ks.pick(n).multiply(matrix{a, lda, transA}, matrix{b, ldb, transB}, m, n, k, accumulate, c, ldc)
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
