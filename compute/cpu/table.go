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
	all    int32   // rows of the whole block
	rows   []int32 // the working set
	seats  []seat  // where their values are
	values []float32
	free   []int32 // seats of no row

	// The gradient of the last training step, and the rows that it needed: the
	// working set may have moved on since.
	gradRows []int32
	grad     []float32

	ids, asked []int32 // what is wanted next, and what was wanted last, as it came
	next       int     // the slot behind that set last

	// The working set before, or the next one while it is being made.
	spareRows  []int32
	spareSeats []seat
}

// A seat is where the values of a row lie, and whether they have been set.
type seat struct {
	at   int32
	have bool
}

// newTable makes room for batches of up to n ids.
func newTable(p optim.Param, n int) *table {
	width, limit := p.RowSize(), min(n, p.Shape[0])
	t := &table{
		width: width, all: int32(p.Shape[0]),
		ids: make([]int32, 0, n), asked: make([]int32, 0, n),
		rows: make([]int32, 0, n), spareRows: make([]int32, 0, n),
		seats: make([]seat, limit), spareSeats: make([]seat, limit), free: make([]int32, limit),
		values: make([]float32, limit*width), grad: make([]float32, limit*width),
	}
	for i := range t.free {
		t.free[i] = int32(i)
	}
	return t
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
	next := append(t.spareRows[:0], t.asked...)
	slices.Sort(next)
	next = slices.Compact(next)
	t.spareRows = next
	if !slices.Equal(next, t.rows) {
		t.move(next)
	}
	return t.rows
}

// move makes next the working set: rows that stay keep their seats, others take
// those that become free.
func (t *table) move(next []int32) {
	old := 0
	for i, row := range next {
		for ; old < len(t.rows) && t.rows[old] < row; old++ {
			t.free = append(t.free, t.seats[old].at)
		}
		t.spareSeats[i] = seat{at: -1}
		if old < len(t.rows) && t.rows[old] == row {
			t.spareSeats[i] = t.seats[old]
			old++
		}
	}
	for ; old < len(t.rows); old++ {
		t.free = append(t.free, t.seats[old].at)
	}
	for i := range next {
		if t.spareSeats[i].at < 0 {
			last := len(t.free) - 1
			t.spareSeats[i].at, t.free = t.free[last], t.free[:last]
		}
	}
	t.rows, t.spareRows = next, t.rows
	t.seats, t.spareSeats = t.spareSeats, t.seats
}

// slot returns where row is in the working set.
func (t *table) slot(row int32) (int, bool) { return slices.BinarySearch(t.rows, row) }

func (t *table) row(slot int) []float32 {
	at := int(t.seats[slot].at) * t.width
	return t.values[at : at+t.width : at+t.width]
}

// set sets part of a row. Rows that come in ascending order are found at once.
func (t *table) set(row int32, offset int, v []float32) {
	s, ok := t.next, t.next < len(t.rows) && t.rows[t.next] == row
	if !ok {
		s, ok = t.slot(row)
	}
	if ok {
		copy(t.row(s)[offset:offset+len(v)], v)
		t.seats[s].have = true
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
	for i, row := range t.rows {
		if !t.seats[i].have {
			return row, true
		}
	}
	return 0, false
}
