package elastic

import (
	"encoding/json"
	"slices"

	"optimus/data/order"
)

// Work is a chunk in a worker's hands (asp, ssp).
type Work struct {
	Chunk order.Chunk `json:"chunk"`
	Batch int         `json:"batch"`           // examples of one push
	Most  int64       `json:"most"`            // pushes allowed; the rest of the chunk goes back
	UpTo  int         `json:"up_to,omitempty"` // positions below are done (reports)
}

// async is what the controller keeps for a job without common steps.
type async struct {
	ledger       *order.Ledger
	epoch        int // the one that is being trained
	held         map[Member]*Work
	waiting      []Member // workers that asked and got nothing yet
	parked       *parked  // first chunk of the next epoch, held back for the evaluation
	evaluating   bool
	finishing    bool // the evaluation under way is the last
	over         bool
	nextSnapshot int64
}

type parked struct {
	member Member
	work   *Work
}

// startAsync begins a ledger, or goes on with a checkpoint's: what was leased
// then was not reported, and is leased anew.
func (c *Controller) startAsync(from *order.Ledger) {
	if c.cfg.Mode == BSP {
		return
	}
	c.async = async{held: map[Member]*Work{}, ledger: from}
	if from == nil {
		var err error
		if c.async.ledger, err = order.NewLedger(c.cfg.Plan, c.cfg.Chunk, c.cfg.Epochs); err != nil {
			c.fail(err.Error())
			return
		}
	}
	c.async.epoch = c.async.ledger.Epoch()
	c.async.nextSnapshot = c.cfg.CheckpointEvery
}

// ledgerNow returns a copy in which nothing is leased: the state that a
// checkpoint of this moment can go on from.
func (c *Controller) ledgerNow() *order.Ledger {
	b, err := json.Marshal(c.async.ledger)
	if err != nil {
		return nil
	}
	l := new(order.Ledger)
	if err := l.UnmarshalJSON(b); err != nil {
		return nil
	}
	for m := range c.async.held {
		l.Release(m.String())
	}
	if c.async.parked != nil {
		l.Release(c.async.parked.member.String())
	}
	return l
}

// wantChunk books what a worker has done of its chunk and gives it another.
func (c *Controller) wantChunk(p *peer, m Message) {
	a := &c.async
	if c.cfg.Mode == BSP || a.ledger == nil {
		return
	}
	if w := a.held[m.From]; w != nil && m.Chunk != nil {
		c.book(m.From, w, m.Chunk.UpTo)
		if m.Chunk.UpTo < w.Chunk.Hi {
			a.ledger.Return(m.From.String())
		}
		delete(a.held, m.From)
	}
	if !slices.Contains(a.waiting, m.From) {
		a.waiting = append(a.waiting, m.From)
	}
	c.serveWork()
}

// book records progress inside a chunk.
func (c *Controller) book(m Member, w *Work, upTo int) {
	if upTo <= w.Chunk.Lo {
		return
	}
	// The ledger knows the chunk as it was leased; a report beyond it is the
	// worker's fault and ends up as work done again.
	if err := c.async.ledger.Done(m.String(), w.Chunk, upTo); err != nil {
		c.event(Event{Kind: StateChanged, State: c.state, Reason: err.Error()})
	}
}

// outstanding counts the pushes that the chunks in workers' hands still allow.
func (c *Controller) outstanding() (n int64) {
	for _, w := range c.async.held {
		n += min(w.Most, int64((w.Chunk.Hi-w.UpTo+w.Batch-1)/w.Batch))
	}
	return n
}

// serveWork gives chunks to those who wait, as far as there are any.
func (c *Controller) serveWork() {
	a := &c.async
	if c.gen == nil || c.state == Finishing || c.state.Final() || a.evaluating || c.next != nil && c.next.halt {
		return
	}
	var rest []Member
	for i, m := range a.waiting {
		if a.evaluating {
			rest = append(rest, a.waiting[i:]...)
			break
		}
		if !c.alive(m) {
			continue
		}
		if c.gen.Rank(m) < 0 || c.unwanted[m] || !c.serve(m) {
			rest = append(rest, m)
		}
	}
	a.waiting = rest
	c.endOfEpoch()
}

