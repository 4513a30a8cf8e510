package elastic

import (
	"fmt"
	"slices"
)

// recovery says why the members are halted and what comes after.
type recovery struct {
	reason string
	skip   int64 // a vetoed step, left out
	pause  bool  // do not replace the workers that are missing
	retry  bool  // the transition under way is not to blame
}

// lost handles the end of a member, by design.md section 5:
//
//	newcomer before the commit         back to the ruling generation
//	old owner, its pieces all arrived  commit forward
//	old owner otherwise                last checkpoint
//	worker                             its step is redone without it, then a replacement joins
func (c *Controller) lost(m Member, cause string) {
	c.forgetMember(m)
	c.out.Kill = append(c.out.Kill, Kill{m, cause})
	c.journal(Entry{Kind: "lost", Member: &m, Reason: cause})
	c.event(Event{Kind: MemberLost, Member: m, Reason: cause})
	c.dropSnapshotsOf(m)
	for i, l := range c.leavers {
		if l.member == m {
			c.leavers = append(c.leavers[:i:i], c.leavers[i+1:]...)
			break
		}
	}
	old := c.gen != nil && c.gen.Has(m)
	t := c.next
	if !old && (t == nil || !t.gen.Has(m)) {
		c.rearm()
		c.settle()
		return
	}
	reason := fmt.Sprintf("%s was lost (%s)", m, cause)
	switch {
	case t == nil, t.source != FromPeers, t.halt && t.phase != phaseSwitch, t.phase == phaseSwitch && !c.superfluous(m):
		c.setback(recovery{reason: reason})
	case t.phase == phaseSwitch:
		delete(t.waiting, m)
		c.tryCommit()
	case old:
		c.setback(recovery{reason: reason})
	default: // a newcomer, before the switch: nothing has changed yet
		if c.exhausted(reason) {
			return
		}
		c.abort(reason, false)
		c.resumed()
		c.settle()
	}
}

// exhausted counts a setback and reports whether the job has ended over it.
func (c *Controller) exhausted(reason string) bool {
	if c.restarts++; c.restarts > c.cfg.RestartLimit {
		c.fail(fmt.Sprintf("%s; %d setbacks without one step in between", reason, c.restarts))
		return true
	}
	return false
}

// setback recovers, unless that has been tried too often.
func (c *Controller) setback(r recovery) {
	if !c.exhausted(r.reason) {
		c.recover(r)
	}
}

// superfluous reports whether the switch under way can do without an old
// member: a leaving server whose pieces have all arrived, or a leaving worker
// that has done its part.
func (c *Controller) superfluous(m Member) bool {
	t := c.next
	if t.gen.Has(m) {
		return false
	}
	if m.Role == Worker {
		if c.cfg.Mode != BSP {
			return true // drained
		}
		s := c.shares[t.boundary]
		_, reported := s.get(m)
		return (c.step >= t.boundary || reported) && !c.evaluationDue(t.boundary)
	}
	from := c.gen.Index(m)
	if t.from[from] {
		return false
	}
	for pair := range t.pairs {
		if pair[0] == from {
			return false
		}
	}
	return true
}

// recover halts everybody and goes on from the newest version that all servers
// hold, or from the newest checkpoint that is whole if one of them is gone.
func (c *Controller) recover(r recovery) {
	if t := c.next; t != nil { // what the transition given up was to do is still to be done
		r.skip = max(r.skip, t.skip)
		r.pause = r.pause || t.paused && c.target.workers < c.cfg.MinWorkers
	}
	c.abort(r.reason, r.retry)
	if c.gen == nil {
		c.restart(r)
		return
	}
	t := &transition{source: FromSelf, halt: true, skip: r.skip, reason: r.reason}
	if c.serverGone() {
		written := func(sn *snapshot) bool { return sn.whole } // its manifest is being written
		if c.newest == nil && !slices.ContainsFunc(c.snaps, written) {
			c.fail(r.reason + "; its pieces had no other copy and " + c.unsaved())
			return
		}
		t.source, t.skip = FromCheckpoint, 0
		c.dropSnapshots(t)
		c.reopen()
	}
	if c.state != Finishing {
		c.setState(Recovering, r.reason)
	}
	workers := c.staying()
	if workers < c.cfg.MinWorkers && r.pause {
		t.paused = true
		if c.state != Finishing {
			c.setState(Paused, fmt.Sprintf("%s: %d workers, fewer than the minimum of %d; add some with `optimus rescale JOB --workers N`", r.reason, workers, c.cfg.MinWorkers))
		}
	} else if workers < c.cfg.MinWorkers {
		workers = max(c.cfg.MinWorkers, c.target.workers)
	}
	if err := c.begin(t, len(c.gen.Servers), workers); err != nil {
		c.fail(err.Error())
		return
	}
	c.advance() // a paused job may have a command waiting
}

// unsaved says why there is no checkpoint to go back to, and what to do.
func (c *Controller) unsaved() string {
	switch n := c.cfg.CheckpointEvery; {
	case n <= 0:
		return "no checkpoint was taken yet: train with --checkpoint-every N"
	case n == 1:
		return "no checkpoint was taken to its end yet: start it anew"
	default:
		return fmt.Sprintf("no checkpoint was taken to its end yet: start it anew with --checkpoint-every below %d", n)
	}
}

