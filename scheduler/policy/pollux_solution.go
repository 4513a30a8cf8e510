package policy

import "slices"

// solution is a plan of the round that keeps its rules.
type solution struct {
	rows  []row
	free  []int64 // node-major
	room  [][]int // by kind of demand, then node: GPUs that it could take
	spans []int   // jobs on the node that span several
	sum   float64 // of the jobs' terms
}

// empty is the solution in which nobody has anything.
func (r *polluxRound) empty() *solution {
	x := &solution{rows: make([]row, len(r.jobs)), room: make([][]int, len(r.demands)), spans: make([]int, r.Space.Len())}
	for n := range r.Space.Len() {
		x.free = append(x.free, r.Space.Free(n)...)
	}
	for kind, d := range r.demands {
		for n := range r.Space.Len() {
			x.room[kind] = append(x.room[kind], times(d, r.Space.Free(n)))
		}
	}
	for at := range r.jobs {
		x.sum += r.jobs[at].idle
	}
	return x
}

// set replaces the row of a job; it must fit.
func (r *polluxRound) set(x *solution, at int, to row) {
	c := &r.jobs[at]
	x.sum += r.termOf(c, to) - r.termOf(c, x.rows[at])
	r.book(x, c, x.rows[at], -1)
	r.book(x, c, to, 1)
	x.rows[at] = to
}

func (r *polluxRound) book(x *solution, c *contender, w row, sign int) {
	for _, s := range w {
		if len(w) > 1 {
			x.spans[s.node] += sign
		}
		free := x.free[s.node*r.types : (s.node+1)*r.types]
		for t, d := range r.demands[c.kind] {
			free[t] -= int64(sign*s.gpus) * d
		}
		for kind, d := range r.demands {
			x.room[kind][s.node] = times(d, free)
		}
	}
}

// open reports whether a job that spans nodes may take this one.
func (r *polluxRound) open(x *solution, node int) bool { return r.Overlap || x.spans[node] == 0 }

// holds reports whether there is room for a row of a job that has nothing.
func (x *solution) holds(c *contender, w row) bool {
	return !slices.ContainsFunc(w, func(s seat) bool { return x.room[c.kind][s.node] < s.gpus })
}

// fits reports whether a job that has nothing may take a row.
func (r *polluxRound) fits(x *solution, c *contender, w row) bool {
	closed := func(s seat) bool { return !r.open(x, s.node) }
	return r.allows(c, w) && x.holds(c, w) && (len(w) == 1 || !slices.ContainsFunc(w, closed))
}

// repair returns the solution that is left of rows that may break the rules; earlier jobs go first. Pinned ones have
// what they have, even if another policy let them span the same node.
func (r *polluxRound) repair(rows []row) *solution {
	x := r.empty()
	if r.Quirks.JudgeEarly {
		rows = r.evict(rows)
	}
	for at := range rows {
		if c := &r.jobs[at]; c.fixed && x.holds(c, c.base) {
			r.set(x, at, c.base)
		} else {
			r.set(x, at, r.trim(x, c, rows[at]))
		}
	}
	return x
}

// trim returns the part of a row that a job, which has nothing, can have.
func (r *polluxRound) trim(x *solution, c *contender, w row) row {
	if r.fits(x, c, w) {
		return w
	}
	left := c.limit
	var out row
	for _, s := range w {
		if s.gpus = min(s.gpus, left, x.room[c.kind][s.node]); s.gpus > 0 && (r.MaxNodes == 0 || len(out) < r.MaxNodes) {
			out = append(out, s)
			left -= s.gpus
		}
	}
	if len(out) > 1 {
		out = slices.DeleteFunc(out, func(s seat) bool { return !r.open(x, s.node) })
	}
	if out.gpus() < c.least {
		return nil
	}
	return out
}

// allows reports whether a row, not an empty one, is within a job's bounds.
func (r *polluxRound) allows(c *contender, w row) bool {
	gpus := w.gpus()
	return c.least <= gpus && gpus <= c.limit && (r.MaxNodes == 0 || len(w) <= r.MaxNodes)
}

// evict lets each node keep the first job that spans several; see [Quirks].
func (r *polluxRound) evict(rows []row) []row {
	seen, out := make([]int, r.Space.Len()), make([]row, len(rows))
	for at, w := range rows {
		for _, s := range w {
			if len(w) > 1 {
				seen[s.node]++
			}
			if r.Overlap || seen[s.node] < 2 || len(w) == 1 && !r.Quirks.EvictAll {
				out[at] = append(out[at], s)
			}
		}
	}
	return out
}
