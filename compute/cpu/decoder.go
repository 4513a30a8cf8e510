package cpu

import (
	"optimus/compute"
	"optimus/compute/cpu/rnn"
	"optimus/compute/cpu/seq"
	"optimus/compute/cpu/vec"
)

// attentive are the cells of an attention decoder and what they keep of a batch, all
// but the weights of the attention in stretches.
type attentive struct {
	e                  *executable
	op                 *compute.AttentionDecoder
	lengths            *lengths
	memory, h0, c0     port
	steps              int       // the most
	input, feed, state product   // of x, ỹ' and h'
	query              product   // of h
	context, carry     product   // of Σ pₛ·Mₛ and h: the two halves of W_c
	a, qs, us          []float32 // [T,B,…]: gates; q; Σ pₛ·Mₛ
	hs, cs, ys         []float32 // [T+1,B,H]: states
	attention          []float32 // [N,T,S]
}

func newAttentive(e *executable, op *compute.AttentionDecoder) *attentive {
	k := &attentive{e: e, op: op, lengths: e.lengths(op.Lengths, e.p.Buffers[op.Memory].Axis),
		memory: e.port(op.Memory), h0: e.port(op.H0), c0: e.port(op.C0), steps: e.steps[e.p.Buffers[op.X].Axis]}
	h := op.H
	k.input.in, k.feed.in, k.state.in, k.query.in, k.context.in, k.carry.in = op.In, h, h, h, h, h
	k.input.piece(e, op.Input.W, op.Input.B, 4*h, 0, op.In+h)
	k.feed.piece(e, op.Input.W, compute.None, 4*h, op.In, op.In+h)
	k.state.add(e, op.State.W, op.State.B, 4*h)
	k.query.add(e, op.Query, compute.None, h)
	k.context.piece(e, op.Combine, op.Bias, h, 0, 2*h)
	k.carry.piece(e, op.Combine, compute.None, h, h, 2*h)
	k.a, k.qs, k.us = k.kept(0, 4*h), k.kept(0, h), k.kept(0, h)
	k.hs, k.cs, k.ys = k.kept(1, h), k.kept(1, h), k.kept(1, h)
	k.attention = k.kept(0, *k.memory.steps)
	return k
}

// kept makes an array of width values for each example and time step, and more steps.
func (k *attentive) kept(more, width int) []float32 {
	return make([]float32, k.e.capacity*(k.steps+more)*width)
}

// pack brings the weights into the order of a direction.
func (k *attentive) pack(d direction) {
	for _, p := range []*product{&k.input, &k.feed, &k.state, &k.query, &k.context, &k.carry} {
		p.pack(k.e, d)
	}
}

// start sets the states before the first step.
func (k *attentive) start(v stretch) {
	h, states := k.op.H, v.states()
	for j := range v.n {
		copy(states.at(k.hs, h, 0)[j*h:], k.h0.at(v.lo+j))
		copy(states.at(k.cs, h, 0)[j*h:], k.c0.at(v.lo+j))
	}
	clear(states.at(k.ys, h, 0))
}

// step computes the states behind step s. The gates hold the products of x.
func (k *attentive) step(v stretch, s int) {
	h, c := k.op.H, k.cell(v, s)
	k.feed.multiply(c.Gates, v.states().at(k.ys, h, s), true)
	k.state.multiply(c.Gates, c.HPrev, true)
	c.Forward(rnn.Tile{B: v.n, H: h})
	q, u, y := v.at(k.qs, h, s), v.at(k.us, h, s), v.states().at(k.ys, h, s+1)
	k.query.multiply(q, c.H, false)
	for j := range v.n {
		i := v.lo + j
		seq.Attend(u[j*h:(j+1)*h], k.weights(v, s, j), q[j*h:(j+1)*h], k.memory.at(i), k.lengths.at(i, *k.memory.steps))
	}
	k.context.multiply(y, u, false)
	k.carry.multiply(y, c.H, true)
	vec.Tanh(y, y)
}

func (k *attentive) cell(v stretch, s int) rnn.LSTM {
	h, states := k.op.H, v.states()
	return rnn.LSTM{Gates: v.at(k.a, 4*h, s), CPrev: states.at(k.cs, h, s), HPrev: states.at(k.hs, h, s),
		C: states.at(k.cs, h, s+1), H: states.at(k.hs, h, s+1)}
}

// weights are those of the attention of example j of a stretch in step s.
func (k *attentive) weights(v stretch, s, j int) []float32 {
	n := *k.memory.steps
	return v.at(k.attention, n, s)[j*n : (j+1)*n]
}

// decoder takes tiles of examples through time, as recurrent does.
type decoder struct {
	*attentive
	ports
	dmemory, dh0, dc0 port
	shares            []share
	xs                []float32 // [T,B,In]: x, at last its gradient

	fwd, bwd, par, in func(task, thread int)
}

