package pieces

import (
	"math"
	"unsafe"
)

// finite reports whether x holds neither NaN nor infinity, whose exponents are
// all ones: adding one to such an exponent carries into the sign's place, and to
// no other. It looks at two elements at a time, because every value that is
// received or served passes here.
func finite(x []float32) bool {
	const (
		exponents = 0x7f800000_7f800000
		one       = 0x00800000_00800000
		signs     = 0x80000000_80000000
	)
	var a, b, c, d uint64
	if len(x)%2 == 1 {
		a = uint64(math.Float32bits(x[len(x)-1]))&exponents + one
	}
	if len(x) < 2 {
		return a&signs == 0
	}
	// A view of the same memory as pairs. It needs no alignment beyond the
	// elements' own, and either order of bytes will do.
	pairs := unsafe.Slice((*uint64)(unsafe.Pointer(unsafe.SliceData(x))), len(x)/2)
	for len(pairs) >= 4 {
		a |= pairs[0]&exponents + one
		b |= pairs[1]&exponents + one
		c |= pairs[2]&exponents + one
		d |= pairs[3]&exponents + one
		pairs = pairs[4:]
	}
	for _, p := range pairs {
		a |= p&exponents + one
	}
	return (a|b|c|d)&signs == 0
}
