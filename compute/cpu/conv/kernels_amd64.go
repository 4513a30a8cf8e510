package conv

//go:generate go run -C ../gen ./conv -out ../conv/micro_amd64.s -stubs ../conv/micro_amd64.go -pkg conv

import "optimus/internal/level"

// The signatures of the microkernels; see gen/conv. Strides are in bytes.
type (
	gatherMicro func(tiles, taps int, tap *int, kin int, x, w, y *float32, xs, ys, obs, init int, bias, ahead *float32, step int)
	outerMicro  func(units, tiles, images, rows, pixels int, x, dy *float32, xu, xs, xr, xn, yr, yn, obs int, dw, ahead *float32, au, step int)
)

var (
	// by blocks of outputs (1, 2, 4), then pixels
	gatherMicro512 = [3][]gatherMicro{{
		gather512x1x16, gather512x2x16, gather512x3x16, gather512x4x16, gather512x5x16, gather512x6x16, gather512x7x16,
		gather512x8x16, gather512x9x16, gather512x10x16, gather512x11x16, gather512x12x16, gather512x13x16, gather512x14x16,
	}, {
		gather512x1x32, gather512x2x32, gather512x3x32, gather512x4x32, gather512x5x32, gather512x6x32, gather512x7x32,
		gather512x8x32, gather512x9x32, gather512x10x32, gather512x11x32, gather512x12x32, gather512x13x32, gather512x14x32,
	}, {
		gather512x1x64, gather512x2x64, gather512x3x64, gather512x4x64, gather512x5x64, gather512x6x64, gather512x7x64,
	}}
	gatherMicro256 = [...]gatherMicro{
		gather256x1x16, gather256x2x16, gather256x3x16, gather256x4x16, gather256x5x16, gather256x6x16,
	}
	// by blocks of outputs, then inputs
	outerMicro512 = [2][8]outerMicro{{
		outer512x1x16, outer512x2x16, outer512x3x16, outer512x4x16, outer512x5x16, outer512x6x16, outer512x7x16, outer512x8x16,
	}, {
		outer512x1x32, outer512x2x32, outer512x3x32, outer512x4x32, outer512x5x32, outer512x6x32, outer512x7x32, outer512x8x32,
	}}
	outerMicro256 = [4]outerMicro{outer256x1x16, outer256x2x16, outer256x3x16, outer256x4x16}

	// by channels of a group (1, 2, 4, 8), then pixels
	gatherSmall512 = [4][8]gatherMicro{
		{gatherSmall512x1x1, gatherSmall512x2x1, gatherSmall512x3x1, gatherSmall512x4x1, gatherSmall512x5x1, gatherSmall512x6x1, gatherSmall512x7x1, gatherSmall512x8x1},
		{gatherSmall512x1x2, gatherSmall512x2x2, gatherSmall512x3x2, gatherSmall512x4x2, gatherSmall512x5x2, gatherSmall512x6x2, gatherSmall512x7x2, gatherSmall512x8x2},
		{gatherSmall512x1x4, gatherSmall512x2x4, gatherSmall512x3x4, gatherSmall512x4x4, gatherSmall512x5x4, gatherSmall512x6x4, gatherSmall512x7x4, gatherSmall512x8x4},
		{gatherSmall512x1x8, gatherSmall512x2x8, gatherSmall512x3x8, gatherSmall512x4x8, gatherSmall512x5x8, gatherSmall512x6x8, gatherSmall512x7x8, gatherSmall512x8x8},
	}
	gatherSmall256 = [3][4]gatherMicro{
		{gatherSmall256x1x1, gatherSmall256x2x1, gatherSmall256x3x1, gatherSmall256x4x1},
		{gatherSmall256x1x2, gatherSmall256x2x2, gatherSmall256x3x2, gatherSmall256x4x2},
		{gatherSmall256x1x4, gatherSmall256x2x4, gatherSmall256x3x4, gatherSmall256x4x4},
	}
	// by channels of a group, for one place of the filter and for three
	outerSmall512  = [4]outerMicro{outerSmall512x1x1, outerSmall512x1x2, outerSmall512x1x4, outerSmall512x1x8}
	outerSmall512x = [3]outerMicro{outerSmall512x3x1, outerSmall512x3x2, outerSmall512x3x4}
	outerSmall256  = [3]outerMicro{outerSmall256x1x1, outerSmall256x1x2, outerSmall256x1x4}

	avx512 = kernels{
		widest: [3]int{14, 14, 7}, gather: gather512, inputs: 8, blocks: 2, outer: outer512,
		small: 8, smallPixels: 8, smallPlaces: [4]int{3, 3, 3, 1}, gatherSmall: gatherSmallAVX512, outerSmall: outerSmallAVX512,
	}
	avx2 = kernels{
		widest: [3]int{6}, gather: gather256, inputs: 4, blocks: 1, outer: outer256,
		small: 4, smallPixels: 4, smallPlaces: [4]int{1, 1, 1}, gatherSmall: gatherSmallAVX2, outerSmall: outerSmallAVX2,
	}
)

