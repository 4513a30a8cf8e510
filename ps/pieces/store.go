// Package pieces holds what one server holds: pieces of blocks, each with its
// version, its optimizer state and the contributions that have come in for its
// next version. It has no network, no clock and no goroutine of its own; a
// server's shell (or a ring member) calls it and carries its answers.
//
// # The idea
//
// A piece at version s waits for one push per member of its generation for
// step s+1. When the last one is in, the piece adds them up in the order of the
// member list, never in the order of arrival, divides once by the sum of their
// integer weights, and writes version s+1 beside version s. So the parameters
// do not depend on timing, on retries, or on how blocks are cut into pieces,
// and a step can be taken back: until the piece applies step s+2 it still holds
// version s, with its optimizer state, and Rewind returns to it.
//
// A worker starts the pushes of step s+2 only when all its pushes of step s+1
// were answered. So no piece is ever more than one step behind another, however
// long one push is under way, and version s is there wherever it is needed.
//
// Every push is answered by one of four outcomes, checked in this order: a step
// that the piece already holds is a Duplicate; another generation's push is
// told to Refresh; a push from outside the member list or of the wrong shape is
// Refused; the rest is Accepted, once per worker and step. A retry is therefore
// always safe, and a worker that was replaced can do no harm.
//
// # Generations
//
// Install prepares the next generation while the current one trains. Its pieces
// are filled (Init, Fill, FillLocal) with version s; pushes that workers already
// send to it for step s+1 are kept aside. Commit makes it current and applies
// them; Drop forgets it. Nothing of the current generation changes before
// Commit, so an aborted transition costs nothing but the bytes it moved.
//
// # Clipping by the norm
//
// With Optimizer.ClipNorm in mode BSP a step's update depends on all of the gradient,
// of which a store has a part. A store whose pieces are all complete therefore
// applies nothing yet: it votes (Config.Vote, Store.Vote) with the sum of its
// squares. All pieces, auxiliary ones too, make the step when the votes of all the
// generation's servers are in. The sum has the same bits in any order and for any
// cut; see optim.Squares. In the other modes who pushes must clip.
//
// # Sharing arrays
//
// Values cross this API by reference where that is safe:
//
//   - Push.Values and Push.Rows stay referenced until the push's step is applied
//     or dropped. The caller must not write to them until its piece has a version
//     at or past the push's step, or the generation or step was abandoned.
//   - A dense bsp answer is the version's own array. It may be read until the
//     reader's own push for step version+2 of that piece: the array of version s
//     is overwritten by version s+2, which needs everybody's push for it. A reader
//     that pushes nothing must Pin instead.
//   - All other answers (rows, asp, ssp) are copies that belong to the reader.
//
// # Rows
//
// A block with Param.Rows is pushed and pulled by rows, and updated lazily: an
// update touches the rows that somebody pushed and their optimizer state, no
// others. A row that no one pushes keeps its momentum and is not decayed; Adam's
// t is the piece's count of updates, not the row's (the "lazy" Adam of sparse
// tables). Time, undo log and traffic grow with the touched rows, not the table.
//
// # asp and ssp
//
// In mode ASP each push is applied when it comes and a piece's version is its
// count of updates. Retries are told apart by (worker, incarnation, sequence); the
// table moves with the piece. SSP adds a bound: a pull of a worker at clock c
// waits until every live member has pushed clock c−s (Ho et al. 2013).
//
// A non-finite push is refused piece by piece in these modes. A worker that must
// not apply half a gradient checks all of it before it pushes any of it.
package pieces

import (
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"optimus/compute/optim"
	"optimus/internal/failure"
)

// ID names a piece: elements [Offset, Offset+Size) of a block. A Block at or
// past len(Config.Params) is auxiliary array Block−len(Config.Params).
type ID struct{ Block, Offset, Size int }

// Worker names a worker: a restarted one has the same ID and a new Incarnation.
type Worker struct {
	ID          int
	Incarnation uint64
}

// Mode says when pushes are applied.
type Mode int

// The modes.
const (
	BSP Mode = iota // all members' pushes of a step at once
	ASP             // each push as it comes
	SSP             // as ASP, but nobody runs more than Staleness steps ahead
)

// String returns the mode's name as flags and specs write it.
func (m Mode) String() string {
	switch m {
	case BSP:
		return "bsp"
	case ASP:
		return "asp"
	case SSP:
		return "ssp"
	}
	return fmt.Sprintf("mode(%d)", int(m))
}

// Config describes the model that a store holds pieces of.
type Config struct {
	Params []optim.Param // the learned blocks
	Aux    []optim.Param // arrays that are averaged: running = m·running + (1−m)·sum/weight
	// AuxMomentum is m, in [0,1).
	AuxMomentum float64
	// Carried says that the last of Aux is not averaged but replaced by the sum of its
	// contributions: the states that a running text has left in each lane, each of them
	// from the one worker that had the lane, zeros from the others.
	Carried   bool
	Optimizer optim.Config
	// Rate gives the learning rate of a step (asp, ssp: of a piece's n-th update).
	// Nil means Optimizer.Rate. It must be a pure function, the same on all servers.
	Rate func(step int64) float64
	Mode Mode
	// Staleness is s of mode SSP: the most steps by which a worker may be ahead.
	Staleness int
	// NonFinite, if set, is told of each veto, once per piece and step.
	NonFinite func(Veto)
	// Vote, if set, is told of each of this store's votes, to carry it to the other
	// voters' stores.
	Vote func(Vote)
}

