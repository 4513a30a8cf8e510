package policy

import "slices"

// The search's effort, found by experiment: six times as much gains 0.04 % of the fitness on average.
const (
	populationSize = 4
	attempts       = 8 // solutions that are improved, starts and children
	widest         = 8 // nodes that are dealt anew at once
	others         = 4 // jobs that then compete with those of the nodes
	noted          = 2 // solutions that the next round starts from
)

// search returns the population in which it ends, the best solution first. It starts from the present plan, from
// nothing, and from the best solutions of the round before.
func (r *polluxRound) search(carried [][]row) []*solution {
	present := make([]row, len(r.jobs))
	for at := range r.jobs {
		present[at] = r.jobs[at].base
	}
	all := r.everybody()
	var population []*solution
	for _, rows := range append([][]row{present, make([]row, len(r.jobs))}, carried...) {
		x := r.repair(rows)
		r.grow(x, all, nil)
		r.improve(x)
		population = insert(population, x)
	}
	for range attempts - 2 - len(carried) {
		a, b := r.parent(population), r.parent(population)
		child := r.cross(a, b)
		r.improve(child)
		population = insert(population, child)
	}
	r.settle(population[0])
	return population
}

// settle lets jobs that wait start instead of later ones where that is no worse: of equal jobs the first runs.
func (r *polluxRound) settle(x *solution) {
	waits := func(at int) bool { return len(x.rows[at]) == 0 && len(r.jobs[at].base) == 0 }
	for at := range r.jobs {
		for later := at + 1; later < len(r.jobs) && waits(at); later++ {
			a, b, w := &r.jobs[at], &r.jobs[later], x.rows[later]
			if len(w) > 0 && len(b.base) == 0 && a.kind == b.kind && r.allows(a, w) &&
				(r.termOf(a, w)-r.termOf(b, w))+(b.idle-a.idle) >= 0 { // exactly 0 for equal jobs
				r.set(x, later, nil)
				r.set(x, at, w)
			}
		}
	}
}

// insert adds a solution, best first, unless it is there already, and drops the worst of too many.
func insert(population []*solution, x *solution) []*solution {
	if slices.ContainsFunc(population, func(have *solution) bool { return same(have, x) }) {
		return population
	}
	at := slices.IndexFunc(population, func(have *solution) bool { return have.sum < x.sum })
	if at < 0 {
		at = len(population)
	}
	population = slices.Insert(population, at, x)
	return population[:min(len(population), populationSize)]
}

func same(a, b *solution) bool { return slices.EqualFunc(a.rows, b.rows, slices.Equal[row]) }

// parent is the better of two that are drawn.
func (r *polluxRound) parent(population []*solution) *solution {
	return population[min(r.rng.IntN(len(population)), r.rng.IntN(len(population)))]
}

// cross takes the rows of each job from one of two parents, drops what does not go together, and gives what has become
// free to the jobs again.
func (r *polluxRound) cross(a, b *solution) *solution {
	rows, cut := slices.Clone(a.rows), r.rng.IntN(len(r.jobs))
	copy(rows, b.rows[:cut])
	x := r.repair(rows)
	r.grow(x, r.everybody(), nil)
	return x
}

func (r *polluxRound) everybody() []int {
	all := make([]int, len(r.jobs))
	for at := range all {
		all[at] = at
	}
	return all
}

// improve is the local search: again and again it takes what the jobs of some nodes have, deals it anew among these
// and some others, each time with other weights, and goes back where that is worse.
func (r *polluxRound) improve(x *solution) {
	patience := len(r.jobs) + 30
	for tries, idle := 0, 0; tries < 2*patience && idle < patience; tries++ {
		if idle++; r.redeal(x) {
			idle = 0
		}
	}
}

// redeal reports whether the solution is better than before.
func (r *polluxRound) redeal(x *solution) bool {
	jobs, losers := r.affected(x)
	before := make([]row, len(jobs))
	for i, at := range jobs {
		before[i] = x.rows[at]
	}
	for _, at := range jobs[:losers] {
		r.set(x, at, nil)
	}
	for _, at := range jobs[:losers] {
		if c := &r.jobs[at]; len(c.base) > 0 && r.rng.IntN(2) == 0 && r.fits(x, c, c.base) {
			r.set(x, at, c.base)
		}
	}
	weights := make([]float64, len(jobs))
	for i := range weights {
		weights[i] = 1 + 2*r.rng.Float64()
	}
	r.grow(x, jobs, weights)
	gain := 0.0 // summed by job: what does not change must not drown what does
	for i, at := range jobs {
		gain += r.termOf(&r.jobs[at], x.rows[at]) - r.termOf(&r.jobs[at], before[i])
	}
	if gain >= 0 {
		return gain > 0
	}
	for _, at := range jobs {
		r.set(x, at, nil)
	}
	for i, at := range jobs {
		r.set(x, at, before[i])
	}
	return false
}

// affected draws jobs: all those of a few nodes, which lose what they have, and then some others.
func (r *polluxRound) affected(x *solution) (jobs []int, losers int) {
	nodes := make([]int, 1+r.rng.IntN(widest))
	for i := range nodes {
		nodes[i] = r.rng.IntN(r.Space.Len())
	}
	for at := range r.jobs {
		if !r.jobs[at].fixed && slices.ContainsFunc(x.rows[at], func(s seat) bool { return slices.Contains(nodes, s.node) }) {
			jobs = append(jobs, at)
		}
	}
	r.rng.Shuffle(len(jobs), func(a, b int) { jobs[a], jobs[b] = jobs[b], jobs[a] })
	losers = len(jobs)
	for range others {
		if at := r.rng.IntN(len(r.jobs)); !r.jobs[at].fixed && !slices.Contains(jobs, at) {
			jobs = append(jobs, at)
		}
	}
	return jobs, losers
}
