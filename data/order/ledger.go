package order

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
)

// ErrNotLeased is in the chain of the error for a report on a chunk that its
// sender does not hold, or holds no longer.
var ErrNotLeased = errors.New("not leased")

// Chunk is the range [Lo, Hi) of an epoch's positions. [Plan.Range] turns it
// into ids.
type Chunk struct {
	Epoch int `json:"epoch"`
	Lo    int `json:"lo"`
	Hi    int `json:"hi"`
}

// Len returns the number of examples in the chunk.
func (c Chunk) Len() int { return c.Hi - c.Lo }

// lease is a chunk in the hands of a worker, who has reported [Lo, UpTo) done.
type lease struct {
	Worker string `json:"worker"`
	Chunk  Chunk  `json:"chunk"`
	UpTo   int    `json:"up_to"`
}

func (l lease) rest() Chunk { return Chunk{l.Chunk.Epoch, l.UpTo, l.Chunk.Hi} }

// Ledger hands out the chunks of an asynchronous job and keeps account of
// them: every position of every epoch is done, leased, returned, or not yet
// reached, and never anything else. A worker that dies loses nothing, as
// [Ledger.Release] returns its unreported work to the front of the queue.
//
// So each position is applied at least once, and exactly once while nobody
// dies. What a worker applied but had not reported when it died is applied
// again; [Ledger.Repeats] bounds that from above.
//
// A Ledger is deterministic and marshals to JSON, so a coordinator can journal
// it or rebuild it from journalled calls. Its size is in the order of the
// leases out, not of the examples. It is not safe for concurrent use.
type Ledger struct{ s state }

type state struct {
	Plan     Plan    `json:"plan"`
	Size     int     `json:"chunk_size"`
	Epochs   int     `json:"epochs"`
	Barrier  bool    `json:"barrier"`
	Epoch    int     `json:"epoch"` // the frontier: first position never leased
	Next     int     `json:"next"`
	Returned []Chunk `json:"returned,omitempty"`
	Leases   []lease `json:"leases,omitempty"`
	Done     int64   `json:"done"`
	Repeats  int64   `json:"repeats"`
}

// NewLedger returns the account of epochs passes over the plan's examples in
// chunks of chunkSize (the last of an epoch may be short). A worker takes
// batches of plan.Batch from its chunk and reports after each.
func NewLedger(plan Plan, chunkSize, epochs int) (*Ledger, error) {
	s := state{Plan: plan, Size: chunkSize, Epochs: epochs, Barrier: true}
	if err := s.validate(); err != nil {
		return nil, err
	}
	return &Ledger{s}, nil
}

// SetBarrier says whether an epoch's chunks are leased only when all of the
// epoch before are done (the default). Without the barrier no worker waits for
// another at the end of an epoch, and two epochs may overlap.
func (l *Ledger) SetBarrier(on bool) { l.s.Barrier = on }

// SetEpochs changes how many passes there are in all, for a job that goes on
// with another length. It fails if more than that have begun.
func (l *Ledger) SetEpochs(n int) error {
	s := l.s
	if s.Epoch > n || s.Epoch == n && s.Next > 0 {
		return fmt.Errorf("ledger: %w: pass %d has begun and %d are wanted", ErrInvalid, s.Epoch+1, n)
	}
	s.Epochs = n
	if err := s.validate(); err != nil {
		return err
	}
	l.s = s
	return nil
}

// Lease gives a worker its next chunk. With wait there is none now but may be
// later: others still hold work, which may come back or ends the epoch. With
// done all epochs are done. A worker may hold several chunks.
//
// The worker's name must tell its incarnations apart ("3/2"): a name that comes
// back after a death would else be able to report on what it held before.
func (l *Ledger) Lease(worker string) (c Chunk, wait, done bool) {
	s := &l.s
	if len(s.Returned) > 0 {
		c = s.Returned[0]
		s.Returned = slices.Delete(s.Returned, 0, 1)
	} else {
		if s.Next == s.Plan.Examples && s.Epoch < s.Epochs && (!s.Barrier || len(s.Leases) == 0) {
			s.Epoch, s.Next = s.Epoch+1, 0
		}
		if s.Epoch == s.Epochs || s.Next == s.Plan.Examples {
			return Chunk{}, len(s.Leases) > 0, len(s.Leases) == 0
		}
		c = Chunk{s.Epoch, s.Next, s.Next + min(s.Size, s.Plan.Examples-s.Next)}
		s.Next = c.Hi
	}
	s.Leases = append(s.Leases, lease{worker, c, c.Lo})
	return c, false, false
}

// Done records that a worker has done the positions of its chunk below upTo;
// upTo == chunk.Hi ends the lease. A report that repeats an earlier one changes
// nothing. A worker whose lease is gone gets [ErrNotLeased], and what it did is
// among the repeats.
func (l *Ledger) Done(worker string, chunk Chunk, upTo int) error {
	s := &l.s
	i := slices.IndexFunc(s.Leases, func(e lease) bool { return e.Worker == worker && e.Chunk == chunk })
	if i < 0 {
		return fmt.Errorf("report by worker %q on %v up to %d: %w; drop the chunk and lease another", worker, chunk, upTo, ErrNotLeased)
	}
	if upTo < chunk.Lo || upTo > chunk.Hi {
		return fmt.Errorf("report by worker %q on %v up to %d: %w: outside the chunk; this is a fault of the worker", worker, chunk, upTo, ErrInvalid)
	}
	e := &s.Leases[i]
	if upTo > e.UpTo {
		s.Done += int64(upTo - e.UpTo)
		e.UpTo = upTo
	}
	if e.UpTo == chunk.Hi {
		s.Leases = slices.Delete(s.Leases, i, i+1)
	}
	return nil
}

