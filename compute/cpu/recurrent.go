package cpu

import (
	"optimus/compute"
	"optimus/compute/cpu/rnn"
)

// recurrent takes tiles of examples through time. Products with the input are made
// for all steps at once, and so are the gradients of the weights; inside the loop
// over time only the last state is multiplied.
type recurrent struct {
	ports
	e       *executable
	op      *compute.Recurrent
	lengths *lengths
	cells   cells
	shares  []share

	input, state product    // of the input and of the last state
	products     []*product // these and what else the cells multiply with
	xs           []float32  // [T,B,In] of each tile: the input, at last its gradient
	a            []float32  // [T,B,G·H]: gates, then their gradients
	hs           []float32  // [T+1,B,H]: states

	fwd, bwd, par, in func(task, thread int)
}

// cells compute the time steps of a stretch.
type cells interface {
	start(v stretch)
	step(v stretch, s int, t rnn.Tile)
	// stepGrad leaves the gradients of the gates and makes dh, the gradient of the
	// state behind the step, that of the state before it. dc goes with it from step
	// to step.
	stepGrad(v stretch, s int, t rnn.Tile, dh, dc []float32)
}

func newLSTM(e *executable, op *compute.LSTM) kernel {
	k := newRecurrent(e, op, &op.Recurrent)
	for _, g := range op.State {
		k.state.add(e, g.W, g.B, g.G*op.H)
	}
	k.cells = &lstmCells{k, k.kept(1, op.H)}
	k.divide(&k.state, k.a)
	return k
}

func newGRU(e *executable, op *compute.GRU) kernel {
	k := newRecurrent(e, op, &op.Recurrent)
	c := &gruCells{recurrent: k, fresh: product{in: op.H}, us: k.kept(0, op.H)}
	gates := 2 // still to come; the next is the candidate
	for _, g := range op.State {
		first := min(gates, g.G)
		if gates -= first; first > 0 {
			k.state.add(e, g.W, g.B, first*op.H)
		}
		if first < g.G {
			c.fresh.piece(e, g.W, g.B, op.H, first*op.H*op.H, op.H)
		}
	}
	k.state.out = k.input.out // the candidate's place is left alone
	k.cells, k.products = c, append(k.products, &c.fresh)
	k.divide(&k.state, k.a)
	k.divide(&c.fresh, c.us)
	return k
}

func newRecurrent(e *executable, self compute.Op, op *compute.Recurrent) *recurrent {
	k := &recurrent{e: e, op: op, ports: e.ports(self, op.IO), lengths: e.lengths(op.Lengths, e.p.Buffers[op.X].Axis)}
	k.input.in, k.state.in, k.products = op.In, op.H, []*product{&k.input, &k.state}
	for _, g := range op.Input {
		k.input.add(e, g.W, g.B, g.G*op.H)
	}
	k.xs, k.a, k.hs = k.kept(0, op.In), k.kept(0, k.input.out), k.kept(1, op.H)
	k.shares = k.input.shares(steps{k.a, 0, 0}, steps{k.xs, 0, 0})
	k.fwd, k.bwd, k.in = k.tile, k.tileGrad, k.inputTile
	k.par = func(task, _ int) { k.shares[task].sum(e, *k.y.steps) }
	e.reserve(2 * recurrentTile * op.H)
	return k
}

// divide adds the shares of the gradient of weights that the last state is multiplied
// with; dy is that of the products.
func (k *recurrent) divide(p *product, dy []float32) {
	k.shares = append(k.shares, p.shares(steps{dy, 0, 0}, steps{k.hs, 0, 1})...)
}

// kept makes an array of width values for each example and time step, and more steps.
func (k *recurrent) kept(more, width int) []float32 {
	return make([]float32, k.e.capacity*(*k.y.steps+more)*width)
}

func (k *recurrent) forward() {
	k.lengths.update()
	k.pack(ahead)
	k.e.pool.run(tiles(k.e.n, recurrentTile), k.fwd)
}

// pack brings the weights into the order of a direction.
func (k *recurrent) pack(d direction) {
	for _, p := range k.products {
		p.pack(k.e, d)
	}
}

func (k *recurrent) paramGrad() {
	k.pack(back)
	k.e.pool.run(tiles(k.e.n, recurrentTile), k.bwd)
	k.e.pool.run(len(k.shares), k.par)
}

func (k *recurrent) inputGrad() { k.e.pool.run(tiles(k.e.n, recurrentTile), k.in) }

// row is where a buffer holds example j of a stretch in step s.
func (k *recurrent) row(p port, v stretch, s, j int) []float32 {
	t := k.time(v, s)
	return p.at(v.lo + j)[t*p.size : (t+1)*p.size]
}

// time returns the time step that is done as number s.
func (k *recurrent) time(v stretch, s int) int {
	if k.op.Reverse {
		return v.steps - 1 - s
	}
	return s
}

