package sgemm

import "optimus/internal/level"

// plain is Go code alone.
var plain = family{
	level: level.Plain, vector: 4, tallest: []int{2},
	run: runPlain, rows: rowsPlain, transpose: transposePlain,
}

func runPlain(s *scratch) {
	for j := range s.panels {
		b, c := s.b[j*s.nextB:][:4*s.kb], s.c[4*j:]
		if s.h == 2 {
			tile2x4(s.a, s.rowA, s.stepA, b, c, s.rowC, s.accumulate)
		} else {
			tile1x4(s.a, s.stepA, b, c, s.accumulate)
		}
	}
}

// tile1x4 is a microkernel in Go. The conversions forbid the compiler to
// fuse a product with its sum, so that all architectures give the same bits.
func tile1x4(a []float32, stepA int, b, c []float32, accumulate bool) {
	var c0, c1, c2, c3 float32
	for p := 0; len(b) >= 4; p += stepA {
		x := a[p]
		c0 += float32(x * b[0])
		c1 += float32(x * b[1])
		c2 += float32(x * b[2])
		c3 += float32(x * b[3])
		b = b[4:]
	}
	store4(c, c0, c1, c2, c3, accumulate)
}

func tile2x4(a []float32, rowA, stepA int, b, c []float32, rowC int, accumulate bool) {
	var c0, c1, c2, c3, d0, d1, d2, d3 float32
	next := a[rowA:]
	for p := 0; len(b) >= 4; p += stepA {
		x, y := a[p], next[p]
		b0, b1, b2, b3 := b[0], b[1], b[2], b[3]
		c0 += float32(x * b0)
		c1 += float32(x * b1)
		c2 += float32(x * b2)
		c3 += float32(x * b3)
		d0 += float32(y * b0)
		d1 += float32(y * b1)
		d2 += float32(y * b2)
		d3 += float32(y * b3)
		b = b[4:]
	}
	store4(c, c0, c1, c2, c3, accumulate)
	store4(c[rowC:], d0, d1, d2, d3, accumulate)
}

func store4(c []float32, c0, c1, c2, c3 float32, accumulate bool) {
	c = c[:4]
	if accumulate {
		c[0] += c0
		c[1] += c1
		c[2] += c2
		c[3] += c3
		return
	}
	c[0], c[1], c[2], c[3] = c0, c1, c2, c3
}

func rowsPlain(kb, w int, src []float32, lds int, dst []float32, ldd int) {
	for p := range kb {
		d := dst[p*ldd:]
		copy(d, src[p*lds:p*lds+w])
		if w < ldd {
			clear(d[w:ldd])
		}
	}
}

func transposePlain(kb, w int, src []float32, lds int, dst []float32, ldd int) {
	for j := range w {
		column := src[j*lds:][:kb]
		for p, v := range column {
			dst[p*ldd+j] = v
		}
	}
}
