package cpu

import (
	"optimus/compute"
	"optimus/compute/cpu/seq"
	"optimus/compute/cpu/vec"
)

// bag sums rows of an embedding.
type bag struct {
	none
	e        *executable
	op       *compute.Bag
	t        *table
	y, dy    port
	slots    []int32 // of each id of the batch; -1 for padding
	fwd, bwd func(task, thread int)
}

func newBag(e *executable, op *compute.Bag) kernel {
	k := &bag{e: e, op: op, t: e.tables[op.Table], y: e.port(op.Y), dy: e.port(op.DY), slots: make([]int32, e.capacity*op.Bags*op.Most)}
	k.fwd, k.bwd = k.sample, k.tile
	return k
}

func (k *bag) forward()   { k.e.pool.run(k.e.n, k.fwd) }
func (k *bag) paramGrad() { k.e.pool.run(tiles(k.op.Width, lookupTile), k.bwd) }

func (k *bag) sample(i, _ int) {
	most, w := k.op.Most, k.op.Width
	n := k.op.Bags * most
	ids, slots, y := k.e.batch.Inputs[k.op.Ids].I[i*n:(i+1)*n], k.slots[i*n:(i+1)*n], k.y.at(i)
	clear(y)
	for j, id := range ids {
		slots[j] = -1
		if s, ok := k.t.slot(id); ok {
			slots[j] = int32(s)
			b := j / most
			add(y[b*w:(b+1)*w], k.t.row(s))
		}
	}
}

func (k *bag) tile(c, _ int) {
	w := k.op.Width
	lo, hi := span(c, lookupTile, w)
	for j, s := range k.slots[:k.e.n*k.op.Bags*k.op.Most] {
		if s >= 0 {
			b := j / k.op.Most
			add(k.t.grad[int(s)*w+lo:int(s)*w+hi], k.dy.data[b*w+lo:b*w+hi])
		}
	}
}

// sampled is the loss of negative sampling.
type sampled struct {
	none
	e            *executable
	op           *compute.SampledLoss
	x, dx, c, dc port
	sums         []tally
	fwd          func(task, thread int)
}

func newSampled(e *executable, op *compute.SampledLoss) kernel {
	k := &sampled{e: e, op: op, x: e.port(op.X), dx: e.sink(op, op.DX), c: e.port(op.C), dc: e.sink(op, op.DC), sums: make([]tally, e.capacity)}
	e.reserve(op.K)
	k.fwd = k.sample
	return k
}

func (k *sampled) forward() {
	k.e.pool.run(k.e.n, k.fwd)
	k.e.total(k.sums)
}

func (k *sampled) sample(i, thread int) {
	w, scores := k.op.Width, k.e.scratch[thread][:k.op.K]
	x, c := k.x.at(i), k.c.at(i)
	for j := range scores {
		scores[j] = float32(vec.Dot(x, c[j*w:(j+1)*w]))
	}
	sum := tally{weight: 1}
	if _, best := vec.Max(scores); best == 0 {
		sum.counts[0] = 1
	}
	sum.loss = seq.SampledLoss(scores, scores, nil)
	k.sums[i] = sum
	if !k.e.train {
		return
	}
	dx, dc := k.dx.fresh(i), k.dc.fresh(i)
	for j, g := range scores {
		vec.AXPY(dx, g, c[j*w:(j+1)*w])
		vec.AXPY(dc[j*w:(j+1)*w], g, x)
	}
}
