package policy

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
)

// nsga2 is the search of Pollux's authors in plain form, the slow reference: NSGA-II over matrices of jobs and nodes,
// 100 individuals, 100 generations, the objectives fitness and utility. Every individual is judged as a whole. It shares
// with the policy only how a round's jobs are prepared and what the model says of a number of GPUs and nodes.
type nsga2 struct {
	*polluxRound
	rng          *rand.Rand
	gpus         int // of a node
	J, N         int
	base         []int
	speed        map[[3]int]float64
	size, rounds int
}

// individual is a matrix, job-major, with its objectives, both to be maximised.
type individual struct {
	m                []int
	fitness, utility float64
	rank             int
	crowding         float64
}

func newNSGA2(r *polluxRound, gpus int) *nsga2 {
	s := &nsga2{polluxRound: r, rng: rand.New(rand.NewPCG(1, r.Number)), gpus: gpus, J: len(r.jobs), N: r.Space.Len(),
		speed: map[[3]int]float64{}, size: 100, rounds: 99}
	s.base = make([]int, s.J*s.N)
	for j := range r.jobs {
		for _, seat := range r.jobs[j].base {
			s.base[j*s.N+seat.node] = seat.gpus
		}
	}
	return s
}

func (s *nsga2) row(m []int, j int) []int { return m[j*s.N : (j+1)*s.N] }

// rate computes both objectives from their definitions.
func (s *nsga2) rate(m []int) *individual {
	sum, speedups, used, on := 0.0, 0.0, 0, make([]bool, s.N)
	for j := range s.J {
		gpus, nodes := 0, 0
		for n, g := range s.row(m, j) {
			if g > 0 {
				gpus, nodes = gpus+g, nodes+1
				if !on[n] {
					on[n] = true
					used += s.gpus
				}
			}
		}
		key := [3]int{j, nodes, gpus}
		speedup, ok := s.speed[key]
		if !ok {
			speedup = s.speedup(&s.jobs[j], nodes, gpus)
			s.speed[key] = speedup
		}
		speedups += speedup
		if !slices.Equal(s.row(m, j), s.row(s.base, j)) {
			speedup *= s.jobs[j].retain
		}
		if s.Quirks.Scaled {
			speedup *= float64(s.N) / float64(s.N*s.gpus)
		}
		sum += math.Pow(speedup+1e-3, s.P)
	}
	return &individual{m: m, fitness: math.Pow(sum/float64(s.J), 1/s.P), utility: speedups / float64(max(1, used))}
}

// repair is that of the description, with both its quirks if they are asked for.
func (s *nsga2) repair(m []int) {
	spans := make([]bool, s.J)
	for j := range s.J {
		on := 0
		for _, g := range s.row(m, j) {
			on += min(g, 1)
		}
		spans[j] = on > 1
	}
	for n := range s.N {
		seen := 0
		for j := range s.J {
			if m[j*s.N+n] > 0 && spans[j] {
				seen++
			}
			if seen > 1 && (spans[j] || s.Quirks.EvictAll) {
				m[j*s.N+n] = 0
			}
		}
	}
	for j := range s.J {
		left, nodes := s.jobs[j].limit, 0
		for _, n := range s.rng.Perm(s.N) {
			g := &m[j*s.N+n]
			if *g = min(*g, left); s.MaxNodes > 0 && nodes == s.MaxNodes {
				*g = 0
			}
			left -= *g
			nodes += min(*g, 1)
		}
	}
	for n := range s.N {
		left := s.gpus
		for j := range s.J {
			m[j*s.N+n] = min(m[j*s.N+n], left)
			left -= m[j*s.N+n]
		}
	}
}

func (s *nsga2) mutate(m []int) {
	for j := range s.J {
		if s.rng.Float64() < 0.1 {
			copy(s.row(m, j), s.row(s.base, j))
		}
		if s.rng.Float64() < 0.1 {
			for n := range s.N {
				if s.rng.Float64() < 0.1 {
					m[j*s.N+n] = 0
				}
			}
		}
	}
	can := make([]bool, s.J)
	for j := range s.J {
		total := 0
		for _, g := range s.row(m, j) {
			total += g
		}
		can[j] = total < s.jobs[j].limit
	}
	for n := range s.N {
		used, growing, here := 0, 0, 0
		for j := range s.J {
			used += m[j*s.N+n]
			if can[j] {
				growing++
				here += min(m[j*s.N+n], 1)
			}
		}
		if used >= s.gpus {
			continue
		}
		for j := range s.J {
			g := &m[j*s.N+n]
			if !can[j] {
				continue
			}
			p := 1 / float64(growing)
			if *g > 0 {
				p += (1 - p) / float64(here)
			}
			if s.rng.Float64() < p {
				*g += s.rng.IntN(s.gpus - *g + 1)
			}
		}
	}
}

