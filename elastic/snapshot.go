package elastic

import (
	"encoding/json"
	"fmt"
	"slices"

	"optimus/data/order"
)

// snapshot is a checkpoint in the making: armed at a step that no server has
// passed, pinned by each server when it gets there, written in the background,
// whole once every shard is on disk.
type snapshot struct {
	id       int64
	at       int64
	end      State // the job ends with it in this state; "" if not
	commands []int64
	periodic bool

	gen     int
	servers []Address
	unarmed map[Member]bool
	shards  []json.RawMessage
	left    int // shards still to come
	whole   bool
	ledger  *order.Ledger // asp, ssp: which examples are done
}

// given reports whether sn has been given to the servers.
func (sn *snapshot) given() bool { return sn.servers != nil }

// Checkpoint asks for a checkpoint at the next possible step. The answer is an
// Answered event once it is whole.
func (c *Controller) Checkpoint(id int64) {
	if c.state.Final() || c.state == Finishing {
		c.answer(id, fmt.Sprintf("the job is %s: its last checkpoint is being or has been written", c.state))
		return
	}
	c.requestSnapshot(id, "")
}

func (c *Controller) requestSnapshot(command int64, end State) {
	sn := &snapshot{end: end}
	if command != 0 {
		sn.commands = []int64{command}
	}
	c.addSnapshot(sn)
}

func (c *Controller) addSnapshot(sn *snapshot) {
	c.snapshotID++
	sn.id = c.snapshotID
	c.snaps = append(c.snaps, sn)
	c.arm(sn)
}

// arm gives a snapshot to the servers, unless a boundary is already fixed: then
// the next generation's servers get it. In modes asp and ssp it waits until the
// job stands still.
func (c *Controller) arm(sn *snapshot) {
	if c.gen == nil || c.state.Final() {
		return
	}
	switch t := c.next; {
	case t != nil && (t.paused && t.source == FromSelf && t.phase == phaseHalt && len(t.waiting) == 0 || t.phase == phaseSave):
		if c.cfg.Mode == BSP {
			sn.at = slices.Min(t.versions)
		}
	case t != nil && (t.phase == phaseSwitch || t.forced()):
		return
	case c.cfg.Mode != BSP:
		if t == nil {
			c.save()
		}
		return
	case !sn.periodic:
		sn.at = max(c.lease.granted, c.step)
	}
	sn.gen, sn.servers = c.gen.Number, c.gen.Servers
	sn.shards, sn.left = make([]json.RawMessage, len(sn.servers)), len(sn.servers)
	sn.unarmed = map[Member]bool{}
	if c.cfg.Mode != BSP {
		sn.at = c.step
		var err error
		if sn.ledger, err = c.ledgerNow(); err != nil {
			c.fail(fmt.Sprintf("snapshot %d: %v", sn.id, err))
			return
		}
	}
	c.journal(Entry{Kind: "snapshot", Gen: sn.gen, Step: sn.at, Snapshot: sn.id})
	for _, a := range sn.servers {
		sn.unarmed[a.Member] = true
		c.send(Message{Kind: Snapshot, To: a.Member, Gen: c.gen.Number, ID: sn.id, Step: sn.at})
	}
}

// rearm gives the waiting snapshots to a new generation's servers.
func (c *Controller) rearm() {
	for _, sn := range slices.Clone(c.snaps) {
		if !sn.given() {
			c.arm(sn)
		}
	}
}

// savePaused writes what was asked for from a job that stands still, at the
// version where it stands.
func (c *Controller) savePaused() {
	t := c.next
	if t.source == FromCheckpoint {
		if c.state == Finishing { // nothing is newer than the last checkpoint
			c.finish(Stopped, c.reason)
		}
		return
	}
	if c.cfg.Mode == BSP {
		at := slices.Min(t.versions)
		c.withdraw(func(sn *snapshot) bool { return sn.at > at })
	}
	c.rearm()
}

// schedulePeriodic arms the next regular checkpoint ahead of the workers.
func (c *Controller) schedulePeriodic() {
	n := c.cfg.CheckpointEvery
	if n <= 0 || c.state == Finishing {
		return
	}
	if c.cfg.Mode != BSP {
		waits := func(sn *snapshot) bool { return sn.periodic && !sn.given() }
		if c.step >= c.periodic+n && !slices.ContainsFunc(c.snaps, waits) {
			c.periodic = c.step - c.step%n
			c.addSnapshot(&snapshot{periodic: true})
		}
		return
	}
	if c.periodic > c.step {
		return // one ahead is enough
	}
	now := max(c.lease.granted, c.step) // no server has passed it
	at := max((now+n-1)/n*n, c.periodic+n)
	if at >= c.cfg.Steps {
		return
	}
	c.periodic = at
	c.addSnapshot(&snapshot{at: at, periodic: true})
}

