package policy

import (
	"cmp"
	"fmt"
	"slices"
)

// PolluxMemory is what the policy pollux notes for its next round: the most GPUs that each job ever had, which limits
// what it may get, and the best solutions found, from which the next search starts.
type PolluxMemory struct {
	Nodes     []string        `json:"nodes"`     // by ID
	Jobs      []PolluxJob     `json:"jobs"`      // by ID
	Solutions [][]PolluxShare `json:"solutions"` // the best first
}

// PolluxJob is what is noted of one job.
type PolluxJob struct {
	ID   string `json:"id"`
	Most int    `json:"most"` // GPUs that it ever had
}

// PolluxShare is {job, node, GPUs}: what one job has on one node in a solution. Job and node are indices of the lists.
type PolluxShare [3]int

// validate returns an error that names the first thing wrong.
func (m *PolluxMemory) validate() error {
	if m == nil {
		return nil
	}
	for i, id := range m.Nodes {
		if id == "" || i > 0 && id <= m.Nodes[i-1] {
			return fmt.Errorf("policy: state: pollux: node %q (number %d) is out of order, named twice or without a name", id, i)
		}
	}
	for i, j := range m.Jobs {
		if j.ID == "" || i > 0 && j.ID <= m.Jobs[i-1].ID || j.Most < 0 {
			return fmt.Errorf("policy: state: pollux: job %q (number %d, at most %d GPUs) is out of order, named twice, without a name or negative",
				j.ID, i, j.Most)
		}
	}
	for n, solution := range m.Solutions {
		for i, s := range solution {
			if s[0] < 0 || s[0] >= len(m.Jobs) || s[1] < 0 || s[1] >= len(m.Nodes) || s[2] < 1 ||
				i > 0 && cmp.Or(cmp.Compare(solution[i-1][0], s[0]), cmp.Compare(solution[i-1][1], s[1])) >= 0 {
				return fmt.Errorf("policy: state: pollux: solution %d: share %v (number %d) is out of order or range", n, s, i)
			}
		}
	}
	return nil
}

// largest returns the most GPUs that a job ever had, with what it has now.
func (m *PolluxMemory) largest(job string, now int) int {
	if m != nil {
		if i, ok := slices.BinarySearchFunc(m.Jobs, job, func(j PolluxJob, id string) int { return cmp.Compare(j.ID, id) }); ok {
			return max(now, m.Jobs[i].Most)
		}
	}
	return now
}

// solutions returns the solutions of the round before as rows of this one: new jobs have nothing, jobs and nodes that
// are gone are left out.
func (m *PolluxMemory) solutions(r *polluxRound) [][]row {
	if m == nil {
		return nil
	}
	index := make(map[string]int, len(r.jobs))
	for at := range r.jobs {
		index[r.jobs[at].job.ID] = at
	}
	var out [][]row
	for _, shares := range m.Solutions[:min(noted, len(m.Solutions))] {
		rows := make([]row, len(r.jobs))
		for _, s := range shares {
			at, known := index[m.Jobs[s[0]].ID]
			node, there := r.Space.Index(m.Nodes[s[1]])
			if known && there {
				rows[at] = append(rows[at], seat{node, s[2]})
			}
		}
		out = append(out, rows)
	}
	return out
}

// note makes the memory of a round.
func (r *polluxRound) note(population []*solution) *PolluxMemory {
	m := &PolluxMemory{}
	for n := range r.Space.Len() {
		m.Nodes = append(m.Nodes, r.Space.Node(n).ID)
	}
	order := r.everybody()
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(r.jobs[a].job.ID, r.jobs[b].job.ID) })
	for _, at := range order {
		c := &r.jobs[at]
		m.Jobs = append(m.Jobs, PolluxJob{c.job.ID, r.Memory.Pollux.largest(c.job.ID, max(c.base.gpus(), population[0].rows[at].gpus()))})
	}
	for _, x := range population[:min(noted, len(population))] {
		shares := []PolluxShare{}
		for i, at := range order {
			for _, s := range x.rows[at] {
				shares = append(shares, PolluxShare{i, s.node, s.gpus})
			}
		}
		m.Solutions = append(m.Solutions, shares)
	}
	return m
}
