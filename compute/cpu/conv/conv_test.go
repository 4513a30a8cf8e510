package conv

import (
	"fmt"
	"math"
	"strings"
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

func each(t *testing.T, f func(t *testing.T, name string)) {
	for _, name := range level.Present() {
		t.Run(name, func(t *testing.T) { f(t, name) })
	}
}

// term visits every product of the definition in Shape: the places of its input,
// weight and output in one picture.
func term(s Shape, visit func(x, w, y int)) {
	cg, og := s.C/s.Groups, s.O/s.Groups
	for o := range s.O {
		for i := range s.OutH() {
			for j := range s.OutW() {
				for c := range cg {
					for u := range s.KH {
						for v := range s.KW {
							h, w := i*s.StrideH+u-s.PadH, j*s.StrideW+v-s.PadW
							if h >= 0 && h < s.H && w >= 0 && w < s.W {
								visit(((o/og*cg+c)*s.H+h)*s.W+w, ((o*cg+c)*s.KH+u)*s.KW+v, (o*s.OutH()+i)*s.OutW()+j)
							}
						}
					}
				}
			}
		}
	}
}

// problem is a convolution of a few pictures with its arrays in row-major order.
type problem struct {
	s              Shape
	n              int
	x, w, dy, bias []float32
	y, dx, dw      []float64
}

// newProblem computes the results by definition, in float64.
func newProblem(s Shape, n int) *problem {
	p := &problem{
		s: s, n: n, x: fill(1, n*s.C*s.H*s.W), w: fill(2, s.Weights()), dy: fill(3, n*s.O*s.OutH()*s.OutW()), bias: fill(4, s.O),
	}
	p.y, p.dx, p.dw = make([]float64, len(p.dy)), make([]float64, len(p.x)), make([]float64, len(p.w))
	area := s.OutH() * s.OutW()
	for i := range n {
		x, dy := i*len(p.x)/n, i*len(p.dy)/n
		for j := range s.O * area {
			p.y[dy+j] = float64(p.bias[j/area])
		}
		term(s, func(xi, wi, yi int) {
			p.y[dy+yi] += float64(p.x[x+xi]) * float64(p.w[wi])
			p.dx[x+xi] += float64(p.dy[dy+yi]) * float64(p.w[wi])
			p.dw[wi] += float64(p.dy[dy+yi]) * float64(p.x[x+xi])
		})
	}
	return p
}

// arrays holds what a Conv reads and writes.
type arrays struct {
	x, y, dx, dy      Samples
	forward, backward []float32
	bias, gradient    []float32
}

// load lays the problem out for c, in memory from alloc.
func (p *problem) load(c *Conv, alloc func(n int) []float32) arrays {
	samples := func(l Layout, chw []float32) Samples {
		s := Samples{alloc(p.n * l.Size()), l.Size()}
		for i := range p.n {
			if chw != nil {
				l.Put(s.Data[i*s.Stride:][:s.Stride], chw[i*len(chw)/p.n:(i+1)*len(chw)/p.n])
			}
		}
		return s
	}
	a := arrays{
		x: samples(c.X(), p.x), y: samples(c.Y(), nil), dx: samples(c.DX(), nil), dy: samples(c.Y(), p.dy),
		forward: alloc(c.ForwardSize()), backward: alloc(c.BackwardSize()),
		bias: alloc(blocks(p.s.O) * Lanes), gradient: alloc(c.GradientSize()),
	}
	copy(a.bias, p.bias)
	c.PackForward(a.forward, p.w)
	c.PackBackward(a.backward, p.w)
	return a
}

func unload(l Layout, s Samples, n int) []float32 {
	out := make([]float32, n*l.C*l.H*l.W)
	for i := range n {
		l.Get(out[i*len(out)/n:(i+1)*len(out)/n], s.Data[i*s.Stride:][:s.Stride])
	}
	return out
}

// run computes all three directions. split says where samples and tasks are cut.
func (p *problem) run(c *Conv, a arrays, split float64) {
	cut := int(split * float64(p.n))
	for _, r := range [][2]int{{0, cut}, {cut, p.n}} {
		c.Forward(a.y, a.x, a.forward, a.bias, r[0], r[1])
		c.BackwardData(a.dx, a.dy, a.backward, false, r[0], r[1])
	}
	cut = int(split * float64(c.Tasks()))
	for _, r := range [][2]int{{cut, c.Tasks()}, {0, cut}} {
		c.BackwardWeights(a.gradient, a.x, a.dy, p.n, r[0], r[1])
	}
}

// verify compares the results with those by definition, and the halos and unused
// lanes with zero.
func (p *problem) verify(c *Conv, a arrays) error {
	dw := make([]float32, len(p.w))
	for t := range c.Tasks() { // each weight is that of one task
		c.UnpackTasks(dw, a.gradient, t, t+1)
	}
	for _, r := range []struct {
		name string
		got  []float32
		want []float64
	}{
		{"y", unload(c.Y(), a.y, p.n), p.y}, {"dx", unload(c.DX(), a.dx, p.n), p.dx}, {"dw", dw, p.dw},
	} {
		if err := near(r.name, r.got, r.want); err != nil {
			return fmt.Errorf("%v at level %s: %w", p.s, c.Level(), err)
		}
	}
	for _, r := range []struct {
		name string
		l    Layout
		s    Samples
	}{{"y", c.Y(), a.y}, {"dx", c.DX(), a.dx}} {
		if err := margins(r.l, r.s, p.n); err != nil {
			return fmt.Errorf("%v at level %s: %s: %w", p.s, c.Level(), r.name, err)
		}
	}
	return nil
}

// near allows the rounding of float32 sums.
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

// margins returns an error if anything but pixels of channels is not zero.
func margins(l Layout, s Samples, n int) error {
	for i := range n {
		picture := append([]float32(nil), s.Data[i*s.Stride:][:l.Size()]...)
		l.Put(picture, make([]float32, l.C*l.H*l.W))
		for j, v := range picture {
			if v != 0 {
				return fmt.Errorf("element %d of picture %d, in the halo or past the last channel, is %v", j, i, v)
			}
		}
		for pixel := range l.H * l.W {
			at := (l.planes()-1)*l.plane() + l.at(pixel/l.W, pixel%l.W)
			for lane := l.C - (l.planes()-1)*l.pixel(); lane < l.pixel(); lane++ {
				if v := s.Data[i*s.Stride+at+lane]; v != 0 {
					return fmt.Errorf("lane %d of pixel %d of picture %d, past the last channel, is %v", lane, pixel, i, v)
				}
			}
		}
	}
	return nil
}

func plan(s Shape, cfg Config) (*Conv, error) {
	c, err := New(s, cfg)
	if err != nil {
		return nil, fmt.Errorf("%v: %w", s, err)
	}
	return c, nil
}

// check runs a problem at a level as a whole and in two parts, which must not differ in a bit.
func check(p *problem, cfg Config, split float64) error {
	c, err := plan(p.s, cfg)
	if err != nil {
		return err
	}
	plain := func(n int) []float32 { return make([]float32, n) }
	whole, parts := p.load(c, plain), p.load(c, plain)
	p.run(c, whole, 1)
	p.run(c, parts, split)
	for i, pair := range [][2][]float32{{whole.y.Data, parts.y.Data}, {whole.dx.Data, parts.dx.Data}, {whole.gradient, parts.gradient}} {
		for j, v := range pair[0] {
			if math.Float32bits(v) != math.Float32bits(pair[1][j]) {
				return fmt.Errorf("%v: array %d: element %d is %v as a whole and %v when split at %v", p.s, i, j, v, pair[1][j], split)
			}
		}
	}
	return p.verify(c, whole)
}

// draw makes a small shape of any kind.
func draw(r *rapid.T) Shape {
	n := func(name string, lo, hi int) int { return rapid.IntRange(lo, hi).Draw(r, name) }
	s := Shape{
		KH: n("KH", 1, 7), KW: n("KW", 1, 7), StrideH: n("strideH", 1, 3), StrideW: n("strideW", 1, 3),
		PadH: n("padH", 0, 4), PadW: n("padW", 0, 4), Groups: 1,
	}
	if n("kind", 0, 2) == 0 {
		s.Groups = n("groups", 2, 20)
		s.C, s.O = s.Groups*n("C", 1, 17), s.Groups*n("O", 1, 9)
		if rapid.Bool().Draw(r, "square") {
			s.O = s.C
		}
	} else {
		s.C, s.O = n("C", 1, 70), n("O", 1, 70)
	}
	if rapid.Bool().Draw(r, "single") {
		s.KH, s.KW, s.PadH, s.PadW = 1, 1, 0, 0
	}
	s.H = n("H", max(1, s.KH-2*s.PadH), 9)
	s.W = n("W", max(1, s.KW-2*s.PadW), 32)
	return s
}

func TestRandomShapes(t *testing.T) {
	each(t, func(t *testing.T, name string) {
		rapid.Check(t, func(r *rapid.T) {
			halo := func(name string) Halo {
				return Halo{rapid.IntRange(0, 2).Draw(r, name+"H"), rapid.IntRange(0, 2).Draw(r, name+"W")}
			}
			p := newProblem(draw(r), rapid.IntRange(1, 3).Draw(r, "n"))
			cfg := Config{X: halo("X"), Y: halo("Y"), Blocked: rapid.Bool().Draw(r, "blocked"), Level: name}
			if err := check(p, cfg, rapid.Float64Range(0, 1).Draw(r, "split")); err != nil {
				r.Fatal(err)
			}
		})
	})
}

// TestAdjoint holds the directions to each other: the convolution is linear in x and
// in w, so that ⟨dy, conv(x,w)⟩ = ⟨convᵀ(dy), x⟩ = ⟨dw, w⟩.
func TestAdjoint(t *testing.T) {
	each(t, func(t *testing.T, name string) {
		for _, s := range []Shape{
			{C: 64, H: 30, W: 31, O: 96, KH: 3, KW: 3, PadH: 1, PadW: 1, Groups: 1},
			{C: 3, H: 61, W: 47, O: 32, KH: 7, KW: 7, StrideH: 2, StrideW: 2, PadH: 3, PadW: 3, Groups: 1},
			{C: 40, H: 20, W: 20, O: 24, KH: 1, KW: 1, StrideH: 2, StrideW: 2, Groups: 1},
			{C: 64, H: 17, W: 19, O: 64, KH: 3, KW: 3, PadH: 1, PadW: 1, Groups: 16},
			{C: 64, H: 17, W: 19, O: 64, KH: 5, KW: 5, StrideH: 2, StrideW: 2, PadH: 2, PadW: 2, Groups: 8},
		} {
			c, err := plan(s, Config{Level: name})
			if err != nil {
				t.Fatal(err)
			}
			s = c.Shape()
			p := &problem{s: s, n: 1, x: fill(1, s.C*s.H*s.W), w: fill(2, s.Weights()), dy: fill(3, s.O*s.OutH()*s.OutW())}
			a := p.load(c, func(n int) []float32 { return make([]float32, n) })
			p.run(c, a, 1)
			dw := make([]float32, len(p.w))
			c.UnpackGradient(dw, a.gradient)
			y := unload(c.Y(), a.y, 1)
			want := dot(y, p.dy)
			scale := math.Sqrt(dot(y, y) * dot(p.dy, p.dy))
			for what, got := range map[string]float64{"⟨convᵀ(dy), x⟩": dot(unload(c.DX(), a.dx, 1), p.x), "⟨dw, w⟩": dot(dw, p.w)} {
				if math.Abs(got-want) > 1e-6*scale {
					t.Errorf("%v: %s is %v, ⟨dy, conv(x)⟩ %v", s, what, got, want)
				}
			}
		}
	})
}

func dot(a, b []float32) float64 {
	sum := 0.0
	for i, v := range a {
		sum += float64(v) * float64(b[i])
	}
	return sum
}

// TestAccumulate adds to what dx, the gradient and dw hold.
func TestAccumulate(t *testing.T) {
	each(t, func(t *testing.T, name string) {
		for _, s := range []Shape{
			{C: 32, H: 9, W: 20, O: 40, KH: 3, KW: 3, StrideH: 2, StrideW: 2, PadH: 1, PadW: 1, Groups: 1},
			{C: 32, H: 9, W: 20, O: 16, KH: 1, KW: 1, StrideH: 2, StrideW: 1, Groups: 1},
			{C: 32, H: 9, W: 20, O: 32, KH: 3, KW: 3, PadH: 1, PadW: 1, Groups: 8},
		} {
			p := newProblem(s.withOnes(), 2)
			c, err := plan(s, Config{Level: name})
			if err != nil {
				t.Fatal(err)
			}
			a := p.load(c, func(n int) []float32 { return make([]float32, n) })
			for i := range p.n {
				c.DX().Put(a.dx.Data[i*a.dx.Stride:][:a.dx.Stride], p.x[i*len(p.x)/p.n:(i+1)*len(p.x)/p.n])
			}
			c.BackwardData(a.dx, a.dy, a.backward, true, 0, p.n)
			for range 2 {
				c.BackwardWeights(a.gradient, a.x, a.dy, p.n, 0, c.Tasks())
			}
			dw := append([]float32(nil), p.w...)
			c.UnpackGradient(dw, a.gradient)
			for i, v := range p.x {
				p.dx[i] += float64(v)
			}
			for i, v := range p.w {
				p.dw[i] = 2*p.dw[i] + float64(v)
			}
			if err := near("dx", unload(c.DX(), a.dx, p.n), p.dx); err != nil {
				t.Errorf("%v: %v", s, err)
			}
			if err := near("dw", dw, p.dw); err != nil {
				t.Errorf("%v: %v", s, err)
			}
		}
	})
}

// TestBadShapes: each refusal names the shape and what is wrong with it.
func TestBadShapes(t *testing.T) {
	good := Shape{C: 4, H: 5, W: 6, O: 8, KH: 3, KW: 3}
	for want, change := range map[string]func(*Shape){
		"C is 0":                 func(s *Shape) { s.C = 0 },
		"H is -1":                func(s *Shape) { s.H = -1 },
		"O is 40000":             func(s *Shape) { s.O = 40000 },
		"StrideW is -2":          func(s *Shape) { s.StrideW = -2 },
		"PadH is -1":             func(s *Shape) { s.PadH = -1 },
		"3 groups divide":        func(s *Shape) { s.Groups = 3 },
		"larger than the padded": func(s *Shape) { s.KW = 7 },
	} {
		s := good
		change(&s)
		if _, err := New(s, Config{}); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "plan convolution") {
			t.Errorf("%v: error %v, want one with %q", s, err, want)
		}
	}
	if _, err := New(good, Config{Level: "avx3"}); err == nil || !strings.Contains(err.Error(), "no such level") {
		t.Errorf("level avx3: error %v", err)
	}
	if _, err := New(good, Config{X: Halo{-1, 0}}); err == nil || !strings.Contains(err.Error(), "a halo is -1 wide") {
		t.Errorf("negative halo: error %v", err)
	}
}

