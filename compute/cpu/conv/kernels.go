package conv

import "math/bits"

type (
	// A gatherKernel computes t.n tiles; x[xi] is below the first pixel of the first
	// tile, w and y begin at its weights and outputs, bias, where it starts from it, at
	// its biases.
	gatherKernel func(t tiles, x []float32, xi int, w, y, bias []float32)
	// An outerKernel adds the outer products of x and dy to the tiles at dw.
	outerKernel func(p products, x, dy, dw []float32)
)

const (
	size = 4  // bytes of an element
	line = 64 // bytes of a cache line
)

// kernels are the inner loops at one level.
type kernels struct {
	// widest is how many pixels a tile of 1, 2 and 4 blocks of outputs can have; 0
	// if there is no such kernel.
	widest [3]int
	gather gatherKernel
	// inputs × 16·blocks is the largest tile of weight gradients; inputs divides 16.
	inputs, blocks int
	outer          outerKernel

	// Groups of 1, 2, 4 or 8 channels, up to small, have kernels for a block of
	// 16: tiles of up to smallPixels pixels, whose taps have a value for each channel
	// of a group; and gradients of 1 or smallPlaces (by log2 of the channels) places of
	// the filter side by side.
	small, smallPixels int
	smallPlaces        [4]int
	gatherSmall        gatherKernel
	outerSmall         outerKernel
}

// tiles is the shape of one call of a gather kernel: n tiles of pixels × blocks
// side by side. Strides are in elements.
type tiles struct {
	n, pixels, blocks int
	taps              []tap
	kin               int // values of a tap
	xs, ys            int // from pixel to pixel
	plane             int // from block to block of y
	start             int
	ahead             []float32 // what to fetch on the way, or nil
}

// lines is how many cache lines the tiles fetch on the way.
func (t *tiles) lines() int { return t.n * len(t.taps) * (t.kin / 4) }

// products is the shape of one call of an outer kernel. Strides are in elements.
type products struct {
	inputs, blocks       int
	group                int // channels of a small group, whose inputs are places of the filter
	units, tiles         int // tiles below each other in each unit
	xu                   int // of x: from unit to unit
	images, rows, pixels int
	xs, xr, xn           int       // of x: from pixel to pixel, row to row, image to image
	yr, yn, plane        int       // of dy: from row to row, image to image, block to block
	ahead                []float32 // what to fetch on the way for the first unit, or nil
	au                   int       // from there to the next unit's
}

// log2 of 1, 2, 4 or 8.
func log2(n int) int { return bits.Len(uint(n)) - 1 }
