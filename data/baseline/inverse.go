// Copyright 2025 The Go Authors. All rights reserved.
// Use of this source code is governed by a BSD-style
// license that can be found in the file LICENSE-go.

package baseline

import "encoding/binary"

// Factors of the transform in fixed point, as many bits behind the point as the name
// says: cosines and sines of multiples of π/16, and of √2 and its inverse with them.
const (
	cos1x12, sin1x12    = 4017, 799
	cos3x12, sin3x12    = 3406, 2276
	half6x12, up6x12    = 1108, 2676 // cos 6π/16 / √2, sin 6π/16 / √2
	half6x18, up6x18    = 70936, 171254
	invRoot8, invRoot14 = 181, 11585 // 1/√2
)

// turn is x0·cos + x1·sin and x1·cos - x0·sin in three products.
func turn(x0, x1, cos, sin int32) (int32, int32) {
	sum := cos * (x0 + x1)
	return sum + (sin-cos)*x1, sum - (cos+sin)*x0
}

// inverse writes the pixels of a block of coefficients: the transform of Loeffler,
// Ligtenberg and Moschytz (1989) backwards, rows, then columns, rounded as image/jpeg
// rounds. Of rows, the top one and those whose bit is set hold anything.
func inverse(f *[64]int32, rows uint8, dst []byte, stride int) {
	for i := range 8 {
		if i == 0 || rows>>i&1 != 0 {
			row(f[8*i : 8*i+8 : 8*i+8])
		}
	}
	for i := range 8 {
		column(f, i)
	}
	for y := range 8 {
		x := f[8*y : 8*y+8 : 8*y+8]
		binary.LittleEndian.PutUint64(dst[y*stride:], uint64(level(x[0]))|uint64(level(x[1]))<<8|uint64(level(x[2]))<<16|uint64(level(x[3]))<<24|
			uint64(level(x[4]))<<32|uint64(level(x[5]))<<40|uint64(level(x[6]))<<48|uint64(level(x[7]))<<56)
	}
}

// topRow is inverse for a block that has a top row alone: all its rows are the same.
func topRow(f *[64]int32, dst []byte, stride int) {
	x := f[:8:8]
	row(x)
	pixels := uint64(0)
	for i, v := range x {
		pixels |= uint64(level((v+1<<19)>>2>>18)) << (8 * i)
	}
	for y := range 8 {
		binary.LittleEndian.PutUint64(dst[y*stride:], pixels)
	}
}

// level makes a pixel of a value around 0.
func level(v int32) byte { return byte(min(max(v, -128), 127) + 128) }

func row(x []int32) {
	_ = x[7]
	x0, x1 := x[0]<<17, x[4]<<17
	x0, x1 = x0+x1, x0-x1
	x2, x3 := turn(x[2], x[6], half6x18, -up6x18)
	x1, x2 = x1+x2, x1-x2
	x0, x3 = x0+x3, x0-x3

	x7, x4 := x[1]<<7, x[7]<<7
	x7, x4 = x7+x4, x7-x4
	x5, x6 := x[3]*invRoot8, x[5]*invRoot8
	x7, x5 = x7+x5, x7-x5
	x4, x6 = x4+x6, x4-x6
	x4, x7 = turn(x4>>2, x7>>2, cos3x12, -sin3x12)
	x5, x6 = turn(x5>>2, x6>>2, cos1x12, -sin1x12)

	x[0], x[7] = x0+x7, x0-x7
	x[1], x[6] = x1+x6, x1-x6
	x[2], x[5] = x2+x5, x2-x5
	x[3], x[4] = x3+x4, x3-x4
}

func column(f *[64]int32, i int) {
	i &= 7
	x0, x1 := f[i]+1<<19, f[32+i]
	x0, x1 = (x0+x1)>>2, (x0-x1)>>2
	x2, x3 := turn(f[16+i]>>13, f[48+i]>>13, half6x12, -up6x12)
	x1, x2 = x1+x2, x1-x2
	x0, x3 = x0+x3, x0-x3

	x7, x4 := f[8+i], f[56+i]
	x7, x4 = x7+x4, x7-x4
	x5, x6 := f[24+i]>>13*invRoot14, f[40+i]>>13*invRoot14
	x7, x5 = x7+x5, x7-x5
	x4, x6 = x4+x6, x4-x6
	x4, x7 = turn(x4>>14, x7>>14, cos3x12, -sin3x12)
	x5, x6 = turn(x5>>14, x6>>14, cos1x12, -sin1x12)

	f[i], f[56+i] = (x0+x7)>>18, (x0-x7)>>18
	f[8+i], f[48+i] = (x1+x6)>>18, (x1-x6)>>18
	f[16+i], f[40+i] = (x2+x5)>>18, (x2-x5)>>18
	f[24+i], f[32+i] = (x3+x4)>>18, (x3-x4)>>18
}