// snapshotBound is the largest step that workers may be allowed: a snapshot
// that a server does not know of yet must not be passed.
func (c *Controller) snapshotBound() int64 {
	bound := c.cfg.Steps
	for _, sn := range c.snaps {
		if sn.end != "" && sn.given() || sn.given() && len(sn.unarmed) > 0 {
			bound = min(bound, sn.at)
		}
		if sn.end != "" && !sn.given() {
			bound = min(bound, c.lease.granted)
		}
	}
	return bound
}

func (c *Controller) snapshotStep(m Message) {
	i := slices.IndexFunc(c.snaps, func(sn *snapshot) bool { return sn.id == m.ID && sn.gen == m.Gen })
	if i < 0 {
		return
	}
	sn := c.snaps[i]
	switch {
	case m.Kind == Armed:
		delete(sn.unarmed, m.From)
		if !c.unarmed(m.From) {
			c.arrived(phaseSave, m)
		}
		c.grant()
	case m.Reason != "":
		c.SnapshotCommitted(sn.id, "", fmt.Sprintf("%s: %s", m.From, m.Reason))
	default:
		at := position(sn.servers, m.From)
		if at < 0 || sn.shards[at] != nil {
			return
		}
		sn.shards[at] = m.Shard
		if sn.left--; sn.left == 0 {
			sn.whole = true
			taken := &SnapshotTaken{ID: sn.id, Step: sn.at, Gen: sn.gen, Shards: sn.shards, Ledger: sn.ledger}
			c.event(Event{Kind: SnapshotWhole, Gen: sn.gen, Step: sn.at, Snapshot: taken})
		}
		c.settle()
	}
}

// SnapshotCommitted tells that the manifest of a snapshot is on disk in dir, or
// what prevented it.
func (c *Controller) SnapshotCommitted(id int64, dir, problem string) {
	i := slices.IndexFunc(c.snaps, func(sn *snapshot) bool { return sn.id == id })
	if i < 0 || c.state.Final() {
		return
	}
	sn := c.snaps[i]
	c.snaps = slices.Delete(c.snaps, i, i+1)
	for _, cmd := range sn.commands {
		c.answer(cmd, problem)
	}
	if problem == "" && sn.id > c.newestID { // a later one may have been quicker
		c.newestID = sn.id
		c.newest = &Newest{Step: sn.at, Dir: dir, Ledger: sn.ledger}
		c.journal(Entry{Kind: "checkpoint", Step: sn.at, Snapshot: sn.id, Reason: dir})
	}
	if problem != "" {
		c.event(Event{Kind: SnapshotLost, Gen: sn.gen, Step: sn.at, Reason: problem})
	}
	switch {
	case sn.end == "":
		c.grant()
		c.settle()
	case problem != "":
		c.fail("the last checkpoint could not be written: " + problem)
	default:
		if sn.end == Finished {
			c.reason = fmt.Sprintf("step %d is done", c.step)
		}
		c.finish(sn.end, c.reason)
	}
}

// writing reports whether a server still owes a shard.
func (c *Controller) writing(m Member) bool {
	for _, sn := range c.snaps {
		if at := position(sn.servers, m); at >= 0 && !sn.whole && sn.shards[at] == nil {
			return true
		}
	}
	return false
}

// unarmed reports whether a server has yet to say that it knows of a snapshot.
func (c *Controller) unarmed(m Member) bool {
	return slices.ContainsFunc(c.snaps, func(sn *snapshot) bool { return sn.unarmed[m] })
}

// dropSnapshots takes back those that lie beyond the version to which a
// transition takes its servers; periodic ones are armed again on their way.
func (c *Controller) dropSnapshots(t *transition) {
	c.withdraw(func(sn *snapshot) bool {
		return t.source == FromCheckpoint || sn.at > t.rewind && c.cfg.Mode == BSP
	})
}

// dropSnapshotsOf takes back those that a lost server cannot finish.
func (c *Controller) dropSnapshotsOf(m Member) {
	c.withdraw(func(sn *snapshot) bool {
		at := position(sn.servers, m)
		return at >= 0 && sn.shards[at] == nil
	})
}

func (c *Controller) withdraw(which func(*snapshot) bool) {
	var rest []*snapshot
	for _, sn := range c.snaps {
		if !sn.given() || sn.whole || !which(sn) {
			rest = append(rest, sn)
			continue
		}
		if sn.periodic {
			c.periodic = min(c.periodic, sn.at-c.cfg.CheckpointEvery)
		} else {
			c.snapshotID++ // late shards of the old id must not be mistaken for new ones
			rest = append(rest, &snapshot{id: c.snapshotID, end: sn.end, commands: sn.commands})
		}
	}
	c.snaps = rest
}

func (c *Controller) endSnapshots(reason string) {
	for _, sn := range c.snaps {
		for _, cmd := range sn.commands {
			c.answer(cmd, "the job has ended: "+reason)
		}
	}
	c.snaps = nil
}
