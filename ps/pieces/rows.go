package pieces

import (
	"fmt"
	"math"
	"slices"
)

// RowSpan returns where the part of a row that lies inside piece id is: elements
// [lo, hi) of the piece (lo = hi if the row lies outside). Within the row it
// begins at id.Offset+lo − row·rowSize, which is 0 except for a row that the
// piece's beginning cuts.
func RowSpan(rowSize int, id ID, row int) (lo, hi int) {
	begin := row*rowSize - id.Offset
	lo = min(max(begin, 0), id.Size)
	return lo, max(lo, min(begin+rowSize, id.Size))
}

// rowRange returns the rows [first, end) of which the piece holds a part.
func (p *piece) rowRange() (first, end int) {
	return p.id.Offset / p.row, (p.id.Offset + p.id.Size + p.row - 1) / p.row
}

// span is RowSpan for a row known to lie in the piece.
func (p *piece) span(row int32) (lo, hi int) {
	return RowSpan(p.row, p.id, int(row))
}

// checkRows returns an error unless rows ascend, lie in the piece, and have
// values elements in it (not checked if values is negative).
func (p *piece) checkRows(rows []int32, values int) error {
	first, end := p.rowRange()
	last, total := int32(first-1), 0
	for _, r := range rows {
		if r <= last {
			return fmt.Errorf("row %d does not follow %d: rows must ascend from %d", r, last, first)
		}
		last = r
		lo, hi := p.span(r)
		total += hi - lo
	}
	if int(last) >= end {
		return fmt.Errorf("row %d is past the piece's last row %d", last, end-1)
	}
	if values >= 0 && values != total {
		return fmt.Errorf("%d values for %d rows with %d elements in the piece", values, len(rows), total)
	}
	return nil
}

// cursor walks over one contribution's rows.
type cursor struct {
	rows   []int32   // what is left; unused if dense
	values []float32 // what is left
	row    int32     // the row at hand; past is behind the last
	dense  bool
	end    int32 // dense: one past the last row
}

const past = math.MaxInt32

func (c *cursor) next() {
	switch {
	case c.dense:
		if c.row++; c.row >= c.end {
			c.row = past
		}
	case len(c.rows) == 0:
		c.row = past
	default:
		c.row, c.rows = c.rows[0], c.rows[1:]
	}
}

// undo holds the rows that the newest version of a piece changed, and what they
// were before: parameters and state, row after row.
type undo struct {
	rows []int32
	at   []int // where each row begins in old's arrays
	old  arrays
}

func (u *undo) clear() {
	u.rows, u.at = u.rows[:0], u.at[:0]
}

// applyRows makes the next version of a piece of rows: it gathers the touched
// rows into the undo log, updates them from there as if they were a small dense
// piece, and scatters the result into the table if it is finite.
func (s *Store) applyRows(p *piece, from []Push, w *scratch, j job, version int64) (bool, error) {
	w.walk(p, from)
	grad := p.undo.gather(p, w)
	w.grads = append(w.grads, grad)
	w.result.resize(len(grad), p.slots)
	j.in, j.out = &p.undo.old, &w.result
	if ok, err := s.update(j, w); !ok {
		return false, err // the table is untouched, and without a version before nobody reads the log
	}
	p.scatter(p.undo.rows, p.undo.at, &w.result)
	p.before = p.now
	p.set(state{version: version, updates: j.update.T, data: p.now.data})
	return true, nil
}

// walk sets a cursor at the first row of each contribution.
func (w *scratch) walk(p *piece, from []Push) {
	first, end := p.rowRange()
	for i := range from {
		if len(from[i].Values) == 0 {
			continue
		}
		c := cursor{rows: from[i].Rows, values: from[i].Values}
		if len(c.rows) == 0 {
			c.dense, c.row, c.end = true, int32(first)-1, int32(end)
		}
		c.next()
		w.cursors = append(w.cursors, c)
	}
}

