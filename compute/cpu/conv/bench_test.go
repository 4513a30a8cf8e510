package conv

import (
	"fmt"
	"testing"

	"optimus/internal/level"
)

// TestAllocations: nothing is allocated once a plan has run.
func TestAllocations(t *testing.T) {
	if raceDetector {
		t.Skip("sync.Pool drops items under the race detector")
	}
	for _, s := range []Shape{
		{C: 16, H: 8, W: 14, O: 32, KH: 3, KW: 3, PadH: 1, PadW: 1},
		{C: 16, H: 8, W: 14, O: 32, KH: 1, KW: 1, StrideH: 2, StrideW: 2},
		{C: 3, H: 8, W: 14, O: 32, KH: 3, KW: 3},
		{C: 32, H: 8, W: 14, O: 32, KH: 3, KW: 3, Groups: 8},
	} {
		c, err := plan(s, Config{})
		if err != nil {
			t.Fatal(err)
		}
		p := newProblem(c.Shape(), 2)
		a := p.load(c, func(n int) []float32 { return make([]float32, n) })
		p.run(c, a, 0.5)
		if n := testing.AllocsPerRun(20, func() {
			p.run(c, a, 0.5)
			c.PackForward(a.forward, p.w)
			c.PackBackward(a.backward, p.w)
			c.UnpackGradient(p.w, a.gradient)
		}); n > 0 {
			t.Errorf("%v: %v allocations", s, n)
		}
	}
}

// BenchmarkConv runs a few layers in all directions, and their packing, at every level.
func BenchmarkConv(b *testing.B) {
	for _, s := range []Shape{
		{C: 64, H: 56, W: 56, O: 64, KH: 3, KW: 3, StrideH: 1, StrideW: 1, PadH: 1, PadW: 1, Groups: 1},
		{C: 1024, H: 14, W: 14, O: 256, KH: 1, KW: 1, StrideH: 1, StrideW: 1, Groups: 1},
		{C: 512, H: 7, W: 7, O: 512, KH: 3, KW: 3, StrideH: 1, StrideW: 1, PadH: 1, PadW: 1, Groups: 1},
		{C: 64, H: 32, W: 32, O: 64, KH: 3, KW: 3, StrideH: 1, StrideW: 1, PadH: 1, PadW: 1, Groups: 16},
	} {
		for _, name := range level.Present() {
			c, err := plan(s, Config{Level: name})
			if err != nil {
				b.Fatal(err)
			}
			p := &problem{s: s, n: 1, x: fill(1, s.C*s.H*s.W), w: fill(2, s.Weights()), dy: fill(3, s.O*s.OutH()*s.OutW())}
			a := p.load(c, func(n int) []float32 { return make([]float32, n) })
			flop := 2 * float64(len(p.dy)) * float64(s.Weights()/s.O)
			for _, d := range []struct {
				name string
				run  func()
			}{
				{"forward", func() { c.Forward(a.y, a.x, a.forward, nil, 0, 1) }},
				{"backward-data", func() { c.BackwardData(a.dx, a.dy, a.backward, false, 0, 1) }},
				{"backward-weights", func() { c.BackwardWeights(a.gradient, a.x, a.dy, 1, 0, c.Tasks()) }},
				{"pack", func() {
					c.PackForward(a.forward, p.w)
					c.PackBackward(a.backward, p.w)
					c.UnpackGradient(p.w, a.gradient)
				}},
			} {
				b.Run(fmt.Sprintf("%v/%s/%s", s, d.name, name), func(b *testing.B) {
					for b.Loop() {
						d.run()
					}
					b.ReportMetric(flop*float64(b.N)/float64(b.Elapsed().Nanoseconds()), "GFLOP/s")
				})
			}
		}
	}
}
