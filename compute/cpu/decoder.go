package cpu

import (
	"optimus/compute"
	"optimus/compute/cpu/rnn"
	"optimus/compute/cpu/seq"
	"optimus/compute/cpu/vec"
)

// decoder takes tiles of examples through time, as recurrent does. What it keeps of
// them lies in stretches: all but the weights of the attention.
type decoder struct {
	ports
	e                   *executable
	op                  *compute.AttentionDecoder
	lengths             *lengths
	memory, dmemory     port
	h0, dh0, c0, dc0    port
	input, feed, state  product // of x, ỹ' and h'
	query, combine      product
	shares              []share
	xs, a, tanh, qs, us []float32 // [T,B,…]: x; gates; tanh(c); q; [Σ pₛ·Mₛ; h]
	dz                  []float32 // [T,B,H]: gradient in front of the last tanh
	hs, cs, ys          []float32 // [T+1,B,H]: states
	attention           []float32 // [N,T,S]

	fwd, bwd, par, in func(task, thread int)
}

func newDecoder(e *executable, op *compute.AttentionDecoder) kernel {
	k := &decoder{e: e, op: op, ports: e.ports(op, op.IO), lengths: e.lengths(op.Lengths, e.p.Buffers[op.Memory].Axis),
		memory: e.port(op.Memory), dmemory: e.sink(op, op.DMemory), h0: e.port(op.H0), dh0: e.sink(op, op.DH0), c0: e.port(op.C0), dc0: e.sink(op, op.DC0)}
	h := op.H
	k.input.in, k.feed.in, k.state.in, k.query.in, k.combine.in = op.In, h, h, h, 2*h
	k.input.columns(e, op.Input.W, op.Input.B, 4*h, 0, op.In+h)
	k.feed.columns(e, op.Input.W, compute.None, 4*h, op.In, op.In+h)
	k.state.add(e, op.State.W, op.State.B, 4*h)
	k.query.add(e, op.Query, compute.None, h)
	k.combine.add(e, op.Combine, op.Bias, h)

	kept := func(more, width int) []float32 { return make([]float32, e.capacity*(*k.y.steps+more)*width) }
	k.xs, k.a, k.tanh, k.qs, k.us, k.dz = kept(0, op.In), kept(0, 4*h), kept(0, h), kept(0, h), kept(0, 2*h), kept(0, h)
	k.hs, k.cs, k.ys = kept(1, h), kept(1, h), kept(1, h)
	k.attention = kept(0, *k.memory.steps)
	for _, list := range [][]share{k.input.shares(k.a, k.xs, 0, 0), k.feed.shares(k.a, k.ys, 0, 1), k.state.shares(k.a, k.hs, 0, 1),
		k.query.shares(k.qs, k.hs, 1, 1), k.combine.shares(k.dz, k.us, 0, 0)} {
		k.shares = append(k.shares, list...)
	}
	k.fwd, k.bwd, k.in = k.tile, k.tileGrad, k.inputTile
	k.par = func(task, _ int) { k.shares[task].sum(e, *k.y.steps) }
	e.reserve(5*recurrentTile*h + h + *k.memory.steps)
	return k
}

func (k *decoder) inputGrad() {}

func (k *decoder) forward() {
	k.lengths.update()
	for _, p := range []*product{&k.input, &k.feed, &k.state, &k.query, &k.combine} {
		p.pack(k.e)
	}
	k.e.pool.run(tiles(k.e.n, recurrentTile), k.fwd)
}

func (k *decoder) paramGrad() {
	tasks := tiles(k.e.n, recurrentTile)
	k.e.pool.run(tasks, k.bwd)
	k.e.pool.run(len(k.shares), k.par)
	if k.dx.data != nil {
		k.e.pool.run(tasks, k.in)
	}
}

func (k *decoder) cell(v stretch, s int) rnn.LSTM {
	h, states := k.op.H, v.states()
	return rnn.LSTM{Gates: v.at(k.a, 4*h, s), CPrev: states.at(k.cs, h, s), HPrev: states.at(k.hs, h, s),
		C: states.at(k.cs, h, s+1), TanhC: v.at(k.tanh, h, s), H: states.at(k.hs, h, s+1)}
}

// weights are those of the attention of example i in step s.
func (k *decoder) weights(i, s int) []float32 {
	n := *k.memory.steps
	at := (i**k.y.steps + s) * n
	return k.attention[at : at+n]
}

