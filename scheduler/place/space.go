package place

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// Space is what is free on the nodes of a cluster. Nodes are indexed in the order of their IDs, whatever the order
// in which they were listed.
type Space struct {
	nodes    []Node
	types    int     // resource types
	free     []int64 // node-major
	withheld Vector
	total    Vector     // capacity of all nodes
	byType   []*ranking // by free amount of one type; nil until asked for
	byLeast  *ranking   // by mean free fraction; nil until asked for
	firstFit *tree      // nil until asked for
	shapes   []Vector   // distinct capacities
}

// NewSpace returns the space of empty nodes. It fails if there are none, if two share an ID, or if capacities differ
// in length, are empty or negative.
func NewSpace(nodes []Node) (*Space, error) {
	if len(nodes) == 0 {
		return nil, fmt.Errorf("place: the cluster has no nodes; add at least one")
	}
	types := len(nodes[0].Capacity)
	if types == 0 {
		return nil, fmt.Errorf("place: node %q has no resources; give it a capacity of at least one type", nodes[0].ID)
	}
	sorted := slices.Clone(nodes)
	slices.SortFunc(sorted, func(a, b Node) int { return cmp.Compare(a.ID, b.ID) })
	s := &Space{nodes: sorted, types: types, free: make([]int64, 0, types*len(nodes)), total: make(Vector, types)}
	for i, n := range sorted {
		if i > 0 && n.ID == sorted[i-1].ID {
			return nil, fmt.Errorf("place: two nodes are called %q; give each its own ID", n.ID)
		}
		if len(n.Capacity) != types {
			return nil, fmt.Errorf("place: node %q has %d resource types, node %q has %d; list the same types for all",
				n.ID, len(n.Capacity), nodes[0].ID, types)
		}
		for r, c := range n.Capacity {
			if c < 0 {
				return nil, fmt.Errorf("place: node %q has capacity %d of resource %d; it must not be negative", n.ID, c, r)
			}
			s.total[r] += c
			if s.total[r] < 0 {
				return nil, fmt.Errorf("place: the cluster's capacity of resource %d overflows at node %q; use a larger unit", r, n.ID)
			}
		}
		s.free = append(s.free, n.Capacity...)
	}
	s.shapes = distinct(sorted)
	s.byType = make([]*ranking, types)
	return s, nil
}

// Len returns the number of nodes.
func (s *Space) Len() int { return len(s.nodes) }

// Node returns node i.
func (s *Space) Node(i int) Node { return s.nodes[i] }

// Index returns the index of the node with an ID, and whether there is one.
func (s *Space) Index(id string) (int, bool) {
	return slices.BinarySearchFunc(s.nodes, id, func(n Node, id string) int { return cmp.Compare(n.ID, id) })
}

// Capacity returns the capacity of all nodes together.
func (s *Space) Capacity() Vector { return s.total }

// Withhold leaves an amount out of Available from now on: what lies about in pieces too small for any task.
func (s *Space) Withhold(v Vector) { s.withheld = v }

// Available returns the capacity that is for allocation: all but what is withheld.
func (s *Space) Available() Vector {
	out := slices.Clone(s.total)
	for r, w := range s.withheld {
		out[r] -= min(w, out[r])
	}
	return out
}

// Free returns what is free on node i. The caller must not change it.
func (s *Space) Free(i int) Vector { return s.free[i*s.types : (i+1)*s.types : (i+1)*s.types] }

// Share returns the dominant share of an amount: the largest fraction that it is of the cluster's capacity of any
// type, and that type. A type of which the cluster has none makes the share +Inf if it is asked for.
func (s *Space) Share(amount func(r int) int64) (share float64, dominant int) {
	for r, c := range s.total {
		if a := amount(r); a > 0 {
			if f := float64(a) / float64(c); f > share {
				share, dominant = f, r
			}
		}
	}
	return share, dominant
}

// Take books a placement of the job's tasks; it reports false, and books nothing, if they do not fit.
func (s *Space) Take(j *Job, p Placement) bool {
	for _, sh := range p {
		if !j.fits(sh.Tasks, s.Free(sh.Node)) {
			return false
		}
	}
	s.change(j, p, -1)
	return true
}

// Release gives back what Take booked.
func (s *Space) Release(j *Job, p Placement) { s.change(j, p, 1) }

