package elastic

import (
	"fmt"
	"time"

	"optimus/data/order"
)

// Controller is the deterministic coordinator of one job. Feed it with Receive,
// Tick, Exited and the commands, and after each call carry out Take. It is not
// safe for concurrent use.
type Controller struct {
	cfg    Config
	state  State
	reason string
	now    int // ticks since the start

	gen    *Generation // the one that rules; nil before the first commit
	prev   *Generation // the one before, whose last reports may still come
	next   *transition // the one under way, or nil
	peers  map[Member]*peer
	target counts // what the job should have

	number      int    // highest generation number used
	incarnation uint64 // highest incarnation used

	step    int64 // last step completed by the job in its surviving history
	shares  map[int64]*shares
	evals   map[int64]*shares
	evalled int64 // newest version whose evaluation is complete
	lease   leases
	leavers []leaver
	queue   []command // waits for the transition under way

	skips    int   // steps skipped in a row
	skipped  int64 // the last of them
	restarts int   // losses since the last completed step

	start    Source          // of the first generation
	unwanted map[Member]bool // workers that asked to leave

	snaps      []*snapshot
	snapshotID int64
	periodic   int64   // step of the last regular checkpoint that was armed
	newest     *Newest // the checkpoint with the highest id
	newestID   int64

	async async

	out Ready
}

// Newest names a checkpoint that can be restored.
type Newest struct {
	Step   int64
	Dir    string
	Ledger *order.Ledger
}

// shares collects what the workers of one generation report of one step.
type shares struct {
	gen     int
	reports map[Member]Report
}

// NewController returns a controller that has not started.
func NewController(cfg Config) (*Controller, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	return &Controller{
		cfg: cfg, state: Starting,
		peers:       map[Member]*peer{},
		shares:      map[int64]*shares{},
		evals:       map[int64]*shares{},
		unwanted:    map[Member]bool{},
		number:      cfg.FirstGeneration - 1,
		incarnation: cfg.FirstIncarnation - 1,
		snapshotID:  cfg.FirstSnapshot - 1,
		lease:       leases{window: 2},
	}, nil
}

// Start launches the first generation with p servers and w workers. from is nil
// for initial values, else the checkpoint to go on from.
func (c *Controller) Start(p, w int, from *Newest) error {
	if p < 1 || w < c.cfg.MinWorkers {
		return fmt.Errorf("start job: %d servers and %d workers: want at least 1 and %d", p, w, c.cfg.MinWorkers)
	}
	t := &transition{source: FromInit}
	if from != nil {
		t.source, t.boundary, t.checkpoint = FromCheckpoint, from.Step, from.Dir
		c.newest, c.step, c.periodic = from, from.Step, from.Step
		c.evalled = from.Step // its evaluation, if due, was reported by the run before
	}
	if c.cfg.Mode == BSP && c.step >= c.cfg.Steps {
		return fmt.Errorf("start job: the checkpoint is at step %d and the job ends at step %d: nothing is left to train; raise the epochs or steps", c.step, c.cfg.Steps)
	}
	if err := c.startAsync(from); err != nil {
		return fmt.Errorf("start job: %w", err)
	}
	c.start = t.source
	c.setTarget(command{servers: p, workers: w})
	return c.begin(t, p, w)
}

// Take returns what is to be done and forgets it.
func (c *Controller) Take() Ready {
	out := c.out
	c.out = Ready{}
	return out
}

// State returns what the job does and why.
func (c *Controller) State() (State, string) { return c.state, c.reason }

// Generation returns the ruling generation, nil before the first.
func (c *Controller) Generation() *Generation { return c.gen }

// Done returns the last step of the surviving history.
func (c *Controller) Done() int64 { return c.step }

// Tick tells that one tick has passed.
func (c *Controller) Tick() {
	c.now++
	if c.state.Final() {
		return
	}
	for _, p := range c.sorted() {
		if c.peers[p.Member] == nil {
			continue // gone through an earlier loss in this loop
		}
		switch {
		case !p.hello && c.now-p.born > c.cfg.StartLimit:
			c.lost(p.Member, fmt.Sprintf("did not start within %s", c.span(c.cfg.StartLimit)))
		case p.hello && c.now-p.heard > c.cfg.Detect:
			c.lost(p.Member, fmt.Sprintf("not heard of for %s", c.span(c.now-p.heard)))
		}
	}
	c.checkDeadline()
	c.tickLease()
}

// span is a number of ticks for people.
func (c *Controller) span(ticks int) string {
	if c.cfg.Tick <= 0 {
		return fmt.Sprintf("%d ticks", ticks)
	}
	return fmt.Sprintf("%.1f s", (time.Duration(ticks) * c.cfg.Tick).Seconds())
}

// Receive takes a message of a member.
func (c *Controller) Receive(m Message) {
	p := c.peers[m.From]
	if p == nil || c.state.Final() {
		// A member that was replaced, or of another run: it must not go on.
		c.send(Message{Kind: Dismiss, To: m.From, Reason: "this incarnation is not part of the job (any more)"})
		return
	}
	p.heard = c.now
	switch m.Kind {
	case Hello:
		p.hello, p.Addr, p.pid = true, m.Addr, m.PID
		c.arrived(phaseLaunch, m)
	case Prepared:
		c.arrived(phasePrepare, m)
	case Halted:
		c.halted(m)
	case Extracted, Received, Moved:
		c.transferred(m)
	case Progress:
		c.progress(p, m)
	case Evaluated:
		c.evaluated(m)
	case Vetoed:
		c.vetoed(m)
	case Armed, Snapshotted:
		c.snapshotStep(m)
	case WantChunk:
		c.wantChunk(m)
	case Leaving:
		c.leaving(m)
	case Failed:
		c.fail(fmt.Sprintf("%s: %s", m.From, m.Reason))
	}
}

// Exited tells that a member's process or goroutine has ended.
func (c *Controller) Exited(m Member, cause string) {
	if c.peers[m] != nil && !c.state.Final() {
		c.lost(m, cause)
	}
	delete(c.peers, m)
}

func (c *Controller) send(m Message)      { c.out.Messages = append(c.out.Messages, m) }
func (c *Controller) event(e Event)       { c.out.Events = append(c.out.Events, e) }
func (c *Controller) journal(e Entry)     { c.out.Journal = append(c.out.Journal, e) }
func (c *Controller) alive(m Member) bool { return c.peers[m] != nil }

// stays reports whether a member can belong to the next generation.
func (c *Controller) stays(m Member) bool { return c.alive(m) && !c.unwanted[m] }

func (c *Controller) setState(s State, reason string) {
	if c.state == s && c.reason == reason {
		return
	}
	c.state, c.reason = s, reason
	c.event(Event{Kind: StateChanged, State: s, Reason: reason})
}
