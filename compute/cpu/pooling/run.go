package pooling

import (
	"fmt"

	"optimus/compute/cpu/plane"
	"optimus/compute/cpu/vec"
)

const lanes = plane.Lanes

// Max writes to each pixel of y the maximum of its window in x. A NaN counts where it comes first in
// its window and is passed over elsewhere.
func (p *Plan) Max(y, x plane.Plane) { p.maxAt(vec.Level(), y, x) }

// MaxGrad adds each pixel of dy to dx where the window in x has its maximum, y; to the first pixel of equals.
func (p *Plan) MaxGrad(dx, dy, y, x plane.Plane) { p.maxGradAt(vec.Level(), dx, dy, y, x) }

// Mean writes to each pixel of y the mean of its window in x.
func (p *Plan) Mean(y, x plane.Plane) { p.meanAt(vec.Level(), y, x) }

// MeanGrad adds each pixel of dy, divided by the number of pixels of its window, to the window in dx.
func (p *Plan) MeanGrad(dx, dy plane.Plane) { p.meanGradAt(vec.Level(), dx, dy) }

func (p *Plan) maxAt(name string, y, x plane.Plane) {
	p.check("Max", x, y)
	k := kernelsAt(name)
	p.runs(func(r run) { k.maximum(r.n, r.kh, r.kw, r.output(y), r.input(x), x.Stride(), r.step) })
}

func (p *Plan) maxGradAt(name string, dx, dy, y, x plane.Plane) {
	p.check("MaxGrad", x, y)
	p.check("MaxGrad", dx, dy)
	k := kernelsAt(name)
	p.runs(func(r run) {
		k.maximumGrad(r.n, r.kh, r.kw, r.input(dx), r.output(dy), r.output(y), r.input(x), dx.Stride(), x.Stride(), r.step)
	})
}

func (p *Plan) meanAt(name string, y, x plane.Plane) {
	p.check("Mean", x, y)
	k := kernelsAt(name)
	p.runs(func(r run) { k.mean(r.n, r.kh, r.kw, r.output(y), r.input(x), x.Stride(), r.step, r.count) })
}

func (p *Plan) meanGradAt(name string, dx, dy plane.Plane) {
	p.check("MeanGrad", dx, dy)
	k := kernelsAt(name)
	p.runs(func(r run) { k.meanGrad(r.n, r.kh, r.kw, r.input(dx), r.output(dy), dx.Stride(), r.step, r.count) })
}

// A run is n outputs side by side, whose windows have kh·kw pixels each, step elements apart.
type run struct {
	y, x, n      int // the first output
	fromY, fromX int // the first pixel of its window
	kh, kw, step int
	count        float32 // what a mean divides by
}

// runs visits the outputs: those whose windows the left or right border clips one by one, the others of a
// row together.
func (p *Plan) runs(visit func(r run)) {
	for y, rows := range p.rows {
		for x := 0; x < len(p.cols); {
			n, cols := 1, p.cols[x]
			if x == p.lo && p.hi > p.lo {
				n = p.hi - p.lo
			}
			count := rows.n * cols.n
			if p.window.CountPad {
				count = rows.padded * cols.padded
			}
			visit(run{y, x, n, rows.from, cols.from, rows.n, cols.n, p.window.W.Stride * lanes, float32(count)})
			x += n
		}
	}
}

func (r run) output(p plane.Plane) []float32 { return p.Row(r.y)[r.x*lanes : (r.x+r.n)*lanes] }

// input begins at the first pixel and ends behind the last one of the run's windows.
func (r run) input(p plane.Plane) []float32 {
	first := (r.fromY+p.HaloH)*p.Stride() + (r.fromX+p.HaloW)*lanes
	return p.Data[first : first+(r.kh-1)*p.Stride()+(r.n-1)*r.step+r.kw*lanes]
}

// check panics unless in has the planned size and out that of the output.
func (p *Plan) check(op string, in, out plane.Plane) {
	if h, w := p.Out(); in.H != p.h || in.W != p.w || out.H != h || out.W != w {
		panic(fmt.Sprintf("pooling: %s: planes of %d·%d and %d·%d pixels; the plan is for %d·%d and %d·%d", op, in.H, in.W, out.H, out.W, p.h, p.w, h, w))
	}
}
