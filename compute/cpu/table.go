package cpu

import (
	"slices"

	"optimus/compute/optim"
)

// table holds the rows of a Rows block that the current batch needs: the working
// set, in ascending order, with their values and gradients. What it takes in
// memory depends on the batch, not on the length of the block.
type table struct {
	width  int
	all    int32 // rows of the whole block
	rows   []int32
	have   []bool // row i has been set
	values []float32

	// The gradient of the last training step, and the rows that it needed: the
	// working set may have moved on since.
	gradRows []int32
	grad     []float32

	// The working set before, or the next one while it is being made.
	spareRows   []int32
	spareHave   []bool
	spareValues []float32

	ids, asked []int32 // what is wanted next, and what was wanted last, as it came
	sorted     []int32
	next       int // the slot behind that set last
}

// newTable makes room for batches of up to n ids.
func newTable(p optim.Param, n int) *table {
	width, limit := p.RowSize(), min(n, p.Shape[0])
	return &table{
		width: width, all: int32(p.Shape[0]),
		ids: make([]int32, 0, n), asked: make([]int32, 0, n), sorted: make([]int32, 0, n),
		rows: make([]int32, 0, limit), spareRows: make([]int32, 0, limit),
		have: make([]bool, limit), spareHave: make([]bool, limit),
		values: make([]float32, limit*width), spareValues: make([]float32, limit*width),
		grad: make([]float32, limit*width),
	}
}

// begin starts the next working set; want adds ids to it, in any order. Those behind
// the last row are padding.
func (t *table) begin() { t.ids = t.ids[:0] }
func (t *table) want(ids []int32) {
	for _, id := range ids {
		if id < t.all {
			t.ids = append(t.ids, id)
		}
	}
}

func (t *table) wantAll() {
	for id := range t.all {
		t.ids = append(t.ids, id)
	}
}

// commit makes the wanted rows the working set. Rows that stay keep their values.
// A step asks for its rows before and while it runs, so what is asked again is
// answered without sorting.
func (t *table) commit() []int32 {
	if slices.Equal(t.ids, t.asked) {
		return t.rows
	}
	t.ids, t.asked = t.asked, t.ids
	t.sorted = append(t.sorted[:0], t.asked...)
	slices.Sort(t.sorted)
	t.sorted = slices.Compact(t.sorted)
	if slices.Equal(t.sorted, t.rows) {
		return t.rows
	}
	next, old := append(t.spareRows[:0], t.sorted...), 0
	for i, row := range next {
		for old < len(t.rows) && t.rows[old] < row {
			old++
		}
		kept := old < len(t.rows) && t.rows[old] == row && t.have[old]
		t.spareHave[i] = kept
		if kept {
			copy(t.spareValues[i*t.width:(i+1)*t.width], t.row(old))
		}
	}
	t.rows, t.spareRows = next, t.rows
	t.have, t.spareHave = t.spareHave, t.have
	t.values, t.spareValues = t.spareValues, t.values
	return t.rows
}

// slot returns where row is in the working set.
func (t *table) slot(row int32) (int, bool) { return slices.BinarySearch(t.rows, row) }

func (t *table) row(slot int) []float32 {
	return t.values[slot*t.width : (slot+1)*t.width : (slot+1)*t.width]
}

// set sets part of a row. Rows that come in ascending order are found at once.
func (t *table) set(row int32, offset int, v []float32) {
	s, ok := t.next, t.next < len(t.rows) && t.rows[t.next] == row
	if !ok {
		s, ok = t.slot(row)
	}
	if ok {
		copy(t.row(s)[offset:offset+len(v)], v)
		t.have[s] = true
		t.next = s + 1
	}
}

// train starts the gradient of a step on the working set, at zero.
func (t *table) train() {
	t.gradRows = append(t.gradRows[:0], t.rows...)
	clear(t.gradient())
}

// gradient returns the rows of the gradient, one behind the other.
func (t *table) gradient() []float32 { return t.grad[:len(t.gradRows)*t.width] }

// missing returns a row of the working set that has never been set.
func (t *table) missing() (int32, bool) {
	if i := slices.Index(t.have[:len(t.rows)], false); i >= 0 {
		return t.rows[i], true
	}
	return 0, false
}
