package cpu

import (
	"optimus/compute"
	"optimus/compute/cpu/sgemm"
	"optimus/compute/cpu/vec"
)

func add(dst, src []float32) { vec.Add(dst, src) }

// addBias adds b to every row of y; nil adds nothing.
func addBias(y, b []float32) {
	if b == nil {
		return
	}
	for ; len(y) > 0; y = y[len(b):] {
		add(y[:len(b)], b)
	}
}

// dense is Y = X·Wᵀ + b on all rows of the batch.
type dense struct {
	ports
	e             *executable
	op            *compute.Dense
	w, dw, b, db  []float32
	fwd, bwd, par func(task, thread int)
}

// denseTile is how many rows of a matrix of weights a task covers.
const denseTile = 64

func newDense(e *executable, op *compute.Dense) kernel {
	k := &dense{e: e, op: op, ports: e.ports(op, op.IO)}
	k.w, k.dw = e.block(op.W)
	k.b, k.db = e.block(op.B)
	k.fwd, k.bwd, k.par = k.rows, k.rowsGrad, k.tile
	return k
}

func (k *dense) forward()   { k.e.pool.run(k.e.shares(k.count()), k.fwd) }
func (k *dense) inputGrad() { k.e.pool.run(k.e.shares(k.count()), k.bwd) }
func (k *dense) paramGrad() { k.e.pool.run(k.e.shares(k.op.Out), k.par) }

// count returns how many rows the batch has.
func (k *dense) count() int { return k.e.n * k.op.Rows * *k.y.steps }

func (k *dense) rows(task, _ int) {
	lo, hi := k.e.share(task, k.count())
	in, out := k.op.In, k.op.Out
	y := k.y.data[lo*out : hi*out]
	sgemm.Gemm(false, true, hi-lo, out, in, k.x.data[lo*in:hi*in], in, k.w, in, false, y, out)
	addBias(y, k.b)
}

func (k *dense) rowsGrad(task, _ int) {
	lo, hi := k.e.share(task, k.count())
	in, out := k.op.In, k.op.Out
	sgemm.Gemm(false, false, hi-lo, in, out, k.dy.data[lo*out:hi*out], out, k.w, in, k.dx.add, k.dx.data[lo*in:hi*in], in)
}

func (k *dense) tile(task, _ int) {
	lo, hi := k.e.share(task, k.op.Out)
	in, out, rows := k.op.In, k.op.Out, k.count()
	dy := k.dy.data[:rows*out]
	sgemm.Gemm(true, false, hi-lo, in, rows, dy[lo:], out, k.x.data[:rows*in], in, true, k.dw[lo*in:hi*in], in)
	if k.db != nil {
		for ; len(dy) > 0; dy = dy[out:] {
			add(k.db[lo:hi], dy[lo:hi])
		}
	}
}

// tiles returns how many tiles of size cover n; span returns tile i.
func tiles(n, size int) int            { return (n + size - 1) / size }
func span(i, size, n int) (lo, hi int) { return i * size, min((i+1)*size, n) }
