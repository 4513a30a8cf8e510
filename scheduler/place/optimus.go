package place

import "cmp"

// Optimus places a job by Theorem 1 of the Optimus paper (§4.2): on the fewest servers, taken from those with the
// most free, on which its tasks can be dealt evenly.
//
// By default it goes beyond the theorem where that is silent or wrong: servers are ranked by the resource of which
// the job takes the largest share, and those without room for any of its tasks are left out; surplus tasks, when the
// number of servers does not divide p or w, are dealt so that a step's [Traffic] is least; the tasks of one role are
// gathered on few servers if that is faster, which happens when servers have room to spare (3 ps and 30 workers on
// servers of 16 slots: traffic 16 where dealing evenly gives 20); and tasks are dealt unevenly where no even deal
// fits, as on servers of different shapes.
type Optimus struct {
	// Paper keeps to the letter of the paper: servers ranked by resource Key, only even deals, surplus tasks of
	// both roles on the first servers.
	Paper bool
	Key   int // index of a resource type
}

// Name returns "optimus" or "optimus-paper".
func (o Optimus) Name() string {
	if o.Paper {
		return "optimus-paper"
	}
	return "optimus"
}

// Place implements [Strategy].
func (o Optimus) Place(s *Space, j *Job) Placement {
	if o.Paper {
		return book(s, j, newQueue(s, j, o.Key, true).even(false))
	}
	q := newQueue(s, j, s.dominant(j), false)
	k := q.fewest()
	if k == 0 {
		return nil
	}
	best := q.gather(PS, q.gather(Worker, q.even(true)))
	if best == nil || Traffic(best) > q.bound(k) || s.Len() <= thorough && len(best) > 1 {
		b := q.broad(k)
		for _, p := range []Placement{b.even(true), b.fill(), b.fill(PS), b.fill(Worker)} {
			best = q.better(best, p)
		}
		best = b.gather(PS, b.gather(Worker, b.uneven(k, best)))
	}
	return book(s, j, best)
}

// even deals the job evenly over the first k servers, for the least k of which all shares fit; nil if there is none.
// The surplus tasks of a role, where k does not divide it, go to the first servers; with pair they may also go to
// the last instead, so that no server has a surplus of both, whichever gives less traffic.
func (q *queue) even(pair bool) Placement {
	j := q.j
	sum, limit := make(Vector, q.s.types), max(j.Tasks[PS], j.Tasks[Worker])
	if pair {
		limit = j.Tasks.Total()
	}
	for k := 1; k <= limit; k++ {
		node, ok := q.at(k - 1)
		if !ok {
			return nil
		}
		for r, free := range q.s.Free(node) {
			sum[r] += free
		}
		if !j.fits(j.Tasks, sum) {
			continue
		}
		best := q.deal(k, 0)
		if surplus := j.Tasks[Worker] % k; pair && surplus > 0 && j.Tasks[PS]%k > 0 {
			best = q.better(best, q.deal(k, k-surplus))
		}
		if best != nil {
			return best
		}
	}
	return nil
}

// deal gives each of the first k servers ⌊p/k⌋ ps and ⌊w/k⌋ workers, and the surplus to the servers from number 0 on
// (ps) and from number shift on (workers). It returns nil if a server cannot hold its share.
func (q *queue) deal(k, shift int) Placement {
	for pass := range 2 { // the first only checks: most deals do not fit
		out := Placement(nil)
		if pass == 1 {
			out = make(Placement, 0, k)
		}
		for i := range k {
			c := Counts{part(q.j.Tasks[PS], k, i), part(q.j.Tasks[Worker], k, (i-shift+k)%k)}
			if pass == 1 {
				out = append(out, Share{Node: q.seen[i], Tasks: c})
			} else if !q.j.fits(c, q.s.Free(q.seen[i])) {
				return nil
			}
		}
		if pass == 1 {
			return out
		}
	}
	return nil
}

// part returns the size of part i when n is cut into k parts that differ by at most 1, the larger ones first.
func part(n, k, i int) int {
	if i < n%k {
		return n/k + 1
	}
	return n / k
}

// gather looks for something faster than best: all tasks of one role, the hosts, on m servers, with as many tasks of
// the other role beside them as fit, the same number at each host, and the rest elsewhere. The time of such a
// placement is that of a host, O − a for O tasks of the other role of which a are at its side, or that of a task
// without a host, which talks to all H of them.
func (q *queue) gather(host Role, best Placement) Placement {
	other := 1 - host
	hosts, others := q.j.Tasks[host], q.j.Tasks[other]
	for m := 1; m <= hosts; m++ {
		// More servers leave each host fewer companions: once the bound is reached nothing better can follow.
		if best != nil && max(others-others/m, hosts) >= Traffic(best) {
			break
		}
		if _, ok := q.at(m - 1); !ok {
			break
		}
		side := others / m
		for i := range m {
			var c Counts
			c[host] = part(hosts, m, i)
			side = min(side, q.room(q.seen[i], other, c))
		}
		if side >= 0 {
			best = q.better(best, q.around(host, m, side))
		}
	}
	return best
}

// around lays the hosts on m servers with side tasks of the other role at each, and the rest where there is room.
func (q *queue) around(host Role, m, side int) Placement {
	other := 1 - host
	left := q.j.Tasks[other] - m*side
	var out Placement
	for i := 0; i < m || left > 0; i++ {
		node, ok := q.at(i)
		if !ok {
			return nil
		}
		var c Counts
		if i < m {
			c[host], c[other] = part(q.j.Tasks[host], m, i), side
		}
		more := min(left, max(0, q.room(node, other, c)))
		c[other] += more
		left -= more
		out = append(out, Share{Node: node, Tasks: c})
	}
	return out
}

// better returns the placement with less traffic, by the task and then by the node, on fewer nodes; one that misses
// tasks counts as none.
func (q *queue) better(a, b Placement) Placement {
	switch {
	case b.Total() != q.j.Tasks:
		return a
	case a.Total() != q.j.Tasks:
		return b
	}
	if cmp.Or(cmp.Compare(Traffic(b), Traffic(a)), cmp.Compare(NodeTraffic(b), NodeTraffic(a)), cmp.Compare(len(b), len(a))) < 0 {
		return b
	}
	return a
}
