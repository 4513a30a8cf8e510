package elastic

import (
	"fmt"
	"slices"
	"strings"
)

// Phase is where a transition stands.
type Phase string

// The phases. A forced transition begins with those in which the old members
// come to a stop; in modes asp and ssp every other one has them before its switch.
const (
	phaseDrain   Phase = "drain"  // asp, ssp: the workers finish the push under way
	phaseHalt    Phase = "halt"   // the servers take no more pushes
	phaseSave    Phase = "save"   // the servers pin the state of a drained job
	phaseVerify  Phase = "verify" // the shell looks for a checkpoint that is whole
	phaseLaunch  Phase = "launch"
	phasePrepare Phase = "prepare"
	phaseSwitch  Phase = "switch"
	phaseCommit  Phase = "commit"
)

// transition is the passage to generation gen.
type transition struct {
	gen        *Generation
	source     Source
	phase      Phase
	boundary   int64
	rewind     int64
	checkpoint string
	restores   *Newest // the same checkpoint, as it was known when this began
	reason     string  // why it happens, for people
	command    command
	before     counts // what the job should have had before the command

	halt    bool            // the old members have been told to stop (a loss or veto; asp, ssp: a drain)
	skip    int64           // this step was vetoed: its batch is left out
	waiting map[Member]bool // whom the phase waits for
	stalled int             // ticks since somebody answered

	paused    bool            // too few workers: waits for a command or a newcomer
	saves     bool            // asp, ssp: only a checkpoint, after which gen, which rules, goes on
	versions  []int64         // lowest version of each server that halted
	from      map[int]bool    // old servers (index) that still have to report their digest
	pairs     map[[2]int]bool // (from, to) assignment indices that still move pieces
	sumParams uint64          // digest over the old owners
	sumState  uint64
	transfer  Transfer
}

// forced reports whether training stands still for it.
func (t *transition) forced() bool { return t.halt || t.source != FromPeers }

// begin starts a transition to p servers and w workers.
func (c *Controller) begin(t *transition, p, w int) error {
	c.number++
	g := &Generation{Number: c.number, Learned: len(c.cfg.Sizes)}
	t.gen = g
	g.Servers, g.Workers = c.membership(p, w)
	if err := c.assign(g, t.source); err != nil {
		return fmt.Errorf("assign %d blocks to %d servers: %w", len(c.cfg.Sizes), p, err)
	}
	t.transfer = Transfer{Generation: g, From: c.counts(), To: [2]int{p, len(g.Workers)}, Source: t.source, Command: t.command.id}
	c.next = t
	c.journal(Entry{Kind: "prepare", Gen: g.Number, Incarnation: c.incarnation, Generation: g, Source: t.source, Reason: t.reason})
	if t.halt {
		c.enter(c.stopping())
	} else {
		c.enter(phaseLaunch)
	}
	return nil
}

func (c *Controller) counts() [2]int {
	if c.gen == nil {
		return [2]int{}
	}
	return [2]int{len(c.gen.Servers), len(c.gen.Workers)}
}

// enter begins a phase: it says whom the phase waits for and tells them.
func (c *Controller) enter(phase Phase) {
	t := c.next
	t.phase, t.stalled, t.waiting = phase, 0, map[Member]bool{}
	if !t.saves {
		c.event(Event{Kind: PhaseBegan, Gen: t.gen.Number, Phase: phase})
	}
	switch phase {
	case phaseDrain:
		c.enterDrain()
	case phaseHalt:
		c.enterHalt()
	case phaseSave:
		c.enterSave()
	case phaseVerify:
		c.event(Event{Kind: CheckpointWanted, Gen: t.gen.Number})
		return // CheckpointFound goes on
	case phaseLaunch:
		for _, m := range t.members() {
			if p := c.peers[m]; p != nil && !p.hello {
				t.waiting[m] = true
			}
		}
	case phasePrepare:
		c.fillAddresses(t.gen)
		for _, p := range c.involved() {
			t.waiting[p.Member] = true
			c.send(Message{Kind: Prepare, To: p.Member, Gen: t.gen.Number, Old: c.gen, Next: t.gen,
				Source: t.source, Smooth: !t.forced(), Checkpoint: t.checkpoint})
		}
	case phaseSwitch:
		c.enterSwitch()
	case phaseCommit:
		c.commit()
		return
	}
	c.arrived(phase, Message{})
}

