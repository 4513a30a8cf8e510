package pieces

import (
	"cmp"
	"errors"
	"math"
	"slices"

	"optimus/internal/failure"
)

// Seen is what a piece remembers of a worker in the modes without steps: enough
// to tell a retry from a new push, and how far the worker is. It moves with the
// piece. It is not saved, since no push that a checkpoint holds can come again: a
// retry names the generation that it was made in, which ended with the restore,
// and clocks only count relative to each other, so that all begin anew at 0.
type Seen struct {
	Worker   Worker `json:"worker"`
	Sequence int64  `json:"sequence"` // of the last push taken
	Clock    int64  `json:"clock"`    // the steps that the worker has pushed
}

// left is the clock of a worker that nobody waits for any more.
const left = math.MaxInt64

// applyOne applies one push in mode ASP or SSP. A push that is not finite is
// refused as a whole, but remembered: the worker's clock moves on, and its retry
// is a duplicate.
func (s *Store) applyOne(g *generation, p *piece, u *Push, c *calls) (Outcome, error) {
	seen := p.seen[u.From]
	seen.Worker, seen.Sequence = u.From, u.Sequence
	if seen.Clock != left {
		seen.Clock = max(seen.Clock, u.Step)
	}
	ok := finite(u.Values)
	if ok && u.Weight > 0 {
		one := [1]Push{*u}
		var err error
		if ok, err = s.apply(p, one[:], u.Weight, 1, p.now.version+1); err != nil {
			return Refused, refuse(u, err)
		}
	}
	p.seen[u.From] = seen
	if !ok {
		s.veto(p, u.Step, u.From.ID, c)
		s.wake(g, p, c)
		return Refused, failure.E("push", p.param.Name, failure.NonFinite,
			errors.New("a value, or the update that it leads to, is not finite"), "skip this step or lower the learning rate")
	}
	p.forget() // nobody returns to the version before
	if u.Weight > 0 {
		s.counters.applied.Add(1)
	}
	s.advanced(g, p, c)
	return Accepted, nil
}

// slowest returns the lowest clock among the members that have not left.
func (p *piece) slowest(g *generation) int64 {
	lowest := int64(left)
	for _, w := range g.workers {
		if seen, ok := p.seen[w]; ok {
			lowest = min(lowest, seen.Clock)
		}
	}
	return lowest
}

// mayPull reports whether a worker that has pushed clock steps is within the
// bound of mode SSP: it sees every update of every live member up to clock−s.
func (s *Store) mayPull(g *generation, p *piece, clock int64) bool {
	behind := clock - p.slowest(g)
	if behind > int64(s.cfg.Staleness) {
		return false
	}
	for {
		seen := s.staleness.Load()
		if behind <= seen || s.staleness.CompareAndSwap(seen, behind) {
			return true
		}
	}
}

// MaxStaleness returns the most steps by which a served pull was ahead of the
// slowest live member (mode SSP); it never exceeds Config.Staleness.
func (s *Store) MaxStaleness() int64 { return s.staleness.Load() }

// RetireWorker lets nobody wait for a worker any more (mode SSP): it died or
// left, and no new generation says so yet. Its pushes are still taken.
func (s *Store) RetireWorker(w Worker) {
	c := s.begin()
	s.mu.Lock()
	if g := s.current; g != nil && s.cfg.Mode != BSP {
		for _, p := range g.order {
			if seen, ok := p.seen[w]; ok {
				seen.Clock = left
				p.seen[w] = seen
				s.wake(g, p, c)
			}
		}
	}
	s.mu.Unlock()
	s.finish(c)
}

// Clock returns how many steps of a worker all current pieces have taken (mode
// SSP). A new member starts at the slowest member's clock, and must count from
// there. It returns false for a worker that is not a member or has left.
func (s *Store) Clock(w Worker) (int64, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	clock := int64(left)
	if s.current.has(w) {
		for _, p := range s.current.order {
			p.mu.Lock()
			if seen, ok := p.seen[w]; ok {
				clock = min(clock, seen.Clock)
			}
			p.mu.Unlock()
		}
	}
	return clock, clock != left
}

// admit makes p.seen fit a new generation: members of neither it nor the one
// before are forgotten, new members start at the slowest old one's clock.
func (p *piece) admit(g, old *generation) {
	start := int64(left)
	for _, seen := range p.seen {
		start = min(start, seen.Clock)
	}
	if live := p.slowest(g); live != left {
		start = live
	}
	if start == left {
		start = 0
	}
	for w := range p.seen {
		if !g.has(w) && !old.has(w) {
			delete(p.seen, w)
		}
	}
	for _, w := range g.workers {
		if seen, ok := p.seen[w]; !ok || seen.Clock == left {
			p.seen[w] = Seen{Worker: w, Sequence: seen.Sequence, Clock: start}
		}
	}
}

// mergeSeen takes over what another holder of a part of the piece remembers.
// Drained holders agree; for a worker that died between two of them the later
// push counts.
func (p *piece) mergeSeen(seen []Seen) {
	for _, x := range seen {
		y := p.seen[x.Worker]
		p.seen[x.Worker] = Seen{x.Worker, max(x.Sequence, y.Sequence), max(x.Clock, y.Clock)}
	}
}

// listSeen returns the table in a fixed order.
func (p *piece) listSeen() []Seen {
	if len(p.seen) == 0 {
		return nil
	}
	list := make([]Seen, 0, len(p.seen))
	for _, x := range p.seen {
		list = append(list, x)
	}
	slices.SortFunc(list, func(a, b Seen) int {
		return cmp.Or(cmp.Compare(a.Worker.ID, b.Worker.ID), cmp.Compare(a.Worker.Incarnation, b.Worker.Incarnation))
	})
	return list
}