// Veto reports a step that must not be served, because a contribution, their
// sum, or the result of the update is NaN or infinite.
type Veto struct {
	Step   int64
	Worker int // the worker's ID; −1 if every contribution was finite but their sum or the update was not
	Block  string
	Piece  ID
}

// Outcome is the answer to a push or pull.
type Outcome uint8

// The outcomes.
const (
	Accepted  Outcome = iota // push: taken, once
	Duplicate                // push: was taken before; the sender may go on
	Refresh                  // push or pull: another generation is current; nothing was done
	Refused                  // push or pull: can never succeed; the error says why
	Served                   // pull: the values are in the answer
	Gone                     // pull: the version is older than what is kept
)

// String returns the outcome's name.
func (o Outcome) String() string {
	names := [...]string{"accepted", "duplicate", "refresh", "refused", "served", "gone"}
	if int(o) < len(names) {
		return names[o]
	}
	return fmt.Sprintf("outcome(%d)", int(o))
}

// Store holds one server's pieces. All methods are safe for concurrent use.
// Callbacks are called from within the call that caused them, with no lock
// held, so they may call the store.
type Store struct {
	cfg   Config
	param []optim.Param // Params, then Aux
	slots int

	// mu is held for reading by everything that works on single pieces (each
	// under its own lock) and for writing by what changes the set of pieces or
	// takes a step back, which therefore needs no piece's lock.
	mu       sync.RWMutex
	current  *generation
	pending  *generation
	closed   bool
	previous atomic.Pointer[generation] // still readable at current's boundary

	watches   watches
	staleness atomic.Int64
	tokens    atomic.Uint64
	counters  counters
	callPool  sync.Pool // *calls
	workPool  sync.Pool // *scratch
}

// New returns an empty store: Install, fill and Commit a first generation next.
func New(cfg Config) (*Store, error) {
	if err := cfg.validate(); err != nil {
		return nil, failure.E("create", "piece store", failure.InvalidArgument, err, "correct the configuration")
	}
	if cfg.Rate == nil {
		cfg.Rate = cfg.Optimizer.Rate
	}
	s := &Store{cfg: cfg, param: slices.Concat(cfg.Params, cfg.Aux), slots: cfg.Optimizer.Slots()}
	s.callPool.New = func() any { return new(calls) }
	s.workPool.New = func() any { return newScratch(s.slots) }
	return s, nil
}

func (c *Config) validate() error {
	if c.Mode < BSP || c.Mode > SSP {
		return fmt.Errorf("unknown mode %d", c.Mode)
	}
	if c.Staleness < 0 {
		return fmt.Errorf("staleness %d is negative", c.Staleness)
	}
	if !(c.AuxMomentum >= 0 && c.AuxMomentum < 1) {
		return fmt.Errorf("auxiliary momentum %v is not in [0,1)", c.AuxMomentum)
	}
	for _, p := range slices.Concat(c.Params, c.Aux) {
		if err := p.Validate(); err != nil {
			return err
		}
	}
	for _, p := range c.Params {
		if p.Rows && (len(p.Shape) == 0 || p.Shape[0] > math.MaxInt32) {
			return fmt.Errorf("block %q of shape %v cannot be pushed by rows: row numbers have 31 bits", p.Name, p.Shape)
		}
	}
	for _, p := range c.Aux {
		if p.Rows {
			return fmt.Errorf("auxiliary array %q cannot be pushed by rows", p.Name)
		}
	}
	if c.Carried && (len(c.Aux) == 0 || c.Mode != BSP) {
		return fmt.Errorf("a state is carried by one of %d auxiliary arrays in mode %v; it takes one, and common steps", len(c.Aux), c.Mode)
	}
	return c.Optimizer.Validate()
}

// slotsOf returns how many state arrays a piece of block has.
func (s *Store) slotsOf(block int) int {
	if block >= len(s.cfg.Params) {
		return 0
	}
	return s.slots
}

// kind returns what an update of a piece of block is.
func (s *Store) kind(block int) kind {
	switch {
	case block < len(s.cfg.Params):
		return learned
	case s.cfg.Carried && block == len(s.param)-1:
		return carried
	}
	return averaged
}

// Versions returns the lowest and the highest version among the current pieces;
// without pieces, the version at which the generation began.
func (s *Store) Versions() (lowest, highest int64) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.current == nil {
		return 0, 0
	}
	return s.current.versions()
}

// Close answers all parked pulls with Refresh, and so every later request.
func (s *Store) Close() {
	c := s.begin()
	s.mu.Lock()
	s.closed = true
	for _, g := range []*generation{s.current, s.pending} {
		g.refreshParked(c)
	}
	s.mu.Unlock()
	s.finish(c)
}
