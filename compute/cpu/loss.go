package cpu

import (
	"optimus/compute"
	"optimus/compute/cpu/vec"
)

// tally is what a loss knows of an example. Each example's share is kept and added
// in order, so that the sum does not depend on threads.
type tally struct {
	loss   float64
	weight int64
	counts compute.Counts
}

// total adds the examples of the batch to its result.
func (e *executable) total(list []tally) {
	for _, t := range list[:e.n] {
		e.result.Add(compute.Result{Loss: t.loss, Weight: t.weight, Counts: t.counts})
	}
}

// softmax is the cross entropy.
type softmax struct {
	none
	e     *executable
	op    *compute.SoftmaxLoss
	x, dx port
	sums  []tally
	fwd   func(task, thread int)
}

func newSoftmax(e *executable, op *compute.SoftmaxLoss) kernel {
	k := &softmax{e: e, op: op, x: e.port(op.X), dx: e.sink(op, op.DX), sums: make([]tally, e.capacity)}
	k.fwd = k.sample
	return k
}

func (k *softmax) forward() {
	k.e.pool.run(k.e.n, k.fwd)
	k.e.total(k.sums)
}

// sample writes the gradient of an example: nobody has written any before its loss.
func (k *softmax) sample(i, _ int) {
	c, rows := k.op.Classes, k.op.Rows**k.x.steps
	x, dx := k.x.at(i), k.dx.at(i)
	var sum tally
	for r, label := range k.e.batch.Inputs[k.op.Labels].I[i*rows : (i+1)*rows] {
		row, grad := x[r*c:(r+1)*c], dx[r*c:(r+1)*c]
		if int(label) == k.op.Ignore {
			clear(grad)
			continue
		}
		if !k.e.train {
			grad = nil
		}
		loss, best := vec.CrossEntropy(grad, row, int(label))
		sum.loss += loss
		sum.weight++
		if best == int(label) && k.e.p.Metric == compute.Accuracy {
			sum.counts[0]++
		}
	}
	k.sums[i] = sum
}
