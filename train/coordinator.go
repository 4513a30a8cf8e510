package train

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"optimus/data/order"
	"optimus/elastic"
	"optimus/elastic/checkpoint"
	"optimus/internal/failure"
	"optimus/internal/rundir"
	"optimus/spec"
)

// coordinator is the shell around the controller: one goroutine that feeds it
// with messages, exits, commands and ticks, and carries out what it says.
type coordinator struct {
	layout  *layout
	task    *Task
	ctl     *elastic.Controller
	journal *rundir.Journal
	starter starter
	rec     *recorder
	log     *slog.Logger
	inputs  chan func()
	done    chan struct{} // closed when the loop has ended

	links   map[elastic.Member]*queue // messages to members that are reachable
	running map[elastic.Member]bool   // launched and not yet ended

	command int64
	answers map[int64]func(error)
	wg      sync.WaitGroup          // goroutines of onDisk
	disk    chan struct{}           // closed when the last of them has ended
	whole   []elastic.SnapshotTaken // wait for the record of their last step
	from    *elastic.Newest         // the checkpoint that the run began from, or nil
	first   int64                   // sequence of the run's first checkpoint
	watch   func(elastic.Event)     // sees every event: the log, and what tests add
	failed  error                   // the journal cannot be written: nothing may be decided any more
}

// starter launches members and ends them.
type starter interface {
	start(m elastic.Member) error
	kill(m elastic.Member)
	close()
}

// post runs fn on the coordinator's goroutine; it reports false once that has
// ended.
func (c *coordinator) post(fn func()) bool {
	select {
	case c.inputs <- fn:
		return true
	case <-c.done:
		return false
	}
}

// run works until the job has ended and its members are gone.
func (c *coordinator) run(ctx context.Context, tick, grace time.Duration) error {
	defer c.wg.Wait()
	defer close(c.done)
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	interrupt := ctx.Done()
	var deadline <-chan time.Time
	c.drain()
	for {
		state, _ := c.ctl.State()
		if c.failed != nil || state.Final() {
			if len(c.running) == 0 {
				return c.failed
			}
			if deadline == nil {
				deadline = time.After(grace)
			}
		}
		select {
		case fn := <-c.inputs:
			fn()
		case <-ticker.C:
			c.ctl.Tick()
			_, why := c.ctl.State()
			c.rec.waiting(c.ctl.Waiting(), why)
		case <-interrupt:
			interrupt = nil
			c.interrupted(context.Cause(ctx))
		case <-deadline:
			for m := range c.running {
				c.log.Warn("member did not leave in time", "member", m.String())
				c.starter.kill(m)
			}
			deadline = time.After(grace)
		}
		c.drain()
	}
}

// interrupted ends the job. That it was asked to end is on record first: what ends
// the process before the last checkpoint is written was asked for as well.
func (c *coordinator) interrupted(cause error) {
	if state, _ := c.ctl.State(); state.Final() {
		return
	}
	if err := c.journal.Append(elastic.Entry{Kind: "stop", Reason: cause.Error()}); err != nil {
		c.log.Warn("the stop is not on record", "error", err)
	}
	c.ctl.Stop(!errors.Is(cause, errAtOnce), cause.Error())
}

// errAtOnce, as a context's cause, ends the job without a checkpoint.
var errAtOnce = errors.New("stopped at once")

// drain carries out what the controller has decided, the journal first.
func (c *coordinator) drain() {
	for c.failed == nil {
		r := c.ctl.Take()
		if len(r.Journal)+len(r.Launch)+len(r.Messages)+len(r.Kill)+len(r.Events) == 0 {
			return
		}
		for _, e := range r.Journal {
			if err := c.journal.Append(e); err != nil {
				c.failed = failure.E("write journal", c.layout.Job.Name, "", err, "free space or choose another state folder, then resume")
				c.endAll()
				return
			}
		}
		for _, e := range r.Events {
			c.event(e)
		}
		c.commitRecorded()
		for _, m := range r.Launch {
			c.launch(m)
		}
		for _, m := range r.Messages {
			c.sendTo(m)
		}
		for _, k := range r.Kill {
			c.log.Info("member is ended", "member", k.Member.String(), "why", k.Reason)
			if c.running[k.Member] {
				c.starter.kill(k.Member)
			}
		}
	}
}

func (c *coordinator) endAll() {
	for m := range c.running {
		c.starter.kill(m)
	}
}

func (c *coordinator) launch(m elastic.Member) {
	c.running[m] = true
	if err := c.starter.start(m); err != nil {
		delete(c.running, m)
		c.log.Error("launch failed", "member", m.String(), "error", err)
		c.ctl.Exited(m, err.Error())
	}
}

// exited is called by the starter, from any goroutine.
func (c *coordinator) exited(m elastic.Member, cause string) {
	c.post(func() {
		delete(c.running, m)
		c.detach(m, nil)
		c.ctl.Exited(m, cause)
	})
}

func (c *coordinator) sendTo(m elastic.Message) {
	if q := c.links[m.To]; q != nil {
		q.push(m)
	}
}

// attach connects a member's link; what it says first is its Hello.
func (c *coordinator) attach(m elastic.Member, q *queue) {
	if old := c.links[m]; old != nil {
		old.close()
	}
	c.links[m] = q
}

