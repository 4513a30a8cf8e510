package pieces

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"optimus/compute/optim"
	"optimus/internal/failure"
)

// Vote is what one server knows of a step's gradient once all members have
// contributed to each of its pieces. When it has the votes of all servers of its
// generation it knows the norm over all blocks, and its pieces make the step.
type Vote struct {
	Generation int
	Step       int64
	Server     int
	Squares    optim.Squares // over the server's learned pieces
}

// ballots are the votes of one generation. All its pieces wait for them, auxiliary
// ones too, so that they stay within a step of each other. A store that holds back
// its vote on a step keeps all others from the next but one, so at most two steps
// are open at a time.
type ballots struct {
	voters []int // servers, in ascending order
	self   int

	mu   sync.Mutex
	open map[int64]*ballot // by step; the last one decided stays for Rewind
	last int64             // the step decided last
}

// ballot is the vote on one step.
type ballot struct {
	complete int           // pieces of this store with all contributions to the step
	own      optim.Squares // over them
	cast     map[int]optim.Squares
}

func newBallots(n Generation) (*ballots, error) {
	b := &ballots{voters: slices.Clone(n.Voters), self: n.Server, open: make(map[int64]*ballot)}
	if len(b.voters) == 0 {
		b.voters = []int{b.self}
	}
	slices.Sort(b.voters)
	switch {
	case len(slices.Compact(slices.Clone(b.voters))) < len(b.voters):
		return nil, fmt.Errorf("a server is listed twice among the voters %v", b.voters)
	case len(n.Pieces) > 0 && !slices.Contains(b.voters, b.self):
		return nil, fmt.Errorf("server %d has pieces but is not among the voters %v", b.self, b.voters)
	}
	return b, nil
}

// at returns the ballot on a step; nil if too many are open.
func (b *ballots) at(step int64) *ballot {
	v := b.open[step]
	if v == nil && len(b.open) < maxAhead {
		v = &ballot{cast: make(map[int]optim.Squares, len(b.voters))}
		b.open[step] = v
	}
	return v
}

// put files a vote and reports whether it was the last one that was missing.
func (b *ballots) put(v *ballot, server int, sum optim.Squares) bool {
	before := len(v.cast)
	v.cast[server] = sum
	return len(v.cast) > before && len(v.cast) == len(b.voters)
}

// close ends the vote on a step and returns what its gradient must be divided by.
func (b *ballots) close(step int64) float64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	var total optim.Squares
	for _, sum := range b.open[step].cast {
		total.Merge(sum)
	}
	b.last = step
	maps.DeleteFunc(b.open, func(k int64, _ *ballot) bool { return k < step })
	return total.Excess()
}

// rewind takes back this store's votes on steps after version to. Those of others
// stay: if they vote again in this generation it is on the same contributions.
func (b *ballots) rewind(to int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.last = min(b.last, to)
	for step, v := range b.open {
		if step > to {
			v.complete, v.own = 0, optim.Squares{}
			delete(v.cast, b.self)
		}
	}
}

// promised reports whether this store has voted on a step that is not decided yet.
func (b *ballots) promised(step int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	v := b.open[step]
	if v == nil || step <= b.last {
		return false
	}
	_, ok := v.cast[b.self]
	return ok
}

// complete notes that a piece has all contributions to its next version. With the
// last piece the store votes.
func (s *Store) complete(g *generation, p *piece, c *calls) error {
	step, weight := p.now.version+1, p.weight()
	var sum optim.Squares
	if p.kind == learned && weight > 0 && !s.squares(p, weight, &sum) {
		s.veto(p, step, -1, c)
		return nil
	}
	b := g.ballots
	b.mu.Lock()
	defer b.mu.Unlock()
	v := b.at(step)
	if v == nil {
		return failure.E("vote", fmt.Sprintf("step %d", step), failure.Internal, fmt.Errorf("%d steps are open", len(b.open)), "report this")
	}
	v.own.Merge(sum)
	if v.complete++; v.complete < len(g.order) {
		return nil
	}
	if len(b.voters) > 1 {
		c.votes = append(c.votes, Vote{Generation: g.number, Step: step, Server: b.self, Squares: v.own})
	}
	if b.put(v, b.self, v.own) {
		c.decided = append(c.decided, step)
	}
	return nil
}

