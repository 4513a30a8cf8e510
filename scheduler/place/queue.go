package place

import "math"

// queue is the nodes that could hold tasks of one job, most free first. It reads the ranking only as far as it is
// asked to.
type queue struct {
	s    *Space
	j    *Job
	walk *walk
	all  bool    // keep nodes that cannot hold a single task
	last float64 // the least that a task needs of the ranked resource: below this no node holds any
	seen []int
}

// newQueue ranks the nodes by what is free of resource r.
func newQueue(s *Space, j *Job, r int, all bool) *queue {
	last := int64(math.MaxInt64)
	for role, n := range j.Tasks {
		if n > 0 {
			last = min(last, j.Demand[role][r])
		}
	}
	return &queue{s: s, j: j, walk: s.ranked(r).walk(), all: all, last: float64(last)}
}

// at returns node number i of the queue, from 0, and whether there are so many.
func (q *queue) at(i int) (int, bool) {
	for len(q.seen) <= i {
		node := q.walk.next()
		if node < 0 || q.walk.r.keys[node] < q.last {
			q.walk.frontier = nil
			return 0, false
		}
		if q.all || q.room(node, PS, Counts{}) > 0 || q.room(node, Worker, Counts{}) > 0 {
			q.seen = append(q.seen, node)
		}
	}
	return q.seen[i], true
}

// room returns how many tasks of a role fit on a node beside those in c, at most as many as the job has; it is −1
// if c alone does not fit.
func (q *queue) room(node int, role Role, c Counts) int {
	n := q.j.Tasks[role]
	for r, free := range q.s.Free(node) {
		left := free - q.j.need(c, r)
		if left < 0 {
			return -1
		}
		if d := q.j.Demand[role][r]; d > 0 {
			n = min(n, int(left/d))
		}
	}
	return n
}

// fill puts on node after node what fits there, keeping p : w on each as near to the job's as the room allows, and
// returns what it placed: all of the job if the nodes can hold it that way. If first is a role, its tasks are all
// placed before the other's.
func (q *queue) fill(first ...Role) Placement {
	var out Placement
	left := q.j.Tasks
	for i := 0; left != (Counts{}); i++ {
		node, ok := q.at(i)
		if !ok {
			break
		}
		var c Counts
		for {
			role := q.lagging(left)
			if len(first) > 0 && left[first[0]] > 0 {
				role = first[0]
			}
			if left[role] == 0 || q.room(node, role, c) <= 0 {
				if role = 1 - role; left[role] == 0 || q.room(node, role, c) <= 0 {
					break
				}
			}
			c[role]++
			left[role]--
		}
		out = append(out, Share{Node: node, Tasks: c})
	}
	return out
}

// lagging returns the role of which the larger fraction is still to be placed; workers on ties.
func (q *queue) lagging(left Counts) Role {
	if left[PS]*q.j.Tasks[Worker] > left[Worker]*q.j.Tasks[PS] {
		return PS
	}
	return Worker
}
