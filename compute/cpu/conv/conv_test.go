package conv

import (
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"

	"optimus/internal/level"
	"optimus/internal/rng"
)

func fill(seed uint64, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(rng.NewKey(seed).Normal(uint64(i)))
	}
	return x
}

// reference computes y, dx and dw of one picture in float64, as Shape defines them.
func reference(s Shape, x, w, dy []float32) (y, dx, dw []float64) {
	h, wd := s.OutH(), s.OutW()
	y, dx, dw = make([]float64, s.O*h*wd), make([]float64, len(x)), make([]float64, len(w))
	cg, og := s.C/s.Groups, s.O/s.Groups
	for o := range s.O {
		for c := range cg {
			for u := range s.KH {
				for v := range s.KW {
					wi := ((o*cg+c)*s.KH+u)*s.KW + v
					for i := range h {
						r := i*s.StrideH + u - s.PadH
						if r < 0 || r >= s.H {
							continue
						}
						for j := range wd {
							q := j*s.StrideW + v - s.PadW
							if q < 0 || q >= s.W {
								continue
							}
							xi, yi := ((o/og*cg+c)*s.H+r)*s.W+q, (o*h+i)*wd+j
							y[yi] += float64(x[xi]) * float64(w[wi])
							dx[xi] += float64(dy[yi]) * float64(w[wi])
							dw[wi] += float64(dy[yi]) * float64(x[xi])
						}
					}
				}
			}
		}
	}
	return y, dx, dw
}

func near(name string, got []float32, want []float64) error {
	worst, largest, at := 0.0, 0.0, 0
	for i := range want {
		if d := math.Abs(float64(got[i]) - want[i]); !(d <= worst) {
			worst, at = d, i
		}
		largest = math.Max(largest, math.Abs(want[i]))
	}
	if !(worst <= 1e-5*largest) {
		return fmt.Errorf("%s: element %d is %v, not %v (largest %v)", name, at, got[at], want[at], largest)
	}
	return nil
}

// verify compares all three directions of one picture with the reference.
func verify(s Shape, cfg Config) error {
	c, err := New(s, cfg)
	if err != nil {
		return err
	}
	s = c.Shape()
	x, w := fill(1, s.C*s.H*s.W), fill(2, s.Weights())
	dy := fill(3, s.O*s.OutH()*s.OutW())
	y, dx, dw := reference(s, x, w, dy)

	xb, yb, dyb, dxb := make([]float32, c.X().Size()), make([]float32, c.Y().Size()), make([]float32, c.Y().Size()), make([]float32, c.DX().Size())
	c.X().Put(xb, x)
	c.Y().Put(dyb, dy)
	fw, bw, gw := make([]float32, c.ForwardSize()), make([]float32, c.BackwardSize()), make([]float32, c.GradientSize())
	c.PackForward(fw, w)
	c.PackBackward(bw, w)

	c.Forward(Samples{yb, len(yb)}, Samples{xb, len(xb)}, fw, nil, 0, 1)
	got := make([]float32, len(y))
	c.Y().Get(got, yb)
	if err := near("y", got, y); err != nil {
		return err
	}
	c.BackwardData(Samples{dxb, len(dxb)}, Samples{dyb, len(dyb)}, bw, false, 0, 1)
	got = make([]float32, len(dx))
	c.DX().Get(got, dxb)
	if err := near("dx", got, dx); err != nil {
		return err
	}
	c.BackwardWeights(gw, Samples{xb, len(xb)}, Samples{dyb, len(dyb)}, 1, 0, c.Tasks())
	got = make([]float32, len(dw))
	c.UnpackGradient(got, gw)
	return near("dw", got, dw)
}

func each(t *testing.T, f func(t *testing.T, name string)) {
	for _, name := range level.Present() {
		t.Run(name, func(t *testing.T) { f(t, name) })
	}
}

func draw(r *rapid.T) Shape {
	groups := rapid.SampledFrom([]int{1, 1, 1, 2, 3, 4, 8, 16, 32}).Draw(r, "groups")
	channels := rapid.SampledFrom([]int{1, 2, 3, 4, 5, 8, 16, 17, 32, 48, 70})
	s := Shape{
		C: channels.Draw(r, "C"), O: channels.Draw(r, "O"),
		KH: rapid.IntRange(1, 7).Draw(r, "KH"), KW: rapid.IntRange(1, 7).Draw(r, "KW"),
		StrideH: rapid.IntRange(1, 3).Draw(r, "strideH"), StrideW: rapid.IntRange(1, 3).Draw(r, "strideW"),
		PadH: rapid.IntRange(0, 4).Draw(r, "padH"), PadW: rapid.IntRange(0, 4).Draw(r, "padW"), Groups: groups,
	}
	if groups > 1 {
		s.C, s.O = groups*rapid.SampledFrom([]int{1, 2, 3, 4, 8, 16}).Draw(r, "Cg"), groups*rapid.SampledFrom([]int{1, 2, 4, 8, 16}).Draw(r, "Og")
	}
	s.H = rapid.IntRange(max(1, s.KH-2*s.PadH), 12).Draw(r, "H")
	s.W = rapid.IntRange(max(1, s.KW-2*s.PadW), 40).Draw(r, "W")
	return s
}

func TestRandom(t *testing.T) {
	each(t, func(t *testing.T, name string) {
		rapid.Check(t, func(r *rapid.T) {
			halo := func(n string) Halo {
				return Halo{rapid.IntRange(0, 2).Draw(r, n), rapid.IntRange(0, 2).Draw(r, n)}
			}
			if err := verify(draw(r), Config{X: halo("X"), Y: halo("Y"), Level: name}); err != nil {
				r.Fatal(err)
			}
		})
	})
}
