package policy

import (
	"fmt"
	"slices"

	"optimus/scheduler/place"
)

// Tiresias serves jobs that cannot be rescaled, each with its least number of tasks, in two queues: first those that
// have had little service, by arrival, then the others, by the time at which they had had too much. A job that fits
// beside those before it in the queues runs, any other waits, and loses what it had. So a job of unknown length does
// not keep short ones waiting. (The discretised two-dimensional least attained service of Tiresias, NSDI 2019, as the
// Pollux paper has it: jobs do not return to the first queue.)
type Tiresias struct {
	Threshold float64        // service after which a job goes to the second queue; 0 is 57,600 GPU·s, 16 GPU·h
	Place     place.Strategy // of jobs that do not run already; those that do stay where they are; nil is [place.MostFree]
}

const tiresiasThreshold = 16 * 3600

// Check implements [Planner]. Nothing needs to be known of a job.
func (Tiresias) Check(*Job) error { return nil }

// Plan implements [Planner].
func (t Tiresias) Plan(r *Round) []Plan {
	first, second := t.queue(r)
	r.Memory.Demoted = nil
	for _, k := range second {
		r.Memory.Demoted = append(r.Memory.Demoted, r.Jobs[k].ID)
	}
	plans := make([]Plan, len(r.Jobs))
	pool := newPool(r.Space)
	queue := slices.Concat(first, second)
	fits := queue[:0]
	for n, k := range queue {
		j := &r.Jobs[k]
		plans[k].Reason = fmt.Sprintf("number %d in the queues, %.4g GPU·s of service", n+1, j.Service)
		if pool.take(j, j.least()) {
			fits = append(fits, k)
		} else {
			plans[k].Reason = fmt.Sprintf("waits: its %v do not fit beside earlier jobs; %s", j.least(), plans[k].Reason)
		}
	}
	for _, k := range fits {
		j, at := &r.Jobs[k], r.Placed[k]
		if task := j.tasks(j.least()); at != nil && at.Total() == task.Tasks && r.Space.Take(&task, at) {
			plans[k].Placement = at
		}
	}
	rule := t.Place
	if rule == nil {
		rule = place.MostFree{}
	}
	for _, k := range fits {
		j := &r.Jobs[k]
		if plans[k].Placement != nil {
			continue
		}
		task := j.tasks(j.least())
		if plans[k].Placement = rule.Place(r.Space, &task); plans[k].Placement == nil {
			plans[k].Reason = fmt.Sprintf("waits: no nodes have room for its %v; %s", j.least(), plans[k].Reason)
		}
	}
	return plans
}

// queue returns the jobs of both queues in order.
func (t Tiresias) queue(r *Round) (first, second []int) {
	threshold := t.Threshold
	if threshold == 0 {
		threshold = tiresiasThreshold
	}
	index := make(map[string]int, len(r.Jobs))
	for k := range r.Jobs {
		index[r.Jobs[k].ID] = k
	}
	for _, id := range r.Memory.Demoted {
		if k, ok := index[id]; ok {
			second = append(second, k)
			delete(index, id)
		}
	}
	for k := range r.Jobs {
		if _, ok := index[r.Jobs[k].ID]; !ok {
			continue
		}
		if r.Jobs[k].Service >= threshold {
			second = append(second, k)
		} else {
			first = append(first, k)
		}
	}
	return first, second
}
