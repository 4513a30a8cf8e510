package pieces

import (
	"fmt"

	"optimus/internal/failure"
)

// Request asks for one piece.
type Request struct {
	Generation int
	Step       int64 // bsp: the version wanted; ssp: the reader's clock, i.e. the steps that it has pushed; asp: unused
	Piece      ID
	Rows       []int32   // absolute row numbers, ascending, of a block of rows; nil means the whole piece
	Into       []float32 // where a copy goes if it has the capacity; may be nil
}

// Answer is what a pull returns.
type Answer struct {
	Outcome Outcome // Served, Refresh, Refused or Gone
	Version int64
	// Values are Piece.Size elements, or for each row of the request the part of
	// it that lies inside the piece. The package comment says how long they may be read.
	Values  []float32
	Updates int64 // how many updates led to this version
	Err     error // why, if Refused
}

// Token names a parked pull for Cancel. The zero Token names none.
type Token struct {
	p *piece
	n uint64
}

// parked is a pull that waits for its version.
type parked struct {
	request Request
	reply   func(Answer)
	n       uint64
}

// Pull answers at once, before it returns, or parks the request until the piece
// has the version (ssp: until the reader is within the bound). Parked pulls are
// answered with Refresh when their generation or step is abandoned. reply is
// called exactly once unless Cancel prevents it.
func (s *Store) Pull(r Request, reply func(Answer)) Token {
	c := s.begin()
	s.mu.RLock()
	a, token := s.pull(&r, reply)
	s.mu.RUnlock()
	if token.p == nil {
		c.answers = append(c.answers, answered{reply, a})
	}
	s.finish(c)
	return token
}

// Cancel forgets a parked pull. It returns false if the reply was or is being
// called.
func (s *Store) Cancel(t Token) bool {
	if t.p == nil {
		return false
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	t.p.mu.Lock()
	defer t.p.mu.Unlock()
	for i := range t.p.parked {
		if t.p.parked[i].n == t.n {
			last := len(t.p.parked) - 1
			copy(t.p.parked[i:], t.p.parked[i+1:])
			t.p.parked[last] = parked{}
			t.p.parked = t.p.parked[:last]
			return true
		}
	}
	return false
}

// pull returns an answer, or the token under which the request is parked.
func (s *Store) pull(r *Request, reply func(Answer)) (Answer, Token) {
	g, waiting := s.current, false
	switch old := s.previous.Load(); {
	case s.closed:
		return Answer{Outcome: Refresh}, Token{}
	case s.pending != nil && r.Generation == s.pending.number:
		g, waiting = s.pending, true
	case g != nil && r.Generation == g.number:
	case old != nil && r.Generation == old.number:
		return s.pullPrevious(old, r), Token{}
	default:
		return Answer{Outcome: Refresh}, Token{}
	}
	p := g.pieces[r.Piece]
	if p == nil {
		return refusePull(r, fmt.Errorf("generation %d has no such piece on this server", g.number)), Token{}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.checkRequest(r); err != nil {
		return refusePull(r, err), Token{}
	}
	if !waiting {
		if a, ok := s.answer(g, p, r); ok {
			return a, Token{}
		}
	}
	t := Token{p, s.tokens.Add(1)}
	p.parked = append(p.parked, parked{*r, reply, t.n})
	return Answer{}, t
}

// pullPrevious serves the boundary's version from the generation before. Its
// tables of rows are shared with the current pieces, lock included, so it must
// look again, under the lock, whether one of them has applied a step.
func (s *Store) pullPrevious(old *generation, r *Request) Answer {
	p := old.pieces[r.Piece]
	if p == nil || r.Step != s.current.boundary {
		return Answer{Outcome: Refresh}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if s.previous.Load() != old || p.now.version != r.Step {
		return Answer{Outcome: Refresh}
	}
	if err := p.checkRequest(r); err != nil {
		return refusePull(r, err)
	}
	return s.serve(p, &p.now, r)
}

func refusePull(r *Request, cause error) Answer {
	return Answer{Outcome: Refused, Err: failure.E("pull", fmt.Sprintf("piece %v, step %d", r.Piece, r.Step),
		failure.InvalidArgument, cause, "ask for pieces and rows of the assignment")}
}

func (p *piece) checkRequest(r *Request) error {
	if len(r.Rows) == 0 {
		return nil
	}
	if !p.rows() {
		return fmt.Errorf("block %q is not pulled by rows", p.param.Name)
	}
	return p.checkRows(r.Rows, -1)
}

// answer returns the answer to a pull from the current generation, or false if
// it must wait.
func (s *Store) answer(g *generation, p *piece, r *Request) (Answer, bool) {
	switch {
	case s.cfg.Mode == SSP && !s.mayPull(g, p, r.Step):
		return Answer{}, false
	case s.cfg.Mode != BSP, r.Step == p.now.version:
		return s.serve(p, &p.now, r), true
	case r.Step > p.now.version:
		return Answer{}, false
	case p.before.data != nil && r.Step == p.before.version:
		return s.serve(p, &p.before, r), true
	}
	return Answer{Outcome: Gone, Version: p.now.version}, true
}

// serve reads one state of a piece: by reference where the arrays stay as they
// are, else into a copy.
func (s *Store) serve(p *piece, st *state, r *Request) Answer {
	a := Answer{Outcome: Served, Version: st.version, Updates: st.updates}
	switch {
	case p.rows():
		a.Values = p.readRows(r.Into, r.Rows, st == &p.before)
	case s.cfg.Mode == BSP:
		a.Values = st.data.params
	default:
		a.Values = append(r.Into[:0], st.data.params...)
	}
	s.counters.served(len(a.Values))
	return a
}

// wake answers the parked pulls of a piece that can be answered now.
func (s *Store) wake(g *generation, p *piece, c *calls) {
	kept := p.parked[:0]
	for _, k := range p.parked {
		if a, ok := s.answer(g, p, &k.request); ok {
			c.answers = append(c.answers, answered{k.reply, a})
		} else {
			kept = append(kept, k)
		}
	}
	clear(p.parked[len(kept):])
	p.parked = kept
}
