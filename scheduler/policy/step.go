package policy

import (
	"cmp"
	"fmt"
	"slices"

	"optimus/scheduler/place"
)

// Action is what a decision asks for.
type Action string

// The actions.
const (
	Start      Action = "start"      // had nothing, gets members
	Rescale    Action = "rescale"    // other numbers of ps or workers
	Move       Action = "move"       // the same numbers, other nodes
	Keep       Action = "keep"       // nothing changes
	Pause      Action = "pause"      // had members, loses all
	Wait       Action = "wait"       // had nothing, gets nothing
	Impossible Action = "impossible" // cannot run here as it is; Reason says why
)

// Decision is what becomes of one job. It is meant for the generation that the view showed: if the job has gone on
// to another meanwhile, it must not be carried out.
type Decision struct {
	Job        string       `json:"job"`
	Action     Action       `json:"action"`
	Generation uint64       `json:"generation"`
	Tasks      place.Counts `json:"tasks"`   // {p, w}
	Members    []Member     `json:"members"` // all of them after the decision
	Reason     string       `json:"reason"`
}

// Policy is a way to schedule: how many tasks, and where.
type Policy struct {
	Name      string
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

// Step decides one round. It returns the next state, and one decision for each job of the view in order of
// submission. The given state is not changed. It fails if the state or the view contradicts itself; a job that
// cannot run does not fail the round but is reported as [Impossible].
func Step(p Policy, st State, v View) (State, []Decision, error) {
	if err := st.Validate(); err != nil {
		return st, nil, err
	}
	if p.Allocator == nil || p.Place == nil {
		return st, nil, fmt.Errorf("policy: %q lacks an allocator or a rule of placement; use ByName", p.Name)
	}
	all, err := v.sorted()
	if err != nil {
		return st, nil, err
	}
	space, err := place.NewSpace(v.Nodes)
	if err != nil {
		return st, nil, err
	}
	decisions := make([]Decision, len(all))
	var jobs []Job // those that can run
	var index []int
	for i := range all {
		j := &all[i]
		decisions[i] = Decision{Job: j.ID, Generation: j.Generation}
		if err := j.problem(space); err != nil {
			decisions[i].Action, decisions[i].Reason = Impossible, err.Error()
			continue
		}
		jobs, index = append(jobs, *j), append(index, i)
	}
	r := round{policy: p, space: space, jobs: jobs, old: make([][]Member, len(jobs))}
	for k := range jobs {
		r.old[k] = st.members(jobs[k].ID)
	}
	r.run()
	if short, some := r.short(); p.Shrink && some {
		r.release()
		space.Withhold(short)
		r.run()
	}
	next := State{Round: st.Round + 1}
	for k := range jobs {
		d := &decisions[index[k]]
		d.Members, d.Reason = assign(r.old[k], r.placed[k], space), r.alloc[k].Reason
		d.Tasks = r.placed[k].Total()
		d.Action = action(r.old[k], d.Members)
		if len(d.Members) > 0 {
			next.Jobs = append(next.Jobs, Assigned{Job: d.Job, Members: slices.Clone(d.Members)})
		}
	}
	slices.SortFunc(next.Jobs, func(a, b Assigned) int { return cmp.Compare(a.Job, b.Job) })
	return next, decisions, nil
}

// action tells what leads from the old members to the new.
func action(before, after []Member) Action {
	switch {
	case len(before) == 0 && len(after) == 0:
		return Wait
	case len(before) == 0:
		return Start
	case len(after) == 0:
		return Pause
	case slices.Equal(before, after):
		return Keep
	case roles(before) == roles(after):
		return Move
	}
	return Rescale
}

func roles(members []Member) place.Counts {
	var c place.Counts
	for _, m := range members {
		c[m.Role]++
	}
	return c
}

// round is the placement of one step.
type round struct {
	policy Policy
	space  *place.Space
	jobs   []Job
	old    [][]Member
	alloc  []Allocation
	placed []place.Placement
}

// run allocates and places.
func (r *round) run() {
	r.alloc = r.policy.Allocator.Allocate(r.jobs, r.space)
	r.place()
}

// short returns what the tasks that were allocated but not placed need, and whether there are any.
func (r *round) short() (place.Vector, bool) {
	short, some := make(place.Vector, len(r.space.Capacity())), false
	for k := range r.jobs {
		got := r.placed[k].Total()
		missing := place.Counts{r.alloc[k].Tasks[0] - got[0], r.alloc[k].Tasks[1] - got[1]}
		if missing == (place.Counts{}) {
			continue
		}
		some = true
		for t := range short {
			short[t] += amount(&r.jobs[k], missing, t)
		}
	}
	return short, some
}

// release gives back what was placed.
func (r *round) release() {
	for k := range r.jobs {
		t := r.jobs[k].tasks(r.placed[k].Total())
		r.space.Release(&t, r.placed[k])
	}
}

func (r *round) place() {
	r.placed = make([]place.Placement, len(r.jobs))
	tasks := make([]place.Job, len(r.jobs))
	for k := range r.jobs {
		tasks[k] = r.jobs[k].tasks(r.alloc[k].Tasks)
		if r.policy.Keep {
			r.keep(k, &tasks[k])
		}
	}
	order := make([]int, len(tasks))
	for k := range order {
		order[k] = k
	}
	if r.policy.SmallestFirst {
		order = place.SmallestFirst(r.space, tasks)
	}
	for _, k := range order {
		if tasks[k].Tasks == (place.Counts{}) || r.placed[k] != nil {
			continue
		}
		if r.placed[k] = r.policy.Place.Place(r.space, &tasks[k]); r.placed[k] == nil {
			r.unplaced(k, &tasks[k])
		}
	}
}

// keep leaves a job where it is if it may stay.
func (r *round) keep(k int, t *place.Job) {
	if len(r.old[k]) == 0 || roles(r.old[k]) != t.Tasks {
		return
	}
	if p, ok := placementOf(r.old[k], r.space); ok && r.space.Take(t, p) {
		r.placed[k] = p
	}
}

// unplaced shrinks a job for which there is no place, or makes it wait.
func (r *round) unplaced(k int, t *place.Job) {
	want, a := t.Tasks, &r.alloc[k]
	if r.policy.Shrink {
		r.placed[k] = r.shrink(t, r.jobs[k].least())
	}
	if p := r.placed[k]; p != nil {
		a.Reason += fmt.Sprintf("; only %v of %v find a place on the nodes", p.Total(), want)
		return
	}
	a.Reason = fmt.Sprintf("waits: no nodes have room for its %v; it was to get them for: %s", want, a.Reason)
}

// shrink bisects on the part that a job gets of its tasks above the least, and places the largest part found.
func (r *round) shrink(t *place.Job, least place.Counts) place.Placement {
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
		if p := r.policy.Place.Place(r.space, part(mid)); p != nil {
			r.space.Release(t, p)
			best, low = p, mid
		} else {
			high = mid
		}
	}
	if best != nil {
		r.space.Take(t, best)
	}
	return best
}