// arrived takes the answer of one member; the phase ends with the last.
func (c *Controller) arrived(phase Phase, m Message) {
	t := c.next
	if t == nil || t.phase != phase {
		return
	}
	if phase == phasePrepare && m.Gen != 0 && m.Gen != t.gen.Number {
		return
	}
	if t.waiting[m.From] {
		delete(t.waiting, m.From)
		t.stalled = 0
	}
	if len(t.waiting) > 0 {
		return
	}
	switch {
	case phase == phaseDrain && t.saves:
		c.enter(phaseSave)
	case phase == phaseDrain:
		c.enter(phaseHalt)
	case phase == phaseSave:
		c.resumeSaved()
	case phase == phaseHalt:
		c.stopped()
	case phase == phaseLaunch:
		c.enter(phasePrepare)
	case phase == phasePrepare && c.cfg.Mode != BSP && t.source == FromPeers:
		t.halt = true // no boundary without steps in common: drain, then cut
		c.enter(c.stopping())
	case phase == phasePrepare:
		c.enter(phaseSwitch)
	}
}

// members returns the members of the next generation.
func (t *transition) members() []Member {
	var list []Member
	for _, a := range slices.Concat(t.gen.Servers, t.gen.Workers) {
		list = append(list, a.Member)
	}
	return list
}

// involved returns the peers that the transition concerns: old and new members.
func (c *Controller) involved() []*peer {
	var list []*peer
	for _, p := range c.sorted() {
		if c.next.gen.Has(p.Member) || c.gen != nil && c.gen.Has(p.Member) {
			list = append(list, p)
		}
	}
	return list
}

func (c *Controller) fillAddresses(g *Generation) {
	for _, list := range [][]Address{g.Servers, g.Workers} {
		for i := range list {
			if p := c.peers[list[i].Member]; p != nil {
				list[i].Addr = p.Addr
			}
		}
	}
}

// enterSwitch fixes the boundary and has the servers bring its version to the
// owners of the next generation.
func (c *Controller) enterSwitch() {
	t := c.next
	switch {
	case t.source == FromInit, t.source == FromCheckpoint:
	case c.cfg.Mode != BSP:
		t.boundary = c.step // drained: the number of pushes applied
	case t.halt:
		t.rewind = slices.Min(t.versions)
		t.boundary = max(t.rewind, t.skip)
	default:
		t.boundary = max(c.lease.granted, c.step)
		t.rewind = t.boundary
	}
	t.transfer.Boundary = t.boundary
	t.from, t.pairs = map[int]bool{}, map[[2]int]bool{}
	if t.source == FromPeers {
		for i, a := range c.gen.Servers {
			t.from[i] = true
			t.waiting[a.Member] = true // who stays reports its digest before what it has received
		}
		for _, m := range Moves(c.gen, t.gen) {
			t.pairs[[2]int{m.From, m.To}] = true
			t.transfer.Moves++
		}
	}
	for _, a := range t.gen.Servers {
		t.waiting[a.Member] = true
	}
	c.journal(Entry{Kind: "boundary", Gen: t.gen.Number, Step: t.boundary})
	c.dropSnapshots(t)
	for _, p := range c.involved() {
		c.send(Message{Kind: Switch, To: p.Member, Gen: t.gen.Number, Step: t.boundary, Rewind: t.rewind})
	}
}

