package norm

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"optimus/compute/cpu/plane"
	"optimus/internal/level"
	"optimus/internal/rng"
)

const eps = 1e-5

func each(t *testing.T, f func(t *testing.T, name string)) {
	for _, name := range level.Present() {
		t.Run(name, func(t *testing.T) { f(t, name) })
	}
}

// A layer is a batch norm with or without a residual and a ReLU on pictures of c channels in float64, in the layout
// [n][c][h·w], and the gradient that comes from above.
type layer struct {
	n, c, h, w     int
	x, r, dy       []float64
	gamma, beta    []float32 // gamma nil: 1
	relu, residual bool
}

func newLayer(seed uint64, n, c, h, w int, mean, sd float64) *layer {
	key := rng.NewKey(seed)
	l := &layer{n: n, c: c, h: h, w: w, relu: true, residual: true}
	for i := range n * c * h * w {
		l.x = append(l.x, float64(float32(mean+sd*key.Normal(uint64(3*i)))))
		l.r = append(l.r, float64(float32(key.Normal(uint64(3*i+1)))))
		l.dy = append(l.dy, float64(float32(key.Normal(uint64(3*i+2)))))
	}
	for i := range c {
		l.gamma = append(l.gamma, float32(1+key.Float64(uint64(i))))
		l.beta = append(l.beta, float32(key.Float64(uint64(i))))
	}
	return l
}

// forward computes the layer by its definition in float64.
func (l *layer) forward(x, r []float64, gamma, beta func(int) float64) (y, mean, variance []float64) {
	area := l.h * l.w
	y, mean, variance = make([]float64, len(x)), make([]float64, l.c), make([]float64, l.c)
	each := func(c int, f func(i int)) {
		for n := range l.n {
			for i := range area {
				f((n*l.c+c)*area + i)
			}
		}
	}
	count := float64(l.n * area)
	for c := range l.c {
		each(c, func(i int) { mean[c] += x[i] / count })
		each(c, func(i int) { variance[c] += (x[i] - mean[c]) * (x[i] - mean[c]) / count })
		each(c, func(i int) {
			y[i] = (x[i]-mean[c])/math.Sqrt(variance[c]+eps)*gamma(c) + beta(c)
			if l.residual {
				y[i] += r[i]
			}
			if l.relu {
				y[i] = max(y[i], 0)
			}
		})
	}
	return y, mean, variance
}

func (l *layer) gammaOf(c int) float64 { return factor(l.gamma, c) }
func (l *layer) betaOf(c int) float64  { return float64(l.beta[c]) }

// result is what the kernels make of a layer, in the layout of the definition.
type result struct{ y, mean, variance, dx, dr, dgamma, dbeta []float64 }

// inPlanes runs the layer in NCHW16c, with one leaf for each picture, in planes whose halos differ.
func (l *layer) inPlanes(t *testing.T, name string) result {
	t.Helper()
	sx, sy := plane.Shape{H: l.h, W: l.w}, plane.Shape{H: l.h, W: l.w, HaloH: 1, HaloW: 2}
	x, dy := l.planes(sx, l.x), l.planes(sy, l.dy)
	none := make([]plane.Plane, len(x))
	r, y, mask, dx, dr := none, l.planes(sy, nil), none, l.planes(sx, nil), none
	if l.residual {
		r, dr = l.planes(sy, l.r), l.planes(sy, nil)
	}
	if l.relu {
		mask = y
	}
	res := result{mean: make([]float64, l.c), variance: make([]float64, l.c)}
	dgamma, dbeta := make([]float32, l.c), make([]float32, l.c)
	blocks, count := plane.Blocks(l.c), l.n*l.h*l.w
	for b := range blocks {
		lo, hi := b*lanes, min((b+1)*lanes, l.c)
		mean, variance := res.mean[lo:hi], res.variance[lo:hi]
		var gamma, dg []float32
		if l.gamma != nil {
			gamma, dg = l.gamma[lo:hi], dgamma[lo:hi]
		}
		leaves, sums := make([]Moments, l.n), make([]GradSums, l.n)
		for i := range l.n {
			leaves[i].Start(x[b].Pixel(0, 0))
			leaves[i].planeAt(name, x[i*blocks+b])
			if i > 0 {
				leaves[0].Merge(&leaves[i])
			}
		}
		leaves[0].Statistics(count, mean, variance)
		var a Affine
		a.Set(mean, variance, gamma, l.beta[lo:hi], eps)
		for i := b; i < len(x); i += blocks {
			a.planeAt(name, y[i], x[i], r[i], l.relu)
		}
		for i := range l.n {
			at := i*blocks + b
			sums[i].Start(mean)
			sums[i].planeAt(name, dy[at], mask[at], x[at])
			if i > 0 {
				sums[0].Merge(&sums[i])
			}
		}
		sums[0].Params(mean, variance, eps, dg, dbeta[lo:hi])
		var g InputGrad
		g.Set(&sums[0], count, mean, variance, gamma, eps)
		for i := b; i < len(x); i += blocks {
			g.planeAt(name, dx[i], dr[i], dy[i], mask[i], x[i], false, false)
		}
	}
	res.y, res.dx = l.values(t, y), l.values(t, dx)
	if l.residual {
		res.dr = l.values(t, dr)
	}
	res.dgamma, res.dbeta = wide(dgamma), wide(dbeta)
	return res
}