func (s *nsga2) parent(population []*individual) *individual {
	a, b := population[s.rng.IntN(len(population))], population[s.rng.IntN(len(population))]
	if a.rank != b.rank {
		return map[bool]*individual{true: a, false: b}[a.rank < b.rank]
	}
	if b.crowding > a.crowding || a.crowding == b.crowding && s.rng.IntN(2) == 0 {
		return b
	}
	return a
}

// run returns the largest fitness found.
func (s *nsga2) run() float64 {
	first := slices.Clone(s.base)
	s.repair(first)
	population := s.survive([]*individual{s.rate(first)})
	for range s.rounds {
		known := map[string]bool{}
		for _, x := range population {
			known[key(x.m)] = true
		}
		all := slices.Clone(population)
		for try := 0; try < 100 && len(all) < len(population)+s.size; try++ {
			for pair := 0; pair < s.size/2 && len(all) < len(population)+s.size; pair++ {
				a, b := slices.Clone(s.parent(population).m), slices.Clone(s.parent(population).m)
				if s.rng.Float64() < 0.9 {
					for i := range s.rng.IntN(s.J+1) * s.N {
						a[i], b[i] = b[i], a[i]
					}
				}
				for _, m := range [][]int{a, b} {
					s.mutate(m)
					s.repair(m)
					if k := key(m); !known[k] && len(all) < len(population)+s.size {
						known[k] = true
						all = append(all, s.rate(m))
					}
				}
			}
		}
		population = s.survive(all)
	}
	best := math.Inf(-1)
	for _, x := range population {
		best = max(best, x.fitness)
	}
	return best
}

func key(m []int) string {
	b := make([]byte, len(m))
	for i, g := range m {
		b[i] = byte(g)
	}
	return string(b)
}

// survive keeps the best fronts, of the last the least crowded.
func (s *nsga2) survive(all []*individual) []*individual {
	var kept []*individual
	for rank := 0; len(all) > 0 && len(kept) < s.size; rank++ {
		// With two objectives, by falling fitness the front is what has more utility than all before.
		slices.SortStableFunc(all, func(a, b *individual) int {
			return cmp.Or(cmp.Compare(b.fitness, a.fitness), cmp.Compare(b.utility, a.utility))
		})
		var front, rest []*individual
		for _, x := range all {
			if last := len(front) - 1; last < 0 || x.utility > front[last].utility ||
				x.utility == front[last].utility && x.fitness == front[last].fitness {
				x.rank = rank
				front = append(front, x)
			} else {
				rest = append(rest, x)
			}
		}
		crowd(front)
		if room := s.size - len(kept); len(front) > room {
			slices.SortStableFunc(front, func(a, b *individual) int { return cmp.Compare(b.crowding, a.crowding) })
			front = front[:room]
		}
		kept, all = append(kept, front...), rest
	}
	return kept
}

// crowd computes the crowding distances of a front by falling fitness.
func crowd(front []*individual) {
	last := len(front) - 1
	df, du := front[0].fitness-front[last].fitness, front[last].utility-front[0].utility
	for i, x := range front {
		if x.crowding = math.Inf(1); i > 0 && i < last {
			x.crowding = (front[i-1].fitness-front[i+1].fitness)/max(df, 1e-300) + (front[i+1].utility-front[i-1].utility)/max(du, 1e-300)
		}
	}
}

// rowsOf returns the rows of a matrix of jobs in the round's order.
func rowsOf(jobs, nodes int, m []int) []row {
	rows := make([]row, jobs)
	for i, g := range m {
		if g > 0 {
			rows[i/nodes] = append(rows[i/nodes], seat{i % nodes, g})
		}
	}
	return rows
}
