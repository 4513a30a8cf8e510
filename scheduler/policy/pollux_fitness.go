package policy

import (
	"cmp"
	"math"
	"slices"

	"optimus/internal/rng"
	"optimus/scheduler/place"
)

// floor is added to each speedup, so that a job without GPUs costs much but not everything.
const floor = 1e-3

// steepest is the exponent by which plans are compared for a P below it: the mean is then within a few percent of the
// least speedup, and all numbers stay in range.
const steepest = -64

// contender is one job in the search.
type contender struct {
	job   *Job
	index int // in Round.Jobs
	base  row // where it is now
	kind  int // of its demand
	fixed bool
	least int // GPUs, if it gets any
	limit int // GPUs at most
	total int // GPUs for it in the whole cluster

	fairGPUs int
	fair     float64 // goodput on the fair share
	retain   float64 // re-allocation factor: what counts of the speedup after a change

	idle, keep float64     // terms of the fitness without GPUs, and at base
	terms      [][]float64 // by GPUs, then nodes: the terms after a change; NaN where not computed yet
}

// polluxRound is one round of it.
type polluxRound struct {
	Pollux
	*Round
	rng     *rng.Stream
	jobs    []contender    // earlier ones go first where they compete for a node
	demands []place.Vector // the different ones of a worker
	types   int            // of resources
	nodes   []int          // scratch: those with room
	count   []int          // scratch: nodes by room
}

// newRound prepares the jobs: pinned ones first, then by attained service, submission, ID.
func (p Pollux) newRound(r *Round) *polluxRound {
	s := &polluxRound{Pollux: p, Round: r, rng: rng.NewKey(p.Seed, r.Number).Stream(), types: len(r.Space.Capacity())}
	for i := range r.Jobs {
		s.jobs = append(s.jobs, s.contender(i))
	}
	slices.SortStableFunc(s.jobs, func(a, b contender) int {
		if a.fixed != b.fixed {
			return map[bool]int{true: -1, false: 1}[a.fixed]
		}
		return cmp.Compare(a.job.Service, b.job.Service)
	})
	return s
}

func (r *polluxRound) contender(i int) contender {
	j := &r.Jobs[i]
	c := contender{job: j, index: i, base: rowOf(r.Placed[i]), least: j.least()[place.Worker]}
	room := make([]int, r.Space.Len())
	for n := range room {
		room[n] = times(j.Demand[place.Worker], r.Space.Free(n))
		c.total += room[n]
	}
	c.limit = max(c.least, 2*r.Memory.Pollux.largest(j.ID, c.base.gpus())) // the doubling rule
	for _, bound := range []int{j.Max[place.Worker], r.MaxGPUs} {
		if bound > 0 {
			c.limit = min(c.limit, bound)
		}
	}
	c.limit = min(c.limit, c.total)
	if c.kind = slices.IndexFunc(r.demands, func(d place.Vector) bool { return slices.Equal(d, j.Demand[place.Worker]) }); c.kind < 0 {
		c.kind = len(r.demands)
		r.demands = append(r.demands, j.Demand[place.Worker])
	}
	c.fixed = j.Pinned && r.allows(&c, c.base)
	r.share(&c, room)
	age := max(0, r.Now-j.Submitted)
	if c.retain = max(0, age-r.Delay*float64(j.Restarts)) / (age + r.Delay); math.IsNaN(c.retain) ||
		len(c.base) == 0 && !r.Quirks.StartPays {
		c.retain = 1
	}
	c.idle = r.term(&c, 0)
	c.keep = r.term(&c, r.speedup(&c, len(c.base), c.base.gpus()))
	c.terms = make([][]float64, c.limit+1)
	return c
}

