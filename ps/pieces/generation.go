package pieces

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"

	"optimus/internal/failure"
)

// Generation is one membership and this server's share of the assignment.
type Generation struct {
	Number  int
	Workers []Worker // in the order in which their contributions are added
	Pieces  []ID     // the pieces of this server; they must not overlap
	// Voters are the servers that hold pieces, and Server is this one among them:
	// with Optimizer.ClipNorm in mode BSP they vote on each step. Without voters
	// this server is the only one.
	Voters []int
	Server int
}

// generation is a Generation at work.
type generation struct {
	number   int
	workers  []Worker
	member   map[int]int // worker ID → position in workers
	pieces   map[ID]*piece
	order    []*piece // by block and offset
	boundary int64    // the version at which it begins
	labelled bool     // boundary is known
	ballots  *ballots // nil unless steps are voted on
}

// Install prepares the next generation: it becomes pending. Its pushes are set
// aside and its pulls parked until Commit. Memory is taken as pieces are filled.
// The number of a dropped generation must not be used again: late pushes of it
// could not be told from the new one's.
func (s *Store) Install(n Generation) error {
	g, err := s.newGeneration(n)
	if err != nil {
		return failure.E("install", fmt.Sprintf("generation %d", n.Number), failure.InvalidArgument, err, "correct the assignment")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		err = errors.New("the store is closed")
	case s.pending != nil:
		err = fmt.Errorf("generation %d is pending", s.pending.number)
	case s.current != nil && n.Number <= s.current.number:
		err = fmt.Errorf("generation %d is current", s.current.number)
	}
	if err != nil {
		return failure.E("install", fmt.Sprintf("generation %d", n.Number), failure.Conflict, err, "drop the pending one or take a higher number")
	}
	s.pending = g
	return nil
}

func (s *Store) newGeneration(n Generation) (*generation, error) {
	g := &generation{number: n.Number, workers: slices.Clone(n.Workers),
		member: make(map[int]int, len(n.Workers)), pieces: make(map[ID]*piece, len(n.Pieces))}
	if len(g.workers) == 0 {
		return nil, errors.New("no workers")
	}
	for i, w := range g.workers {
		if _, ok := g.member[w.ID]; ok {
			return nil, fmt.Errorf("worker %d is listed twice", w.ID)
		}
		g.member[w.ID] = i
	}
	if s.cfg.Mode == BSP && s.cfg.Optimizer.ClipNorm > 0 {
		var err error
		if g.ballots, err = newBallots(n); err != nil {
			return nil, err
		}
	}
	for _, id := range n.Pieces {
		p, err := s.newPiece(id, len(g.workers))
		if err != nil {
			return nil, err
		}
		g.pieces[id] = p
		g.order = append(g.order, p)
	}
	slices.SortFunc(g.order, func(a, b *piece) int {
		return cmp.Or(cmp.Compare(a.id.Block, b.id.Block), cmp.Compare(a.id.Offset, b.id.Offset))
	})
	for i := 1; i < len(g.order); i++ {
		if a, b := g.order[i-1].id, g.order[i].id; a.Block == b.Block && a.Offset+a.Size > b.Offset {
			return nil, fmt.Errorf("pieces %v and %v overlap", a, b)
		}
	}
	return g, nil
}

func (s *Store) newPiece(id ID, workers int) (*piece, error) {
	if id.Block < 0 || id.Block >= len(s.param) {
		return nil, fmt.Errorf("piece %v: there is no block %d; the model has %d blocks and %d auxiliary arrays",
			id, id.Block, len(s.cfg.Params), len(s.cfg.Aux))
	}
	param := &s.param[id.Block]
	if size := param.Size(); id.Offset < 0 || id.Size <= 0 || id.Size > size || id.Offset > size-id.Size {
		return nil, fmt.Errorf("piece %v does not lie in block %q of %d elements", id, param.Name, size)
	}
	p := &piece{id: id, param: param, slots: s.slotsOf(id.Block), kind: s.kind(id.Block),
		row: param.RowSize(), mu: new(sync.Mutex)}
	if s.cfg.Mode == BSP {
		p.contribution, p.arrived = make([]Push, workers), make([]bool, workers)
	} else {
		p.seen = make(map[Worker]Seen)
	}
	return p, nil
}