// planes puts values into planes, picture by picture and block by block; nil leaves zeros.
func (l *layer) planes(s plane.Shape, values []float64) []plane.Plane {
	var out []plane.Plane
	for range l.n * plane.Blocks(l.c) {
		out = append(out, plane.Of(s, make([]float32, s.Len())))
	}
	for i, v := range values {
		*l.at(out, i) = float32(v)
	}
	return out
}

// at is where value i of [n][c][h·w] lies.
func (l *layer) at(p []plane.Plane, i int) *float32 {
	area := l.h * l.w
	n, c, y, x := i/(l.c*area), i/area%l.c, i%area/l.w, i%l.w
	return &p[n*plane.Blocks(l.c)+c/lanes].Pixel(y, x)[c%lanes]
}

// values reads planes back and checks that the halo and the lanes past the channels are zero.
func (l *layer) values(t *testing.T, p []plane.Plane) []float64 {
	t.Helper()
	out := make([]float64, l.n*l.c*l.h*l.w)
	for i := range out {
		at := l.at(p, i)
		out[i], *at = float64(*at), 0
	}
	for i, p := range p {
		for j, v := range p.Data {
			if v != 0 {
				t.Fatalf("element %d of plane %d, in the halo or past the channels, is %v", j, i, v)
			}
		}
	}
	return out
}

// inRows runs the layer as a matrix of n·h·w rows.
func (l *layer) inRows(name string) result {
	rows, blocks := l.n*l.h*l.w, plane.Blocks(l.c)
	x, r, dy := l.rows(l.x), l.rows(l.r), l.rows(l.dy)
	y, dx, dr := make([]float32, len(x)), make([]float32, len(x)), make([]float32, len(x))
	row := func(a []float32, i int) []float32 {
		if a == nil {
			return nil
		}
		return a[i*l.c : (i+1)*l.c]
	}
	mask := y
	if !l.relu {
		mask = nil
	}
	if !l.residual {
		r, dr = nil, nil
	}
	res := result{mean: make([]float64, l.c), variance: make([]float64, l.c)}
	dgamma, dbeta := make([]float32, l.c), make([]float32, l.c)
	m, a, s, g := make([]Moments, blocks), make([]Affine, blocks), make([]GradSums, blocks), make([]InputGrad, blocks)
	block := func(b int, f func(b, lo, hi int, gamma, dgamma []float32)) {
		lo, hi := b*lanes, min((b+1)*lanes, l.c)
		if l.gamma == nil {
			f(b, lo, hi, nil, nil)
			return
		}
		f(b, lo, hi, l.gamma[lo:hi], dgamma[lo:hi])
	}
	for b := range blocks {
		m[b].Start(x[b*lanes : min((b+1)*lanes, l.c)])
	}
	for i := range rows {
		momentsRowAt(name, m, row(x, i))
	}
	for b := range blocks {
		block(b, func(b, lo, hi int, gamma, _ []float32) {
			m[b].Statistics(rows, res.mean[lo:hi], res.variance[lo:hi])
			a[b].Set(res.mean[lo:hi], res.variance[lo:hi], gamma, l.beta[lo:hi], eps)
			s[b].Start(res.mean[lo:hi])
		})
	}
	for i := range rows {
		affineRowAt(name, a, row(y, i), row(x, i), row(r, i), l.relu)
		gradSumsRowAt(name, s, row(dy, i), row(mask, i), row(x, i))
	}
	for b := range blocks {
		block(b, func(b, lo, hi int, gamma, dg []float32) {
			s[b].Params(res.mean[lo:hi], res.variance[lo:hi], eps, dg, dbeta[lo:hi])
			g[b].Set(&s[b], rows, res.mean[lo:hi], res.variance[lo:hi], gamma, eps)
		})
	}
	for i := range rows {
		inputGradRowAt(name, g, row(dx, i), row(dr, i), row(dy, i), row(mask, i), row(x, i), false, false)
	}
	res.y, res.dx, res.dr, res.dgamma, res.dbeta = l.unrows(y), l.unrows(dx), l.unrows(dr), wide(dgamma), wide(dbeta)
	return res
}

