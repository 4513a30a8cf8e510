package cpu

import (
	"math"

	"optimus/compute"
)

// softmax is the loss. Each example's share is kept and added in order, so that
// the sum does not depend on threads.
type softmax struct {
	none
	e       *executable
	op      *compute.SoftmaxLoss
	x, dx   port
	loss    []float64
	correct []int64
	fwd     func(task, thread int)
}

func newSoftmax(e *executable, op *compute.SoftmaxLoss) kernel {
	k := &softmax{e: e, op: op, x: e.port(op.X), dx: e.sink(op, op.DX), loss: make([]float64, e.capacity), correct: make([]int64, e.capacity)}
	k.fwd = k.sample
	return k
}

func (k *softmax) forward() {
	k.e.pool.run(k.e.n, k.fwd)
	for i := range k.e.n {
		k.e.result.Loss += k.loss[i]
		k.e.result.Counts[0] += k.correct[i]
	}
	k.e.result.Weight += int64(k.e.n * k.op.Rows * *k.x.steps)
}

func (k *softmax) sample(i, _ int) {
	c, rows := k.op.Classes, k.op.Rows**k.x.steps
	x, dx := k.x.at(i), k.dx.at(i)
	labels := k.e.batch.Inputs[k.op.Labels].I[i*rows:]
	k.loss[i], k.correct[i] = 0, 0
	for r := range rows {
		loss, hit := k.row(x[r*c:(r+1)*c], dx[r*c:(r+1)*c], int(labels[r]))
		k.loss[i] += loss
		if hit {
			k.correct[i]++
		}
	}
}

// row computes -log softmax(x)[label] = log Σ exp(x-max) - (x[label]-max), which
// cannot overflow, and in training dx = softmax(x) - onehot(label).
func (k *softmax) row(x, dx []float32, label int) (loss float64, hit bool) {
	best := 0
	for j, v := range x {
		if v > x[best] {
			best = j
		}
	}
	top, total := float64(x[best]), 0.0
	for _, v := range x {
		total += math.Exp(float64(v) - top)
	}
	if k.e.train {
		for j, v := range x {
			p := math.Exp(float64(v)-top) / total
			if j == label {
				p--
			}
			k.dx.put(dx, j, float32(p))
		}
	}
	return math.Log(total) - (float64(x[label]) - top), best == label
}
