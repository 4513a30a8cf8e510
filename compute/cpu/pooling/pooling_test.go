package pooling

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"optimus/compute/cpu/internal/fence"
	"optimus/compute/cpu/plane"
	"optimus/internal/level"
	"optimus/internal/rng"
)

func each(t *testing.T, f func(t *testing.T, name string)) {
	for _, name := range level.Present() {
		t.Run(name, func(t *testing.T) { f(t, name) })
	}
}

// window visits the pixels of the picture in window (oy,ox) and returns what a mean divides by, by MXNet's
// definition.
func (p *Plan) visit(oy, ox int, f func(y, x int)) float32 {
	a, b := p.window.H, p.window.W
	y0, x0 := oy*a.Stride-a.Pad, ox*b.Stride-b.Pad
	y1, x1 := min(y0+a.Kernel, p.h+a.Pad), min(x0+b.Kernel, p.w+b.Pad)
	size := (y1 - y0) * (x1 - x0)
	inside := 0
	for y := max(y0, 0); y < min(y1, p.h); y++ {
		for x := max(x0, 0); x < min(x1, p.w); x++ {
			f(y, x)
			inside++
		}
	}
	if !p.window.CountPad {
		size = inside
	}
	return float32(size)
}

// definition computes everything from visit, in the order that the package promises.
func (p *Plan) definition(y, dxMax, mean, dxMean, x, dy plane.Plane) {
	h, w := p.Out()
	for oy := range h {
		for ox := range w {
			for l := range lanes {
				top, sum, line, at := float32(math.Inf(-1)), float32(0), float32(0), -1
				var best *float32
				count := p.visit(oy, ox, func(iy, ix int) {
					v := x.Pixel(iy, ix)[l]
					if best == nil || v > top {
						top, best = v, &dxMax.Pixel(iy, ix)[l]
					}
					if iy != at {
						sum, line, at = sum+line, 0, iy
					}
					line += v
				})
				g := dy.Pixel(oy, ox)[l]
				y.Pixel(oy, ox)[l], mean.Pixel(oy, ox)[l] = top, (sum+line)/count
				*best += g
				p.visit(oy, ox, func(iy, ix int) { dxMean.Pixel(iy, ix)[l] += g / count })
			}
		}
	}
}

func drawAxis(r *rapid.T, label string) (Axis, int) {
	k := rapid.IntRange(1, 4).Draw(r, label+" kernel")
	a := Axis{k, rapid.IntRange(1, k+1).Draw(r, label+" stride"), rapid.IntRange(0, k-1).Draw(r, label+" pad")}
	return a, rapid.IntRange(max(k-2*a.Pad, 1), 9).Draw(r, label)
}

// TestAgainstDefinition draws windows and pictures, with few different values so that there are equals, and
// expects the definition's bits from every level. Planes lie against pages that must not be touched.
func TestAgainstDefinition(t *testing.T) {
	each(t, func(t *testing.T, name string) {
		f := fence.New(t, 6)
		rapid.Check(t, func(r *rapid.T) {
			var win Window
			var h, w int
			win.H, h = drawAxis(r, "height")
			win.W, w = drawAxis(r, "width")
			win.Full, win.CountPad = rapid.Bool().Draw(r, "full"), rapid.Bool().Draw(r, "count pad")
			p, err := New(win, h, w)
			if err != nil {
				if !strings.Contains(err.Error(), "lies outside") {
					r.Fatal(err)
				}
				return
			}
			oh, ow := p.Out()
			front := rapid.Bool().Draw(r, "front")
			halo := rapid.IntRange(0, 1).Draw(r, "halo")
			in, out := plane.Shape{H: h, W: w, HaloH: halo}, plane.Shape{H: oh, W: ow, HaloW: halo}
			if out.Len() > len(f[0]) {
				return
			}
			key := rng.NewKey(rapid.Uint64().Draw(r, "seed"))
			fill := func(i int, s plane.Shape) plane.Plane {
				q := plane.Of(s, f.Put(i, make([]float32, s.Len()), front))
				for y := range s.H {
					for j := range q.Row(y) {
						q.Row(y)[j] = float32(key.Intn(uint64(i<<20+y<<10+j), 7)-3) / 3
					}
				}
				return q
			}
			x, dy := fill(0, in), fill(1, out)
			got := []plane.Plane{fill(2, out), fill(3, in), fill(4, out), fill(5, in)}
			var want []plane.Plane
			for _, g := range got {
				want = append(want, plane.Of(g.Shape, append([]float32{}, g.Data...)))
			}
			p.definition(want[0], want[1], want[2], want[3], x, dy)
			p.maxAt(name, got[0], x)
			p.maxGradAt(name, got[1], dy, got[0], x)
			p.meanAt(name, got[2], x)
			p.meanGradAt(name, got[3], dy)
			for i, what := range []string{"maximum", "its gradient", "mean", "its gradient"} {
				if diff := cmp.Diff(want[i].Data, got[i].Data); diff != "" {
					r.Fatalf("%+v on %d·%d: %s differs (-definition +%s):\n%s", win, h, w, what, name, diff)
				}
			}
		})
	})
}