// staying counts the workers that can go on.
func (c *Controller) staying() (n int) {
	for _, a := range c.gen.Workers {
		if c.stays(a.Member) {
			n++
		}
	}
	return n
}

// reopen takes back the end of a job that has to train its last steps again.
func (c *Controller) reopen() {
	before := len(c.snaps)
	c.snaps = slices.DeleteFunc(c.snaps, func(sn *snapshot) bool { return sn.end == Finished })
	if len(c.snaps) < before && c.state == Finishing {
		c.state = Recovering // told by the caller
	}
}

// restart begins the first generation anew after a loss during the start.
func (c *Controller) restart(r recovery) {
	t := &transition{source: c.start, reason: r.reason}
	if c.start == FromCheckpoint {
		t.boundary, t.checkpoint = c.newest.Step, c.newest.Dir
	}
	c.target.workers = max(c.target.workers, c.cfg.MinWorkers) // one may have left before it began
	if err := c.begin(t, c.target.servers, c.target.workers); err != nil {
		c.fail(err.Error())
	}
}

// CheckpointFound answers CheckpointWanted of generation gen: the newest
// checkpoint of this job that is whole to the last byte, or what is wrong with
// those that there are.
func (c *Controller) CheckpointFound(gen int, found *Newest, problem string) {
	t := c.next
	if t == nil || t.phase != phaseVerify || t.gen.Number != gen {
		return // asked for a transition that was given up
	}
	if found == nil {
		c.fail(fmt.Sprintf("%s; its pieces had no other copy and no checkpoint is whole: %s", t.reason, problem))
		return
	}
	c.newest, t.restores = found, found
	t.boundary, t.checkpoint = found.Step, found.Dir
	c.enter(phaseLaunch)
}

// vetoed handles a non-finite value that a server found. All servers go back to
// the version before, which becomes the vetoed step's: its batch is left out.
func (c *Controller) vetoed(m Message) {
	who := fmt.Sprintf("worker %d", m.Culprit)
	if m.Culprit < 0 {
		who = "the sum over the workers"
	}
	reason := fmt.Sprintf("step %d: %s pushed a non-finite gradient of block %s", m.Step, who, m.Block)
	if c.cfg.Mode != BSP {
		c.event(Event{Kind: StepSkipped, Gen: m.Gen, Step: m.Step, Reason: reason, Member: m.From})
		c.countSkip(reason)
		return
	}
	if t := c.next; c.gen == nil || m.Gen != c.gen.Number || t != nil && t.halt && !t.stoodStill(m.From) {
		return // settled, or found again when the step is redone
	}
	if m.Step != c.skipped+1 {
		c.skips = 0
	}
	c.skipped = m.Step
	if !c.countSkip(reason) {
		c.recover(recovery{reason: reason, skip: m.Step, retry: true})
	}
}

// stoodStill reports whether a server has answered a halt with the version that it
// has or has promised. If it vetoes a step after that, it is the promised one: all
// servers had voted on its norm, and its result is not finite.
func (t *transition) stoodStill(m Member) bool {
	return t.source == FromSelf && (t.phase != phaseHalt || !t.waiting[m])
}

// countSkip reports whether the job has ended over it.
func (c *Controller) countSkip(reason string) bool {
	c.skips++
	switch {
	case c.cfg.StopOnNonFinite:
		c.fail(reason)
	case c.skips > c.cfg.SkipLimit:
		c.fail(fmt.Sprintf("%s; %d steps in a row were skipped: lower the learning rate or look at the data", reason, c.skips))
	default:
		return false
	}
	return true
}

// leaving lets a worker go that its owner has asked to leave. The job goes on
// with one worker less; below its minimum it pauses.
func (c *Controller) leaving(m Message) {
	t := c.next
	member := c.gen != nil && c.gen.Rank(m.From) >= 0
	if c.unwanted[m.From] || !member && (t == nil || t.gen.Rank(m.From) < 0) {
		return
	}
	c.unwanted[m.From] = true
	c.journal(Entry{Kind: "command", Servers: c.target.servers, Workers: c.target.workers - 1, Member: &m.From, Reason: "asked to leave"})
	if t != nil && t.phase != phaseSwitch && !t.forced() {
		c.abort(fmt.Sprintf("%s leaves", m.From), true)
	} else if t != nil {
		t.before.workers--
	}
	c.target.workers--
	if member && c.target.workers < c.cfg.MinWorkers && c.staying() < c.cfg.MinWorkers {
		c.recover(recovery{reason: fmt.Sprintf("%s left", m.From), pause: true})
		return
	}
	c.settle()
}

func (c *Controller) fail(reason string) { c.finish(Broken, reason) }

// finish ends the job.
func (c *Controller) finish(s State, reason string) {
	if c.state.Final() {
		return
	}
	t := c.next
	c.next = nil
	c.journal(Entry{Kind: "state", State: s, Step: c.step, Reason: reason})
	c.setState(s, reason)
	if t != nil {
		c.answer(t.command.id, "the job has ended: "+reason)
	}
	for _, cmd := range c.queue {
		c.answer(cmd.id, "the job has ended: "+reason)
	}
	c.queue = nil
	c.endSnapshots(reason)
	for _, p := range c.sorted() {
		c.dismiss(p.Member, reason)
	}
}
