package cpu

import (
	"optimus/compute"
	"optimus/compute/cpu/sgemm"
	"optimus/internal/rng"
)

// crop takes pieces of pictures, in training random ones.
type crop struct {
	none
	e   *executable
	op  *compute.Crop
	y   port
	fwd func(task, thread int)
}

func newCrop(e *executable, op *compute.Crop) kernel {
	k := &crop{e: e, op: op, y: e.port(op.Y)}
	k.fwd = k.sample
	return k
}

func (k *crop) forward() { k.e.pool.run(k.e.n, k.fwd) }

func (k *crop) sample(i, _ int) {
	from, to := k.op.From, k.op.To
	x, y := k.e.batch.Inputs[k.op.In].F[i*from.Size():(i+1)*from.Size()], k.y.at(i)
	dy, dx, mirror := (from.H-to.H)/2, (from.W-to.W)/2, false
	if k.e.train {
		dy, dx, mirror = k.draw(k.e.stream(i, k.op.Layer))
	}
	clear(y)
	for c := range to.C {
		for r := max(0, -dy); r < min(to.H, from.H-dy); r++ {
			src, dst := x[(c*from.H+r+dy)*from.W:][:from.W], y[(c*to.H+r)*to.W:][:to.W]
			lo, hi := max(0, -dx), min(to.W, from.W-dx)
			if !mirror {
				copy(dst[lo:hi], src[lo+dx:hi+dx])
				continue
			}
			for j := lo; j < hi; j++ {
				dst[to.W-1-j] = src[j+dx]
			}
		}
	}
}

// draw decides where the piece of an example begins and whether it is mirrored.
func (k *crop) draw(s rng.Key) (dy, dx int, mirror bool) {
	place := func(i uint64, from, to int) int { return s.Intn(i, from+2*k.op.Pad-to+1) - k.op.Pad }
	return place(0, k.op.From.H, k.op.To.H), place(1, k.op.From.W, k.op.To.W), k.op.Mirror && s.Intn(2, 2) == 1
}

// frame is an op.Image of the batch at hand: with a time axis it is as high as the
// batch is long.
func frame(m compute.Image, p port) compute.Image {
	if p.size != m.Size() {
		m.H = *p.steps
	}
	return m
}

// frames turns [C,T,W] into [T,C,W].
type frames struct {
	none
	ports
	e        *executable
	fwd, bwd func(task, thread int)
}

func newFrames(e *executable, op *compute.Frames) kernel {
	k := &frames{e: e, ports: e.ports(op, op.IO)}
	each := func(move func(frame, plane int)) {
		steps := *k.x.steps
		for c := range op.C {
			for t := range steps {
				move((t*op.C+c)*op.W, (c*steps+t)*op.W)
			}
		}
	}
	k.fwd = func(i, _ int) {
		x, y := k.x.at(i), k.y.at(i)
		each(func(frame, plane int) { copy(y[frame:frame+op.W], x[plane:plane+op.W]) })
	}
	k.bwd = func(i, _ int) {
		dx, dy := k.dx.fresh(i), k.dy.at(i)
		each(func(frame, plane int) { add(dx[plane:plane+op.W], dy[frame:frame+op.W]) })
	}
	return k
}

func (k *frames) forward()   { k.e.pool.run(k.e.n, k.fwd) }
func (k *frames) inputGrad() { k.e.pool.run(k.e.n, k.bwd) }

// conv2D multiplies the filters with the columns of each picture: row (c,ky,kx)
// of the column matrix holds, for every output pixel, the input pixel below that
// element of the filter. Groups are convolutions of their own.
type conv2D struct {
	ports
	e             *executable
	op            *compute.Conv2D
	ins, outs     int // channels of a group
	depth         int // elements of a filter
	w, dw, b, db  []float32
	fwd, bwd, par func(task, thread int)
}

// convTile is how many input channels of a group a weight gradient task covers.
const convTile = 16

func newConv2D(e *executable, op *compute.Conv2D) kernel {
	k := &conv2D{e: e, op: op, ports: e.ports(op, op.IO), ins: op.In.C / op.Groups, outs: op.Out.C / op.Groups}
	k.depth = k.ins * op.KH * op.KW
	k.w, k.dw = e.block(op.Filter)
	k.b, k.db = e.block(op.B)
	e.reserve(op.Out.H * op.Out.W * k.depth)
	k.fwd, k.bwd, k.par = k.sample, k.sampleGrad, k.tile
	return k
}