// TestContract: arrays of a wrong size panic with a message before any kernel runs.
func TestContract(t *testing.T) {
	c, err := New(Shape{C: 4, H: 5, W: 6, O: 8, KH: 3, KW: 3}, Config{})
	if err != nil {
		t.Fatal(err)
	}
	s := func(l Layout) Samples { return Samples{make([]float32, l.Size()), l.Size()} }
	short := Samples{make([]float32, 10), 10}
	f, b, g := make([]float32, c.ForwardSize()), make([]float32, c.BackwardSize()), make([]float32, c.GradientSize())
	for want, call := range map[string]func(){
		"samples [0,1) of y":  func() { c.Forward(short, s(c.X()), f, nil, 0, 1) },
		"samples [0,2) of x":  func() { c.Forward(Samples{make([]float32, 2*c.Y().Size()), c.Y().Size()}, s(c.X()), f, nil, 0, 2) },
		"bias has 8":          func() { c.Forward(s(c.Y()), s(c.X()), f, make([]float32, 8), 0, 1) },
		"w has 1":             func() { c.BackwardData(s(c.DX()), s(c.Y()), b[:1], false, 0, 1) },
		"samples [1,0) of dx": func() { c.BackwardData(s(c.DX()), s(c.Y()), b, false, 1, 0) },
		"UnpackTasks":         func() { c.UnpackTasks(make([]float32, c.Shape().Weights()), g, 1, 0) },
		"tasks [0,99999)":     func() { c.BackwardWeights(g, s(c.X()), s(c.Y()), 1, 0, 99999) },
		"dst has 3":           func() { c.PackForward(f[:3], make([]float32, c.Shape().Weights())) },
		"Layout.Put":          func() { c.X().Put(f, f) },
	} {
		func() {
			defer func() {
				if got := fmt.Sprint(recover()); !strings.Contains(got, want) || !strings.Contains(got, "conv: ") {
					t.Errorf("panic %q, want one with %q", got, want)
				}
			}()
			call()
		}()
	}
}
