package elastic

// stopping is the phase in which the old members begin to stop. Without common
// steps the workers drain first, so that no push is on some pieces only; after
// the loss of a server their pushes are void.
func (c *Controller) stopping() Phase {
	if c.cfg.Mode != BSP && c.next.source != FromCheckpoint {
		return phaseDrain
	}
	return phaseHalt
}

// enterDrain tells the old workers to stop. They answer once every piece has
// acknowledged the push under way, if there is one.
func (c *Controller) enterDrain() {
	for _, p := range c.sorted() {
		if p.hello && c.gen.Rank(p.Member) >= 0 {
			c.next.waiting[p.Member] = true
			c.halt(p)
		}
	}
}

// enterHalt tells the old servers to stop, and the workers unless they have. The
// servers answer with the lowest version they hold, if that still counts.
func (c *Controller) enterHalt() {
	drained := c.stopping() == phaseDrain
	for _, p := range c.sorted() {
		if !p.hello || !c.gen.Has(p.Member) || p.Role == Worker && drained {
			continue
		}
		if p.Role == Server && c.next.source != FromCheckpoint {
			c.next.waiting[p.Member] = true
		}
		c.halt(p)
	}
}

func (c *Controller) halt(p *peer) {
	c.send(Message{Kind: Halt, To: p.Member, Gen: c.gen.Number, Source: c.next.source})
}

func (c *Controller) halted(m Message) {
	t := c.next
	if t == nil || c.gen == nil || m.Gen != c.gen.Number {
		return
	}
	if m.From.Role == Worker {
		c.arrived(phaseDrain, m)
		return
	}
	if t.phase == phaseHalt && t.waiting[m.From] && m.Step != NoVersion {
		t.versions = append(t.versions, m.Step)
	}
	c.arrived(phaseHalt, m)
}

// stopped goes on once the old members stand still.
func (c *Controller) stopped() {
	c.dismissUnwanted()
	switch t := c.next; {
	case t.paused:
		c.savePaused()
	case t.source == FromPeers:
		c.enter(phaseSwitch)
	case t.source == FromCheckpoint:
		c.enter(phaseVerify)
	default:
		c.enter(phaseLaunch)
	}
}

// dismissUnwanted sends away, once all stand still, those who asked to leave.
func (c *Controller) dismissUnwanted() {
	for _, p := range c.sorted() {
		if c.unwanted[p.Member] && !c.next.gen.Has(p.Member) {
			c.dismiss(p.Member, "it asked to leave")
		}
	}
}

// save halts the workers for a checkpoint. Without common steps the pieces agree
// only when no push is under way, and only then does the ledger say exactly which
// examples they have seen.
func (c *Controller) save() {
	c.next = &transition{gen: c.gen, source: FromSelf, halt: true, saves: true, reason: "checkpoint"}
	c.enter(phaseDrain)
}

// enterSave has the servers pin what they hold. They have when they say Armed;
// the writing goes on in the background.
func (c *Controller) enterSave() {
	c.rearm()
	for _, a := range c.gen.Servers {
		if c.unarmed(a.Member) {
			c.next.waiting[a.Member] = true
		}
	}
}

// resumeSaved lets the workers go on after a save. They have dropped their chunks
// and ask anew; those that evaluate take that up again.
func (c *Controller) resumeSaved() {
	c.next = nil
	for _, m := range c.holders() {
		c.async.ledger.Return(m.String())
		delete(c.async.held, m)
	}
	c.async.waiting = nil
	for _, a := range c.gen.Workers {
		if c.alive(a.Member) {
			c.send(Message{Kind: Resume, To: a.Member, Gen: c.gen.Number})
		}
	}
	c.serveWork()
	c.settle()
}
