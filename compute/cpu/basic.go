package cpu

import (
	"slices"

	"optimus/compute"
	"optimus/compute/cpu/plane"
	"optimus/compute/cpu/vec"
	"optimus/internal/rng"
)

// load copies a float input.
type load struct {
	none
	e  *executable
	op *compute.Load
	y  port
}

func newLoad(e *executable, op *compute.Load) kernel { return &load{e: e, op: op, y: e.port(op.Y)} }

func (k *load) forward() { copy(k.y.data, k.e.batch.Inputs[k.op.In].F) }

// lookup reads and differentiates an embedding.
type lookup struct {
	none
	e        *executable
	op       *compute.Lookup
	t        *table
	y, dy    port
	slots    []int32 // of each id of the batch
	fwd, bwd func(task, thread int)
}

// lookupTile is how many columns of a table a gradient task covers.
const lookupTile = 128

func newLookup(e *executable, op *compute.Lookup) kernel {
	k := &lookup{e: e, op: op, t: e.tables[op.Table], y: e.port(op.Y), dy: e.port(op.DY), slots: make([]int32, e.capacity*op.T*e.steps[e.p.Inputs[op.Ids].Axis])}
	k.fwd, k.bwd = k.sample, k.tile
	return k
}

func (k *lookup) forward()   { k.e.pool.run(k.e.n, k.fwd) }
func (k *lookup) paramGrad() { k.e.pool.run(tiles(k.op.Width, lookupTile), k.bwd) }

func (k *lookup) sample(i, _ int) {
	t, w := k.op.T**k.y.steps, k.op.Width
	ids, slots, y := k.e.batch.Inputs[k.op.Ids].I[i*t:(i+1)*t], k.slots[i*t:(i+1)*t], k.y.at(i)
	for j, id := range ids {
		s, _ := k.t.slot(id)
		slots[j] = int32(s)
		copy(y[j*w:(j+1)*w], k.t.row(s))
	}
}

func (k *lookup) tile(c, _ int) {
	w := k.op.Width
	lo, hi := span(c, lookupTile, w)
	for j, s := range k.slots[:k.e.n*k.op.T**k.y.steps] {
		add(k.t.grad[int(s)*w+lo:int(s)*w+hi], k.dy.data[j*w+lo:j*w+hi])
	}
}

// relu is max(x, 0).
type relu struct {
	none
	ports
	e        *executable
	fwd, bwd func(task, thread int)
}

func newReLU(e *executable, op *compute.ReLU) kernel {
	k := &relu{e: e, ports: e.ports(op, op.IO)}
	k.fwd = func(i, _ int) { vec.ReLU(k.y.at(i), k.x.at(i)) }
	k.bwd = func(i, thread int) {
		dx, sent := k.dx.at(i), k.dx.at(i)
		if k.dx.add {
			sent = e.scratch[thread][:len(dx)]
		}
		vec.ReLUGrad(sent, k.dy.at(i), k.y.at(i))
		if k.dx.add {
			add(dx, sent)
		}
	}
	e.reserve(len(k.dx.data) / e.capacity)
	return k
}

func (k *relu) forward()   { k.e.pool.run(k.e.n, k.fwd) }
func (k *relu) inputGrad() { k.e.pool.run(k.e.n, k.bwd) }

// concat puts its inputs one behind the other.
type concat struct {
	none
	e        *executable
	op       *compute.Concat
	xs, dxs  []port
	y, dy    port
	fwd, bwd func(task, thread int)
}

func newConcat(e *executable, op *compute.Concat) kernel {
	k := &concat{e: e, op: op, y: e.port(op.Y), dy: e.port(op.DY)}
	for i := range op.X {
		k.xs, k.dxs = append(k.xs, e.port(op.X[i])), append(k.dxs, e.sink(op, op.DX[i]))
	}
	k.fwd, k.bwd = k.rows, k.rowsGrad
	if shape := e.p.Buffers[op.Y].Shape; len(shape) == 3 {
		k.fwd, k.bwd = k.channels, k.channelsGrad
	}
	return k
}

func (k *concat) rows(i, _ int) {
	y := k.y.at(i)
	for t := range *k.y.steps {
		for _, x := range k.xs {
			y = y[copy(y, x.at(i)[t*x.size:(t+1)*x.size]):]
		}
	}
}

func (k *concat) rowsGrad(i, _ int) {
	for _, dx := range k.dxs {
		if dx.data != nil {
			dx.fresh(i)
		}
	}
	dy := k.dy.at(i)
	for t := range *k.y.steps {
		for j, x := range k.xs {
			if dx := k.dxs[j]; dx.data != nil {
				add(dx.at(i)[t*x.size:(t+1)*x.size], dy[:x.size])
			}
			dy = dy[x.size:]
		}
	}
}

