package pieces

import (
	"slices"
	"sync"
	"sync/atomic"

	"optimus/compute/optim"
)

// arrays are the parameters of a piece at one version and the optimizer's state
// arrays, each of Size elements. They are shared by counting: each state that
// names them and each snapshot holds one reference, and whoever gives the last
// one back may overwrite them.
type arrays struct {
	params []float32
	slots  [][]float32
	refs   atomic.Int32
}

func newArrays(size, slots int) *arrays {
	a := &arrays{params: make([]float32, size), slots: make([][]float32, slots)}
	for i := range a.slots {
		a.slots[i] = make([]float32, size)
	}
	a.refs.Store(1)
	return a
}

func (a *arrays) hold() *arrays {
	a.refs.Add(1)
	return a
}

// release gives a reference back and reports whether it was the last.
func (a *arrays) release() bool { return a.refs.Add(-1) == 0 }

// state is a piece at one version. For a block of rows, data is the one table
// of the piece, which holds the newest version.
type state struct {
	version int64
	updates int64 // how many updates led here; skipped steps do not count
	data    *arrays
}

// kind says what makes the next version of a piece from the sum of its contributions.
type kind uint8

const (
	learned  kind = iota // the optimizer, from a gradient
	averaged             // an average with the version before
	carried              // the sum itself
)

// piece is one piece of one generation. A piece with the same ID in the next
// generation takes over the arrays and the lock.
type piece struct {
	id    ID
	param *optim.Param
	slots int
	kind  kind
	row   int // elements of one row

	mu      *sync.Mutex
	now     state
	before  state   // the version before, while it can still be read or returned to; data is nil if it cannot
	spare   *arrays // dense: arrays that nobody reads
	undo    undo    // rows: what `before` had in the rows that differ
	version atomic.Int64

	contribution []Push // bsp, by position in the member list; meaningful where arrived
	arrived      []bool
	count        int
	vetoed       bool
	early        []Push // pushes of later steps, or of a generation not yet committed
	skips        []skip // bsp: steps to pass over once they are reached, in order
	parked       []parked
	seen         map[Worker]Seen // asp, ssp

	share  bool   // pending: takes over the arrays of the current piece at Commit
	filled ranges // pending: what has been received
}

// skip is a step that makes version to from version from by changing nothing.
type skip struct{ from, to int64 }

// rows reports whether the piece is pushed and updated by rows.
func (p *piece) rows() bool { return p.param.Rows }

// set makes st the newest state.
func (p *piece) set(st state) {
	p.now = st
	p.version.Store(st.version)
}

// forget gives up the version before; its arrays become the spare if nobody
// else holds them.
func (p *piece) forget() {
	if p.before.data != nil && !p.rows() && p.before.data.release() {
		p.spare = p.before.data
		p.spare.refs.Store(1)
	}
	p.before = state{}
	p.undo.clear()
}

// free returns arrays to write the next version of a dense piece to.
func (p *piece) free() *arrays {
	a := p.spare
	p.spare = nil
	if a == nil {
		a = newArrays(p.id.Size, p.slots)
	}
	return a
}

// relabel makes the newest state that of a later version, unchanged.
func (p *piece) relabel(version int64) {
	p.forget()
	p.before = p.now
	if !p.rows() {
		p.now.data.hold()
	}
	p.set(state{version: version, updates: p.now.updates, data: p.now.data})
}

// revert returns to the version before.
func (p *piece) revert() {
	if p.rows() {
		p.undo.restore(p)
	} else if p.now.data.release() {
		p.spare = p.now.data
		p.spare.refs.Store(1)
	}
	p.set(p.before)
	p.before = state{}
	p.undo.clear()
}

// weight adds up the weights of the contributions.
func (p *piece) weight() (n int64) {
	for i := range p.contribution {
		n += p.contribution[i].Weight
	}
	return n
}

// restart drops what has been contributed to the next version.
func (p *piece) restart() {
	clear(p.contribution)
	clear(p.arrived)
	p.count = 0
	p.vetoed = false
}

// dropPushes forgets the pushes for steps after version. A piece that has not
// reached version yet keeps those that bring it there.
func (p *piece) dropPushes(version int64) {
	if p.now.version >= version {
		p.restart()
	}
	p.early = slices.DeleteFunc(p.early, func(u Push) bool { return u.Step > version })
	p.skips = slices.DeleteFunc(p.skips, func(k skip) bool { return k.to > version })
}

// skipTo passes over the step from one version to another, now or when the piece
// gets there.
func (p *piece) skipTo(k skip) {
	if p.now.version < k.from {
		p.skips = append(p.skips, k)
		return
	}
	p.relabel(k.to)
}

// passSkips passes over the steps that are to be skipped and have been reached.
func (p *piece) passSkips() {
	for len(p.skips) > 0 && p.skips[0].from == p.now.version {
		p.relabel(p.skips[0].to)
		p.skips = slices.Delete(p.skips, 0, 1)
	}
}