func (l *layer) rows(values []float64) []float32 {
	out := make([]float32, len(values))
	for i, v := range values {
		out[l.inRow(i)] = float32(v)
	}
	return out
}

func (l *layer) inRow(i int) int {
	area := l.h * l.w
	return (i/(l.c*area)*area+i%area)*l.c + i/area%l.c
}

func (l *layer) unrows(a []float32) []float64 {
	out := make([]float64, len(a))
	for i := range out {
		out[i] = float64(a[l.inRow(i)])
	}
	return out
}

func wide(x []float32) []float64 {
	out := make([]float64, len(x))
	for i, v := range x {
		out[i] = float64(v)
	}
	return out
}

// TestAgainstDefinition compares both layouts, at every level, with the definition in float64 and its
// derivatives, which are differences.
func TestAgainstDefinition(t *testing.T) {
	for i := range 8 {
		l := newLayer(uint64(i), 2, []int{3, 16, 18}[i%3], 2, 3, float64(i), 1+float64(i))
		l.relu, l.residual = i&1 != 0, i&2 != 0
		if i&4 != 0 {
			l.gamma = nil
		}
		label := fmt.Sprintf("relu %v, residual %v, gamma %v", l.relu, l.residual, l.gamma != nil)
		want := l.definition()
		each(t, func(t *testing.T, name string) {
			for layout, got := range map[string]result{"planes": l.inPlanes(t, name), "rows": l.inRows(name)} {
				want.compare(t, layout+", "+label, got)
			}
		})
	}
}

// definition computes the layer and the derivatives of Σ y·dy by central differences.
func (l *layer) definition() result {
	var want result
	want.y, want.mean, want.variance = l.forward(l.x, l.r, l.gammaOf, l.betaOf)
	loss := func(x, r []float64, gamma, beta func(int) float64) float64 {
		y, _, _ := l.forward(x, r, gamma, beta)
		s := 0.0
		for i, v := range y {
			s += v * l.dy[i]
		}
		return s
	}
	const h = 1e-6
	difference := func(f func(d float64) float64) float64 { return (f(h) - f(-h)) / (2 * h) }
	bump := func(a []float64, i int, d float64) []float64 { a = slices.Clone(a); a[i] += d; return a }
	for i := range l.x {
		want.dx = append(want.dx, difference(func(d float64) float64 { return loss(bump(l.x, i, d), l.r, l.gammaOf, l.betaOf) }))
		if l.residual {
			want.dr = append(want.dr, difference(func(d float64) float64 { return loss(l.x, bump(l.r, i, d), l.gammaOf, l.betaOf) }))
		}
	}
	for c := range l.c {
		at := func(f func(int) float64, d float64) func(int) float64 {
			return func(k int) float64 {
				if k == c {
					return f(k) + d
				}
				return f(k)
			}
		}
		dg := 0.0
		if l.gamma != nil {
			dg = difference(func(d float64) float64 { return loss(l.x, l.r, at(l.gammaOf, d), l.betaOf) })
		}
		want.dgamma = append(want.dgamma, dg)
		want.dbeta = append(want.dbeta, difference(func(d float64) float64 { return loss(l.x, l.r, l.gammaOf, at(l.betaOf, d)) }))
	}
	return want
}

func (r result) compare(t *testing.T, label string, got result) {
	t.Helper()
	for _, p := range []struct {
		name      string
		got, want []float64
		tolerance float64
	}{
		{"mean", got.mean, r.mean, 1e-7}, {"variance", got.variance, r.variance, 1e-6}, {"y", got.y, r.y, 2e-6},
		{"dx", got.dx, r.dx, 1e-5}, {"dr", got.dr, r.dr, 1e-6}, {"dgamma", got.dgamma, r.dgamma, 1e-5}, {"dbeta", got.dbeta, r.dbeta, 1e-5},
	} {
		if len(p.got) != len(p.want) {
			t.Fatalf("%s: %s has %d values, want %d", label, p.name, len(p.got), len(p.want))
		}
		for i, v := range p.got {
			if !(math.Abs(v-p.want[i]) <= p.tolerance*(1+math.Abs(p.want[i]))) {
				t.Fatalf("%s: %s %d is %v, want %v", label, p.name, i, v, p.want[i])
			}
		}
	}
}

