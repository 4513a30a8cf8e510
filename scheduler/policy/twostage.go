package policy

import (
	"fmt"

	"optimus/scheduler/place"
)

// TwoStage first chooses how many tasks each job gets, and then where they go.
type TwoStage struct {
	Allocator Allocator
	Place     place.Strategy
	// SmallestFirst places jobs by increasing demand, otherwise they are placed in order of submission.
	SmallestFirst bool
	// Keep leaves jobs where they are if their numbers do not change and their nodes are still there, and places
	// the others around them. The paper places every job anew in each round.
	Keep bool
	// Shrink gives a job that cannot be placed the largest part of its tasks that can. What all jobs together are
	// short of is then withheld and the round repeated once, so that the last ones placed do not bear it alone:
	// three tasks of 5 cores leave one of a node's 16 cores unused, but the allocator counts it. The paper pauses
	// what does not fit.
	Shrink bool
}

// Check implements [Planner]: every job needs an estimate of its speed.
func (TwoStage) Check(j *Job) error { return j.checkSpeed() }

// Plan implements [Planner].
func (t TwoStage) Plan(r *Round) []Plan {
	p := twoStage{TwoStage: t, Round: r}
	p.run()
	if short, some := p.short(); t.Shrink && some {
		p.release()
		r.Space.Withhold(short)
		p.run()
	}
	plans := make([]Plan, len(r.Jobs))
	for k := range plans {
		plans[k] = Plan{Placement: p.placed[k], Reason: p.alloc[k].Reason}
	}
	return plans
}

// twoStage is one round of it.
type twoStage struct {
	TwoStage
	*Round
	alloc  []Allocation
	placed []place.Placement
}

// run allocates and places.
func (r *twoStage) run() {
	r.alloc = r.Allocator.Allocate(r.Jobs, r.Space)
	r.placeAll()
}

// short returns what the tasks that were allocated but not placed need, and whether there are any.
func (r *twoStage) short() (place.Vector, bool) {
	short, some := make(place.Vector, len(r.Space.Capacity())), false
	for k := range r.Jobs {
		got := r.placed[k].Total()
		missing := place.Counts{r.alloc[k].Tasks[0] - got[0], r.alloc[k].Tasks[1] - got[1]}
		if missing == (place.Counts{}) {
			continue
		}
		some = true
		for t := range short {
			short[t] += amount(&r.Jobs[k], missing, t)
		}
	}
	return short, some
}

// release gives back what was placed.
func (r *twoStage) release() {
	for k := range r.Jobs {
		t := r.Jobs[k].tasks(r.placed[k].Total())
		r.Space.Release(&t, r.placed[k])
	}
}

func (r *twoStage) placeAll() {
	r.placed = make([]place.Placement, len(r.Jobs))
	tasks := make([]place.Job, len(r.Jobs))
	for k := range r.Jobs {
		tasks[k] = r.Jobs[k].tasks(r.alloc[k].Tasks)
		if r.Keep {
			r.keep(k, &tasks[k])
		}
	}
	order := make([]int, len(tasks))
	for k := range order {
		order[k] = k
	}
	if r.SmallestFirst {
		order = place.SmallestFirst(r.Space, tasks)
	}
	for _, k := range order {
		if tasks[k].Tasks == (place.Counts{}) || r.placed[k] != nil {
			continue
		}
		if r.placed[k] = r.Place.Place(r.Space, &tasks[k]); r.placed[k] == nil {
			r.unplaced(k, &tasks[k])
		}
	}
}

// keep leaves a job where it is if it may stay.
func (r *twoStage) keep(k int, t *place.Job) {
	if p := r.Placed[k]; p != nil && p.Total() == t.Tasks && r.Space.Take(t, p) {
		r.placed[k] = p
	}
}

// unplaced shrinks a job for which there is no place, or makes it wait.
func (r *twoStage) unplaced(k int, t *place.Job) {
	want, a := t.Tasks, &r.alloc[k]
	if r.Shrink {
		r.placed[k] = r.shrink(t, r.Jobs[k].least())
	}
	if p := r.placed[k]; p != nil {
		a.Reason += fmt.Sprintf("; only %v of %v find a place on the nodes", p.Total(), want)
		return
	}
	a.Reason = fmt.Sprintf("waits: no nodes have room for its %v; it was to get them for: %s", want, a.Reason)
}

// shrink bisects on the part that a job gets of its tasks above the least, and places the largest part found.
func (r *twoStage) shrink(t *place.Job, least place.Counts) place.Placement {
	want := t.Tasks
	steps := max(want[place.PS]-least[place.PS], want[place.Worker]-least[place.Worker])
	part := func(n int) *place.Job {
		smaller := *t
		for role := range smaller.Tasks {
			smaller.Tasks[role] = least[role] + (want[role]-least[role])*n/steps
		}
		return &smaller
	}
	var best place.Placement
	low, high := -1, steps // the largest part known to fit, the smallest known not to
	for high-low > 1 {
		mid := (low + high) / 2
		if p := r.Place.Place(r.Space, part(mid)); p != nil {
			r.Space.Release(t, p)
			best, low = p, mid
		} else {
			high = mid
		}
	}
	if best != nil {
		r.Space.Take(t, best)
	}
	return best
}
