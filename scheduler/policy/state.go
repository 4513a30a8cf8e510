package policy

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"optimus/scheduler/place"
)

// Member is one task of a job. A member keeps its index as long as it lives; the index of one that has left may be
// given to a later one.
type Member struct {
	Role  place.Role `json:"role"`
	Index int        `json:"index"`
	Node  string     `json:"node"`
}

// String returns for example "worker 3 on node-a".
func (m Member) String() string { return fmt.Sprintf("%s %d on %s", m.Role, m.Index, m.Node) }

// Assigned is what a job was last given. Jobs that have nothing are not in the state.
type Assigned struct {
	Job     string   `json:"job"`
	Members []Member `json:"members"` // by role, then index
}

// State is what Step must remember. Its zero value is that of a scheduler that has decided nothing.
type State struct {
	Round uint64     `json:"round"` // number of rounds decided
	Jobs  []Assigned `json:"jobs"`  // by job ID
	Memory
}

// Memory is what planners note for their next round. A planner never changes what it was given but replaces it.
type Memory struct {
	Pollux *PolluxMemory `json:"pollux,omitempty"`
	// Demoted are the jobs in Tiresias's second queue, in order.
	Demoted []string `json:"demoted,omitempty"`
}

// Validate returns an error that names the first thing wrong with the state.
func (s *State) Validate() error {
	for i, a := range s.Jobs {
		if a.Job == "" || i > 0 && a.Job <= s.Jobs[i-1].Job {
			return fmt.Errorf("policy: state: job %q (number %d) is out of order, named twice or without a name", a.Job, i)
		}
		if len(a.Members) == 0 {
			return fmt.Errorf("policy: state: job %q has no members; leave it out", a.Job)
		}
		for k, m := range a.Members {
			if m.Role != place.PS && m.Role != place.Worker || m.Index < 0 || m.Node == "" {
				return fmt.Errorf("policy: state: job %q: member %d (role %d, index %d, node %q) is not valid", a.Job, k, m.Role, m.Index, m.Node)
			}
			if k > 0 && compareMembers(a.Members[k-1], m) >= 0 {
				return fmt.Errorf("policy: state: job %q: %v is out of order or listed twice", a.Job, m)
			}
		}
	}
	for i, id := range s.Demoted {
		if id == "" || slices.Contains(s.Demoted[:i], id) {
			return fmt.Errorf("policy: state: demoted job %q (number %d) is named twice or without a name", id, i)
		}
	}
	return s.Pollux.validate()
}

// UnmarshalJSON reads a state and validates it.
func (s *State) UnmarshalJSON(data []byte) error {
	type plain State
	var p plain
	if err := json.Unmarshal(data, &p); err != nil {
		return fmt.Errorf("policy: state: %w", err)
	}
	read := State(p)
	if err := read.Validate(); err != nil {
		return err
	}
	*s = read
	return nil
}

func compareMembers(a, b Member) int {
	return cmp.Or(cmp.Compare(a.Role, b.Role), cmp.Compare(a.Index, b.Index))
}

// members returns what a job was last given, or nil.
func (s *State) members(job string) []Member {
	i, ok := slices.BinarySearchFunc(s.Jobs, job, func(a Assigned, id string) int { return cmp.Compare(a.Job, id) })
	if !ok {
		return nil
	}
	return s.Jobs[i].Members
}

// PlacementOf returns where members are, and false if one is on a node that is gone.
func PlacementOf(members []Member, s *place.Space) (place.Placement, bool) {
	var out place.Placement
	for _, m := range members {
		if len(out) > 0 && s.Node(out[len(out)-1].Node).ID == m.Node { // like the member before, most often
			out[len(out)-1].Tasks[m.Role]++
			continue
		}
		node, ok := s.Index(m.Node)
		if !ok {
			return nil, false
		}
		at, ok := slices.BinarySearchFunc(out, node, func(s place.Share, node int) int { return cmp.Compare(s.Node, node) })
		if !ok {
			out = slices.Insert(out, at, place.Share{Node: node})
		}
		out[at].Tasks[m.Role]++
	}
	return out, true
}

// assign makes members of a placement. Those that are already on a node which still has a place for them stay, lowest
// index first; the others are new, with the lowest indices that are free.
func assign(old []Member, p place.Placement, s *place.Space) []Member {
	if len(p) == 0 {
		return nil
	}
	left := make(map[string]place.Counts, len(p))
	for _, sh := range p {
		left[s.Node(sh.Node).ID] = sh.Tasks
	}
	var out []Member
	used := [2]map[int]bool{{}, {}}
	for _, m := range old {
		if c := left[m.Node]; c[m.Role] > 0 {
			c[m.Role]--
			left[m.Node] = c
			used[m.Role][m.Index] = true
			out = append(out, m)
		}
	}
	next := [2]int{}
	for _, sh := range p {
		node := s.Node(sh.Node).ID
		for role := range place.Role(2) {
			for range left[node][role] {
				for used[role][next[role]] {
					next[role]++
				}
				out = append(out, Member{Role: role, Index: next[role], Node: node})
				next[role]++
			}
		}
	}
	slices.SortFunc(out, compareMembers)
	return out
}
