// Package vec holds the loops over float32 arrays that every part needs: arithmetic, exp and its kin,
// sums, maxima, softmax and dropout masks.
//
// Each is one pass over memory, or a few, and allocates nothing. Where the processor has AVX2 or AVX-512
// the work is done in assembly, whose operations are those of the Go code one for one: no product
// is fused with a sum, and a reduction keeps the same sixteen running sums everywhere. So every level gives
// the same bits, on every architecture; only logarithms of sums, in losses, are those of package math, which
// may differ in the last bit between architectures. The functions Exp32, Log32, Sigmoid32 and Tanh32 say what
// an element becomes.
//
// Arrays may have any length. Add, AXPY, Scale and Finite leave what is behind the last 32 elements to the
// Go code; in the others the assembly does it under a mask. Infinities, NaNs and denormal numbers are
// treated as IEEE 754 has it; the comments name the exceptions.
package vec

import (
	"fmt"
	"math"

	"optimus/internal/level"
)

//go:generate go run -C ../gen ./vec -out ../vec/loops_amd64.s -stubs ../vec/loops_amd64.go -pkg vec

// Add adds src to dst, element by element. It panics if they differ in length.
func Add(dst, src []float32) {
	same("Add", len(dst), len(src))
	addAt(Level(), dst, src)
}

// AXPY adds a·src to dst, rounding the product before the sum. It panics if they
// differ in length.
func AXPY(dst []float32, a float32, src []float32) {
	same("AXPY", len(dst), len(src))
	axpyAt(Level(), dst, a, src)
}

// Scale multiplies dst by a.
func Scale(dst []float32, a float32) { scaleAt(Level(), dst, a) }

// Finite returns the index of the first infinity or NaN of x, or -1.
func Finite(x []float32) int { return finiteAt(Level(), x) }

// Level returns the level that kernels of this process run at. Where a level is forced that is not
// here, it is level.Plain: the bits are the same, and whatever computes for the user reports it.
func Level() string {
	name, err := level.Current()
	if err != nil {
		return level.Plain
	}
	return name
}

func same(op string, dst, src int) {
	if dst != src {
		panic(fmt.Sprintf("vec: %s: dst has %d elements, src %d; they must be equally long", op, dst, src))
	}
}

func addAt(name string, dst, src []float32) {
	done := whole(name, len(dst))
	if done > 0 {
		addAVX(done, &dst[0], &src[0])
	}
	dst, src = dst[done:], src[done:len(dst)]
	for i, v := range src {
		dst[i] += v
	}
}

func axpyAt(name string, dst []float32, a float32, src []float32) {
	done := whole(name, len(dst))
	if done > 0 {
		axpyAVX(done, &dst[0], a, &src[0])
	}
	dst, src = dst[done:], src[done:len(dst)]
	for i, v := range src {
		dst[i] += float32(a * v)
	}
}

func scaleAt(name string, dst []float32, a float32) {
	done := whole(name, len(dst))
	if done > 0 {
		scaleAVX(done, &dst[0], a)
	}
	dst = dst[done:]
	for i := range dst {
		dst[i] *= a
	}
}

func finiteAt(name string, x []float32) int {
	const exponent = 0x7f800000 // all its bits are set in infinities and NaN only
	from := whole(name, len(x))
	if from > 0 {
		from -= finiteAVX2(from, &x[0])
	}
	for i, v := range x[from:] {
		if math.Float32bits(v)&exponent == exponent {
			return from + i
		}
	}
	return -1
}