// Release takes back all that a worker holds and has not reported, because it
// died; others get it before any new work. It returns the number of positions
// taken back.
func (l *Ledger) Release(worker string) int { return l.takeBack(worker, l.s.Plan.Batch) }

// Return is Release for a worker that leaves in peace, with all that it applied
// reported, so that nothing is counted as repeated.
func (l *Ledger) Return(worker string) int { return l.takeBack(worker, 0) }

func (l *Ledger) takeBack(worker string, inFlight int) int {
	s := &l.s
	var back []Chunk
	n := 0
	s.Leases = slices.DeleteFunc(s.Leases, func(e lease) bool {
		if e.Worker != worker {
			return false
		}
		rest := e.rest()
		back = append(back, rest)
		n += rest.Len()
		s.Repeats += int64(min(inFlight, rest.Len()))
		return true
	})
	s.Returned = slices.Insert(s.Returned, 0, back...)
	return n
}

// Epoch returns the epoch that is being leased; after the last it is the
// number of epochs.
func (l *Ledger) Epoch() int { return l.s.Epoch }

// Progress returns how many positions are done, each once, and how many there
// are over all epochs.
func (l *Ledger) Progress() (done, total int64) {
	return l.s.Done, int64(l.s.Plan.Examples) * int64(l.s.Epochs)
}

// Repeats returns an upper bound of the positions that were applied twice: for
// each lease taken back, the one batch that may have been applied and not yet
// reported. It holds as long as servers refuse pushes of an incarnation from the
// moment that it is released.
func (l *Ledger) Repeats() int64 { return l.s.Repeats }

// Held returns the number of leases out.
func (l *Ledger) Held() int { return len(l.s.Leases) }

// MarshalJSON writes the whole state.
func (l *Ledger) MarshalJSON() ([]byte, error) { return json.Marshal(l.s) }

// UnmarshalJSON reads what MarshalJSON wrote, and refuses a state whose account
// does not balance.
func (l *Ledger) UnmarshalJSON(b []byte) error {
	var s state
	if err := json.Unmarshal(b, &s); err != nil {
		return fmt.Errorf("ledger: %w; the journal may be damaged", err)
	}
	if err := s.validate(); err != nil {
		return err
	}
	l.s = s
	return nil
}

// validate checks the numbers, and that every position is accounted for once.
func (s *state) validate() error {
	if err := s.Plan.Validate(); err != nil {
		return err
	}
	switch {
	case s.Size <= 0:
		return fmt.Errorf("ledger: %w: chunks of %d examples, want 1 or more", ErrInvalid, s.Size)
	case s.Epochs < 0:
		return fmt.Errorf("ledger: %w: %d epochs, want 0 or more", ErrInvalid, s.Epochs)
	case int64(s.Epochs) > math.MaxInt64/int64(s.Plan.Examples):
		return fmt.Errorf("ledger: %w: %d epochs of %d examples are more than can be counted", ErrInvalid, s.Epochs, s.Plan.Examples)
	case s.Epoch < 0 || s.Epoch > s.Epochs || s.Epoch == s.Epochs && s.Next > 0 || s.Next < 0 || s.Next > s.Plan.Examples:
		return fmt.Errorf("ledger: %w: frontier at epoch %d position %d of %d epochs of %d", ErrInvalid, s.Epoch, s.Next, s.Epochs, s.Plan.Examples)
	case s.Done < 0 || s.Repeats < 0:
		return fmt.Errorf("ledger: %w: %d positions done, %d repeated", ErrInvalid, s.Done, s.Repeats)
	}
	open := slices.Clone(s.Returned)
	for _, e := range s.Leases {
		if e.Chunk.Lo < 0 || e.UpTo < e.Chunk.Lo {
			return fmt.Errorf("ledger: %w: lease of %v done up to %d", ErrInvalid, e.Chunk, e.UpTo)
		}
		open = append(open, e.rest())
	}
	return s.balance(open)
}

// balance checks that the open chunks lie below the frontier, do not overlap,
// and with the positions done make up all that was ever leased.
func (s *state) balance(open []Chunk) error {
	slices.SortFunc(open, func(a, b Chunk) int {
		if a.Epoch != b.Epoch {
			return a.Epoch - b.Epoch
		}
		return a.Lo - b.Lo
	})
	n := int64(s.Plan.Examples)
	account, end := s.Done, int64(0)
	for _, c := range open {
		known := c.Epoch >= 0 && c.Epoch <= s.Epoch // else the products overflow
		lo, hi := int64(c.Epoch)*n+int64(c.Lo), int64(c.Epoch)*n+int64(c.Hi)
		if !known || c.Lo < 0 || c.Hi <= c.Lo || int64(c.Hi) > n || lo < end {
			return fmt.Errorf("ledger: %w: chunk %v is empty, out of range, or leased twice", ErrInvalid, c)
		}
		account, end = account+hi-lo, hi
	}
	if frontier := int64(s.Epoch)*n + int64(s.Next); end > frontier || account != frontier {
		return fmt.Errorf("ledger: %w: %d of %d leased positions are accounted for", ErrInvalid, account, frontier)
	}
	return nil
}
