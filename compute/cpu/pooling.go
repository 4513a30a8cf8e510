package cpu

import "optimus/compute"

// pooling takes the maximum or the mean of windows.
type pooling struct {
	none
	ports
	e        *executable
	op       *compute.Pool
	index    []int32 // of each output's maximum inside its example
	fwd, bwd func(task, thread int)
}

func newPooling(e *executable, op *compute.Pool) kernel {
	k := &pooling{e: e, op: op, ports: e.ports(op, op.IO)}
	k.fwd, k.bwd = k.max, k.maxGrad
	if op.Avg {
		k.fwd, k.bwd = k.avg, k.avgGrad
	} else {
		k.index = make([]int32, len(k.y.data))
	}
	return k
}

func (k *pooling) forward()   { k.e.pool.run(k.e.n, k.fwd) }
func (k *pooling) inputGrad() { k.e.pool.run(k.e.n, k.bwd) }

// reach is the part of a window that lies inside the picture, and what a mean
// divides by.
type reach struct {
	y0, y1, x0, x1 int
	count          float32
}

// each visits the windows of one example in the order of the outputs.
func (k *pooling) each(visit func(out, plane, width int, r reach)) {
	in, out, o := frame(k.op.In, k.x), frame(k.op.Out, k.y), k.op
	j := 0
	for c := range in.C {
		for oy := range out.H {
			y0 := oy*o.StrideH - o.PadH
			y1 := min(y0+o.KH, in.H+o.PadH)
			for ox := range out.W {
				x0 := ox*o.StrideW - o.PadW
				x1 := min(x0+o.KW, in.W+o.PadW)
				r := reach{max(y0, 0), min(y1, in.H), max(x0, 0), min(x1, in.W), float32((y1 - y0) * (x1 - x0))}
				if o.Inside {
					r.count = float32((r.y1 - r.y0) * (r.x1 - r.x0))
				}
				visit(j, c*in.H*in.W, in.W, r)
				j++
			}
		}
	}
}

func (k *pooling) max(i, _ int) {
	x, y := k.x.at(i), k.y.at(i)
	best := k.index[i*len(y) : (i+1)*len(y)]
	k.each(func(out, plane, width int, r reach) {
		at := plane + r.y0*width + r.x0
		top := x[at]
		for row := r.y0; row < r.y1; row++ {
			from := plane + row*width
			for c, v := range x[from+r.x0 : from+r.x1] {
				if v > top {
					top, at = v, from+r.x0+c
				}
			}
		}
		y[out], best[out] = top, int32(at)
	})
}

func (k *pooling) maxGrad(i, _ int) {
	dx, dy := k.dx.fresh(i), k.dy.at(i)
	for j, at := range k.index[i*len(dy) : (i+1)*len(dy)] {
		dx[at] += dy[j]
	}
}

func (k *pooling) avg(i, _ int) {
	x, y := k.x.at(i), k.y.at(i)
	k.each(func(out, plane, width int, r reach) {
		s := float32(0)
		for row := r.y0; row < r.y1; row++ {
			for _, v := range x[plane+row*width+r.x0 : plane+row*width+r.x1] {
				s += v
			}
		}
		y[out] = s / r.count
	})
}

func (k *pooling) avgGrad(i, _ int) {
	dx, dy := k.dx.fresh(i), k.dy.at(i)
	k.each(func(out, plane, width int, r reach) {
		g := dy[out] / r.count
		for row := r.y0; row < r.y1; row++ {
			run := dx[plane+row*width+r.x0 : plane+row*width+r.x1]
			for p := range run {
				run[p] += g
			}
		}
	})
}
