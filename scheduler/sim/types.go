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
	// Goodput. The rest is the simulator's.
	Show(j *policy.Job)
}

// Allocation is what a job has while nothing changes.
type Allocation struct {
	Tasks      place.Placement
	Nodes      []place.Node   // of the cluster, which Tasks points into
	Batch      estimate.Batch // as the policy chose it, else zero
	Slowdown   float64        // the part of its speed that the job loses to others on its nodes, 0 to below 1
	Generation uint64         // counts the changes of Tasks
}

// Job is one job of a workload.
type Job struct {
	Name    string
	Submit  float64 // seconds
	Process Process
}