// channels joins pictures. In planes whole blocks are copied where they begin at a
// block of the output too, which they nearly always do.
func (k *concat) channels(i, _ int) {
	if k.y.pic != nil {
		for b := range plane.Blocks(k.y.pic.channels) {
			k.y.target(i, b, true) // lanes past the last channel stay zero
		}
	}
	k.each(i, k.y, k.xs, func(y, x []float32) { copy(y, x) }, func(y, x *float32) { *y = *x })
}

func (k *concat) channelsGrad(i, _ int) {
	for _, dx := range k.dxs {
		if dx.data != nil {
			dx.fresh(i)
		}
	}
	k.each(i, k.dy, k.dxs, func(dy, dx []float32) { add(dx, dy) }, func(dy, dx *float32) { *dx += *dy })
}

// each visits what of the whole and of its parts are the same pixels: 16 channels
// of a row, or single values.
func (k *concat) each(i int, whole port, parts []port, block func(whole, part []float32), value func(whole, part *float32)) {
	first := 0
	for j, part := range parts {
		shape := k.e.p.Buffers[k.op.X[j]].Shape
		c, h, w := shape[0], shape[1], shape[2]
		for at := 0; part.data != nil && at < c; {
			if whole.pic != nil && part.pic != nil && (first+at)%plane.Lanes == 0 && at%plane.Lanes == 0 && (c-at >= plane.Lanes || first+c == whole.pic.channels) {
				from, to := part.plane(i, at/plane.Lanes), whole.plane(i, (first+at)/plane.Lanes)
				for y := range h {
					block(to.Row(y), from.Row(y))
				}
				at += plane.Lanes
				continue
			}
			for y := range h {
				to, tstep := whole.line(i, first+at, y, h, w)
				from, fstep := part.line(i, at, y, h, w)
				for p := range w {
					value(&to[p*tstep], &from[p*fstep])
				}
			}
			at++
		}
		first += c
	}
}

func (k *concat) forward()   { k.e.pool.run(k.e.n, k.fwd) }
func (k *concat) inputGrad() { k.e.pool.run(k.e.n, k.bwd) }

// total adds its inputs.
type total struct {
	none
	e        *executable
	xs, dxs  []port
	y, dy    port
	fwd, bwd func(task, thread int)
}

func newAdd(e *executable, op *compute.Add) kernel {
	k := &total{e: e, y: e.port(op.Y), dy: e.port(op.DY)}
	for i := range op.X {
		k.xs, k.dxs = append(k.xs, e.port(op.X[i])), append(k.dxs, e.sink(op, op.DX[i]))
	}
	// An input may lie where the output does, and an input's gradient where that of the
	// output does: see merge.
	first := max(0, slices.IndexFunc(k.xs, k.y.same))
	k.fwd = func(i, _ int) {
		y := k.y.at(i)
		if !k.y.same(k.xs[first]) {
			copy(y, k.xs[first].at(i))
		}
		for j, x := range k.xs {
			if j != first {
				add(y, x.at(i))
			}
		}
	}
	k.bwd = func(i, _ int) {
		for _, dx := range k.dxs {
			switch {
			case dx.data == nil:
			case dx.add:
				add(dx.at(i), k.dy.at(i))
			case !dx.same(k.dy):
				copy(dx.at(i), k.dy.at(i))
			}
		}
	}
	return k
}

func (k *total) forward()   { k.e.pool.run(k.e.n, k.fwd) }
func (k *total) inputGrad() { k.e.pool.run(k.e.n, k.bwd) }

// dropout keeps what it multiplied by, per element, for the backward pass.
type dropout struct {
	none
	ports
	e        *executable
	op       *compute.Dropout
	mask     port
	fwd, bwd func(task, thread int)
}

func newDropout(e *executable, op *compute.Dropout) kernel {
	k := &dropout{e: e, op: op, ports: e.ports(op, op.IO)}
	k.mask = k.y
	k.mask.data = make([]float32, len(k.y.data))
	k.fwd, k.bwd = k.sample, k.sampleGrad
	return k
}

func (k *dropout) forward()   { k.e.pool.run(k.e.n, k.fwd) }
func (k *dropout) inputGrad() { k.e.pool.run(k.e.n, k.bwd) }

func (k *dropout) sample(i, _ int) {
	x, y, mask := k.x.at(i), k.y.at(i), k.mask.at(i)
	if !k.e.train {
		copy(y, x)
		return
	}
	vec.DropoutMask(mask, k.e.stream(i, k.op.Layer), 0, k.op.Rate)
	vec.Mul(y, x, mask)
}

func (k *dropout) sampleGrad(i, _ int) {
	dx, dy := k.dx.at(i), k.dy.at(i)
	for j, m := range k.mask.at(i) {
		k.dx.put(dx, j, dy[j]*m)
	}
}

// stream is the randomness of example i of the batch in a layer.
func (e *executable) stream(i int, layer uint64) rng.Key {
	id := i
	if e.key.Examples != nil {
		id = e.key.Examples[i]
	}
	return rng.NewKey(e.key.Seed, uint64(e.key.Epoch), uint64(id), layer)
}
