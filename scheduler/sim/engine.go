package sim

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"optimus/scheduler/place"
	"optimus/scheduler/policy"
)

// Run simulates a workload to its end. It fails if the configuration or the workload contradicts itself, if the
// policy fails, or if the jobs cease to get on; a job that cannot run is reported in its result.
func Run(cfg Config, jobs []Job) (*Result, error) {
	cfg, space, err := cfg.checked()
	if err != nil {
		return nil, err
	}
	e := engine{cfg: cfg, space: space}
	if err := e.load(jobs); err != nil {
		return nil, err
	}
	for len(e.waiting)+len(e.active) > 0 {
		to, futures := e.next()
		ended := e.advance(to, futures)
		failed := e.passEdges()
		arrived := e.arrive()
		due := e.now == e.multiple(e.rounds+1)
		if due {
			e.rounds++
		}
		if due || e.cfg.Reactive && (ended || failed || arrived) {
			if err := e.decide(); err != nil {
				return nil, err
			}
		}
	}
	e.result.finish()
	return &e.result, nil
}

// engine is a simulation under way.
type engine struct {
	cfg     Config
	space   *place.Space // for the order of nodes, by ID
	cluster []place.Node // in that order
	nodes   []node       // the same
	edges   []edge       // to come, by time
	now     float64
	rounds  int        // multiples of the interval that have passed
	waiting []*running // not yet submitted, by submission
	active  []*running // submitted and not finished, by submission
	policy  policy.State
	gotOn   float64 // when some job last did
	result  Result
}

func (e *engine) multiple(k int) float64 { return float64(k) * e.cfg.Interval }

// load takes in the workload.
func (e *engine) load(jobs []Job) error {
	for i := range e.space.Len() {
		e.cluster = append(e.cluster, e.space.Node(i))
	}
	e.loadNodes()
	seen := make(map[string]bool, len(jobs))
	e.result.Jobs = make([]JobResult, len(jobs))
	for i, j := range jobs {
		switch {
		case j.Name == "" || seen[j.Name]:
			return fmt.Errorf("simulate: job %d is called %q, which is empty or used twice; give each job its own name", i, j.Name)
		case !(j.Submit >= 0 && j.Submit <= longest):
			return fmt.Errorf("simulate: job %q is submitted at %v s; the time must be from 0 to %v", j.Name, j.Submit, float64(longest))
		case j.Process == nil && j.Impossible == "":
			return fmt.Errorf("simulate: job %q has no process that tells what it does", j.Name)
		}
		seen[j.Name] = true
		e.result.Jobs[i] = JobResult{Name: j.Name, Submit: j.Submit, Start: -1, Finish: -1, JCT: -1, Impossible: j.Impossible}
		if j.Impossible != "" {
			continue
		}
		r := &running{index: i, name: j.Name, submit: j.Submit, shown: j.Submit, process: j.Process.Clone(), remaining: math.Inf(1)}
		if len(e.cfg.Failures) > 0 {
			r.save()
		}
		e.waiting = append(e.waiting, r)
	}
	slices.SortStableFunc(e.waiting, func(a, b *running) int { return cmp.Compare(a.submit, b.submit) })
	// A policy takes jobs of one time by ID. Here they are in the workload's order: a hair apart.
	for i := len(e.waiting) - 2; i >= 0; i-- {
		a, b := e.waiting[i], e.waiting[i+1]
		a.shown = min(a.shown, math.Nextafter(b.shown, math.Inf(-1)))
	}
	return nil
}

// next returns the time of the next event, and the jobs that end then as they will be, by index.
func (e *engine) next() (float64, map[int]*running) {
	first := e.now
	if len(e.active) == 0 {
		first = max(first, e.waiting[0].submit)
	}
	e.rounds = max(e.rounds, int(math.Ceil(first/e.cfg.Interval))-1)
	to := e.multiple(e.rounds + 1)
	if len(e.edges) > 0 {
		to = min(to, e.edges[0].at)
	}
	if !e.cfg.Reactive {
		return to, nil
	}
	if len(e.waiting) > 0 {
		to = min(to, e.waiting[0].submit)
	}
	futures := map[int]*running{}
	for _, j := range e.active {
		if f := j.ahead(e.now, to, e.cfg.Checkpoint); f.finished {
			to = f.finish
			futures[j.index] = f
		}
	}
	return to, futures
}