// gather copies the union of the cursors' rows from the table into the log and
// returns the sum of the contributions to them, each row's in cursor order. It
// uses w.rowSum, which is valid until the scratch's next use.
func (u *undo) gather(p *piece, w *scratch) []float32 {
	u.clear()
	u.old.resize(0, p.slots)
	data, sum := p.now.data, w.rowSum[:0]
	for {
		row := w.row()
		if row == past {
			w.rowSum = sum
			return sum
		}
		lo, hi := p.span(row)
		u.rows, u.at = append(u.rows, row), append(u.at, len(sum))
		u.old.params = append(u.old.params, data.params[lo:hi]...)
		for i := range data.slots {
			u.old.slots[i] = append(u.old.slots[i], data.slots[i][lo:hi]...)
		}
		sum = addRow(sum, w.cursors, row, hi-lo)
	}
}

// row returns the lowest row at hand.
func (w *scratch) row() int32 {
	row := int32(past)
	for i := range w.cursors {
		row = min(row, w.cursors[i].row)
	}
	return row
}

// sumRows returns the sum of the contributions to each row that the cursors come to,
// as gather does.
func (w *scratch) sumRows(p *piece) []float32 {
	w.rowSum = w.rowSum[:0]
	for row := w.row(); row != past; row = w.row() {
		lo, hi := p.span(row)
		w.rowSum = addRow(w.rowSum, w.cursors, row, hi-lo)
	}
	return w.rowSum
}

// addRow appends the sum of one row of n elements and moves its cursors on.
func addRow(sum []float32, cursors []cursor, row int32, n int) []float32 {
	at := len(sum)
	for i := range cursors {
		c := &cursors[i]
		if c.row != row {
			continue
		}
		if len(sum) == at {
			sum = append(sum, c.values[:n]...)
		} else {
			add(sum[at:], sum[at:], c.values[:n])
		}
		c.values = c.values[n:]
		c.next()
	}
	return sum
}

// scatter writes rows of compact arrays into the table.
func (p *piece) scatter(rows []int32, at []int, from *arrays) {
	data := p.now.data
	for k, row := range rows {
		lo, hi := p.span(row)
		begin, end := at[k], at[k]+hi-lo
		copy(data.params[lo:hi], from.params[begin:end])
		for i := range data.slots {
			copy(data.slots[i][lo:hi], from.slots[i][begin:end])
		}
	}
}

// restore takes the logged rows back into the table.
func (u *undo) restore(p *piece) { p.scatter(u.rows, u.at, &u.old) }

// overlay writes into dst, a copy of elements [from, from+len(dst)) of the
// newest version, what the logged rows were before; pick selects the array
// (parameters or a state array) of the log.
func (u *undo) overlay(p *piece, dst []float32, from int, pick func(*arrays) []float32) {
	if len(u.rows) == 0 {
		return // and the log may have no arrays yet
	}
	old := pick(&u.old)
	for k, row := range u.rows {
		lo, hi := p.span(row)
		begin, end := max(lo, from), min(hi, from+len(dst))
		if begin < end {
			copy(dst[begin-from:end-from], old[u.at[k]+begin-lo:])
		}
	}
}

// readRows copies rows (nil: all of the piece) of the newest version, or of the
// one before it.
func (p *piece) readRows(into []float32, rows []int32, before bool) []float32 {
	dst, params := into[:0], p.now.data.params
	if len(rows) == 0 {
		dst = append(dst, params...)
		if before {
			p.undo.overlay(p, dst, 0, func(a *arrays) []float32 { return a.params })
		}
		return dst
	}
	for _, row := range rows {
		lo, hi := p.span(row)
		source := params[lo:hi]
		if before {
			if k, ok := slices.BinarySearch(p.undo.rows, row); ok {
				source = p.undo.old.params[p.undo.at[k]:][:hi-lo]
			}
		}
		dst = append(dst, source...)
	}
	return dst
}

// resize sets the length of all arrays, keeping their memory; the contents are
// undefined.
func (a *arrays) resize(n, slots int) {
	if len(a.slots) != slots {
		a.slots = make([][]float32, slots)
	}
	a.params = slices.Grow(a.params[:0], n)[:n]
	for i := range a.slots {
		a.slots[i] = slices.Grow(a.slots[i][:0], n)[:n]
	}
}
