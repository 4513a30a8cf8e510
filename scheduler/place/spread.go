package place

import "slices"

// Spread is the default of Kubernetes: each task by itself goes to the node of which the largest part is free (the
// mean over resource types; lowest ID on ties), ps and workers in turn. It balances load and knows nothing of traffic.
type Spread struct{}

// Name returns "spread".
func (Spread) Name() string { return "spread" }

// Place implements [Strategy].
func (Spread) Place(s *Space, j *Job) Placement {
	rank := s.leastAllocated()
	var out Placement
	left := j.Tasks
	for role := PS; left != (Counts{}); role = 1 - role {
		if left[role] == 0 {
			continue
		}
		one := Counts{}
		one[role] = 1
		node, w := -1, rank.walk()
		for node = w.next(); node >= 0 && !j.fits(one, s.Free(node)); node = w.next() {
		}
		if node < 0 {
			s.Release(j, out)
			return nil
		}
		s.Take(j, Placement{{Node: node, Tasks: one}})
		left[role]--
		out = add(out, node, one)
	}
	return tidy(out)
}

// add counts tasks at a node.
func add(p Placement, node int, c Counts) Placement {
	if i := slices.IndexFunc(p, func(s Share) bool { return s.Node == node }); i >= 0 {
		p[i].Tasks[PS] += c[PS]
		p[i].Tasks[Worker] += c[Worker]
		return p
	}
	return append(p, Share{Node: node, Tasks: c})
}

// MostFree takes the node with the most free of the job's dominant resource (lowest ID on ties), puts there all that
// fits, and goes on with the next: packed, on few nodes. Schedulers of GPU jobs without ps place so.
type MostFree struct{}

// Name returns "most-free".
func (MostFree) Name() string { return "most-free" }

// Place implements [Strategy].
func (MostFree) Place(s *Space, j *Job) Placement {
	return book(s, j, newQueue(s, j, s.dominant(j), false).fill())
}