func (k *decoder) tile(task, _ int) {
	v, in, h := k.e.stretch(task, *k.y.steps), k.op.In, k.op.H
	states := v.states()
	for j := range v.n {
		x := k.x.at(v.lo + j)
		for s := range v.steps {
			copy(v.at(k.xs, in, s)[j*in:(j+1)*in], x[s*in:])
		}
		copy(states.at(k.hs, h, 0)[j*h:], k.h0.at(v.lo+j))
		copy(states.at(k.cs, h, 0)[j*h:], k.c0.at(v.lo+j))
	}
	clear(states.at(k.ys, h, 0))
	k.input.multiply(v.all(k.a, 4*h), v.all(k.xs, in), false)
	for s := range v.steps {
		k.step(v, s)
	}
}

func (k *decoder) step(v stretch, s int) {
	h, c := k.op.H, k.cell(v, s)
	k.feed.multiply(c.Gates, v.states().at(k.ys, h, s), true)
	k.state.multiply(c.Gates, c.HPrev, true)
	c.Forward(rnn.Tile{B: v.n, H: h})
	q, u, y := v.at(k.qs, h, s), v.at(k.us, 2*h, s), v.states().at(k.ys, h, s+1)
	k.query.multiply(q, c.H, false)
	for j := range v.n {
		i, row := v.lo+j, u[j*2*h:(j+1)*2*h]
		seq.Attend(row[:h], k.weights(i, s), q[j*h:(j+1)*h], k.memory.at(i), k.lengths.at(i, *k.memory.steps))
		copy(row[h:], c.H[j*h:])
	}
	k.combine.multiply(y, u, false)
	vec.Tanh(y, y)
	for j := range v.n {
		copy(k.y.at(v.lo + j)[s*h:(s+1)*h], y[j*h:])
	}
}

func (k *decoder) tileGrad(task, thread int) {
	v, h := k.e.stretch(task, *k.y.steps), k.op.H
	n, scratch := v.n*h, k.e.scratch[thread]
	dh, dc, dy, du, rest := scratch[:n], scratch[n:2*n], scratch[2*n:3*n], scratch[3*n:5*n], scratch[5*n:]
	clear(scratch[:3*n])
	for j := 0; j < v.n && k.dmemory.data != nil; j++ {
		k.dmemory.fresh(v.lo + j)
	}
	for s := v.steps - 1; s >= 0; s-- {
		k.stepGrad(v, s, dh, dc, dy, du, rest)
	}
	for j := range v.n {
		k.sum(k.dh0, v.lo+j, dh[j*h:(j+1)*h])
		k.sum(k.dc0, v.lo+j, dc[j*h:(j+1)*h])
	}
}

// sum adds to the gradient of a state of example i, if there is one.
func (k *decoder) sum(dx port, i int, g []float32) {
	if dx.data != nil {
		add(dx.fresh(i), g)
	}
}

// stepGrad takes the gradients of h, c and ỹ behind a step to those before it.
func (k *decoder) stepGrad(v stretch, s int, dh, dc, dy, du, rest []float32) {
	h, c := k.op.H, k.cell(v, s)
	for j := range v.n {
		add(dy[j*h:(j+1)*h], k.dy.at(v.lo + j)[s*h:(s+1)*h])
	}
	dz, q := v.at(k.dz, h, s), v.at(k.qs, h, s)
	vec.TanhGrad(dz, dy, v.states().at(k.ys, h, s+1))
	k.combine.multiplyGrad(du, dz, false)
	dq, scores := rest[:h], rest[h:h+*k.memory.steps]
	for j := range v.n {
		i, du := v.lo+j, du[j*2*h:(j+1)*2*h]
		clear(dq)
		seq.AttendGrad(dq, k.dmemory.at(i), du[:h], k.weights(i, s), q[j*h:(j+1)*h], k.memory.at(i), scores, k.lengths.at(i, *k.memory.steps))
		copy(q[j*h:(j+1)*h], dq)
		add(dh[j*h:(j+1)*h], du[h:])
	}
	k.query.multiplyGrad(dh, q, true)
	c.Backward(rnn.Tile{B: v.n, H: h}, rnn.LSTMGrad{DGates: c.Gates, DC: dc, DH: dh, DHPrev: dh})
	k.state.multiplyGrad(dh, c.Gates, true)
	k.feed.multiplyGrad(dy, c.Gates, false)
}

func (k *decoder) inputTile(task, _ int) {
	v, in := k.e.stretch(task, *k.y.steps), k.op.In
	k.input.multiplyGrad(v.all(k.xs, in), v.all(k.a, 4*k.op.H), false)
	for j := range v.n {
		dx := k.dx.fresh(v.lo + j)
		for s := range v.steps {
			add(dx[s*in:(s+1)*in], v.at(k.xs, in, s)[j*in:(j+1)*in])
		}
	}
}