// TestLargeMean has channels with a mean of 10⁴ and a deviation of 1; float32 sums of squares would leave
// nothing of the variance.
func TestLargeMean(t *testing.T) {
	each(t, func(t *testing.T, name string) {
		l := newLayer(5, 4, 16, 24, 24, 1e4, 1)
		l.residual, l.relu = false, false
		got := l.inPlanes(t, name)
		y, mean, variance := l.forward(l.x, l.r, l.gammaOf, l.betaOf)
		for c := range l.c {
			if math.Abs(got.mean[c]-mean[c]) > 1e-9*mean[c] || math.Abs(got.variance[c]-variance[c]) > 1e-6*variance[c] {
				t.Fatalf("channel %d: mean %v, variance %v; want %v, %v", c, got.mean[c], got.variance[c], mean[c], variance[c])
			}
		}
		for i := range y {
			if math.Abs(got.y[i]-y[i]) > 2e-6*(1+math.Abs(y[i])) {
				t.Fatalf("y %d is %v, want %v", i, got.y[i], y[i])
			}
		}
		l.dyShifted(1)
		got = l.inPlanes(t, name)
		for i, want := range l.inputGrad(mean, variance) {
			if math.Abs(got.dx[i]-want) > 3e-6*(1+math.Abs(want)) {
				t.Fatalf("dx %d is %v, want %v", i, got.dx[i], want)
			}
		}
		for i := range l.x {
			l.x[i] = 12345.678
		}
		if got := l.inPlanes(t, name); slices.Max(got.variance) != 0 {
			t.Errorf("the variances of constants are %v", got.variance)
		}
	})
}

// dyShifted adds d to the gradient from above, so that its sum counts.
func (l *layer) dyShifted(d float64) {
	for i := range l.dy {
		l.dy[i] = float64(float32(l.dy[i] + d))
	}
}

// inputGrad is the textbook's formula in float64, for a layer without residual and ReLU.
func (l *layer) inputGrad(mean, variance []float64) []float64 {
	area, dx := l.h*l.w, make([]float64, len(l.x))
	count := float64(l.n * area)
	normal := func(i int) float64 {
		c := i / area % l.c
		return (l.x[i] - mean[c]) / math.Sqrt(variance[c]+eps)
	}
	g, gx := make([]float64, l.c), make([]float64, l.c)
	for i, v := range l.dy {
		g[i/area%l.c] += v / count
		gx[i/area%l.c] += v * normal(i) / count
	}
	for i, v := range l.dy {
		c := i / area % l.c
		dx[i] = l.gammaOf(c) / math.Sqrt(variance[c]+eps) * (v - g[c] - normal(i)*gx[c])
	}
	return dx
}

// TestLevels asks for the same bits from every level.
func TestLevels(t *testing.T) {
	each(t, func(t *testing.T, name string) {
		for c := 1; c < 40; c += 3 {
			l := newLayer(uint64(c), 2, c, 3, 5, 2, 3)
			l.relu, l.residual = c&1 != 0, c&2 != 0
			if diff := cmp.Diff(l.inPlanes(t, level.Plain), l.inPlanes(t, name), cmp.AllowUnexported(result{})); diff != "" {
				t.Fatalf("%d channels in planes differ (-plain +level):\n%s", c, diff)
			}
			if diff := cmp.Diff(l.inRows(level.Plain), l.inRows(name), cmp.AllowUnexported(result{})); diff != "" {
				t.Fatalf("%d channels in rows differ (-plain +level):\n%s", c, diff)
			}
		}
	})
}

func TestMisuse(t *testing.T) {
	s := plane.Shape{H: 2, W: 3}
	p, q := plane.Of(s, make([]float32, s.Len())), plane.Of(plane.Shape{H: 3, W: 2}, make([]float32, s.Len()))
	var m, other Moments
	other.Start([]float32{1})
	var a Affine
	for want, f := range map[string]func(){
		"equally large":     func() { a.Plane(p, q, plane.Plane{}, true) },
		"it takes 2":        func() { MomentsRow(make([]Moments, 1), make([]float32, 17)) },
		"equally long":      func() { AffineRow(make([]Affine, 1), make([]float32, 16), make([]float32, 15), nil, false) },
		"one at least":      func() { m.Statistics(0, make([]float64, 1), make([]float64, 1)) },
		"start all leaves":  func() { m.Merge(&other) },
		"elements for a pl": func() { plane.Of(s, nil) },
	} {
		func() {
			defer func() {
				if got := fmt.Sprint(recover()); !strings.Contains(got, want) {
					t.Errorf("panic %q, want one with %q", got, want)
				}
			}()
			f()
		}()
	}
}