// Commit makes the pending generation current. Its pieces begin at the boundary
// that FillLocal, Init or SetVersion named; then the pushes set aside for it are
// applied. The pieces of the generation before can still be pulled at the
// boundary until the first current piece applies a step, which proves that every
// worker has pulled all of it, or until Retire.
func (s *Store) Commit(number int) error {
	c := s.begin()
	defer s.finish(c)
	s.mu.Lock()
	g := s.pending
	err := s.ready(g, number)
	if err == nil {
		s.replace(g, c)
	}
	s.mu.Unlock()
	if err != nil {
		return failure.E("commit", fmt.Sprintf("generation %d", number), failure.Conflict, err, "fill all of its pieces first, or drop it")
	}
	return s.settleAll(g, c)
}

// ready returns why the pending generation cannot become current.
func (s *Store) ready(g *generation, number int) error {
	if g == nil || g.number != number {
		return errors.New("it is not pending")
	}
	if !g.labelled && s.cfg.Mode == BSP {
		return errors.New("the version of its pieces was not named")
	}
	for _, p := range g.order {
		if p.share {
			if now := s.current.pieces[p.id].now.version; s.cfg.Mode == BSP && now != g.boundary {
				return fmt.Errorf("piece %v is at version %d, not at the boundary %d", p.id, now, g.boundary)
			}
		} else if gap, ok := p.filled.gap(p.id.Size); ok {
			return fmt.Errorf("elements %d to %d of piece %v are missing", gap.lo, gap.hi, p.id)
		}
	}
	return nil
}

// replace switches from the current to the pending generation.
func (s *Store) replace(g *generation, c *calls) {
	old := s.current
	s.Retire()
	for _, p := range g.order {
		if p.share {
			p.inherit(old.pieces[p.id])
			if s.cfg.Mode == BSP {
				p.now.data.hold() // for late pulls from the generation before
			}
		}
		p.now.version = g.boundary
		if s.cfg.Mode != BSP {
			p.now.version = p.now.updates
			p.admit(g, old)
		}
		p.set(p.now)
	}
	old.refreshParked(c)
	s.current, s.pending = g, nil
	if g.ballots != nil {
		g.ballots.last = g.boundary
	}
	if old != nil && s.cfg.Mode == BSP {
		for _, p := range old.order {
			p.dropPushes(math.MinInt64)
		}
		s.previous.Store(old)
	}
	for _, p := range g.order {
		s.wake(g, p, c)
	}
	s.watches.check(g, c)
}

// inherit takes over the arrays, the lock and the table of workers of the piece
// with the same ID in the generation before.
func (p *piece) inherit(from *piece) {
	if from.before.data != nil {
		from.forget()
	}
	p.mu, p.now, p.spare, p.seen = from.mu, from.now, from.spare, from.seen
	from.spare = nil
}

// settleAll applies the pushes that were set aside while g was pending.
func (s *Store) settleAll(g *generation, c *calls) error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.current != g {
		return nil
	}
	for _, p := range g.order {
		p.mu.Lock()
		err := s.settle(g, p, c)
		p.mu.Unlock()
		if err != nil {
			return err
		}
	}
	return s.decide(g, c)
}

// Drop forgets the pending generation and the pushes set aside for it.
func (s *Store) Drop(number int) error {
	c := s.begin()
	s.mu.Lock()
	g := s.pending
	ok := g != nil && g.number == number
	if ok {
		g.refreshParked(c)
		s.pending = nil
	}
	s.mu.Unlock()
	s.finish(c)
	if !ok {
		return failure.E("drop", fmt.Sprintf("generation %d", number), failure.Conflict, errors.New("it is not pending"), "")
	}
	return nil
}

// Retire lets go of the pieces of the generation before the current one.
func (s *Store) Retire() {
	if s.previous.Load() == nil {
		return
	}
	if old := s.previous.Swap(nil); old != nil {
		for _, p := range old.order {
			p.now.data.release()
		}
	}
}

func (g *generation) has(w Worker) bool {
	if g == nil {
		return false
	}
	i, ok := g.member[w.ID]
	return ok && g.workers[i] == w
}

func (g *generation) versions() (lowest, highest int64) {
	if len(g.order) == 0 {
		return g.boundary, g.boundary
	}
	lowest = g.order[0].version.Load()
	highest = lowest
	for _, p := range g.order[1:] {
		v := p.version.Load()
		lowest, highest = min(lowest, v), max(highest, v)
	}
	return lowest, highest
}

// refreshParked answers all pulls that wait for pieces of g with Refresh.
func (g *generation) refreshParked(c *calls) {
	if g == nil {
		return
	}
	for _, p := range g.order {
		for _, k := range p.parked {
			c.answers = append(c.answers, answered{k.reply, Answer{Outcome: Refresh}})
		}
		p.parked = nil
	}
}
