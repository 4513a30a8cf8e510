package sim

import (
	"math"
	"slices"

	"optimus/scheduler/estimate"
	"optimus/scheduler/place"
)

// Result is what came of a workload.
type Result struct {
	Jobs     []JobResult // in the order of the workload
	Makespan float64     // the latest finish, in seconds from the start of the workload
	MeanJCT  float64     // over the jobs that finished; 0 if none did
	P99JCT   float64     // the same, interpolated between the two nearest ranks
	Timeline []Span      // in order of Start
	Rounds   int
	// Durations are those of the policy's decisions in seconds, one for each round; 0 without a stopwatch.
	Durations []float64
}

// JobResult is what came of one job. Times are in seconds from the start of the workload.
type JobResult struct {
	Name       string
	Submit     float64
	Start      float64 // when it first had an allocation; −1 if never
	Finish     float64 // −1 if it could not run
	JCT        float64 // job completion time: Finish − Submit; −1 if it could not run
	Restarts   int
	Service    float64 // of the resource charged, for example GPU·s
	Impossible string  // why it could not run; else empty
}

// Span is a time during which a job's allocation did not change.
type Span struct {
	Job        string
	Start, End float64
	Tasks      place.Counts
	Nodes      []NodeTasks // by ID
	Batch      estimate.Batch
	Reason     string // the policy's
}

// NodeTasks is what a job has on one node.
type NodeTasks struct {
	Node  string
	Tasks place.Counts
}

// finish computes the statistics over the jobs.
func (r *Result) finish() {
	var times []float64
	for _, j := range r.Jobs {
		if j.JCT >= 0 {
			times = append(times, j.JCT)
			r.MeanJCT += j.JCT
			r.Makespan = max(r.Makespan, j.Finish)
		}
	}
	r.MeanJCT /= float64(max(1, len(times)))
	r.P99JCT = Quantile(times, 0.99)
}

// Quantile interpolates between the two nearest ranks. It is 0 of no values.
func Quantile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	rank := q * float64(len(sorted)-1)
	below := int(math.Floor(rank))
	above := min(below+1, len(sorted)-1)
	return sorted[below] + (rank-float64(below))*(sorted[above]-sorted[below])
}
