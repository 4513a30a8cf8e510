package main

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"

	"optimus/scheduler/estimate"
	"optimus/scheduler/place"
	"optimus/scheduler/policy"
)

// polluxPeer is where the paper says what a round costs it.
const polluxPeer = "Pollux paper, one vCPU"

// measurePollux times rounds of Pollux's search: of the size of the paper's testbed,
// and of a large cluster.
func measurePollux(ctx context.Context, o options) ([]round, error) {
	p, err := policy.ByName("pollux")
	if err != nil {
		return nil, err
	}
	var out []round
	for _, size := range []struct {
		jobs, nodes int
		paper       float64
	}{{160, 16, 1}, {1000, 512, 0}} {
		fmt.Fprintf(o.progress, "measuring the scheduler, pollux, %d jobs\n", size.jobs)
		r, err := polluxRound(ctx, p, size.jobs, size.nodes, o.rounds)
		if err != nil {
			return nil, err
		}
		if r.Paper = size.paper; r.Paper > 0 {
			r.Ratio = r.Paper / r.Seconds
		}
		out = append(out, r)
	}
	return out, nil
}

// polluxRound times rounds of clusters that have been scheduled twice, and in which a
// tenth of the jobs are new.
func polluxRound(ctx context.Context, p policy.Policy, jobs, nodes, rounds int) (round, error) {
	out := round{Jobs: jobs, Nodes: nodes}
	var times []float64
	for seed := range uint64(rounds) {
		rng := rand.New(rand.NewPCG(seed, 64))
		v := policy.View{Now: 1e5}
		for i := range nodes {
			v.Nodes = append(v.Nodes, place.Node{ID: fmt.Sprintf("node-%04d", i), Capacity: place.Vector{4}})
		}
		for i := range jobs {
			v.Jobs = append(v.Jobs, polluxJob(rng, i, v.Now))
		}
		var st policy.State
		for turn := range 3 {
			if err := ctx.Err(); err != nil {
				return out, err
			}
			next, took, tasks, err := timed(p, st, v)
			if err != nil {
				return out, err
			}
			if turn == 2 {
				times, out.Tasks = append(times, took), float64(tasks)/float64(jobs)
			}
			st, v.Now = next, v.Now+60
			if turn == 1 {
				for i := 0; i < jobs; i += 10 {
					v.Jobs[i] = polluxJob(rng, jobs+i, v.Now)
				}
			}
		}
	}
	out.settle(times)
	return out, nil
}

// polluxJob draws a job: from models that the exchange of gradients dominates to some
// that scale well, with batches that are fixed or may grow 64-fold.
func polluxJob(rng *rand.Rand, number int, now float64) policy.Job {
	between := func(low, high float64) float64 { return low * math.Exp(rng.Float64()*math.Log(high/low)) }
	batch := []int{8, 12, 20, 32, 128, 200, 256}[rng.IntN(7)]
	pass := between(0.03, 1) // seconds
	local := pass * between(0.02, 0.8)
	node := local * between(1.1, 10)
	g := estimate.Goodput{
		Throughput: estimate.Throughput{
			AlphaGrad: 0.3 * pass, BetaGrad: 0.7 * pass / float64(batch), AlphaLocal: local, BetaLocal: 0.02 * local,
			AlphaNode: node, BetaNode: 0.02 * node, Gamma: 1 + 4*rng.Float64(),
		},
		Sqr: 1, Var: between(0.3, 100),
		Limits: estimate.Limits{InitBatch: batch, MaxBatch: batch * []int{1, 8, 16, 32, 64}[rng.IntN(5)], MinPerGPU: max(1, batch/8), MaxPerGPU: 2 * batch, Accumulate: true},
	}
	return policy.Job{
		ID: fmt.Sprintf("job-%05d", number), Submitted: now - between(5, 7e4), Ring: true, Demand: [2]place.Vector{{0}, {1}}, Remaining: 1000,
		Goodput: g, Max: place.Counts{0, max(1, g.Limits.MaxBatch/g.Limits.MinPerGPU)}, Service: between(60, 1e5),
	}
}
