package sim

import (
	"math"
	"slices"

	"optimus/internal/rng"
	"optimus/scheduler/place"
	"optimus/scheduler/policy"
)

// running is a job while it is simulated.
type running struct {
	index     int // in the workload, by submission
	name      string
	submit    float64
	shown     float64 // time of submission as the policy sees it
	process   Process
	saved     Process // the last checkpoint; nil if no node ever fails
	unsaved   float64 // seconds run since then
	alloc     Allocation
	gpus      float64 // charged for each second
	pause     float64 // seconds until it gets on again after a change
	service   float64
	started   bool
	restarts  int
	finished  bool
	finish    float64
	progress  float64 // the most ever seen
	remaining float64 // the least ever seen
	span      int     // in the timeline, while it has an allocation
}

func (j *running) holds() bool { return len(j.alloc.Tasks) > 0 }

// run lets the job go on from one time to another, or to its end. A checkpoint is taken each so many seconds, unless
// that is 0.
func (j *running) run(from, to, checkpoint float64) {
	if !j.holds() {
		return
	}
	pause := min(j.pause, to-from)
	j.pause -= pause
	j.service += pause * j.gpus
	for at := from + pause; at < to && !j.finished; {
		slice := to - at
		cut := j.saved != nil && checkpoint > 0 && checkpoint-j.unsaved <= slice
		if cut {
			slice = checkpoint - j.unsaved
		}
		ran, done := j.process.Advance(j.alloc, slice)
		j.service += ran * j.gpus
		j.unsaved += ran
		switch {
		case done:
			j.finished, j.finish = true, at+ran
		case cut:
			j.save()
			at += slice
		default:
			at = to
		}
	}
}

func (j *running) save() { j.saved, j.unsaved = j.process.Clone(), 0 }

// ahead returns the job as it will be at a time, if nothing changes.
func (j *running) ahead(from, to, checkpoint float64) *running {
	future := *j
	future.process = j.process.Clone()
	future.run(from, to, checkpoint)
	return &future
}

// give changes the job's allocation to tasks that are not what it has.
func (j *running) give(tasks place.Placement, nodes []place.Node, restart float64) {
	j.alloc = Allocation{Tasks: tasks, Nodes: nodes, Generation: j.alloc.Generation}
	if len(tasks) == 0 {
		return
	}
	j.alloc.Generation++
	j.pause = restart
	if j.started {
		j.restarts++
	}
	j.started = true
	if j.saved != nil {
		j.save()
	}
}

// lose takes the job's allocation with a node that fails.
func (j *running) lose() {
	j.alloc = Allocation{Generation: j.alloc.Generation}
	j.process = j.saved
	j.save()
}

// onNode reports whether the job has tasks on a node.
func (j *running) onNode(node int) bool {
	return slices.ContainsFunc(j.alloc.Tasks, func(s place.Share) bool { return s.Node == node })
}

// show returns the job as the policy may see it, and whether it has got on since it was last shown.
func (j *running) show(c *Config) (shown policy.Job, gotOn bool) {
	v := policy.Job{ID: j.name, Submitted: j.shown, Generation: j.alloc.Generation, Service: j.service, Restarts: j.restarts}
	j.process.Show(&v)
	if v.Progress > j.progress || v.Remaining < j.remaining {
		gotOn = true
		j.progress, j.remaining = max(j.progress, v.Progress), min(j.remaining, v.Remaining)
	}
	left := 1 - v.Progress
	if e := c.RemainingError * left; e > 0 {
		v.Remaining *= 1 + sign(c.Seed, j.index, place.Counts{})*e
	}
	if e := c.SpeedError * left; e > 0 && v.Speed != nil {
		truth := v.Speed
		v.Speed = policy.SpeedFunc(func(p, w int) float64 {
			return truth.StepsPerSecond(p, w) * (1 + sign(c.Seed, j.index, place.Counts{p, w})*e)
		})
	}
	return v, gotOn
}

// sign draws −1 or 1 for a job and a number of tasks, always the same.
func sign(seed uint64, job int, tasks place.Counts) float64 {
	key := rng.NewKey(seed, uint64(job), uint64(tasks[place.PS]), uint64(tasks[place.Worker]))
	return math.Copysign(1, key.Float64(0)-0.5)
}