// squares adds up the squares of a piece's mean gradient. It reports false if the
// sum of the contributions is not finite.
func (s *Store) squares(p *piece, weight int64, to *optim.Squares) bool {
	w := s.workPool.Get().(*scratch)
	defer func() { w.reset(); s.workPool.Put(w) }()
	if w.collect(p, p.contribution); len(w.grads) == 0 {
		return true
	}
	for lo, n := 0, len(w.grads[0]); lo < n; lo += chunk {
		x := sum(w.sum, w.grads, lo, min(lo+chunk, n))
		if !finite(x) {
			return false
		}
		to.Add(x, weight, s.cfg.Optimizer.ClipNorm)
	}
	return true
}

// Vote takes the vote of another server of the current or the pending generation.
// The error is set if and only if the outcome is Refused.
func (s *Store) Vote(v Vote) (Outcome, error) {
	c := s.begin()
	s.mu.RLock()
	out, err := s.vote(&v, c)
	s.mu.RUnlock()
	s.finish(c)
	return out, err
}

func (s *Store) vote(v *Vote, c *calls) (Outcome, error) {
	g := s.current
	if s.pending != nil && s.pending.number == v.Generation {
		g = s.pending // its own vote is still to come, so that it cannot be decided yet
	}
	if s.closed || g == nil || g.number != v.Generation {
		return Refresh, nil
	}
	var cause error
	switch b := g.ballots; {
	case b == nil:
		cause = errors.New("this job does not clip by the norm")
	case v.Server == b.self || !slices.Contains(b.voters, v.Server):
		cause = fmt.Errorf("server %d is not another one among the voters %v", v.Server, b.voters)
	default:
		b.mu.Lock()
		if v.Step < b.last {
			b.mu.Unlock()
			return Duplicate, nil
		}
		ballot := b.at(v.Step)
		if ballot == nil {
			cause = fmt.Errorf("%d steps are open", len(b.open))
		} else if b.put(ballot, v.Server, v.Squares) {
			c.decided = append(c.decided, v.Step)
		}
		b.mu.Unlock()
	}
	if cause == nil {
		cause = s.decide(g, c)
	}
	if cause != nil {
		return Refused, failure.E("vote", fmt.Sprintf("step %d, server %d", v.Step, v.Server), failure.InvalidArgument, cause,
			"sender and receiver disagree about the job")
	}
	return Accepted, nil
}

// decide makes the steps on which the last vote has come. No piece's lock is held.
func (s *Store) decide(g *generation, c *calls) (err error) {
	for i := 0; i < len(c.decided); i++ { // what was set aside may complete the next step
		step := c.decided[i]
		excess := g.ballots.close(step)
		for _, p := range g.order {
			p.mu.Lock()
			if p.now.version == step-1 && p.count == len(g.workers) && !p.vetoed {
				err = cmp.Or(err, s.advance(g, p, excess, c), s.settle(g, p, c))
			}
			p.mu.Unlock()
		}
	}
	c.decided = c.decided[:0]
	return err
}

// Promised returns the version that this store has or will have without another
// push: the lowest of its pieces, or the next if it has voted on that. Other servers
// may have made that one already, and it comes as soon as their votes do.
func (s *Store) Promised() int64 {
	s.mu.Lock() // not in the midst of a decision
	defer s.mu.Unlock()
	if s.current == nil {
		return 0
	}
	lowest, _ := s.current.versions()
	if b := s.current.ballots; b != nil && b.promised(lowest+1) {
		return lowest + 1
	}
	return lowest
}

// Awaited returns the servers whose votes on a step are missing; none if it is
// decided or another generation is current.
func (s *Store) Awaited(generation int, step int64) (servers []int) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.current == nil || s.current.number != generation || s.current.ballots == nil {
		return nil
	}
	b := s.current.ballots
	b.mu.Lock()
	defer b.mu.Unlock()
	if v := b.open[step]; v != nil && step > b.last {
		for _, server := range b.voters {
			if _, ok := v.cast[server]; !ok {
				servers = append(servers, server)
			}
		}
	}
	return servers
}