// own reports whether a step belongs to example j of a stretch; else it is padding.
func (k *recurrent) own(v stretch, s, j int) bool {
	return k.time(v, s) < k.lengths.at(v.lo+j, v.steps)
}

func (k *recurrent) rows(v stretch, s int) rnn.Tile {
	return rnn.Tile{B: v.n, H: k.op.H, Lengths: k.lengths.span(v.lo, v.lo+v.n), T: k.time(v, s)}
}

func (k *recurrent) tile(task, _ int) {
	v, in, h := k.e.stretch(task, *k.y.steps), k.op.In, k.op.H
	for s := range v.steps {
		x := v.at(k.xs, in, s)
		for j := range v.n {
			copy(x[j*in:(j+1)*in], k.row(k.x, v, s, j))
		}
	}
	k.input.multiply(v.all(k.a, k.input.out), v.all(k.xs, in), false)
	k.cells.start(v)
	for s := range v.steps {
		k.cells.step(v, s, k.rows(v, s))
		after := v.states().at(k.hs, h, s+1)
		for j := range v.n {
			y := k.row(k.y, v, s, j)
			clear(y)
			if k.own(v, s, j) {
				copy(y, after[j*h:])
			}
		}
	}
}

func (k *recurrent) tileGrad(task, thread int) {
	v, h := k.e.stretch(task, *k.y.steps), k.op.H
	dh, dc := k.e.scratch[thread][:v.n*h], k.e.scratch[thread][v.n*h:2*v.n*h]
	clear(dh)
	clear(dc)
	for s := v.steps - 1; s >= 0; s-- {
		for j := range v.n {
			if k.own(v, s, j) {
				add(dh[j*h:(j+1)*h], k.row(k.dy, v, s, j))
			}
		}
		k.cells.stepGrad(v, s, k.rows(v, s), dh, dc)
	}
}

func (k *recurrent) inputTile(task, _ int) {
	v, in := k.e.stretch(task, *k.y.steps), k.op.In
	k.input.multiplyGrad(v.all(k.xs, in), v.all(k.a, k.input.out), false)
	for j := range v.n {
		k.dx.fresh(v.lo + j)
		for s := range v.steps {
			add(k.row(k.dx, v, s, j), v.at(k.xs, in, s)[j*in:(j+1)*in])
		}
	}
}

type lstmCells struct {
	*recurrent
	cs []float32 // [T+1,B,H]
}

func (k *lstmCells) start(v stretch) {
	clear(v.states().at(k.hs, k.op.H, 0))
	clear(v.states().at(k.cs, k.op.H, 0))
}

func (k *lstmCells) cell(v stretch, s int) rnn.LSTM {
	h, states := k.op.H, v.states()
	return rnn.LSTM{Gates: v.at(k.a, 4*h, s), CPrev: states.at(k.cs, h, s), HPrev: states.at(k.hs, h, s),
		C: states.at(k.cs, h, s+1), H: states.at(k.hs, h, s+1)}
}

func (k *lstmCells) step(v stretch, s int, t rnn.Tile) {
	c := k.cell(v, s)
	k.state.multiply(c.Gates, c.HPrev, true)
	c.Forward(t)
}

func (k *lstmCells) stepGrad(v stretch, s int, t rnn.Tile, dh, dc []float32) {
	c := k.cell(v, s)
	c.Backward(t, rnn.LSTMGrad{DGates: c.Gates, DC: dc, DH: dh, DHPrev: dh})
	k.state.multiplyGrad(dh, c.Gates, true)
}

type gruCells struct {
	*recurrent
	fresh product   // of the last state, for the candidate
	us    []float32 // [T,B,H]: its results, then their gradients
}

func (k *gruCells) start(v stretch) { clear(v.states().at(k.hs, k.op.H, 0)) }

func (k *gruCells) cell(v stretch, s int) rnn.GRU {
	h, states := k.op.H, v.states()
	return rnn.GRU{X: v.at(k.a, 3*h, s), U: v.at(k.us, h, s), HPrev: states.at(k.hs, h, s), H: states.at(k.hs, h, s+1)}
}

func (k *gruCells) step(v stretch, s int, t rnn.Tile) {
	c := k.cell(v, s)
	k.state.multiply(c.X, c.HPrev, true)
	k.fresh.multiply(c.U, c.HPrev, false)
	c.Forward(t)
}

func (k *gruCells) stepGrad(v stretch, s int, t rnn.Tile, dh, _ []float32) {
	c := k.cell(v, s)
	c.Backward(t, rnn.GRUGrad{DX: c.X, DU: c.U, DH: dh, DHPrev: dh})
	k.state.multiplyGrad(dh, c.X, true)
	k.fresh.multiplyGrad(dh, c.U, true)
}
