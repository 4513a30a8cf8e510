package sgemm

//go:generate go run -C ../gen ./sgemm -out ../sgemm/micro_amd64.s -stubs ../sgemm/micro_amd64.go -pkg sgemm

import (
	"unsafe"

	"optimus/internal/level"
)

// call is a strip as a microkernel takes it, with strides in bytes; the
// generator knows its layout.
type call struct {
	k            int
	a            *float32
	rowA, stepA  int
	b            *float32
	stepB, nextB int
	c            *float32
	rowC         int
	mask         uint64 // of the columns that exist
	add          int    // 1 adds to C, 0 sets it
	pack         *float32
	panels       int     // counted down
	offset       int     // counted up: of the panel in B
	fetch        uintptr // counted up: see strip
	stepFetch    int
	nextFetch    int
}

// micro is a microkernel in assembly; its argument is a call. It is a pointer to a
// byte because the generator knows no types of this package.
type micro func(c *byte)

var (
	// by vectors of 16 columns, then rows
	micro512 = [3][]micro{{
		kernel512x1x16, kernel512x2x16, kernel512x3x16, kernel512x4x16, kernel512x5x16, kernel512x6x16, kernel512x7x16,
		kernel512x8x16, kernel512x9x16, kernel512x10x16, kernel512x11x16, kernel512x12x16, kernel512x13x16, kernel512x14x16,
	}, {
		kernel512x1x32, kernel512x2x32, kernel512x3x32, kernel512x4x32, kernel512x5x32, kernel512x6x32, kernel512x7x32,
		kernel512x8x32, kernel512x9x32, kernel512x10x32, kernel512x11x32, kernel512x12x32, kernel512x13x32, kernel512x14x32,
	}, {
		kernel512x1x48, kernel512x2x48, kernel512x3x48, kernel512x4x48,
		kernel512x5x48, kernel512x6x48, kernel512x7x48, kernel512x8x48,
	}}
	micro256 = [...]micro{
		kernel256x1x16, kernel256x2x16, kernel256x3x16, kernel256x4x16, kernel256x5x16, kernel256x6x16,
	}

	avx512 = family{
		level: level.AVX512, vector: 16, tallest: []int{14, 14, 8}, copies: true, masks: true,
		run:  func(s *scratch) { s.micro(micro512[s.width/16-1][s.h-1]) },
		rows: rowsAVX2, transpose: transposeAVX2,
		peak: func(n int) int { peak512(n); return n * 12 * 16 * 2 },
	}
	avx2 = family{
		level: level.AVX2, vector: 16, tallest: []int{6}, copies: true,
		run:  func(s *scratch) { s.micro(micro256[s.h-1]) },
		rows: rowsAVX2, transpose: transposeAVX2,
		peak: func(n int) int { peak256(n); return n * 12 * 8 * 2 },
	}
)

// familyFor returns the family of a level that is present.
func familyFor(name string) *family {
	switch name {
	case level.AVX512:
		return &avx512
	case level.AVX2:
		return &avx2
	}
	return &plain
}

// size of an element in bytes.
const size = 4

// micro runs a microkernel on the strip.
func (s *scratch) micro(kernel micro) {
	c := &s.call
	c.k, c.panels, c.offset = s.kb, s.panels, 0
	c.a, c.rowA, c.stepA = &s.a[0], s.rowA*size, s.stepA*size
	c.b, c.stepB, c.nextB = &s.b[0], s.stepB*size, s.nextB*size
	c.c, c.rowC, c.mask, c.add = &s.c[0], s.rowC*size, 1<<s.exist-1, 0
	if s.accumulate {
		c.add = 1
	}
	c.pack = nil
	if s.pack != nil {
		c.pack = &s.pack[0]
	}
	c.fetch, c.stepFetch, c.nextFetch = uintptr(unsafe.Pointer(&s.fetch[0])), s.stepFetch*size, s.nextFetch*size
	kernel((*byte)(unsafe.Pointer(c)))
}

func rowsAVX2(kb, w int, src []float32, lds int, dst []float32, ldd int) {
	rows16(kb, &src[0], lds*size, &dst[0], ldd*size, w)
}

// transposeAVX2 works on eight columns at a time; the last one stands for those that
// do not exist.
func transposeAVX2(kb, w int, src []float32, lds int, dst []float32, ldd int) {
	for j := 0; j < 16; j += 8 {
		var columns [8]*float32
		for i := range columns {
			columns[i] = &src[min(j+i, w-1)*lds]
		}
		if kb >= 4 {
			transpose8(kb/4, &columns[0], &dst[j], ldd*size)
		}
	}
	for p := kb &^ 3; p < kb; p++ {
		for j := range w {
			dst[p*ldd+j] = src[j*lds+p]
		}
	}
}
