package elastic

import (
	"math/rand/v2"
	"testing"

	"optimus/data/order"
)

// runs is how many worlds a test plays.
func runs(t *testing.T, n int) uint64 {
	if testing.Short() {
		n /= 10
	}
	return uint64(n)
}

func chaosConfig(mode Mode, rng *rand.Rand) Config {
	return Config{Mode: mode, Plan: order.Plan{Seed: 1, Examples: 7 + rng.IntN(20), Batch: 3}, Steps: int64(5 + rng.IntN(40)), Epochs: 3, Chunk: 5,
		Sizes: []int{7, 1, 5}, Aux: []int{2}, MinWorkers: 1 + rng.IntN(2), Evaluate: rng.IntN(2) == 0,
		CheckpointEvery: int64(rng.IntN(3) * 4), SkipLimit: 1000, RestartLimit: 1000, Detect: 150, StartLimit: 300, PhaseLimit: 500, LeaseTicks: 3}
}

// TestChaosBSP plays synchronous jobs under everything that can happen at once.
func TestChaosBSP(t *testing.T) {
	ended := map[State]int{}
	for seed := range runs(t, 3000) {
		rng := rand.New(rand.NewPCG(seed, 1))
		w := newWorld(t, seed, chaosConfig(BSP, rng))
		w.kills, w.zombies, w.rescales, w.leaves, w.checkpoints = rng.IntN(6), rng.IntN(3), rng.IntN(6), rng.IntN(3), rng.IntN(4)
		w.failWrites = rng.IntN(8) == 0
		if rng.IntN(3) == 0 {
			for s := range w.cfg.Steps {
				w.bad[s+1] = rng.IntN(8) == 0
			}
		}
		ended[w.run(1+rng.IntN(3), w.cfg.MinWorkers+rng.IntN(3))]++
	}
	t.Log(ended)
	if ended[Finished] == 0 {
		t.Error("no job finished")
	}
}

// TestChaosASP plays jobs without common steps; calm ones must do every example
// exactly once, whatever the rescales.
func TestChaosASP(t *testing.T) {
	for _, mode := range []Mode{ASP, SSP} {
		ended := map[State]int{}
		for seed := range runs(t, 1500) {
			rng := rand.New(rand.NewPCG(seed, 2))
			cfg := chaosConfig(mode, rng)
			if rng.IntN(2) == 0 {
				cfg.Steps = 1000 // the epochs end the job
			}
			w := newWorld(t, seed, cfg)
			w.rescales, w.checkpoints = rng.IntN(6), rng.IntN(4)
			if rng.IntN(2) == 0 {
				w.kills, w.zombies, w.leaves = rng.IntN(6), rng.IntN(3), rng.IntN(3)
			}
			ended[w.run(1+rng.IntN(3), cfg.MinWorkers+rng.IntN(3))]++
		}
		t.Log(mode, ended)
		if ended[Finished] == 0 {
			t.Errorf("no %s job finished", mode)
		}
	}
}
