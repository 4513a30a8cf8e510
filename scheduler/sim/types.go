package sim

import (
	"optimus/scheduler/estimate"
	"optimus/scheduler/place"
	"optimus/scheduler/policy"
)

// Process is the truth about one job: what it does under an allocation. It comes from measured tables, never from the
// scheduler's own fits, and the scheduler learns of it only what Show tells.
type Process interface {
	// Advance lets the job run for at most so many seconds, undisturbed. It returns how many it ran, fewer only if
	// it came to its end.
	Advance(a Allocation, seconds float64) (ran float64, done bool)
	// Show fills in what the scheduler may know of the job now: Demand, Min, Max, Ring, Remaining, Progress, Speed,
	// Goodput. The rest is the simulator's. Progress or Remaining must change in a job that gets on.
	Show(j *policy.Job)
	// Clone returns a process in the same state, which neither shares with the other what Advance changes. It is the
	// job's checkpoint, and a look into its future.
	Clone() Process
}

// Allocation is what a job has while nothing changes.
type Allocation struct {
	Tasks      place.Placement
	Nodes      []place.Node   // of the cluster, by ID, which Tasks points into
	Batch      estimate.Batch // as the policy chose it, else zero
	Slowdown   float64        // the part of its speed that the job loses to others on its nodes, 0 to below 1
	Slow       []float64      // by element of Tasks: how many times slower tasks are there, at least 1; nil if nowhere
	Generation uint64         // counts the changes of Tasks, 1 at the start
}

// Pace is the speed of a job whose tasks wait for the slowest in every step, relative to that of a job that nothing
// disturbs: 1 or less.
func (a Allocation) Pace() float64 {
	slowest := 1.0
	for _, s := range a.Slow {
		slowest = max(slowest, s)
	}
	return (1 - a.Slowdown) / slowest
}

// Job is one job of a workload.
type Job struct {
	Name    string
	Submit  float64 // seconds
	Process Process // not changed by a run
	// Impossible says why the job cannot run at all, where that is known beforehand. It is reported, not run.
	Impossible string
}