// kernelsFor returns the kernels of a level that is present.
func kernelsFor(name string) *kernels {
	switch name {
	case level.AVX512:
		return &avx512
	case level.AVX2:
		return &avx2
	}
	return &plain
}

func gather512(t tiles, x []float32, xi int, w, y, bias []float32) {
	gatherMicro512[log2(t.blocks)][t.pixels-1].run(&t, x, xi, w, y, bias)
}

func gather256(t tiles, x []float32, xi int, w, y, bias []float32) {
	gatherMicro256[t.pixels-1].run(&t, x, xi, w, y, bias)
}

func gatherSmallAVX512(t tiles, x []float32, xi int, w, y, bias []float32) {
	gatherSmall512[log2(t.kin)][t.pixels-1].run(&t, x, xi, w, y, bias)
}

func gatherSmallAVX2(t tiles, x []float32, xi int, w, y, bias []float32) {
	gatherSmall256[log2(t.kin)][t.pixels-1].run(&t, x, xi, w, y, bias)
}

func outerSmallAVX512(p products, x, dy, dw []float32) {
	if p.inputs == 3 {
		outerSmall512x[log2(p.group)].run(&p, x, dy, dw)
		return
	}
	outerSmall512[log2(p.group)].run(&p, x, dy, dw)
}

func outerSmallAVX2(p products, x, dy, dw []float32) {
	outerSmall256[log2(p.group)].run(&p, x, dy, dw)
}

func (f gatherMicro) run(t *tiles, x []float32, xi int, w, y, bias []float32) {
	var taps *int
	var from, weights, biases *float32
	if len(t.taps) > 0 {
		taps, from, weights = &t.taps[0].x, &x[xi], &w[0]
	}
	if t.start == fromBias {
		biases = &bias[0]
	}
	ahead, step := from, 0
	if t.ahead != nil {
		ahead, step = &t.ahead[0], line
	}
	f(t.n, len(t.taps), taps, t.kin, from, weights, &y[0], t.xs*size, t.ys*size, t.plane*size, t.start, biases, ahead, step)
}

func outer512(p products, x, dy, dw []float32) {
	outerMicro512[p.blocks-1][p.inputs-1].run(&p, x, dy, dw)
}

func outer256(p products, x, dy, dw []float32) { outerMicro256[p.inputs-1].run(&p, x, dy, dw) }

func (f outerMicro) run(p *products, x, dy, dw []float32) {
	ahead, au, step := &x[0], 0, 0
	if p.ahead != nil {
		ahead, au, step = &p.ahead[0], p.au, line
	}
	f(p.units, p.tiles, p.images, p.rows, p.pixels, &x[0], &dy[0], (p.xu-p.tiles*p.inputs)*size, p.xs*size, p.xr*size, p.xn*size, p.yr*size, p.yn*size, p.plane*size, &dw[0], ahead, au*size, step)
}
