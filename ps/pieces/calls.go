package pieces

import (
	"math"
	"sync"
	"sync/atomic"
)

// calls collects the callbacks that an operation causes, to be called once its
// locks are released.
type calls struct {
	answers []answered
	vetoes  []Veto
	votes   []Vote
	watches []func()
	decided []int64 // steps that all votes have come for; to be made before the locks are released
}

type answered struct {
	reply  func(Answer)
	answer Answer
}

func (s *Store) begin() *calls { return s.callPool.Get().(*calls) }

// finish calls back and returns c to the pool. A callback may use the store,
// which then takes another calls.
func (s *Store) finish(c *calls) {
	for _, a := range c.answers {
		a.reply(a.answer)
	}
	if s.cfg.NonFinite != nil {
		for _, v := range c.vetoes {
			s.cfg.NonFinite(v)
		}
	}
	if s.cfg.Vote != nil {
		for _, v := range c.votes {
			s.cfg.Vote(v)
		}
	}
	for _, fn := range c.watches {
		fn()
	}
	clear(c.answers)
	clear(c.watches)
	c.answers, c.vetoes, c.votes, c.watches = c.answers[:0], c.vetoes[:0], c.votes[:0], c.watches[:0]
	s.callPool.Put(c)
}

// watches are the callers that wait for all pieces to reach a version.
type watches struct {
	waiting atomic.Int64 // len(list), so that a step without watches takes no lock
	mu      sync.Mutex
	next    uint64
	list    []watch
}

type watch struct {
	n       uint64
	version int64
	fn      func()
}

// Watch calls fn once, as soon as all current pieces have reached version; that
// may be before Watch returns. The returned function forgets it.
func (s *Store) Watch(version int64, fn func()) (cancel func()) {
	w := &s.watches
	w.mu.Lock()
	w.next++
	n := w.next
	w.list = append(w.list, watch{n, version, fn})
	w.waiting.Add(1)
	w.mu.Unlock()

	c := s.begin()
	s.mu.RLock()
	w.check(s.current, c)
	s.mu.RUnlock()
	s.finish(c)
	return func() { w.remove(func(x watch) bool { return x.n == n }) }
}

// check collects the watches whose version all pieces of g have reached.
func (w *watches) check(g *generation, c *calls) {
	if w.waiting.Load() == 0 || g == nil {
		return
	}
	reached := int64(math.MaxInt64)
	for _, p := range g.order {
		reached = min(reached, p.version.Load())
	}
	w.remove(func(x watch) bool {
		if x.version > reached {
			return false
		}
		c.watches = append(c.watches, x.fn)
		return true
	})
}

// remove takes out the watches for which is holds.
func (w *watches) remove(is func(watch) bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	kept := w.list[:0]
	for _, x := range w.list {
		if !is(x) {
			kept = append(kept, x)
		}
	}
	clear(w.list[len(kept):])
	w.list = kept
	w.waiting.Store(int64(len(kept)))
}

// Counters count what a store has done since New.
type Counters struct {
	Applied    int64 `json:"applied"`    // versions made
	Accepted   int64 `json:"accepted"`   // pushes taken
	Duplicates int64 `json:"duplicates"` // pushes taken before
	Refreshed  int64 `json:"refreshed"`  // pushes of other generations
	Refused    int64 `json:"refused"`    // pushes refused
	Vetoes     int64 `json:"vetoes"`     // non-finite pieces of steps
	BytesIn    int64 `json:"bytes_in"`   // values of accepted pushes
	BytesOut   int64 `json:"bytes_out"`  // values of answered pulls
}

type counters struct {
	applied, vetoes, bytesIn, bytesOut atomic.Int64
	pushes                             [Refused + 1]atomic.Int64
}

func (k *counters) push(o Outcome, u *Push) {
	k.pushes[o].Add(1)
	if o == Accepted {
		k.bytesIn.Add(4 * int64(len(u.Values)))
	}
}

func (k *counters) served(values int) { k.bytesOut.Add(4 * int64(values)) }

// Counters returns the counts so far.
func (s *Store) Counters() Counters {
	k := &s.counters
	return Counters{
		Applied:    k.applied.Load(),
		Accepted:   k.pushes[Accepted].Load(),
		Duplicates: k.pushes[Duplicate].Load(),
		Refreshed:  k.pushes[Refresh].Load(),
		Refused:    k.pushes[Refused].Load(),
		Vetoes:     k.vetoes.Load(),
		BytesIn:    k.bytesIn.Load(),
		BytesOut:   k.bytesOut.Load(),
	}
}