// detach ends a member's link; q guards against ending its successor's.
func (c *coordinator) detach(m elastic.Member, q *queue) {
	if have := c.links[m]; have != nil && (q == nil || have == q) {
		have.close()
		delete(c.links, m)
	}
}

// receive takes a member's message, from any goroutine.
func (c *coordinator) receive(m elastic.Message) {
	c.post(func() {
		if m.Kind == elastic.Hello {
			c.rec.hello(m)
		}
		c.ctl.Receive(m)
	})
}

// ask runs a command on the controller; answer is called once with its outcome.
func (c *coordinator) ask(do func(id int64), answer func(error)) bool {
	return c.post(func() {
		c.command++
		c.answers[c.command] = answer
		do(c.command)
	})
}

func (c *coordinator) event(e elastic.Event) {
	switch e.Kind {
	case elastic.Answered:
		if fn := c.answers[e.Command]; fn != nil {
			delete(c.answers, e.Command)
			if e.Reason != "" {
				fn(failure.E("command", c.layout.Job.Name, failure.Conflict, errors.New(e.Reason), ""))
			} else {
				fn(nil)
			}
		}
	case elastic.SnapshotWhole:
		c.whole = append(c.whole, *e.Snapshot)
	case elastic.CheckpointWanted:
		c.findCheckpoint(e.Gen)
	}
	c.rec.event(e, c.ctl.Generation())
	if c.watch != nil {
		c.watch(e)
	}
}

// commitRecorded commits the snapshots whose steps are all on record, so that a
// run that goes on from one finds its history whole: the last report of a step can
// come after the shards. A paused job has no more to come.
func (c *coordinator) commitRecorded() {
	state, _ := c.ctl.State()
	c.whole = slices.DeleteFunc(c.whole, func(s elastic.SnapshotTaken) bool {
		ready := s.Step <= c.ctl.Done() || state == elastic.Paused
		if ready {
			c.commitCheckpoint(s)
		}
		return ready
	})
}

// commitCheckpoint writes the manifest, which makes the shards a checkpoint.
func (c *coordinator) commitCheckpoint(s elastic.SnapshotTaken) {
	c.onDisk(func() {
		c.rec.flush()
		dir, sha, err := writeManifest(c.layout, c.task, s)
		if err == nil {
			if _, err := checkpoint.Prune(checkpoint.OS{}, c.layout.Checkpoints, c.layout.Job.Keep, c.first); err != nil {
				c.log.Warn("old checkpoints were not removed", "error", err)
			}
		}
		c.post(func() {
			problem := ""
			if err != nil {
				problem = err.Error()
			}
			c.rec.checkpoint(s, dir, sha, err)
			c.ctl.SnapshotCommitted(s.ID, dir, problem)
		})
	})
}

func writeManifest(l *layout, t *Task, s elastic.SnapshotTaken) (dir, sha string, err error) {
	dir = checkpoint.Dir(l.Checkpoints, s.ID, s.Step)
	m := checkpoint.Manifest{Sequence: s.ID, Step: s.Step, Epoch: l.Plan.Epoch(s.Step + 1), Generation: s.Gen, Workload: l.Job.Workload,
		Mode: string(l.Job.Mode), Seed: l.Plan.Seed, Batch: l.Plan.Batch, Workers: l.Job.Workers.Count, Slots: l.Optimizer.SlotNames(),
		Arrays: l.arrays(), Vocabulary: t.Vocabulary, Target: t.Target, Merges: t.Merges, Classes: t.Classes, DataFingerprint: t.Fingerprint,
		Created: time.Now().UTC().Format(time.RFC3339)}
	for _, raw := range s.Shards {
		var f checkpoint.ShardFile
		if err := json.Unmarshal(raw, &f); err != nil {
			return dir, "", fmt.Errorf("shard of snapshot %d: %w", s.ID, err)
		}
		m.Shards = append(m.Shards, f)
	}
	if m.Optimizer, err = json.Marshal(l.Optimizer); err != nil {
		return dir, "", err
	}
	if m.Spec, err = json.Marshal(l.Job); err != nil {
		return dir, "", err
	}
	at, err := order.StepCursor(l.Plan, s.Step)
	if s.Ledger != nil {
		at, err = order.LedgerCursor(s.Ledger), nil
	}
	if err == nil {
		m.Cursor, err = json.Marshal(at)
	}
	if err != nil {
		return dir, "", err
	}
	if err := checkpoint.Commit(checkpoint.OS{}, dir, m); err != nil {
		return dir, "", err
	}
	sha, err = digestOf(dir)
	return dir, sha, err
}

// digestOf reads the digest of all parameters from a checkpoint's manifest.
func digestOf(dir string) (string, error) {
	r, err := checkpoint.Load(checkpoint.OS{}, dir)
	if err != nil {
		return "", err
	}
	defer r.Close()
	return r.Manifest().ParamsSHA256, nil
}

// stateOf maps the controller's state to the status's, which shows the writing
// of the last checkpoint as running.
func stateOf(s elastic.State) spec.State {
	if s == elastic.Finishing {
		return spec.Running
	}
	return spec.State(s)
}
