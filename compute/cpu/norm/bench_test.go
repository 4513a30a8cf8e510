package norm

import (
	"testing"

	"optimus/compute/cpu/internal/turns"
	"optimus/compute/cpu/plane"
	"optimus/internal/rng"
)

// BenchmarkPasses compares the levels on a plane of 56·56 pixels and on a row of 1760 channels.
func BenchmarkPasses(b *testing.B) {
	s := plane.Shape{H: 56, W: 56, HaloH: 1, HaloW: 1}
	random := func(seed uint64, n int) []float32 {
		x := make([]float32, n)
		for i := range x {
			x[i] = float32(rng.NewKey(seed).Normal(uint64(i)))
		}
		return x
	}
	p := func(seed uint64) plane.Plane { return plane.Of(s, random(seed, s.Len())) }
	x, y, r, dy, dx, dr := p(1), p(2), p(3), p(4), p(5), p(6)
	const c = 1760
	row, rowY := random(7, c), random(8, c)
	blocks := plane.Blocks(c)
	m, a, g, d := make([]Moments, blocks), make([]Affine, blocks), make([]GradSums, blocks), make([]InputGrad, blocks)
	values := s.H * s.W * lanes
	for _, o := range []struct {
		op  string
		n   int
		run func(name string)
	}{
		{"plane/moments", values, func(name string) { m[0].planeAt(name, x) }},
		{"plane/apply", values, func(name string) { a[0].planeAt(name, y, x, r, true) }},
		{"plane/gradsums", values, func(name string) { g[0].planeAt(name, dy, y, x) }},
		{"plane/inputgrad", values, func(name string) { d[0].planeAt(name, dx, dr, dy, y, x, false, false) }},
		{"row/moments", c, func(name string) { momentsRowAt(name, m, row) }},
		{"row/apply", c, func(name string) { affineRowAt(name, a, rowY, row, nil, false) }},
		{"row/gradsums", c, func(name string) { gradSumsRowAt(name, g, row, nil, row) }},
		{"row/inputgrad", c, func(name string) { inputGradRowAt(name, d, rowY, nil, row, nil, row, false, false) }},
	} {
		b.Run(o.op, func(b *testing.B) { turns.Levels(b, o.n, o.run) })
	}
}
