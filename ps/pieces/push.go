package pieces

import (
	"cmp"
	"fmt"
	"math"

	"optimus/compute/optim"
	"optimus/internal/failure"
)

// Push is one worker's contribution to one piece in one step.
type Push struct {
	Generation int
	Step       int64 // bsp: the version that it helps to make; ssp: the worker's clock once this step is done
	From       Worker
	Sequence   int64 // asp, ssp: counts this incarnation's steps from 1; unused in bsp
	Piece      ID
	// Rows are absolute row numbers, ascending, of a block that is pushed by rows;
	// nil means that Values holds the whole piece.
	Rows []int32
	// Values is a sum over examples, not a mean: Piece.Size elements, or for each
	// row the part of it that lies inside the piece (RowSpan), one after the other.
	// It may be empty if Weight is 0, or if no row is touched.
	Values []float32
	Weight int64 // how many examples (or tokens) were summed
}

// maxAhead is how many steps a push may be ahead of its piece. Pieces that
// nobody waits for (auxiliary arrays, untouched rows) can lag by a step or two;
// more means a confused sender, and each kept push holds memory.
const maxAhead = 8

// Push takes one contribution. The error is set if and only if the outcome is
// Refused.
func (s *Store) Push(u Push) (Outcome, error) {
	c := s.begin()
	s.mu.RLock()
	out, err := s.push(&u, c)
	if failed := s.decide(s.current, c); failed != nil {
		out, err = Refused, failed
	}
	s.mu.RUnlock()
	s.finish(c)
	s.counters.push(out, &u)
	return out, err
}

