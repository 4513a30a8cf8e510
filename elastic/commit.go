package elastic

import "slices"

type leaver struct {
	member Member
	after  int64 // it may go once all workers have done this step
	gen    int   // under this generation
}

// commit makes the next generation rule.
func (c *Controller) commit() {
	t, old, g := c.next, c.gen, c.next.gen
	c.journal(Entry{Kind: "commit", Gen: g.Number, Step: t.boundary, Servers: len(g.Servers), Workers: len(g.Workers), Incarnation: c.incarnation})
	if t.forced() {
		c.goBack(t)
		if c.state.Final() {
			return
		}
	}
	cut := old != nil && !t.forced() && c.serverGone()
	for cut && c.step < t.boundary {
		c.closeStep() // the new owners have it, whatever report is missing
	}
	// In a smooth transition it is due only if an old server died before all
	// had pulled from it: the new generation evaluates the same version.
	due := c.evaluationDue(t.boundary)
	for _, p := range c.involved() {
		c.send(Message{Kind: Commit, To: p.Member, Gen: g.Number, Step: t.boundary, Evaluate: due, Cut: cut})
	}
	c.gen, c.prev, c.next = g, old, nil
	if t.source == FromCheckpoint {
		c.prev = nil // its late reports are of a history that was given up
	}
	c.event(Event{Kind: Committed, Gen: g.Number, Step: t.boundary, Transfer: &t.transfer, Reason: t.reason})
	c.noteLeavers(t, old, cut)
	c.answer(t.command.id, "")
	c.resumed()
	c.lease.restart(t.boundary, min(t.boundary+1, c.cfg.Steps), c.now)
	c.completeSteps()
	c.rearm()
	c.grant()
	c.resumeAsync()
	c.settle()
}

// resumed says that the job trains again.
func (c *Controller) resumed() {
	if c.state != Finishing {
		c.setState(Running, "")
	}
}

// goBack takes the books to the version from which a forced transition goes on.
func (c *Controller) goBack(t *transition) {
	if t.source == FromCheckpoint {
		c.restoreAsync(t)
		c.forget(t.boundary)
		return
	}
	if c.cfg.Mode != BSP {
		return // every push that was reported has been applied
	}
	for c.step < t.boundary && c.gen != nil {
		if c.step+1 != t.skip {
			c.closeStep()
			continue
		}
		c.step++
		c.journal(Entry{Kind: "skip", Step: t.skip, Reason: t.reason})
		c.event(Event{Kind: StepSkipped, Gen: c.gen.Number, Step: t.skip, Reason: t.reason})
		t.skip = 0
	}
	if t.skip > 0 { // it was reported as done before the veto came
		c.journal(Entry{Kind: "skip", Step: t.skip, Reason: t.reason})
		c.event(Event{Kind: StepSkipped, Gen: c.gen.Number, Step: t.skip, Reason: t.reason})
	}
	c.forget(t.boundary)
}

// noteLeavers remembers the old members that are not in the next generation,
// and until when they are needed.
func (c *Controller) noteLeavers(t *transition, old *Generation, cut bool) {
	if old == nil {
		return
	}
	for _, a := range slices.Concat(old.Servers, old.Workers) {
		if !c.alive(a.Member) || c.gen.Has(a.Member) {
			continue
		}
		after := t.boundary // a worker reports this step
		if a.Role == Server {
			after++ // the new workers still pull the boundary's version from it
		}
		if t.forced() || cut && a.Role == Worker {
			after = 0 // nobody waits for it
		}
		c.leavers = append(c.leavers, leaver{a.Member, after, c.gen.Number})
	}
}

// dismissLeavers sends those away whom nobody needs any more.
func (c *Controller) dismissLeavers() {
	rest := c.leavers[:0]
	for _, l := range c.leavers {
		if c.writing(l.member) || !c.released(l) {
			rest = append(rest, l)
			continue
		}
		c.dismiss(l.member, "no longer part of the job")
	}
	c.leavers = rest
}

// released reports whether nobody waits for a leaver any more: a worker has
// reported its last step, and the new workers have pulled from a server.
func (c *Controller) released(l leaver) bool {
	if c.cfg.Mode != BSP || l.after <= 0 || c.gen.Number != l.gen {
		return true
	}
	if l.member.Role == Worker {
		p := c.peers[l.member]
		return p == nil || p.done >= l.after
	}
	if c.step >= c.cfg.Steps {
		return true
	}
	for _, a := range c.gen.Workers {
		if p := c.peers[a.Member]; p != nil && (p.doneGen != l.gen || p.done < l.after) {
			return false
		}
	}
	return true
}
