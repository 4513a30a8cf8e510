package step

import (
	"optimus/compute"
	"optimus/compute/optim"
)

// block is one parameter array with its optimizer's state, as servers hold it.
type block struct {
	index  int
	param  optim.Param
	values []float32
	state  [][]float32

	// Of a table with rows: those of the step, one behind the other.
	rows      []float32
	rowsState [][]float32
}

func newBlock(index int, p optim.Param, slots int) block {
	b := block{index: index, param: p, values: make([]float32, p.Size()), state: make([][]float32, slots), rowsState: make([][]float32, slots)}
	p.Init.Fill(1, index, 0, b.values)
	for i := range b.state {
		b.state[i] = make([]float32, p.Size())
	}
	return b
}

func (b *block) row(of []float32, r int32) []float32 {
	size := b.param.RowSize()
	return of[int(r)*size : (int(r)+1)*size]
}

// set gives the executable what it needs of the block for a batch.
func (b *block) set(exe compute.Executable, batch *compute.Batch) error {
	if !b.param.Rows {
		exe.SetParam(b.index, 0, b.values)
		return nil
	}
	rows, err := exe.Rows(b.index, batch)
	if err != nil {
		return err
	}
	for _, r := range rows {
		exe.SetRow(b.index, int(r), 0, b.row(b.values, r))
	}
	return nil
}

// update applies the step's gradient: to the whole block, or to the rows that the
// batch touched, which are gathered, updated as one dense array and scattered.
func (b *block) update(exe compute.Executable, c optim.Config, u optim.Update) error {
	u.Decay = !b.param.NoDecay
	g := exe.Grad(b.index)
	if !b.param.Rows {
		u.Grad, u.Params, u.Out, u.State, u.StateOut = g.Dense, b.values, b.values, b.state, b.state
		return c.Apply(u)
	}
	b.rows = b.gather(b.rows[:0], b.values, g.Rows)
	for i := range b.state {
		b.rowsState[i] = b.gather(b.rowsState[i][:0], b.state[i], g.Rows)
	}
	u.Grad, u.Params, u.Out, u.State, u.StateOut = g.Values, b.rows, b.rows, b.rowsState, b.rowsState
	if err := c.Apply(u); err != nil {
		return err
	}
	b.scatter(b.values, b.rows, g.Rows)
	for i := range b.state {
		b.scatter(b.state[i], b.rowsState[i], g.Rows)
	}
	return nil
}

func (b *block) gather(dst, table []float32, rows []int32) []float32 {
	for _, r := range rows {
		dst = append(dst, b.row(table, r)...)
	}
	return dst
}

func (b *block) scatter(table, src []float32, rows []int32) {
	size := b.param.RowSize()
	for i, r := range rows {
		copy(b.row(table, r), src[i*size:])
	}
}