func newDecoder(e *executable, op *compute.AttentionDecoder) kernel {
	k := &decoder{attentive: newAttentive(e, op), ports: e.ports(op, op.IO),
		dmemory: e.sink(op, op.DMemory), dh0: e.sink(op, op.DH0), dc0: e.sink(op, op.DC0)}
	h := op.H
	k.xs = k.kept(0, op.In)
	a, q, x, u := steps{k.a, 0, 0}, steps{k.qs, 0, 0}, steps{k.xs, 0, 0}, steps{k.us, 0, 0}
	y, before, after, dz := steps{k.ys, 0, 1}, steps{k.hs, 0, 1}, steps{k.hs, 1, 1}, steps{k.cs, 1, 1}
	for _, list := range [][]share{k.input.shares(a, x), k.feed.shares(a, y), k.state.shares(a, before),
		k.query.shares(q, after), k.context.shares(dz, u), k.carry.shares(dz, after)} {
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
	k.pack(ahead)
	k.e.pool.run(tiles(k.e.n, recurrentTile), k.fwd)
}

func (k *decoder) paramGrad() {
	tasks := tiles(k.e.n, recurrentTile)
	k.pack(back)
	k.e.pool.run(tasks, k.bwd)
	k.e.pool.run(len(k.shares), k.par)
	if k.dx.data != nil {
		k.e.pool.run(tasks, k.in)
	}
}

func (k *decoder) tile(task, _ int) {
	v, in, h := k.e.stretch(task, *k.y.steps), k.op.In, k.op.H
	for j := range v.n {
		x := k.x.at(v.lo + j)
		for s := range v.steps {
			copy(v.at(k.xs, in, s)[j*in:(j+1)*in], x[s*in:])
		}
	}
	k.input.multiply(v.all(k.a, 4*h), v.all(k.xs, in), false)
	k.start(v)
	for s := range v.steps {
		k.step(v, s)
		y := v.states().at(k.ys, h, s+1)
		for j := range v.n {
			copy(k.y.at(v.lo + j)[s*h:(s+1)*h], y[j*h:])
		}
	}
}

func (k *decoder) tileGrad(task, thread int) {
	v, h := k.e.stretch(task, *k.y.steps), k.op.H
	n, scratch := v.n*h, k.e.scratch[thread]
	g := flow{scratch[:n], scratch[n : 2*n], scratch[2*n : 3*n], scratch[3*n : 4*n], scratch[4*n : 5*n], scratch[5*n:]}
	clear(scratch[:3*n])
	for j := 0; j < v.n && k.dmemory.data != nil; j++ {
		k.dmemory.fresh(v.lo + j)
	}
	for s := v.steps - 1; s >= 0; s-- {
		k.stepGrad(v, s, g)
	}
	for j := range v.n {
		k.sum(k.dh0, v.lo+j, g.h[j*h:(j+1)*h])
		k.sum(k.dc0, v.lo+j, g.c[j*h:(j+1)*h])
	}
}

// sum adds to the gradient of a state of example i, if there is one.
func (k *decoder) sum(dx port, i int, g []float32) {
	if dx.data != nil {
		add(dx.fresh(i), g)
	}
}

// flow is what goes back in time with the gradients of h, c and ỹ, and room for those
// of what a step computes: z in front of the last tanh, the sum u of memory, and one
// query and its scores.
type flow struct{ h, c, y, z, u, rest []float32 }

// stepGrad takes the gradients of h, c and ỹ behind a step to those before it.
func (k *decoder) stepGrad(v stretch, s int, g flow) {
	h, c, q := k.op.H, k.cell(v, s), v.at(k.qs, k.op.H, s)
	for j := range v.n {
		add(g.y[j*h:(j+1)*h], k.dy.at(v.lo + j)[s*h:(s+1)*h])
	}
	vec.TanhGrad(g.z, g.y, v.states().at(k.ys, h, s+1))
	k.context.multiplyGrad(g.u, g.z, false)
	k.carry.multiplyGrad(g.h, g.z, true)
	dq, scores := g.rest[:h], g.rest[h:h+*k.memory.steps]
	for j := range v.n {
		i := v.lo + j
		clear(dq)
		seq.AttendGrad(dq, k.dmemory.at(i), g.u[j*h:(j+1)*h], k.weights(v, s, j), q[j*h:(j+1)*h], k.memory.at(i), scores, k.lengths.at(i, *k.memory.steps))
		copy(q[j*h:(j+1)*h], dq)
	}
	k.query.multiplyGrad(g.h, q, true)
	c.Backward(rnn.Tile{B: v.n, H: h}, rnn.LSTMGrad{DGates: c.Gates, DC: g.c, DH: g.h, DHPrev: g.h})
	copy(c.C, g.z) // which nobody needs any more, so the weights' gradients find z there
	k.state.multiplyGrad(g.h, c.Gates, true)
	k.feed.multiplyGrad(g.y, c.Gates, false)
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
