package cpu

import (
	"optimus/compute"
	"optimus/compute/cpu/sgemm"
	"optimus/compute/cpu/vec"
)

// conv1D multiplies windows of text where they lie: the H rows of a window are one
// behind the other in X, and window t starts E values after window t-1.
type conv1D struct {
	ports
	e             *executable
	op            *compute.Conv1D
	out           int // windows
	w, dw, b, db  []float32
	fwd, bwd, par func(task, thread int)
}

func newConv1D(e *executable, op *compute.Conv1D) kernel {
	k := &conv1D{}
	k.init(e, op, op)
	k.fwd, k.bwd, k.par = k.sample, k.sampleGrad, k.tile
	return k
}

func (k *conv1D) init(e *executable, self compute.Op, op *compute.Conv1D) {
	k.e, k.op, k.ports, k.out = e, op, e.ports(self, op.IO), op.T-op.H+1
	k.w, k.dw = e.block(op.W)
	k.b, k.db = e.block(op.B)
}

func (k *conv1D) forward()   { k.e.pool.run(k.e.n, k.fwd) }
func (k *conv1D) inputGrad() { k.e.pool.run(k.e.n, k.bwd) }
func (k *conv1D) paramGrad() { k.e.pool.run(k.e.shares(k.op.F), k.par) }

func (k *conv1D) sample(i, _ int) {
	e, he, f := k.op.E, k.op.H*k.op.E, k.op.F
	y := k.y.at(i)
	windows(k.x.at(i), k.out, e, he, k.w, f, y)
	addBias(y, k.b)
}

// windows computes y [n,f] = the products of n windows of he values, e apart, with
// w [f,he]. Windows overlap, as the rows of sgemm's matrices do not; so there is
// one product for each row of a window, over rows that lie apart.
func windows(x []float32, n, e, he int, w []float32, f int, y []float32) {
	h := he / e
	for j := range h {
		sgemm.Gemm(false, true, n, f, e, x[j*e:(j+n)*e], e, w[j*e:], he, j > 0, y, f)
	}
}

// sampleGrad adds dY·W to the rows below each window. Row j of all windows is one
// product, in which no two windows meet.
func (k *conv1D) sampleGrad(i, _ int) {
	e, he, f := k.op.E, k.op.H*k.op.E, k.op.F
	dx, dy := k.dx.fresh(i), k.dy.at(i)
	for j := range k.op.H {
		sgemm.Gemm(false, false, k.out, e, f, dy, f, k.w[j*e:], he, true, dx[j*e:(j+k.out)*e], e)
	}
}

func (k *conv1D) tile(task, _ int) {
	lo, hi := k.e.share(task, k.op.F)
	e, he, f := k.op.E, k.op.H*k.op.E, k.op.F
	for i := range k.e.n {
		x, dy := k.x.at(i), k.dy.at(i)
		for j := range k.op.H {
			sgemm.Gemm(true, false, hi-lo, e, k.out, dy[lo:], f, x[j*e:(j+k.out)*e], e, true, k.dw[lo*he+j*e:], he)
		}
		for ; len(dy) > 0 && k.db != nil; dy = dy[f:] {
			add(k.db[lo:hi], dy[lo:hi])
		}
	}
}

// convMax is conv1D and maxTime in one: it keeps only the best window of each
// filter, and only that one has a gradient.
type convMax struct {
	conv1D
	best []int32 // of each example and filter
}

// convGroup is how many examples share one product: their windows lie E apart
// across the border between two examples too, and the H-1 windows that straddle a
// border are computed and ignored, which is cheaper than packing W each time.
const convGroup = 8

func newConvMax(e *executable, op *compute.ConvMax) kernel {
	k := &convMax{best: make([]int32, e.capacity*op.F)}
	k.init(e, op, &op.Conv1D)
	e.reserve(convGroup * op.T * op.F)
	k.fwd, k.bwd, k.par = k.group, k.bestGrad, k.filter
	return k
}

func (k *convMax) forward()   { k.e.pool.run(tiles(k.e.n, convGroup), k.fwd) }
func (k *convMax) paramGrad() { k.e.pool.run(k.op.F, k.par) }

func (k *convMax) group(task, thread int) {
	lo, hi := span(task, convGroup, k.e.n)
	t, e, he, f := k.op.T, k.op.E, k.op.H*k.op.E, k.op.F
	rows := (hi-lo-1)*t + k.out
	y := k.e.scratch[thread][:rows*f]
	windows(k.x.data[lo*t*e:hi*t*e], rows, e, he, k.w, f, y)
	for i := lo; i < hi; i++ {
		best, out := k.best[i*f:(i+1)*f], k.y.at(i)
		maxRows(y[(i-lo)*t*f:][:k.out*f], out, best)
		addBias(out, k.b)
	}
}

// bestGrad adds dy[f]·W[f] to the best window of each filter.
func (k *convMax) bestGrad(i, _ int) {
	e, he, f := k.op.E, k.op.H*k.op.E, k.op.F
	dx := k.dx.fresh(i)
	for j, g := range k.dy.at(i) {
		if g != 0 {
			at := int(k.best[i*f+j]) * e
			vec.AXPY(dx[at:at+he], g, k.w[j*he:(j+1)*he])
		}
	}
}

// filter sums dy[f] times the best window over the batch, for one filter.
func (k *convMax) filter(j, _ int) {
	e, he, f := k.op.E, k.op.H*k.op.E, k.op.F
	dw := k.dw[j*he : (j+1)*he]
	for i := range k.e.n {
		g := k.dy.data[i*f+j]
		if g != 0 {
			at := int(k.best[i*f+j]) * e
			vec.AXPY(dw, g, k.x.at(i)[at:at+he])
		}
		if k.db != nil {
			k.db[j] += g
		}
	}
}

// maxRows computes y = max over the rows of x, each as long as y, and which row
// that is: the first of equals. A NaN wins.
func maxRows(x, y []float32, best []int32) {
	n := len(y)
	copy(y, x[:n])
	clear(best)
	for t := 1; t*n < len(x); t++ {
		vec.Greater(y, best, x[t*n:(t+1)*n], int32(t))
	}
}

// maxTime is the maximum over the first dimension.
type maxTime struct {
	none
	ports
	e        *executable
	fwd, bwd func(task, thread int)
}

func newMaxTime(e *executable, op *compute.MaxTime) kernel {
	k, f := &maxTime{e: e, ports: e.ports(op, op.IO)}, op.F
	best := make([]int32, e.capacity*f)
	k.fwd = func(i, _ int) { maxRows(k.x.at(i), k.y.at(i), best[i*f:(i+1)*f]) }
	k.bwd = func(i, _ int) {
		dx := k.dx.fresh(i)
		for j, g := range k.dy.at(i) {
			dx[int(best[i*f+j])*f+j] += g
		}
	}
	return k
}

func (k *maxTime) forward()   { k.e.pool.run(k.e.n, k.fwd) }
func (k *maxTime) inputGrad() { k.e.pool.run(k.e.n, k.bwd) }
