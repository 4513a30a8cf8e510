package sgemm

import (
	"sync"
	"unsafe"
)

// scratch is the memory of one call, reused from call to call.
type scratch struct {
	strip
	call  call // the strip as the assembly takes it
	spans []span
	packB []float32 // a packed block of B
	packA []float32 // the rows of A for one strip
	tile  []float32 // a ragged tile
}

var pool = sync.Pool{New: func() any { return &scratch{spans: make([]span, 0, 4)} }}

// slack is room for what packing writes after its last row, for the next one to overwrite.
const slack = 16

func (s *scratch) grow(p *product) {
	if p.packed == nil {
		enlarge(&s.packB, p.kb*roundUp(min(p.n, p.nb), p.vector))
	}
	if p.a.trans {
		enlarge(&s.packA, p.kb*p.tallest[0]+slack)
	}
	if !p.masks {
		enlarge(&s.tile, p.tallest[0]*p.vector)
	}
}

func enlarge(x *[]float32, n int) {
	if len(*x) < n {
		*x = aligned(n)
	}
}

// aligned returns n elements that start on a cache line.
func aligned(n int) []float32 {
	s := make([]float32, n+line)
	skip := -uintptr(unsafe.Pointer(unsafe.SliceData(s))) % (4 * line) / 4
	return s[skip : int(skip)+n]
}
