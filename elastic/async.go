package elastic

import (
	"encoding/json"
	"fmt"
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
	ledger     *order.Ledger
	held       map[Member]*held
	waiting    []Member // workers that asked and got nothing yet
	evaluated  int      // epochs whose evaluation is complete
	evaluating bool
	over       bool
}

// held is a chunk that was given under generation gen.
type held struct {
	Work
	gen int
}

// startAsync begins a ledger, or goes on with that of checkpoint from: what was
// leased then was not reported, and is leased anew.
func (c *Controller) startAsync(from *Newest) (err error) {
	if c.cfg.Mode == BSP {
		return nil
	}
	var ledger *order.Ledger
	switch {
	case from == nil:
		ledger, err = order.NewLedger(c.cfg.Plan, c.cfg.Chunk, c.cfg.Epochs)
	case from.Ledger == nil:
		err = fmt.Errorf("the checkpoint in %s does not say which examples are done", from.Dir)
	default:
		ledger, err = cloneLedger(from.Ledger)
	}
	if err != nil {
		return err
	}
	c.async = async{ledger: ledger, held: map[Member]*held{}}
	c.async.evaluated = c.epochsDone()
	return nil
}

// restoreAsync goes back to the ledger of the checkpoint that t restores.
func (c *Controller) restoreAsync(t *transition) {
	if c.gen == nil {
		return // the first start: startAsync did it
	}
	if err := c.startAsync(t.restores); err != nil {
		c.fail(err.Error())
	}
}

func cloneLedger(from *order.Ledger) (*order.Ledger, error) {
	b, err := json.Marshal(from)
	if err != nil {
		return nil, err
	}
	l := new(order.Ledger)
	return l, l.UnmarshalJSON(b)
}

// ledgerNow returns a copy in which nothing is leased: the state that a
// checkpoint of this moment can go on from.
func (c *Controller) ledgerNow() (*order.Ledger, error) {
	l, err := cloneLedger(c.async.ledger)
	if err != nil {
		return nil, err
	}
	for _, m := range c.holders() {
		l.Return(m.String())
	}
	return l, nil
}

// holders returns the workers that hold a chunk, in a fixed order.
func (c *Controller) holders() (list []Member) {
	for m := range c.async.held {
		list = append(list, m)
	}
	slices.SortFunc(list, func(a, b Member) int { return a.ID - b.ID })
	return list
}

// epochsDone counts the epochs of which every position is done.
func (c *Controller) epochsDone() int {
	done, _ := c.async.ledger.Progress()
	return int(done / int64(c.cfg.Plan.Examples))
}

// workDone reports whether nothing is left to be given out.
func (c *Controller) workDone() bool {
	done, total := c.async.ledger.Progress()
	return done >= total || c.step >= c.cfg.Steps
}

// wantChunk books what a worker has done of its chunk and gives it another. A
// worker that was halted asks without naming its chunk: the rest of what it had
// goes back. It may ask twice, before and after a commit.
func (c *Controller) wantChunk(m Message) {
	a := &c.async
	if a.ledger == nil || c.gen == nil || c.gen.Rank(m.From) < 0 {
		return
	}
	if h := a.held[m.From]; h != nil {
		fits := m.Chunk != nil && m.Chunk.Chunk == h.Chunk
		if !fits && h.gen == c.gen.Number {
			return // a chunk is on its way
		}
		if fits {
			c.book(m.From, h, m.Chunk.UpTo)
		}
		a.ledger.Return(m.From.String())
		delete(a.held, m.From)
	}
	if !slices.Contains(a.waiting, m.From) {
		a.waiting = append(a.waiting, m.From)
	}
	c.serveWork()
	c.settle()
}

// book records progress inside a chunk.
func (c *Controller) book(m Member, h *held, upTo int) {
	if upTo <= h.UpTo {
		return
	}
	if err := c.async.ledger.Done(m.String(), h.Chunk, upTo); err != nil {
		c.fail(err.Error()) // the worker and this ledger disagree about its chunk
		return
	}
	h.UpTo = upTo
}

// outstanding counts the pushes that the chunks in workers' hands still allow.
func (c *Controller) outstanding() (n int64) {
	for _, h := range c.async.held {
		n += min(h.Most, int64((h.Chunk.Hi-h.UpTo+h.Batch-1)/h.Batch))
	}
	return n
}

// serveWork gives chunks to those who wait, as far as there are any, or has the
// workers evaluate once an epoch, or the job, is done.
func (c *Controller) serveWork() {
	a := &c.async
	if c.gen == nil || c.state == Finishing || c.state.Final() || a.evaluating || a.over || c.next != nil && c.next.halt {
		return
	}
	if c.epochsDone() > a.evaluated || c.workDone() {
		if len(a.held) == 0 {
			c.evaluateAsync()
		}
		return
	}
	var rest []Member
	for _, m := range a.waiting {
		if !c.stays(m) || c.gen.Rank(m) < 0 || !c.serve(m) {
			rest = append(rest, m)
		}
	}
	a.waiting = rest
}

// serve gives m a chunk and reports whether it got one.
func (c *Controller) serve(m Member) bool {
	allowed := c.cfg.Steps - c.step - c.outstanding()
	if allowed <= 0 {
		return false
	}
	chunk, wait, done := c.async.ledger.Lease(m.String())
	if wait || done {
		return false
	}
	batch := max(1, (c.cfg.Plan.Batch+len(c.gen.Workers)-1)/len(c.gen.Workers))
	h := &held{Work{Chunk: chunk, Batch: batch, Most: allowed, UpTo: chunk.Lo}, c.gen.Number}
	c.async.held[m] = h
	given := h.Work // the controller's copy moves on
	c.send(Message{Kind: GiveWork, To: m, Gen: c.gen.Number, Chunk: &given})
	return true
}

func (c *Controller) evaluateAsync() {
	c.async.evaluating = true
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
	if !a.evaluating {
		return
	}
	a.evaluating = false
	a.evaluated = c.epochsDone()
	if a.over = c.workDone(); !a.over {
		c.serveWork()
	}
}

// asyncProgress counts one applied push.
func (c *Controller) asyncProgress(p *peer, m Message) {
	g := c.generation(m.Gen)
	if m.Report == nil || g == nil {
		return
	}
	c.step++
	p.done, p.doneGen = m.Step, m.Gen
	c.restarts = 0
	if m.Report.Weight > 0 {
		c.skips = 0
	}
	done := Event{Kind: StepDone, Gen: m.Gen, Step: c.step, Reports: []Report{*m.Report}, Workers: []int{m.From.ID}, Servers: len(g.Servers)}
	if m.Chunk != nil {
		done.Epoch = m.Chunk.Chunk.Epoch
	}
	c.event(done)
	if h := c.async.held[m.From]; h != nil && m.Chunk != nil && m.Chunk.Chunk == h.Chunk {
		h.Most = max(0, h.Most-1)
		c.book(m.From, h, m.Chunk.UpTo)
	}
	c.schedulePeriodic()
}

// releaseWork returns a lost or dismissed worker's chunk.
func (c *Controller) releaseWork(m Member) {
	a := &c.async
	if a.ledger == nil || m.Role != Worker {
		return
	}
	delete(a.held, m)
	a.ledger.Release(m.String())
	a.waiting = slices.DeleteFunc(a.waiting, func(x Member) bool { return x == m })
}

// resumeAsync goes on after a commit: all workers ask again, and an evaluation
// that was cut off is asked for again.
func (c *Controller) resumeAsync() {
	if c.cfg.Mode == BSP {
		return
	}
	c.async.evaluating = false
	c.async.waiting = nil
	c.serveWork()
}