// transferred takes the servers' reports of phase switch.
func (c *Controller) transferred(m Message) {
	t := c.next
	if t == nil || t.phase != phaseSwitch || m.Gen != t.gen.Number {
		return
	}
	t.stalled = 0
	switch m.Kind {
	case Extracted:
		if i := c.gen.Index(m.From); i >= 0 && t.from[i] {
			delete(t.from, i)
			t.sumParams += m.Params
			t.sumState += m.State
		}
		if t.gen.Index(m.From) < 0 {
			delete(t.waiting, m.From)
		}
	case Received:
		if i := t.gen.Index(m.From); i >= 0 {
			delete(t.pairs, [2]int{m.Peer, i})
		}
	case Moved:
		if t.waiting[m.From] {
			delete(t.waiting, m.From)
			t.transfer.Elements += m.Elements
			t.transfer.Bytes += m.Bytes
			t.transfer.AuxBytes += m.AuxBytes
			t.transfer.Params += m.Params
			t.transfer.State += m.State
		}
	}
	c.tryCommit()
}

// tryCommit commits once every piece is at its new owner, every digest agrees,
// and nobody needs the old generation's version for an evaluation.
func (c *Controller) tryCommit() {
	t := c.next
	if t == nil || t.phase != phaseSwitch || len(t.waiting) > 0 {
		return
	}
	if !t.forced() && c.evaluationDue(t.boundary) && !c.serverGone() {
		return
	}
	if t.source == FromPeers && (t.sumParams != t.transfer.Params || t.sumState != t.transfer.State) {
		c.setback(recovery{reason: fmt.Sprintf("digests of the moved pieces differ in generation %d", t.gen.Number)})
		return
	}
	c.enter(phaseCommit)
}

// abort gives up the transition under way; its generation never rules. A
// command whose transition is not to blame is tried again.
func (c *Controller) abort(reason string, retry bool) {
	t := c.next
	if t == nil {
		return
	}
	c.next = nil
	if t.saves {
		return // only the workers stand still, and who gives a save up halts them again
	}
	c.journal(Entry{Kind: "abort", Gen: t.gen.Number, Reason: reason})
	c.event(Event{Kind: Aborted, Gen: t.gen.Number, Phase: t.phase, Reason: reason})
	switch {
	case t.command.id == 0:
	case retry:
		c.queue = slices.Insert(c.queue, 0, t.command)
	default:
		n := c.counts()
		c.answer(t.command.id, fmt.Sprintf("given up in phase %s: %s; the job goes on with (%d,%d)", t.phase, reason, n[0], n[1]))
	}
	if t.command.id != 0 {
		c.target = t.before
	}
	for _, m := range t.members() {
		if c.gen == nil || !c.gen.Has(m) {
			c.dismiss(m, "the transition to this generation was given up")
		}
	}
	c.broadcast(Message{Kind: Drop, Gen: t.gen.Number, Reason: reason})
}

// serverGone reports whether a server of the ruling generation is lost.
func (c *Controller) serverGone() bool {
	return slices.ContainsFunc(c.gen.Servers, func(a Address) bool { return !c.alive(a.Member) })
}

// checkDeadline ends a phase that stands still by losing those it waits for. As
// long as the workers train on their way to the boundary nothing stands still,
// however long a step takes.
func (c *Controller) checkDeadline() {
	t := c.next
	if t == nil || t.phase == phaseSwitch && !t.forced() && c.step < t.boundary {
		return
	}
	t.stalled++
	if t.stalled <= c.cfg.PhaseLimit || len(t.waiting) == 0 && t.phase != phaseVerify {
		return
	}
	t.stalled = 0
	if t.phase == phaseVerify {
		c.fail(fmt.Sprintf("%s; no checkpoint was found whole within %s: look at the disk", t.reason, c.span(c.cfg.PhaseLimit)))
		return
	}
	for _, p := range c.sorted() {
		if t.waiting[p.Member] && c.next == t {
			c.lost(p.Member, fmt.Sprintf("did not finish phase %s within %s", t.phase, c.span(c.cfg.PhaseLimit)))
		}
	}
}

// Waiting names the members that the transition under way waits for.
func (c *Controller) Waiting() string {
	switch {
	case c.next == nil:
		return ""
	case c.next.phase == phaseVerify:
		return "phase verify waits for the newest checkpoint to be read and compared with its checksums"
	}
	var names []string
	for _, p := range c.sorted() {
		if c.next.waiting[p.Member] {
			names = append(names, p.Member.String())
		}
	}
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf("phase %s waits for %s", c.next.phase, strings.Join(names, ", "))
}
