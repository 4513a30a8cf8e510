package elastic

import (
	"fmt"
	"slices"
	"sort"

	"optimus/data/order"
	"optimus/paa"
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
	target struct{ servers, workers int } // what the job should have

	number      int    // highest generation number used
	incarnation uint64 // highest incarnation used

	step    int64 // last step completed by the job in its surviving history
	shares  map[int64]*shares
	evals   map[int64]*shares
	evalled int64 // newest version whose evaluation is complete
	lease   leases
	leavers []leaver
	queue   []command // waits for the transition under way

	skips    int // steps skipped in a row
	restarts int // losses since the last completed step

	start    Source          // of the first generation
	unwanted map[Member]bool // workers that asked to leave

	snaps      []*snapshot
	snapshotID int64
	newest     *Newest // last checkpoint made whole

	async async

	out Ready
}

// Newest names a checkpoint that can be restored.
type Newest struct {
	Step   int64
	Dir    string
	Ledger *order.Ledger
}

// peer is a member that was launched and is not known to be gone.
type peer struct {
	Address
	pid     int
	hello   bool
	heard   int // tick of its last message
	born    int // tick of its launch
	done    int64
	doneGen int
	idle    bool // its last share was empty
}

type leaver struct {
	member Member
	after  int64 // it may go once all workers have done this step
	gen    int   // under this generation
}

// shares collects what the workers of one generation report of one step.
type shares struct {
	gen     int
	reports map[Member]Report
}

type command struct {
	id               int64
	servers, workers int
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
	if p < 1 || w < 1 {
		return fmt.Errorf("start job: %d servers and %d workers: want at least one of each", p, w)
	}
	c.target.servers, c.target.workers = p, w
	c.journal(Entry{Kind: "command", Servers: p, Workers: w})
	t := &transition{source: FromInit}
	var ledger *order.Ledger
	if from != nil {
		t.source, t.boundary, t.checkpoint = FromCheckpoint, from.Step, from.Dir
		c.step, c.newest, ledger = from.Step, from, from.Ledger
		c.evalled = from.Step // its evaluation, if due, was reported by the run before
	}
	c.startAsync(ledger)
	if c.cfg.Mode == BSP && c.step >= c.cfg.Steps {
		return fmt.Errorf("start job: the checkpoint is at step %d and the job ends at step %d: nothing is left to train; raise the epochs or steps", c.step, c.cfg.Steps)
	}
	c.start = t.source
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
			c.lost(p.Member, fmt.Sprintf("did not start within %d ticks", c.cfg.StartLimit))
		case p.hello && c.now-p.heard > c.cfg.Detect:
			c.lost(p.Member, fmt.Sprintf("not heard of for %d ticks", c.now-p.heard))
		}
	}
	c.checkDeadline()
	c.tickLease()
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
		c.wantChunk(p, m)
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

// Rescale asks for other counts; 0 keeps one. The answer is an Answered event
// with the command's id.
func (c *Controller) Rescale(id int64, servers, workers int) {
	if c.state.Final() || c.state == Finishing {
		c.answer(id, fmt.Sprintf("the job is %s: nothing to rescale", c.state))
		return
	}
	if servers < 0 || workers < 0 {
		c.answer(id, fmt.Sprintf("%d servers and %d workers: want positive numbers", servers, workers))
		return
	}
	if servers == 0 {
		servers = c.target.servers
	}
	if workers == 0 {
		workers = c.target.workers
	}
	if workers < c.cfg.MinWorkers {
		c.answer(id, fmt.Sprintf("%d workers: the job's minimum is %d", workers, c.cfg.MinWorkers))
		return
	}
	c.queue = append(c.queue, command{id, servers, workers})
	c.advance()
}

// Stop ends the job: after a checkpoint of the present state if save is set,
// else at once.
func (c *Controller) Stop(save bool, reason string) {
	if c.state.Final() {
		return
	}
	if !save || c.gen == nil || c.next != nil && c.next.forced() {
		c.finish(Stopped, reason)
		return
	}
	c.setState(Finishing, reason)
	if c.next != nil && c.next.phase != phaseSwitch {
		c.abort(reason, false)
	}
	c.requestSnapshot(0, Stopped)
}

func (c *Controller) answer(id int64, problem string) {
	if id != 0 {
		c.event(Event{Kind: Answered, Command: id, Reason: problem})
	}
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

// sorted returns the peers in a fixed order: servers first, then by id.
func (c *Controller) sorted() []*peer {
	list := make([]*peer, 0, len(c.peers))
	for _, p := range c.peers {
		list = append(list, p)
	}
	sort.Slice(list, func(i, j int) bool {
		a, b := list[i], list[j]
		if a.Role != b.Role {
			return a.Role < b.Role
		}
		if a.ID != b.ID {
			return a.ID < b.ID
		}
		return a.Incarnation < b.Incarnation
	})
	return list
}

// broadcast sends m to every peer that has said Hello.
func (c *Controller) broadcast(m Message) {
	for _, p := range c.sorted() {
		if p.hello {
			m.To = p.Member
			c.send(m)
		}
	}
}

// launch starts a new member.
func (c *Controller) launch(role Role, id int) Address {
	c.incarnation++
	m := Member{Role: role, ID: id, Incarnation: c.incarnation}
	c.peers[m] = &peer{Address: Address{Member: m}, born: c.now, heard: c.now}
	c.out.Launch = append(c.out.Launch, m)
	return Address{Member: m}
}

// dismiss sends a member away and forgets it.
func (c *Controller) dismiss(m Member, reason string) {
	if p := c.peers[m]; p != nil {
		if p.hello {
			c.send(Message{Kind: Dismiss, To: m, Reason: reason})
		} else {
			c.out.Kill = append(c.out.Kill, Kill{m, reason})
		}
		delete(c.peers, m)
	}
}

// membership chooses the members of a generation of p servers and w workers:
// those of the ruling one that are alive, lowest ids first, then newcomers.
func (c *Controller) membership(p, w int) (servers, workers []Address) {
	if c.gen != nil {
		for _, a := range c.gen.Servers {
			if len(servers) < p && c.alive(a.Member) && a.ID == len(servers) {
				servers = append(servers, a)
			} else if len(servers) < p {
				servers = append(servers, c.launch(Server, len(servers)))
			}
		}
		for _, a := range c.gen.Workers {
			if len(workers) < w && c.stays(a.Member) {
				workers = append(workers, a)
			}
		}
	}
	for len(servers) < p {
		servers = append(servers, c.launch(Server, len(servers)))
	}
	for id := 0; len(workers) < w; id++ {
		taken := func(a Address) bool { return a.ID == id }
		if !slices.ContainsFunc(workers, taken) {
			workers = append(workers, c.launch(Worker, id))
		}
	}
	slices.SortFunc(workers, func(a, b Address) int { return a.ID - b.ID })
	return servers, workers
}

// assign gives the next generation its assignment.
func (c *Controller) assign(g *Generation, source Source) (err error) {
	p := len(g.Servers)
	if c.gen == nil {
		g.Blocks, err = paa.Assign(c.cfg.Rule, c.cfg.Sizes, p)
	} else if p == len(c.gen.Servers) {
		g.Blocks = c.gen.Blocks
	} else {
		stay := make([]int, min(p, len(c.gen.Servers)))
		for i := range stay {
			stay[i] = i
		}
		g.Blocks, _, err = paa.Reassign(c.gen.Blocks, c.cfg.Sizes, stay, p)
	}
	if err != nil {
		return err
	}
	g.Aux, err = paa.Whole(c.cfg.Aux, p)
	return err
}