func (k *conv2D) forward()   { k.e.pool.run(k.e.n, k.fwd) }
func (k *conv2D) inputGrad() { k.e.pool.run(k.e.n, k.bwd) }
func (k *conv2D) paramGrad() { k.e.pool.run(k.op.Groups*tiles(k.ins, convTile), k.par) }

// area returns how many output pixels a channel of the batch at hand has.
func (k *conv2D) area() int {
	out := frame(k.op.Out, k.y)
	return out.H * out.W
}

func (k *conv2D) sample(i, thread int) {
	area := k.area()
	col, y := k.e.scratch[thread][:area*k.depth], k.y.at(i)
	for g := range k.op.Groups {
		k.columns(k.x.at(i), g*k.ins, (g+1)*k.ins, col)
		sgemm.Gemm(false, false, k.outs, area, k.depth, k.w[g*k.outs*k.depth:], k.depth, col, area, false, y[g*k.outs*area:], area)
	}
	for o, bias := range k.b {
		plane := y[o*area : (o+1)*area]
		for j := range plane {
			plane[j] += bias
		}
	}
}

func (k *conv2D) sampleGrad(i, thread int) {
	area := k.area()
	col, dx, dy := k.e.scratch[thread][:area*k.depth], k.dx.fresh(i), k.dy.at(i)
	for g := range k.op.Groups {
		sgemm.Gemm(true, false, k.depth, area, k.outs, k.w[g*k.outs*k.depth:], k.depth, dy[g*k.outs*area:], area, false, col, area)
		k.each(g*k.ins, (g+1)*k.ins, func(x, c, n, step int) {
			for j := range n {
				dx[x+j*step] += col[c+j]
			}
		})
	}
}

// tile computes the gradient of the filters' part for some input channels.
func (k *conv2D) tile(task, thread int) {
	perGroup := tiles(k.ins, convTile)
	g, area := task/perGroup, k.area()
	lo, hi := span(task%perGroup, convTile, k.ins)
	kk := k.op.KH * k.op.KW
	col := k.e.scratch[thread][:(hi-lo)*kk*area]
	for i := range k.e.n {
		k.columns(k.x.at(i), g*k.ins+lo, g*k.ins+hi, col)
		dy := k.dy.at(i)[g*k.outs*area:][:k.outs*area]
		sgemm.Gemm(false, true, k.outs, (hi-lo)*kk, area, dy, area, col, area, true, k.dw[g*k.outs*k.depth+lo*kk:], k.depth)
		if lo == 0 && k.db != nil {
			for o := range k.outs {
				k.db[g*k.outs+o] += float32(sum(dy[o*area : (o+1)*area]))
			}
		}
	}
}

// columns writes the column matrix of channels [lo,hi).
func (k *conv2D) columns(x []float32, lo, hi int, col []float32) {
	if k.op.PadH > 0 || k.op.PadW > 0 {
		clear(col)
	}
	k.each(lo, hi, func(from, c, n, step int) {
		if step == 1 {
			copy(col[c:c+n], x[from:from+n])
			return
		}
		for j := range n {
			col[c+j] = x[from+j*step]
		}
	})
}

// each visits the column matrix of channels [lo,hi) in runs inside one picture
// row: n elements from index c of the matrix belong to the pixels x, x+step, ….
// What lies in the padding is not visited.
func (k *conv2D) each(lo, hi int, visit func(x, c, n, step int)) {
	o, in, out := k.op, frame(k.op.In, k.x), frame(k.op.Out, k.y)
	area := out.H * out.W
	for ch := lo; ch < hi; ch++ {
		for ky := range o.KH {
			for kx := range o.KW {
				row := ((ch-lo)*o.KH+ky)*o.KW + kx
				first, last := inside(kx-o.PadW, o.StrideW, in.W, out.W)
				for oy := range out.H {
					y := oy*o.StrideH + ky - o.PadH
					if y < 0 || y >= in.H || first >= last {
						continue
					}
					x := (ch*in.H+y)*in.W + first*o.StrideW + kx - o.PadW
					visit(x, row*area+oy*out.W+first, last-first, o.StrideW)
				}
			}
		}
	}
}

// inside returns the outputs [first,last) of n whose input shift+stride·i lies in
// [0,size).
func inside(shift, stride, size, n int) (first, last int) {
	first = max(0, (-shift+stride-1)/stride)
	last = min(n, (size-shift+stride-1)/stride)
	return first, last
}
