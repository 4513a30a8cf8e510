// Package plane describes how the CPU kernels for pictures lay out memory.
//
// The channels of a picture are taken in blocks of 16, and a block is a plane of pixels of 16
// values each: the layout NCHW16c. One AVX-512 register then holds one pixel, sums over pixels are
// sums of registers, and no kernel ever shuffles. Around each plane lies a halo of pixels that are
// zero, so that a convolution may read beyond the border; kernels write only inside it. In the last
// block the lanes past the last channel are zero as well.
package plane

import "fmt"

// Lanes is the number of channels of a block.
const Lanes = 16

// Blocks returns how many blocks c channels take.
func Blocks(c int) int { return (c + Lanes - 1) / Lanes }

// A Shape is the size of a plane: H rows of W pixels inside a halo of HaloH rows
// above and below and HaloW columns left and right.
type Shape struct{ H, W, HaloH, HaloW int }

// Len returns how many elements a plane has, halo included.
func (s Shape) Len() int { return (s.H + 2*s.HaloH) * s.Stride() }

// Stride returns how many elements lie between the starts of two rows.
func (s Shape) Stride() int { return (s.W + 2*s.HaloW) * Lanes }

// A Plane is one block of channels of one picture.
type Plane struct {
	Shape
	Data []float32 // Shape.Len elements
}

// Of returns data as a plane. It panics if data has another length than the shape.
func Of(s Shape, data []float32) Plane {
	if s.H < 0 || s.W < 0 || s.HaloH < 0 || s.HaloW < 0 || len(data) != s.Len() {
		panic(fmt.Sprintf("plane: %d elements for a plane of %d·%d pixels of %d channels with a halo of %d and %d; it has %d",
			len(data), s.H, s.W, Lanes, s.HaloH, s.HaloW, s.Len()))
	}
	return Plane{s, data}
}

// Row returns the pixels of row y inside the halo.
func (p Plane) Row(y int) []float32 {
	from := (y+p.HaloH)*p.Stride() + p.HaloW*Lanes
	n := p.W * Lanes
	return p.Data[from : from+n : from+n]
}

// Pixel returns the 16 values at row y and column x, which may lie in the halo.
func (p Plane) Pixel(y, x int) []float32 {
	from := (y+p.HaloH)*p.Stride() + (x+p.HaloW)*Lanes
	return p.Data[from : from+Lanes : from+Lanes]
}