// advance lets time pass, and reports whether a job ended.
func (e *engine) advance(to float64, futures map[int]*running) (ended bool) {
	left := e.active[:0]
	for _, j := range e.active {
		if f := futures[j.index]; f != nil && f.finish == to {
			j = f
		} else {
			j.run(e.now, to, e.cfg.Checkpoint)
		}
		if !j.finished {
			left = append(left, j)
			continue
		}
		ended = true
		e.gotOn = max(e.gotOn, j.finish)
		e.closeSpan(j, j.finish)
		r := e.report(j)
		r.Finish, r.JCT = j.finish, j.finish-j.submit
	}
	e.active = left
	e.now = to
	return ended
}

// report notes what is known of a job that leaves the simulation.
func (e *engine) report(j *running) *JobResult {
	r := &e.result.Jobs[j.index]
	r.Restarts, r.Service = j.restarts, j.service
	return r
}

// arrive lets in the jobs that are submitted by now, and reports whether there are any.
func (e *engine) arrive() (some bool) {
	for len(e.waiting) > 0 && e.waiting[0].submit <= e.now {
		e.active = append(e.active, e.waiting[0])
		e.waiting = e.waiting[1:]
		e.gotOn, some = e.now, true
	}
	return some
}

// decide holds a round.
func (e *engine) decide() error {
	view := policy.View{Now: e.now, Jobs: make([]policy.Job, len(e.active))}
	for i := range e.nodes {
		if !e.nodes[i].down {
			view.Nodes = append(view.Nodes, e.cluster[i])
		}
	}
	for i, j := range e.active {
		var got bool
		if view.Jobs[i], got = j.show(&e.cfg); got {
			e.gotOn = e.now
		}
	}
	if err := e.stalled(); err != nil || len(e.active) == 0 || len(view.Nodes) == 0 {
		return err
	}
	start := e.cfg.Stopwatch()
	state, decisions, err := policy.Step(e.cfg.Policy, e.policy, view)
	if err != nil {
		return fmt.Errorf("simulate: round at %v s: %w", e.now, err)
	}
	e.result.Durations = append(e.result.Durations, e.cfg.Stopwatch()-start)
	e.result.Rounds++
	e.policy = state
	left := e.active[:0]
	for i, d := range decisions { // in the order of active
		j := e.active[i]
		if d.Action == policy.Impossible && !e.nodesToCome() {
			e.closeSpan(j, e.now)
			e.report(j).Impossible = d.Reason
			continue
		}
		e.obey(j, &d, &view.Jobs[i])
		left = append(left, j)
	}
	e.active = left
	e.disturb()
	return nil
}

// obey carries out a decision.
func (e *engine) obey(j *running, d *policy.Decision, shown *policy.Job) {
	tasks := j.alloc.Tasks
	if d.Action != policy.Keep || !j.holds() { // the policy knows nothing of a node that failed and came back meanwhile
		tasks, _ = policy.PlacementOf(d.Members, e.space) // of nodes that the view had
	}
	if slices.Equal(tasks, j.alloc.Tasks) {
		j.alloc.Batch = d.Batch
		return
	}
	e.closeSpan(j, e.now)
	j.give(tasks, e.cluster, e.cfg.Restart)
	if len(tasks) == 0 {
		return
	}
	j.alloc.Batch = d.Batch
	j.gpus = 0
	for role, n := range d.Tasks {
		if demand := shown.Demand[role]; n > 0 {
			j.gpus += float64(int64(n) * demand[e.cfg.Charged])
		}
	}
	if r := &e.result.Jobs[j.index]; r.Start < 0 {
		r.Start = e.now
	}
	e.openSpan(j, d)
}

func (e *engine) openSpan(j *running, d *policy.Decision) {
	j.span = len(e.result.Timeline)
	s := Span{Job: j.name, Start: e.now, Tasks: d.Tasks, Batch: d.Batch, Reason: d.Reason}
	for _, share := range j.alloc.Tasks {
		s.Nodes = append(s.Nodes, NodeTasks{e.cluster[share.Node].ID, share.Tasks})
	}
	e.result.Timeline = append(e.result.Timeline, s)
}

func (e *engine) closeSpan(j *running, at float64) {
	if j.holds() {
		e.result.Timeline[j.span].End = at
	}
}

// stalled returns an error if the jobs have not got on for too long.
func (e *engine) stalled() error {
	if e.now-e.gotOn <= e.cfg.Patience {
		return nil
	}
	var names []string
	for _, j := range e.active {
		if len(names) == 5 {
			names = append(names, "…")
			break
		}
		names = append(names, fmt.Sprintf("%s (%d tasks)", j.name, j.alloc.Tasks.Total().Total()))
	}
	return fmt.Errorf("simulate: %s: at %v s no job has got on for %v s: %s; give them nodes on which they can run, or another policy",
		e.cfg.Policy.Name, e.now, e.cfg.Patience, strings.Join(names, ", "))
}
