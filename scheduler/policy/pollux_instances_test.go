package policy

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"optimus/scheduler/estimate"
	"optimus/scheduler/place"
)

// logUniform draws a number whose logarithm is uniform.
func logUniform(rng *rand.Rand, lo, hi float64) float64 {
	return lo * math.Exp(rng.Float64()*math.Log(hi/lo))
}

// polluxGoodput draws a model: from networks that the exchange of gradients dominates to those that scale well, on
// links between nodes up to ten times as slow as those within, with batches that are fixed or may grow 64-fold.
func polluxGoodput(rng *rand.Rand) estimate.Goodput {
	m0 := []int{8, 12, 20, 32, 128, 200, 256}[rng.IntN(7)]
	grad := logUniform(rng, 0.03, 1) // s for M₀ examples
	fixed := 0.05 + 0.5*rng.Float64()
	local := grad * logUniform(rng, 0.02, 0.8)
	node := local * logUniform(rng, 1.1, 10)
	return estimate.Goodput{
		Throughput: estimate.Throughput{
			AlphaGrad: fixed * grad, BetaGrad: (1 - fixed) * grad / float64(m0),
			AlphaLocal: local, BetaLocal: local * 0.05 * rng.Float64(),
			AlphaNode: node, BetaNode: node * 0.05 * rng.Float64(),
			Gamma: 1 + 4*rng.Float64(),
		},
		Sqr: 1, Var: logUniform(rng, 0.3, 100),
		Limits: estimate.Limits{InitBatch: m0, MaxBatch: m0 * []int{1, 8, 16, 32, 64}[rng.IntN(5)], MinPerGPU: max(1, m0/8),
			MaxPerGPU: m0 * (1 + rng.IntN(2)), Accumulate: rng.IntN(2) == 0},
	}
}

// polluxInstance draws a round in which jobs of all ages run, some of them on several nodes, others wait or have just
// come.
func polluxInstance(rng *rand.Rand, jobs, nodes, gpus int) *Round {
	var list []place.Node
	for n := range nodes {
		list = append(list, place.Node{ID: fmt.Sprintf("n%04d", n), Capacity: place.Vector{int64(gpus)}})
	}
	space, err := place.NewSpace(list)
	if err != nil {
		panic(err)
	}
	r := &Round{Number: rng.Uint64(), Now: 1e6, Space: space, Memory: &Memory{Pollux: &PolluxMemory{}}}
	ask := 2 * float64(nodes*gpus) / float64(jobs) // GPUs of a job on average, if all had some
	free, spanned := make([]int, nodes), make([]bool, nodes)
	for n := range free {
		free[n] = gpus
	}
	for i := range jobs {
		g := polluxGoodput(rng)
		age := logUniform(rng, 5, 7e4)
		j := Job{ID: fmt.Sprintf("j%04d", i), Submitted: r.Now - age, Ring: true, Demand: [2]place.Vector{{0}, {1}}, Goodput: g,
			Max: place.Counts{0, max(1, g.Limits.MaxBatch/g.Limits.MinPerGPU)}}
		var at place.Placement
		if rng.IntN(4) > 0 {
			at = polluxPack(rng, free, spanned, min(j.Max[place.Worker], 1<<rng.IntN(2+int(math.Log2(1+ask)))))
		}
		if k := at.Total()[place.Worker]; k > 0 {
			j.Service = age * float64(k) * rng.Float64()
			j.Restarts = int(age / 420 * rng.Float64())
		}
		if rng.IntN(20) == 0 {
			j.Goodput = nil // nothing measured yet
		}
		r.Jobs, r.Placed = append(r.Jobs, j), append(r.Placed, at)
		r.Memory.Pollux.Jobs = append(r.Memory.Pollux.Jobs, PolluxJob{j.ID, at.Total()[place.Worker] << rng.IntN(2)})
	}
	return r
}

// polluxPack puts a job on one node, or over those that no other job spans.
func polluxPack(rng *rand.Rand, free []int, spanned []bool, gpus int) place.Placement {
	var p place.Placement
	order := rng.Perm(len(free))
	for _, n := range order {
		if free[n] >= gpus {
			free[n] -= gpus
			return place.Placement{{Node: n, Tasks: place.Counts{0, gpus}}}
		}
	}
	for _, n := range order {
		if take := min(gpus, free[n]); take > 0 && !spanned[n] {
			p = append(p, place.Share{Node: n, Tasks: place.Counts{0, take}})
			gpus -= take
		}
	}
	for _, s := range p {
		free[s.Node] -= s.Tasks[place.Worker]
		spanned[s.Node] = len(p) > 1
	}
	slices.SortFunc(p, func(a, b place.Share) int { return a.Node - b.Node })
	return p
}
