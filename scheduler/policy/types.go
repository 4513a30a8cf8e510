package policy

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"optimus/scheduler/estimate"
	"optimus/scheduler/place"
)

// Speed is what is known or estimated of a job's speed.
type Speed interface {
	// StepsPerSecond returns f(p,w), positive and finite; anything else says that it is not known.
	StepsPerSecond(p, w int) float64
}

// SpeedFunc makes a function a Speed.
type SpeedFunc func(p, w int) float64

// StepsPerSecond implements [Speed].
func (f SpeedFunc) StepsPerSecond(p, w int) float64 { return f(p, w) }

// Goodput is what is known or estimated of a job that chooses its batch by its allocation.
type Goodput interface {
	// Best returns the largest goodput on so many GPUs on so many nodes, in examples/s that count as much as those of
	// a small batch, and the batch that reaches it. It is 0 where the job cannot run.
	Best(nodes, gpus int) (float64, estimate.Batch)
}

// Job is an active job, as it is now.
type Job struct {
	ID         string
	Submitted  float64         // seconds; earlier jobs go first, then by ID
	Demand     [2]place.Vector // of one ps, of one worker
	Min, Max   place.Counts    // bounds of {p, w}; a Min of 0 is 1, a Max of 0 is no bound
	Ring       bool            // has no ps: p is always 0
	Generation uint64          // of the membership that now runs
	Remaining  float64         // steps; less than 1 counts as 1
	Progress   float64         // fraction done, 0 to 1
	Speed      Speed
	Goodput    Goodput // what pollux needs
	Service    float64 // GPU·s that it has had
	Restarts   int     // changes of its allocation since it first had one
	Pinned     bool    // pollux: keeps what it has, since it must not be stopped
}

// View is the cluster as it is now. The order of its lists means nothing.
type View struct {
	Now   float64 // seconds, on the axis of Job.Submitted
	Nodes []place.Node
	Jobs  []Job
}

// least returns the smallest {p, w} that the job runs with.
func (j *Job) least() place.Counts {
	c := place.Counts{max(1, j.Min[place.PS]), max(1, j.Min[place.Worker])}
	if j.Ring {
		c[place.PS] = 0
	}
	return c
}

// bounded reports whether the job may have c tasks at most.
func (j *Job) bounded(c place.Counts) bool {
	for role, n := range c {
		if m := j.Max[role]; m > 0 && n > m || place.Role(role) == place.PS && j.Ring && n > 0 {
			return false
		}
	}
	return true
}

// seconds returns t = Q/f(p,w) (Eqn 6), and false if the speed is not known or not usable.
func (j *Job) seconds(c place.Counts) (float64, bool) {
	f := j.Speed.StepsPerSecond(c[place.PS], c[place.Worker])
	t := max(1, j.Remaining) / f
	return t, f > 0 && !math.IsInf(f, 1) && !math.IsInf(t, 1)
}

// tasks returns the job with c tasks as package place wants it.
func (j *Job) tasks(c place.Counts) place.Job {
	out := place.Job{ID: j.ID, Tasks: c, Demand: j.Demand}
	if j.Ring { // a role without tasks demands nothing
		out.Demand[place.PS] = make(place.Vector, len(j.Demand[place.Worker]))
	}
	return out
}

// problem says why the job cannot be scheduled at all, or is nil.
func (j *Job) problem(s *place.Space) error {
	least := j.least()
	asked := j.tasks(least)
	switch {
	case math.IsNaN(j.Remaining) || math.IsInf(j.Remaining, 0):
		return fmt.Errorf("job %q has %v steps left; the number must be finite", j.ID, j.Remaining)
	case j.Min[place.PS] < 0 || j.Min[place.Worker] < 0 || j.Max[place.PS] < 0 || j.Max[place.Worker] < 0:
		return fmt.Errorf("job %q has negative bounds %v to %v; use 0 for none", j.ID, j.Min, j.Max)
	case !j.bounded(least):
		return fmt.Errorf("job %q needs at least %v but may have at most %v", j.ID, least, j.Max)
	}
	if err := s.Check(&asked); err != nil {
		return err
	}
	if !s.Holds(&asked) {
		return fmt.Errorf("job %q needs at least %v, more than the whole cluster holds; add nodes or lower the minimum", j.ID, least)
	}
	return nil
}

// checkSpeed returns an error if the speed at the least number of tasks is not known.
func (j *Job) checkSpeed() error {
	if j.Speed == nil {
		return fmt.Errorf("job %q has no speed estimate; probe it first", j.ID)
	}
	least := j.least()
	if _, ok := j.seconds(least); !ok {
		return fmt.Errorf("job %q: speed f(%d,%d) = %v steps/s; it must be positive and finite: probe the job again",
			j.ID, least[place.PS], least[place.Worker], j.Speed.StepsPerSecond(least[place.PS], least[place.Worker]))
	}
	return nil
}

// sorted returns the view's jobs in the order that breaks every tie: submission, then ID.
func (v *View) sorted() ([]Job, error) {
	jobs := slices.Clone(v.Jobs)
	slices.SortFunc(jobs, func(a, b Job) int {
		return cmp.Or(cmp.Compare(a.Submitted, b.Submitted), cmp.Compare(a.ID, b.ID))
	})
	seen := make(map[string]bool, len(jobs))
	for _, j := range jobs {
		if j.ID == "" || seen[j.ID] {
			return nil, fmt.Errorf("policy: job ID %q is empty or used twice; give each job its own", j.ID)
		}
		if math.IsNaN(j.Submitted) || math.IsInf(j.Submitted, 0) {
			return nil, fmt.Errorf("policy: job %q was submitted at %v s; the time must be finite", j.ID, j.Submitted)
		}
		seen[j.ID] = true
	}
	return jobs, nil
}