// serve gives m a chunk and reports whether it got one.
func (c *Controller) serve(m Member) bool {
	a := &c.async
	if a.parked != nil {
		return false
	}
	allowed := c.cfg.Steps - c.step - c.outstanding()
	if allowed <= 0 {
		return false
	}
	chunk, wait, done := a.ledger.Lease(m.String())
	if wait || done {
		return false
	}
	batch := max(1, (c.cfg.Plan.Batch+len(c.gen.Workers)-1)/len(c.gen.Workers))
	w := &Work{Chunk: chunk, Batch: batch, Most: allowed, UpTo: chunk.Lo}
	if chunk.Epoch > a.epoch {
		a.parked = &parked{m, w}
		return false
	}
	c.give(m, w)
	return true
}

func (c *Controller) give(m Member, w *Work) {
	c.async.held[m] = w
	given := *w // the controller's copy moves on
	c.send(Message{Kind: GiveWork, To: m, Gen: c.gen.Number, Chunk: &given})
}

// endOfEpoch has the workers evaluate once an epoch, or the job, is done.
func (c *Controller) endOfEpoch() {
	a := &c.async
	if a.evaluating || a.over || len(a.held) > 0 || c.next != nil {
		return
	}
	done, total := a.ledger.Progress()
	a.finishing = done >= total || c.step >= c.cfg.Steps
	if a.parked == nil && !a.finishing {
		return
	}
	a.evaluating = true
	if !c.cfg.Evaluate {
		c.asyncEvaluated()
		return
	}
	for _, w := range c.gen.Workers {
		c.send(Message{Kind: Evaluate, To: w.Member, Gen: c.gen.Number, Step: c.step})
	}
}

// asyncEvaluated goes on after an epoch's evaluation.
func (c *Controller) asyncEvaluated() {
	a := &c.async
	if c.cfg.Mode == BSP || !a.evaluating {
		return
	}
	a.evaluating = false
	if a.finishing {
		a.over = true
		c.settle()
		return
	}
	p := a.parked
	a.parked, a.epoch = nil, p.work.Chunk.Epoch
	if c.alive(p.member) && c.gen.Rank(p.member) >= 0 {
		a.waiting = slices.DeleteFunc(a.waiting, func(m Member) bool { return m == p.member })
		c.give(p.member, p.work)
	} else {
		a.ledger.Release(p.member.String())
	}
	c.serveWork()
}

// asyncProgress counts one applied push.
func (c *Controller) asyncProgress(p *peer, m Message) {
	if m.Report == nil {
		return
	}
	c.step++
	p.done, p.doneGen = m.Step, m.Gen
	c.restarts, c.skips = 0, 0
	if w := c.async.held[m.From]; w != nil && m.Chunk != nil {
		w.Most = max(0, w.Most-1)
		w.UpTo = max(w.UpTo, m.Chunk.UpTo)
		c.book(m.From, w, m.Chunk.UpTo)
	}
	if g := c.generation(m.Gen); g != nil {
		c.event(Event{Kind: StepDone, Gen: m.Gen, Step: c.step, Reports: []Report{*m.Report}, Workers: []int{m.From.ID}, Servers: len(g.Servers)})
	}
	c.schedulePeriodic()
}

// releaseWork returns a lost worker's chunk.
func (c *Controller) releaseWork(m Member) {
	a := &c.async
	if a.ledger == nil || m.Role != Worker {
		return
	}
	delete(a.held, m)
	a.ledger.Release(m.String())
	if a.parked != nil && a.parked.member == m {
		a.parked = nil
	}
	a.waiting = slices.DeleteFunc(a.waiting, func(x Member) bool { return x == m })
}

// resumeAsync goes on after a commit. After a restore the ledger is the
// checkpoint's; an evaluation that was cut off is asked for again.
func (c *Controller) resumeAsync() {
	a := &c.async
	if c.cfg.Mode == BSP || a.ledger == nil {
		return
	}
	a.evaluating = false
	c.serveWork()
}