func (s *Space) change(j *Job, p Placement, sign int64) {
	for _, sh := range p {
		free := s.Free(sh.Node)
		for r := range free {
			n := j.need(sh.Tasks, r)
			if n == 0 {
				continue
			}
			free[r] += sign * n
			if rank := s.byType[r]; rank != nil {
				rank.update(sh.Node, float64(free[r]))
			}
		}
		if s.byLeast != nil {
			s.byLeast.update(sh.Node, s.freeFraction(sh.Node))
		}
		if s.firstFit != nil {
			s.firstFit.update(s, sh.Node)
		}
	}
}

// ranked returns the nodes by their free amount of resource r.
func (s *Space) ranked(r int) *ranking {
	if s.byType[r] == nil {
		s.byType[r] = newRanking(s.Len(), func(i int) float64 { return float64(s.Free(i)[r]) })
	}
	return s.byType[r]
}

// leastAllocated returns the nodes by the mean, over the types that they have, of the fraction that is free.
func (s *Space) leastAllocated() *ranking {
	if s.byLeast == nil {
		s.byLeast = newRanking(s.Len(), s.freeFraction)
	}
	return s.byLeast
}

func (s *Space) freeFraction(i int) float64 {
	sum, types := 0.0, 0
	for r, c := range s.nodes[i].Capacity {
		if c > 0 {
			sum += float64(s.Free(i)[r]) / float64(c)
			types++
		}
	}
	return sum / float64(max(types, 1))
}

// dominant returns the resource type of which the job's tasks need the largest fraction of the cluster.
func (s *Space) dominant(j *Job) int {
	_, r := s.Share(func(r int) int64 { return j.need(j.Tasks, r) })
	return r
}

// Check returns an error that says why a job can never run here: its demands are not of the cluster's types, or
// negative, or one of its tasks is larger than every node. Strategies take jobs that have passed.
func (s *Space) Check(j *Job) error {
	for role, demand := range j.Demand {
		role := Role(role)
		if j.Tasks[role] < 0 {
			return fmt.Errorf("place: job %q asks for %d %s tasks; it must not be negative", j.ID, j.Tasks[role], role)
		}
		if len(demand) != s.types {
			return fmt.Errorf("place: job %q: the demand of a %s has %d resource types, the cluster has %d; list the same types",
				j.ID, role, len(demand), s.types)
		}
		some := false
		for r, d := range demand {
			if d < 0 {
				return fmt.Errorf("place: job %q: a %s demands %d of resource %d; it must not be negative", j.ID, role, d, r)
			}
			some = some || d > 0
		}
		if j.Tasks[role] == 0 {
			continue
		}
		if !some {
			return fmt.Errorf("place: job %q: a %s demands nothing, so any number would fit; give it a demand", j.ID, role)
		}
		if !s.anyHolds(demand) {
			return fmt.Errorf("place: job %q: a %s demands %v, more than any node has; use larger nodes or smaller tasks",
				j.ID, role, []int64(demand))
		}
	}
	return nil
}

// anyHolds reports whether some empty node has room for a demand.
func (s *Space) anyHolds(demand Vector) bool {
	return slices.ContainsFunc(s.shapes, demand.Fits)
}

// distinct returns the capacities that occur.
func distinct(nodes []Node) []Vector {
	all := make([]Vector, len(nodes))
	for i, n := range nodes {
		all[i] = n.Capacity
	}
	slices.SortFunc(all, slices.Compare[Vector])
	return slices.CompactFunc(all, slices.Equal[Vector])
}

// Holds reports whether empty nodes, each by itself, have room for all tasks of each role and, all nodes together,
// for both. A job for which this is false can never run; for one of several roles and resources it may be true of a
// job that still cannot be placed.
func (s *Space) Holds(j *Job) bool {
	for r, c := range s.total {
		if j.need(j.Tasks, r) > c {
			return false
		}
	}
	for role, demand := range j.Demand {
		if room := int64(j.Tasks[role]); room > 0 {
			for i := 0; i < len(s.nodes) && room > 0; i++ {
				room -= times(demand, s.nodes[i].Capacity)
			}
			if room > 0 {
				return false
			}
		}
	}
	return true
}

// times returns how often a demand, which is not zero, fits into a capacity.
func times(demand, capacity Vector) int64 {
	n := int64(math.MaxInt64)
	for r, d := range demand {
		if d > 0 {
			n = min(n, capacity[r]/d)
		}
	}
	return n
}
