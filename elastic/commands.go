package elastic

import "fmt"

// counts is a number of servers and one of workers.
type counts struct{ servers, workers int }

// command is a wish for other counts; 0 keeps what the job should have when the
// command's turn comes.
type command struct {
	id               int64
	servers, workers int
}

// Rescale asks for other counts; 0 keeps one. The answer is an Answered event
// with the command's id.
func (c *Controller) Rescale(id int64, servers, workers int) {
	switch {
	case c.state.Final() || c.state == Finishing:
		c.answer(id, fmt.Sprintf("the job is %s: nothing to rescale", c.state))
	case servers < 0 || workers < 0:
		c.answer(id, fmt.Sprintf("%d servers and %d workers: want positive numbers", servers, workers))
	case workers > 0 && workers < c.cfg.MinWorkers:
		c.answer(id, fmt.Sprintf("%d workers: the job's minimum is %d", workers, c.cfg.MinWorkers))
	default:
		c.queue = append(c.queue, command{id, servers, workers})
		c.advance()
	}
}

// Stop ends the job: after a checkpoint of the present state if save is set,
// else at once.
func (c *Controller) Stop(save bool, reason string) {
	t := c.next
	switch {
	case c.state.Final():
		return
	case !save, c.gen == nil, t != nil && t.paused && t.source == FromCheckpoint:
		c.finish(Stopped, reason) // there is nothing newer than the last checkpoint
		return
	case c.state == Finishing:
		return // its last checkpoint is on its way
	}
	if t != nil && t.phase != phaseSwitch && !t.forced() {
		c.abort(reason, false)
	}
	c.setState(Finishing, reason)
	c.requestSnapshot(0, Stopped)
}

func (c *Controller) answer(id int64, problem string) {
	if id != 0 {
		c.event(Event{Kind: Answered, Command: id, Reason: problem})
	}
}

// advance takes up the next command, or repairs the membership, when nothing
// else is under way.
func (c *Controller) advance() {
	switch {
	case c.state.Final() || c.state == Finishing || c.gen == nil:
		return
	case c.next != nil && c.next.paused && len(c.queue) > 0:
		c.unpause()
		return
	case c.next != nil || len(c.leavers) > 0:
		return
	case c.target.workers < c.cfg.MinWorkers && c.staying() < c.cfg.MinWorkers && len(c.queue) == 0:
		c.recover(recovery{reason: "a worker left", pause: true})
		return
	}
	c.target.workers = max(c.target.workers, c.cfg.MinWorkers)
	var cmd command
	before := c.target
	for len(c.queue) > 0 {
		cmd, c.queue = c.queue[0], c.queue[1:]
		c.setTarget(cmd)
		if !c.incomplete() {
			c.answer(cmd.id, "")
			cmd, before = command{}, c.target
			continue
		}
		break
	}
	if !c.incomplete() {
		return
	}
	now, want := c.counts(), c.target
	c.setState(Rescaling, fmt.Sprintf("from (%d,%d) to (%d,%d)", now[0], now[1], want.servers, want.workers))
	t := &transition{source: FromPeers, command: cmd, before: before, reason: "rescale"}
	if err := c.begin(t, want.servers, want.workers); err != nil {
		c.answer(cmd.id, err.Error())
		c.fail(err.Error())
	}
}

// incomplete reports whether the ruling membership is not what it should be.
func (c *Controller) incomplete() bool {
	if c.counts() != [2]int{c.target.servers, c.target.workers} {
		return true
	}
	for _, a := range c.gen.Workers {
		if c.unwanted[a.Member] {
			return true
		}
	}
	return false
}

func (c *Controller) setTarget(cmd command) {
	want := c.target
	if cmd.servers > 0 {
		want.servers = cmd.servers
	}
	if cmd.workers > 0 {
		want.workers = cmd.workers
	}
	if want != c.target {
		c.target = want
		c.journal(Entry{Kind: "command", Servers: want.servers, Workers: want.workers})
	}
}

// unpause goes on with as many workers as the next command says. The command
// stays in the queue, for its servers, and is answered from there.
func (c *Controller) unpause() {
	cmd := c.queue[0]
	if max(cmd.workers, c.target.workers) < c.cfg.MinWorkers {
		c.queue = c.queue[1:]
		c.answer(cmd.id, fmt.Sprintf("the job is paused: it has %d workers and needs %d; ask for so many workers first", c.target.workers, c.cfg.MinWorkers))
		c.advance()
		return
	}
	c.setTarget(command{workers: cmd.workers})
	c.recover(recovery{reason: "workers were added to the paused job"})
}