func (s *Store) push(u *Push, c *calls) (Outcome, error) {
	if s.closed {
		return Refresh, nil
	}
	if g := s.pending; g != nil && u.Generation == g.number {
		return s.keep(g, u)
	}
	g := s.current
	if g == nil {
		return Refresh, nil
	}
	p := g.pieces[u.Piece]
	if p == nil {
		return s.astray(g, u)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := s.settle(g, p, c); err != nil {
		return Refused, err
	}
	if s.has(p, u) {
		return Duplicate, nil
	}
	if u.Generation != g.number {
		return Refresh, nil
	}
	who, err := s.check(g, p, u)
	if err != nil {
		return Refused, err
	}
	out, err := s.take(g, p, u, who, c)
	if err != nil {
		return Refused, err
	}
	if err := s.settle(g, p, c); err != nil {
		return Refused, err
	}
	return out, nil
}

// astray answers a push for a piece that the current generation does not have.
func (s *Store) astray(g *generation, u *Push) (Outcome, error) {
	switch {
	case s.cfg.Mode == BSP && u.Step <= g.boundary:
		return Duplicate, nil // the generation could begin only because every step so far was applied
	case u.Generation != g.number:
		return Refresh, nil
	}
	return Refused, refuse(u, fmt.Errorf("generation %d has no such piece on this server", g.number))
}

// has reports whether the piece already holds what u brings.
func (s *Store) has(p *piece, u *Push) bool {
	if s.cfg.Mode == BSP {
		return u.Step <= p.now.version
	}
	seen, ok := p.seen[u.From]
	return ok && 1 <= u.Sequence && u.Sequence <= seen.Sequence
}

// check returns the sender's position in the member list, or why the push must
// be refused.
func (s *Store) check(g *generation, p *piece, u *Push) (int, error) {
	who, ok := g.member[u.From.ID]
	switch {
	case !ok:
		return 0, fence(u, fmt.Errorf("worker %d is not a member of generation %d", u.From.ID, g.number))
	case g.workers[who] != u.From:
		return 0, fence(u, fmt.Errorf("worker %d has incarnation %d, not %d: it was replaced",
			u.From.ID, g.workers[who].Incarnation, u.From.Incarnation))
	case s.cfg.Mode != BSP && u.Sequence < 1:
		return 0, refuse(u, fmt.Errorf("sequence %d: sequences start at 1", u.Sequence))
	case u.Weight < 0 || u.Weight > math.MaxInt64/int64(len(g.workers)):
		return 0, refuse(u, fmt.Errorf("weight %d is not a count of examples", u.Weight))
	}
	if err := p.checkValues(u); err != nil {
		return 0, refuse(u, err)
	}
	return who, nil
}

func (p *piece) checkValues(u *Push) error {
	switch {
	case len(u.Rows) > 0 && !p.rows():
		return fmt.Errorf("block %q is not pushed by rows", p.param.Name)
	case len(u.Rows) > 0:
		return p.checkRows(u.Rows, len(u.Values))
	case len(u.Values) == 0 && (u.Weight == 0 || p.rows()):
		return nil
	case len(u.Values) != p.id.Size:
		return fmt.Errorf("%d values for a piece of %d elements", len(u.Values), p.id.Size)
	}
	return nil
}

// refuse is the reason of a push that does not fit the piece.
func refuse(u *Push, cause error) error {
	return failure.E("push", u.name(), failure.InvalidArgument, cause, "sender and server disagree about the model or the assignment")
}

// fence is the reason of a push from outside the member list.
func fence(u *Push, cause error) error {
	return failure.E("push", u.name(), failure.LostMember, cause, "the sender must stop or rejoin as a new member")
}

func (u *Push) name() string {
	return fmt.Sprintf("piece %v, step %d, worker %d", u.Piece, u.Step, u.From.ID)
}

// keep sets a push aside for a generation that is not committed yet.
func (s *Store) keep(g *generation, u *Push) (Outcome, error) {
	p := g.pieces[u.Piece]
	if p == nil {
		return Refused, refuse(u, fmt.Errorf("generation %d has no such piece on this server", g.number))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if s.cfg.Mode == BSP && g.labelled && u.Step <= g.boundary {
		return Duplicate, nil
	}
	if _, err := s.check(g, p, u); err != nil {
		return Refused, err
	}
	return s.setAside(p, u), nil
}

// setAside keeps a push that cannot be applied yet.
func (s *Store) setAside(p *piece, u *Push) Outcome {
	for i := range p.early {
		e := &p.early[i]
		if e.From == u.From && e.Step == u.Step && e.Sequence == u.Sequence {
			return Duplicate
		}
	}
	p.early = append(p.early, *u)
	return Accepted
}

// settle applies what was set aside and has become applicable, in order.
func (s *Store) settle(g *generation, p *piece, c *calls) (err error) {
	for again := len(p.early) > 0; again; {
		version := p.now.version
		kept := p.early[:0]
		for i := range p.early {
			e := p.early[i]
			if s.cfg.Mode == BSP && e.Step > p.now.version+1 {
				kept = append(kept, e)
			} else if !s.has(p, &e) {
				_, failed := s.take(g, p, &e, g.member[e.From.ID], c)
				err = cmp.Or(err, failed)
			}
		}
		clear(p.early[len(kept):])
		p.early = kept
		again = len(kept) > 0 && p.now.version > version
	}
	if s.cfg.Mode != BSP {
		return nil // each push stands for itself; what was refused was reported by a veto
	}
	return err
}

// take takes a push that passed all checks.
func (s *Store) take(g *generation, p *piece, u *Push, who int, c *calls) (Outcome, error) {
	if s.cfg.Mode != BSP {
		return s.applyOne(g, p, u, c)
	}
	if ahead := u.Step - p.now.version; ahead > maxAhead {
		return Refused, refuse(u, fmt.Errorf("%d steps ahead of the piece; at most %d are kept", ahead, maxAhead))
	} else if ahead > 1 {
		return s.setAside(p, u), nil
	}
	if p.arrived[who] {
		return Duplicate, nil
	}
	p.arrived[who] = true
	p.contribution[who] = *u
	p.count++
	if !finite(u.Values) {
		s.veto(p, u.Step, u.From.ID, c)
	}
	if p.count < len(g.workers) || p.vetoed {
		return Accepted, nil
	}
	if g.ballots != nil {
		return Accepted, s.complete(g, p, c)
	}
	return Accepted, s.advance(g, p, 1, c)
}

// advance makes the next version from one contribution of each member, divided by
// excess.
func (s *Store) advance(g *generation, p *piece, excess float64, c *calls) error {
	s.Retire()
	step, weight := p.now.version+1, p.weight()
	if weight == 0 {
		p.relabel(step)
	} else {
		ok, err := s.apply(p, p.contribution, weight, excess, step)
		if err != nil {
			return failure.E("apply", fmt.Sprintf("piece %v, step %d", p.id, step), failure.Internal, err, "report this")
		}
		if !ok {
			s.veto(p, step, -1, c)
			return nil
		}
	}
	p.restart()
	p.passSkips()
	s.counters.applied.Add(1)
	s.advanced(g, p, c)
	return nil
}

// advanced answers who waited for the piece's new version.
func (s *Store) advanced(g *generation, p *piece, c *calls) {
	s.wake(g, p, c)
	s.watches.check(g, c)
}

// veto keeps the piece from serving step, and reports it once.
func (s *Store) veto(p *piece, step int64, worker int, c *calls) {
	if p.vetoed {
		return
	}
	p.vetoed = s.cfg.Mode == BSP
	s.counters.vetoes.Add(1)
	c.vetoes = append(c.vetoes, Veto{Step: step, Worker: worker, Block: p.param.Name, Piece: p.id})
}

// apply moves the piece from its version to the given one by the contributions'
// sum, its mean divided by excess, or reports false and changes nothing if that would
// not be finite.
func (s *Store) apply(p *piece, from []Push, weight int64, excess float64, version int64) (bool, error) {
	w := s.workPool.Get().(*scratch)
	defer func() { w.reset(); s.workPool.Put(w) }()
	j := job{kind: p.kind, update: optim.Update{
		T: p.now.updates + 1, LR: s.cfg.Rate(version), Decay: !p.param.NoDecay, Weight: weight, Excess: excess}}
	p.forget()
	if p.rows() {
		return s.applyRows(p, from, w, j, version)
	}
	w.collect(p, from)
	j.in, j.out, j.scanned = p.now.data, p.free(), len(w.grads) == 1
	ok, err := s.update(j, w)
	if !ok {
		p.spare = j.out
		return false, err
	}
	p.before = p.now
	p.set(state{version: version, updates: j.update.T, data: j.out})
	return true, nil
}