// TestSpecialValues puts a NaN and infinities first, later and everywhere in a window.
func TestSpecialValues(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	for _, c := range []struct {
		x    [3]float32
		want float32
	}{
		{[3]float32{nan, 1, 2}, nan}, {[3]float32{1, nan, 2}, 2}, {[3]float32{-inf, -inf, -inf}, -inf}, {[3]float32{-1, inf, 0}, inf},
	} {
		each(t, func(t *testing.T, name string) {
			p, err := New(Window{H: Axis{Kernel: 1, Stride: 1}, W: Axis{Kernel: 3, Stride: 1}}, 1, 3)
			if err != nil {
				t.Fatal(err)
			}
			x, y := plane.Of(plane.Shape{H: 1, W: 3}, make([]float32, 48)), plane.Of(plane.Shape{H: 1, W: 1}, make([]float32, 16))
			for i, v := range c.x {
				x.Pixel(0, i)[5] = v
			}
			p.maxAt(name, y, x)
			if got := y.Data[5]; got != c.want && (got == got || c.want == c.want) {
				t.Errorf("the maximum of %v is %v, want %v", c.x, got, c.want)
			}
		})
	}
}

// TestSizes has the layers of the nets whose sizes are known.
func TestSizes(t *testing.T) {
	full := Square(3, 2, 0)
	full.Full = true
	for _, c := range []struct {
		win        Window
		n, want    int
		wantsError string
	}{
		{Square(3, 2, 1), 112, 56, ""},                    // stem of ResNet-50
		{Square(3, 2, 0), 48, 23, ""}, {full, 48, 24, ""}, // plankton, both conventions
		{Square(9, 1, 0), 11, 3, ""}, {Square(9, 1, 0), 8, 0, "does not fit"},
		{Square(7, 1, 0), 7, 1, ""}, {Square(7, 2, 0), 7, 1, ""},
		{Window{H: Axis{2, 3, 1}, W: Axis{2, 3, 1}, Full: true}, 4, 0, "outside"},
		{Square(0, 1, 0), 4, 0, "positive"}, {Square(2, 0, 0), 4, 0, "positive"}, {Square(2, 1, 2), 4, 0, "padding less"}, {Square(2, 1, 0), 0, 0, "does not fit"},
	} {
		p, err := New(c.win, c.n, c.n)
		if c.wantsError != "" {
			if err == nil || !strings.Contains(err.Error(), c.wantsError) {
				t.Errorf("%+v on %d: error %v, want one with %q", c.win, c.n, err, c.wantsError)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if h, w := p.Out(); h != c.want || w != c.want {
			t.Errorf("%+v on %d gives %d·%d, want %d", c.win, c.n, h, w, c.want)
		}
	}
}

func TestMisuseAndAllocations(t *testing.T) {
	p, err := New(Square(2, 2, 0), 4, 4)
	if err != nil {
		t.Fatal(err)
	}
	in, out := plane.Shape{H: 4, W: 4, HaloH: 1, HaloW: 1}, plane.Shape{H: 2, W: 2}
	x, dx := plane.Of(in, make([]float32, in.Len())), plane.Of(in, make([]float32, in.Len()))
	y, dy := plane.Of(out, make([]float32, out.Len())), plane.Of(out, make([]float32, out.Len()))
	if n := testing.AllocsPerRun(10, func() {
		p.Max(y, x)
		p.MaxGrad(dx, dy, y, x)
		p.Mean(y, x)
		p.MeanGrad(dx, dy)
	}); n != 0 {
		t.Errorf("a step makes %v allocations", n)
	}
	defer func() {
		if got := fmt.Sprint(recover()); !strings.Contains(got, "the plan is for 4·4 and 2·2") {
			t.Errorf("panic %q", got)
		}
	}()
	p.Max(x, x)
}

// ExamplePlan takes maxima of windows of 2·2.
func ExamplePlan() {
	p, err := New(Square(2, 2, 0), 2, 4)
	if err != nil {
		fmt.Println(err)
		return
	}
	x := plane.Of(plane.Shape{H: 2, W: 4}, make([]float32, 2*4*plane.Lanes))
	for i := range 4 {
		x.Pixel(0, i)[0], x.Pixel(1, i)[0] = float32(i), float32(-i)
	}
	y := plane.Of(plane.Shape{H: 1, W: 2}, make([]float32, 2*plane.Lanes))
	p.Max(y, x)
	fmt.Println(y.Pixel(0, 0)[0], y.Pixel(0, 1)[0])
	// Output: 1 3
}
