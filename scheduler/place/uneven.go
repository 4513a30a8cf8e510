package place

import (
	"cmp"
	"math"
	"slices"
)

// thorough is the number of nodes up to which every node is a candidate for every job.
const thorough = 64

// extra is how many servers more than the fewest uneven looks at: with k servers a step's traffic is at least
// w − w/k, so each further one can gain little.
const extra = 4

// fewest returns the least number of servers whose free amounts, type by type, could add up to the job's need; any
// placement has at least so many. It returns 0 if all of them together have too little, or if there would be more
// servers than tasks.
func (q *queue) fewest() int {
	k := 1
	for r := range q.s.types {
		need, have, n := q.j.need(q.j.Tasks, r), int64(0), 0
		for w := q.s.ranked(r).walk(); have < need; n++ {
			node := w.next()
			if node < 0 || q.s.Free(node)[r] == 0 || n == q.j.Tasks.Total() {
				return 0
			}
			have += q.s.Free(node)[r]
		}
		k = max(k, n)
	}
	return k
}

// bound returns the least traffic of tasks that are spread over k servers, each with both roles.
func (q *queue) bound(k int) int {
	p, w := q.j.Tasks[PS], q.j.Tasks[Worker]
	return max(w-w/k, p-p/k)
}

// broad returns the queue of all nodes that rank high in any resource, ordered by the fraction of the job that one
// holds. Where nodes have different shapes that is another order than by what they have free of one resource.
func (q *queue) broad(k int) *queue {
	count := 2 * (k + extra)
	if q.s.Len() <= thorough {
		count = q.s.Len()
	}
	b := &queue{s: q.s, j: q.j, walk: &walk{}}
	for r := range q.s.types {
		if q.j.need(q.j.Tasks, r) == 0 {
			continue
		}
		w := q.s.ranked(r).walk()
		for range min(count, q.s.Len()) {
			b.seen = append(b.seen, w.next())
		}
	}
	slices.Sort(b.seen)
	b.seen = slices.Compact(b.seen)
	b.seen = slices.DeleteFunc(b.seen, func(n int) bool { return b.room(n, PS, Counts{}) <= 0 && b.room(n, Worker, Counts{}) <= 0 })
	slices.SortStableFunc(b.seen, func(x, y int) int { return cmp.Compare(b.fraction(y), b.fraction(x)) })
	return b
}

// fraction returns how much of the job a node could hold if tasks were divisible, at most 1.
func (q *queue) fraction(node int) float64 {
	f := 1.0
	for r, free := range q.s.Free(node) {
		if need := q.j.need(q.j.Tasks, r); need > 0 {
			f = min(f, float64(free)/float64(need))
		}
	}
	return f
}

// uneven looks for a placement on k servers, each with at least b ps and a workers and otherwise as full as need be,
// whose traffic max(w − a, p − b) is less than best's.
func (q *queue) uneven(k int, best Placement) Placement {
	limit := math.MaxInt
	if best != nil {
		limit = Traffic(best)
	}
	p, w := q.j.Tasks[PS], q.j.Tasks[Worker]
	for n := k; n <= min(k+extra, len(q.seen)) && q.bound(n) < limit; n++ {
		// Steps bound the search for large jobs to some 100 tries.
		for a := w / n; a >= 0 && w-a < limit; a -= 1 + w/n/8 {
			for b := p / n; b >= 0 && p-b < limit; b -= 1 + p/n/8 {
				if found := q.atLeast(n, Counts{b, a}); found != nil {
					best = q.better(best, found)
					limit = Traffic(best)
				}
			}
		}
	}
	return best
}

// atLeast places the job on the first n candidates that have room for least, each with no less than that.
func (q *queue) atLeast(n int, least Counts) Placement {
	var out Placement
	left := q.j.Tasks
	for _, node := range q.seen {
		if len(out) < n && q.j.fits(least, q.s.Free(node)) {
			out = append(out, Share{Node: node, Tasks: least})
			left[PS] -= least[PS]
			left[Worker] -= least[Worker]
		}
	}
	if len(out) < n {
		return nil
	}
	for i := range out {
		q.top(&out[i], &left)
	}
	if left != (Counts{}) {
		return nil
	}
	return out
}

// top adds to a share what fits of the tasks that are left, keeping to the proportion in which they are left.
func (q *queue) top(sh *Share, left *Counts) {
	whole := *left
	for {
		role := Worker
		if left[PS]*whole[Worker] > left[Worker]*whole[PS] || left[Worker] == 0 {
			role = PS
		}
		if left[role] == 0 || q.room(sh.Node, role, sh.Tasks) <= 0 {
			if role = 1 - role; left[role] == 0 || q.room(sh.Node, role, sh.Tasks) <= 0 {
				return
			}
		}
		sh.Tasks[role]++
		left[role]--
	}
}
