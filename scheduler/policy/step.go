package policy

import (
	"cmp"
	"fmt"
	"slices"

	"optimus/scheduler/estimate"
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
	// Batch is how a step's examples are to be divided, where the policy chooses it; else zero.
	Batch  estimate.Batch `json:"batch,omitzero"`
	Reason string         `json:"reason"`
}

// Policy is a way to schedule.
type Policy struct {
	Name    string
	Planner Planner
}

// Planner decides what the jobs of one round get.
type Planner interface {
	// Check returns why the policy cannot schedule a job at all, or nil.
	Check(j *Job) error
	// Plan returns one plan for each of r.Jobs. It may take from r.Space and replace what is in r.Memory.
	Plan(r *Round) []Plan
}

// Round is what a planner decides on.
type Round struct {
	Number uint64
	Now    float64
	Jobs   []Job             // those that can run, in order of submission, then ID
	Placed []place.Placement // where each of them is now; nil if it has nothing, or if one of its nodes is gone
	Space  *place.Space      // the cluster, with nothing taken
	Memory *Memory           // what the planner noted in the round before
}

// Plan is what a planner gives to one job: nothing if Placement is empty.
type Plan struct {
	Placement place.Placement
	Batch     estimate.Batch // zero if the job keeps its own
	Reason    string
}

// Step decides one round. It returns the next state, and one decision for each job of the view in order of
// submission. The given state is not changed. It fails if the state or the view contradicts itself; a job that
// cannot run does not fail the round but is reported as [Impossible].
func Step(p Policy, st State, v View) (State, []Decision, error) {
	if err := st.Validate(); err != nil {
		return st, nil, err
	}
	if p.Planner == nil {
		return st, nil, fmt.Errorf("policy: %q has no planner; use ByName", p.Name)
	}
	all, err := v.sorted()
	if err != nil {
		return st, nil, err
	}
	space, err := place.NewSpace(v.Nodes)
	if err != nil {
		return st, nil, err
	}
	memory := st.Memory
	r := Round{Number: st.Round, Now: v.Now, Space: space, Memory: &memory}
	decisions := make([]Decision, len(all))
	var index []int
	for i := range all {
		j := &all[i]
		decisions[i] = Decision{Job: j.ID, Generation: j.Generation}
		if err := cmp.Or(j.problem(space), p.Planner.Check(j)); err != nil {
			decisions[i].Action, decisions[i].Reason = Impossible, err.Error()
			continue
		}
		at, _ := PlacementOf(st.members(j.ID), space)
		r.Jobs, r.Placed, index = append(r.Jobs, *j), append(r.Placed, at), append(index, i)
	}
	plans := p.Planner.Plan(&r)
	next := State{Round: st.Round + 1, Memory: memory}
	for k, plan := range plans {
		d, old := &decisions[index[k]], st.members(r.Jobs[k].ID)
		d.Batch, d.Reason = plan.Batch, plan.Reason
		if at := r.Placed[k]; at != nil && slices.Equal(at, plan.Placement) {
			d.Members = slices.Clone(old)
		} else {
			d.Members = assign(old, plan.Placement, space)
		}
		d.Tasks = plan.Placement.Total()
		d.Action = action(old, d.Members)
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
