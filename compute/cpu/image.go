package cpu

import (
	"optimus/compute"
	"optimus/compute/cpu/sgemm"
	"optimus/internal/rng"
)

// crop shifts and mirrors pictures in training.
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
	y := k.y.at(i)
	x := k.e.batch.Inputs[k.op.In].F[i*len(y) : (i+1)*len(y)]
	if !k.e.train {
		copy(y, x)
		return
	}
	dy, dx, mirror := k.draw(k.e.stream(i, k.op.Layer))
	h, w := k.op.H, k.op.W
	clear(y)
	for c := range k.op.C {
		plane := c * h * w
		for r := max(0, -dy); r < min(h, h-dy); r++ {
			src, dst := x[plane+(r+dy)*w:][:w], y[plane+r*w:][:w]
			for j := max(0, -dx); j < min(w, w-dx); j++ {
				to := j
				if mirror {
					to = w - 1 - j
				}
				dst[to] = src[j+dx]
			}
		}
	}
}

// draw decides the shift of an example and whether it is mirrored.
func (k *crop) draw(s rng.Key) (dy, dx int, mirror bool) {
	side := 2*k.op.Pad + 1
	return s.Intn(0, side) - k.op.Pad, s.Intn(1, side) - k.op.Pad, k.op.Mirror && s.Intn(2, 2) == 1
}

// conv2D multiplies the filters with the columns of each picture: row (c,ky,kx)
// of the column matrix holds, for every output pixel, the input pixel below that
// element of the filter.
type conv2D struct {
	ports
	e             *executable
	op            *compute.Conv2D
	area, depth   int // output pixels; elements of a filter
	w, dw, b, db  []float32
	fwd, bwd, par func(task, thread int)
}

// convTile is how many input channels a weight gradient task covers.
const convTile = 16

func newConv2D(e *executable, op *compute.Conv2D) kernel {
	k := &conv2D{e: e, op: op, ports: e.ports(op.IO), area: op.OutHeight * op.OutWidth, depth: op.C * op.K * op.K}
	k.w, k.dw = e.block(op.Filter)
	k.b, k.db = e.block(op.B)
	e.reserve(k.area * k.depth)
	k.fwd, k.bwd, k.par = k.sample, k.sampleGrad, k.tile
	return k
}

func (k *conv2D) forward()   { k.e.pool.run(k.e.n, k.fwd) }
func (k *conv2D) inputGrad() { k.e.pool.run(k.e.n, k.bwd) }
func (k *conv2D) paramGrad() { k.e.pool.run(tiles(k.op.C, convTile), k.par) }

func (k *conv2D) sample(i, thread int) {
	col, y := k.e.scratch[thread][:k.area*k.depth], k.y.at(i)
	k.columns(k.x.at(i), 0, k.op.C, col)
	sgemm.Gemm(false, false, k.op.O, k.area, k.depth, k.w, k.depth, col, k.area, false, y, k.area)
	for o, bias := range k.b {
		plane := y[o*k.area : (o+1)*k.area]
		for j := range plane {
			plane[j] += bias
		}
	}
}

func (k *conv2D) sampleGrad(i, thread int) {
	col := k.e.scratch[thread][:k.area*k.depth]
	sgemm.Gemm(true, false, k.depth, k.area, k.op.O, k.w, k.depth, k.dy.at(i), k.area, false, col, k.area)
	dx := k.dx.fresh(i)
	k.each(0, k.op.C, func(x, c, n, step int) {
		for j := range n {
			dx[x+j*step] += col[c+j]
		}
	})
}

// tile computes the gradient of the filters' part for some input channels.
func (k *conv2D) tile(task, thread int) {
	lo, hi := span(task, convTile, k.op.C)
	kk := k.op.K * k.op.K
	col := k.e.scratch[thread][:(hi-lo)*kk*k.area]
	for i := range k.e.n {
		k.columns(k.x.at(i), lo, hi, col)
		dy := k.dy.at(i)
		sgemm.Gemm(false, true, k.op.O, (hi-lo)*kk, k.area, dy, k.area, col, k.area, true, k.dw[lo*kk:], k.depth)
		if task == 0 && k.db != nil {
			for o := range k.db {
				k.db[o] += float32(sum(dy[o*k.area : (o+1)*k.area]))
			}
		}
	}
}

// columns writes the column matrix of channels [lo,hi).
func (k *conv2D) columns(x []float32, lo, hi int, col []float32) {
	if k.op.Pad > 0 {
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
	o := k.op
	for ch := lo; ch < hi; ch++ {
		for ky := range o.K {
			for kx := range o.K {
				row := ((ch-lo)*o.K+ky)*o.K + kx
				first, last := inside(kx-o.Pad, o.Stride, o.W, o.OutWidth)
				for oy := range o.OutHeight {
					y := oy*o.Stride + ky - o.Pad
					if y < 0 || y >= o.H || first >= last {
						continue
					}
					x := (ch*o.H+y)*o.W + first*o.Stride + kx - o.Pad
					visit(x, row*k.area+oy*o.OutWidth+first, last-first, o.Stride)
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

// pooling takes the maximum or the mean of windows.
type pooling struct {
	none
	ports
	e        *executable
	op       *compute.Pool
	corners  []int   // of each output of an example: the first pixel of its window
	best     []int32 // of each output: the input index inside its example
	fwd, bwd func(task, thread int)
}

func newPooling(e *executable, op *compute.Pool) kernel {
	k := &pooling{e: e, op: op, ports: e.ports(op.IO)}
	for j := range k.y.size {
		c, oy, ox := j/(op.OutHeight*op.OutWidth), j/op.OutWidth%op.OutHeight, j%op.OutWidth
		k.corners = append(k.corners, (c*op.H+oy*op.Stride)*op.W+ox*op.Stride)
	}
	k.fwd, k.bwd = k.max, k.maxGrad
	if op.Avg {
		k.fwd, k.bwd = k.avg, k.avgGrad
	} else {
		k.best = make([]int32, e.capacity*k.y.size)
	}
	return k
}

func (k *pooling) forward()   { k.e.pool.run(k.e.n, k.fwd) }
func (k *pooling) inputGrad() { k.e.pool.run(k.e.n, k.bwd) }

func (k *pooling) max(i, _ int) {
	x, y, best := k.x.at(i), k.y.at(i), k.best[i*k.y.size:]
	for j, from := range k.corners {
		top, at := x[from], from
		for r := range k.op.K {
			row := from + r*k.op.W
			for c, v := range x[row : row+k.op.K] {
				if v > top {
					top, at = v, row+c
				}
			}
		}
		y[j], best[j] = top, int32(at)
	}
}

func (k *pooling) maxGrad(i, _ int) {
	dx, best := k.dx.fresh(i), k.best[i*k.y.size:]
	for j, g := range k.dy.at(i) {
		dx[best[j]] += g
	}
}

func (k *pooling) avg(i, _ int) {
	x, y := k.x.at(i), k.y.at(i)
	for j, from := range k.corners {
		s := float32(0)
		for r := range k.op.K {
			for _, v := range x[from+r*k.op.W:][:k.op.K] {
				s += v
			}
		}
		y[j] = s / float32(k.op.K*k.op.K)
	}
}

func (k *pooling) avgGrad(i, _ int) {
	dx := k.dx.fresh(i)
	for j, g := range k.dy.at(i) {
		from := k.corners[j]
		g /= float32(k.op.K * k.op.K)
		for r := range k.op.K {
			row := dx[from+r*k.op.W:][:k.op.K]
			for p := range row {
				row[p] += g
			}
		}
	}
}
