// Package vec holds the few loops over float32 arrays that every part needs.
//
// Each is one pass over memory and allocates nothing. With AVX2 the bulk runs in
// assembly; the operations are the same one for one, so every level
// gives the same bits.
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
	addAt(current(), dst, src)
}

// AXPY adds a·src to dst, rounding the product before the sum. It panics if they
// differ in length.
func AXPY(dst []float32, a float32, src []float32) {
	same("AXPY", len(dst), len(src))
	axpyAt(current(), dst, a, src)
}

// Scale multiplies dst by a.
func Scale(dst []float32, a float32) { scaleAt(current(), dst, a) }

// Finite returns the index of the first infinity or NaN of x, or -1.
func Finite(x []float32) int { return finiteAt(current(), x) }

// current is the level of this process. Where a level is forced that is not
// here, the Go loops do: the bits are the same, and whatever computes for the user reports it.
func current() string {
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