// share finds the fair share: the job's part of the cluster, rounded up, on the fewest nodes. A job that cannot run on
// so many GPUs is compared with the largest half, quarter and so on of it that it can.
func (r *polluxRound) share(c *contender, room []int) {
	c.fairGPUs = (c.total + len(r.Jobs) - 1) / len(r.Jobs)
	if c.job.Goodput == nil {
		return
	}
	slices.SortFunc(room, func(a, b int) int { return b - a })
	for gpus := c.fairGPUs; gpus > 0 && c.fair == 0; gpus /= 2 {
		nodes := 1
		for left := gpus - room[0]; left > 0 && !r.Quirks.OneNode; nodes++ {
			left -= room[nodes]
		}
		c.fair = goodput(c.job, nodes, gpus)
	}
	if c.fair == 0 {
		c.fair = max(goodput(c.job, 1, c.least), goodput(c.job, c.least, c.least))
	}
}

// speedup is the goodput relative to that of the fair share (SPEEDUP_j, §4.2), without the re-allocation factor.
func (r *polluxRound) speedup(c *contender, nodes, gpus int) float64 {
	switch {
	case gpus == 0:
		return 0
	case c.job.Goodput == nil:
		return float64(gpus) / float64(c.fairGPUs)
	}
	return goodput(c.job, nodes, gpus) / c.fair
}

// counted is what enters the power mean for a speedup.
func (r *polluxRound) counted(c *contender, speedup float64) float64 {
	if r.Quirks.Scaled {
		speedup *= float64(r.Space.Len()) / float64(c.total)
	}
	return speedup + floor
}

// term is what a job's speedup adds to the sum that the search maximises: the larger the sum, the larger the fitness.
func (r *polluxRound) term(c *contender, speedup float64) float64 {
	switch s, p := r.counted(c, speedup), max(r.P, steepest); {
	case p == 0:
		return math.Log(s)
	case p > 0:
		return math.Pow(s, p)
	default:
		return -math.Pow(s, p)
	}
}

// changed returns the term of a job that is moved to so many GPUs and nodes.
func (r *polluxRound) changed(c *contender, nodes, gpus int) float64 {
	if gpus >= len(c.terms) || nodes > r.Space.Len() { // beyond the limit: of a plan that breaks it
		return r.term(c, c.retain*r.speedup(c, nodes, gpus))
	}
	byNodes := c.terms[gpus]
	for len(byNodes) < nodes {
		byNodes = append(byNodes, math.NaN())
	}
	if c.terms[gpus] = byNodes; math.IsNaN(byNodes[nodes-1]) {
		byNodes[nodes-1] = r.term(c, c.retain*r.speedup(c, nodes, gpus))
	}
	return byNodes[nodes-1]
}

// termOf returns the term of any row.
func (r *polluxRound) termOf(c *contender, to row) float64 {
	switch {
	case len(to) == 0:
		return c.idle
	case slices.Equal(to, c.base):
		return c.keep
	}
	return r.changed(c, len(to), to.gpus())
}

// speedups returns each contender's speedup in a plan, with the re-allocation factor where it is changed.
func (r *polluxRound) speedups(x *solution) []float64 {
	out := make([]float64, len(r.jobs))
	for at := range r.jobs {
		c, to := &r.jobs[at], x.rows[at]
		if out[at] = r.speedup(c, len(to), to.gpus()); !slices.Equal(to, c.base) {
			out[at] *= c.retain
		}
	}
	return out
}

// fitness is FITNESS_p of such speedups, each with its floor (§4.2).
func (r *polluxRound) fitness(speedups []float64) float64 {
	sum, least := 0.0, math.Inf(1)
	for at, s := range speedups {
		s = r.counted(&r.jobs[at], s)
		least = min(least, s)
		if r.P == 0 {
			sum += math.Log(s)
		} else {
			sum += math.Pow(s, r.P)
		}
	}
	switch mean := sum / float64(len(speedups)); {
	case math.IsInf(r.P, -1):
		return least
	case r.P == 0:
		return math.Exp(mean)
	default:
		return math.Pow(mean, 1/r.P)
	}
}

// times returns how many workers of a demand fit into room.
func times(demand, room place.Vector) int {
	n := int64(math.MaxInt32)
	for t, d := range demand {
		if d > 0 {
			n = min(n, room[t]/d)
		}
	}
	return int(n)
}
