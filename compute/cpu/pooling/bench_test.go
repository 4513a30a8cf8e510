package pooling

import (
	"testing"

	"optimus/compute/cpu/internal/turns"
	"optimus/compute/cpu/plane"
	"optimus/internal/rng"
)

// BenchmarkPooling compares the levels; an element is one of the input.
func BenchmarkPooling(b *testing.B) {
	for _, c := range []struct {
		name string
		win  Window
		n    int
	}{{"3x3s2", Square(3, 2, 1), 112}, {"2x2s2", Square(2, 2, 0), 56}, {"global", Square(7, 1, 0), 7}} {
		p, err := New(c.win, c.n, c.n)
		if err != nil {
			b.Fatal(err)
		}
		oh, ow := p.Out()
		in, out := plane.Shape{H: c.n, W: c.n}, plane.Shape{H: oh, W: ow}
		random := func(s plane.Shape, seed uint64) plane.Plane {
			q := plane.Of(s, make([]float32, s.Len()))
			for i := range q.Data {
				q.Data[i] = float32(rng.NewKey(seed).Normal(uint64(i)))
			}
			return q
		}
		x, dx, y, dy, mean := random(in, 1), random(in, 2), random(out, 3), random(out, 4), random(out, 5)
		p.Max(y, x)
		for _, o := range []struct {
			op  string
			run func(name string)
		}{
			{"max", func(name string) { p.maxAt(name, y, x) }},
			{"maxgrad", func(name string) { p.maxGradAt(name, dx, dy, y, x) }},
			{"mean", func(name string) { p.meanAt(name, mean, x) }},
			{"meangrad", func(name string) { p.meanGradAt(name, dx, dy) }},
		} {
			b.Run(c.name+"/"+o.op, func(b *testing.B) { turns.Levels(b, len(x.Data), o.run) })
		}
	}
}
