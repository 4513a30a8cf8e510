package place

import (
	"cmp"
	"fmt"
	"slices"
)

// Vector is an amount of each resource type, in the cluster's order of types and in the caller's units.
type Vector []int64

// Fits reports whether v ≤ room in every resource.
func (v Vector) Fits(room Vector) bool {
	for r, need := range v {
		if need > room[r] {
			return false
		}
	}
	return true
}

// Node is a server of the cluster.
type Node struct {
	ID       string `json:"id"`
	Capacity Vector `json:"capacity"`
}

// Role says what a task is.
type Role int

// The two roles, which index [Counts] and [Job.Demand].
const (
	PS Role = iota
	Worker
)

// String returns "ps" or "worker".
func (r Role) String() string {
	if r == PS {
		return "ps"
	}
	return "worker"
}

// Counts is a number of tasks per role: {p, w}.
type Counts [2]int

// Total returns p + w.
func (c Counts) Total() int { return c[PS] + c[Worker] }

// String returns for example "2 ps + 4 workers".
func (c Counts) String() string {
	return fmt.Sprintf("%d ps + %d worker%s", c[PS], c[Worker], map[bool]string{true: "", false: "s"}[c[Worker] == 1])
}

// Job is what placement must know of a job: how many tasks it has and what one task of each role needs.
type Job struct {
	ID     string
	Tasks  Counts
	Demand [2]Vector // per role, of one task
}

// need returns the amount of resource r that c tasks take.
func (j *Job) need(c Counts, r int) int64 {
	return int64(c[PS])*j.Demand[PS][r] + int64(c[Worker])*j.Demand[Worker][r]
}

// fits reports whether c tasks fit into room.
func (j *Job) fits(c Counts, room Vector) bool {
	for r, have := range room {
		if j.need(c, r) > have {
			return false
		}
	}
	return true
}

// Share is what a job has on one node; Node is the node's index in the [Space].
type Share struct {
	Node  int
	Tasks Counts
}

// Placement is a job's tasks by node, in increasing order of nodes, each node at most once and never empty.
type Placement []Share

// Total returns the number of tasks placed.
func (p Placement) Total() Counts {
	var sum Counts
	for _, s := range p {
		sum[PS] += s.Tasks[PS]
		sum[Worker] += s.Tasks[Worker]
	}
	return sum
}

// tidy sorts by node and drops empty shares.
func tidy(p Placement) Placement {
	p = slices.DeleteFunc(p, func(s Share) bool { return s.Tasks == Counts{} })
	slices.SortFunc(p, func(a, b Share) int { return cmp.Compare(a.Node, b.Node) })
	return p
}

// Traffic returns the time of a step's transfers by the measure of Fig 10: the most tasks that any one task of the
// job must talk to on other nodes, max over ps of w − w_k and over workers of p − p_k. A node counts only for the
// roles that it hosts.
func Traffic(p Placement) int {
	total, most := p.Total(), 0
	for _, s := range p {
		if s.Tasks[PS] > 0 {
			most = max(most, total[Worker]-s.Tasks[Worker])
		}
		if s.Tasks[Worker] > 0 {
			most = max(most, total[PS]-s.Tasks[PS])
		}
	}
	return most
}

// NodeTraffic returns the same for tasks that share their node's network interface: the most pairs of a ps and a
// worker that cross any one node's boundary, max over k of p_k(w − w_k) + w_k(p − p_k).
func NodeTraffic(p Placement) int {
	total, most := p.Total(), 0
	for _, s := range p {
		c := s.Tasks
		most = max(most, c[PS]*(total[Worker]-c[Worker])+c[Worker]*(total[PS]-c[PS]))
	}
	return most
}

// MarshalText implements [encoding.TextMarshaler].
func (r Role) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (r *Role) UnmarshalText(text []byte) error {
	for _, known := range []Role{PS, Worker} {
		if known.String() == string(text) {
			*r = known
			return nil
		}
	}
	return fmt.Errorf("place: there is no role %q; it is %q or %q", text, PS, Worker)
}
