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
	for seed := range runs(t, 1500) {
		rng := rand.New(rand.NewPCG(seed, 1))
		w := newWorld(t, seed, chaosConfig(BSP, rng))
		w.kills, w.zombies, w.rescales, w.leaves, w.checkpoints = rng.IntN(6), rng.IntN(3), rng.IntN(6), rng.IntN(3), rng.IntN(4)
		w.failWrites, w.stop, w.rot = rng.IntN(8) == 0, rng.IntN(4) == 0, rng.IntN(4) == 0
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
// exactly once, whatever the rescales. At each cut the world checks that every
// push of a live worker is on all servers or on none.
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
			w.stop, w.rot = rng.IntN(6) == 0, rng.IntN(4) == 0
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

// TestBO09 (horovod#3494): workers leave below the minimum, the job says that it
// is paused, and it goes on when others join; leavers ask, or are killed while
// they leave. The world checks that old and new workers agree on every version.
func TestBO09(t *testing.T) {
	for seed := range runs(t, 300) {
		rng := rand.New(rand.NewPCG(seed, 3))
		w := newWorld(t, seed, Config{Plan: order.Plan{Seed: 1, Examples: 60, Batch: 3}, Steps: 60, Sizes: []int{7, 5}, MinWorkers: 3, Detect: 150})
		w.lostAny = true // leavers may take their last report with them
		if err := w.ctl.Start(2, 3, nil); err != nil {
			t.Fatal(err)
		}
		w.drain()
		until := func(what string, reached func() bool) {
			for n := 0; !reached(); n++ {
				if n > 20000 {
					w.fatalf("never: %s", what)
				}
				if !w.step() {
					w.tick()
				}
			}
		}
		until("step 5", func() bool { return w.ctl.Done() >= 5 })
		leavers := sortedMembers(w.workers)[:1+seed%2]
		for _, m := range leavers {
			w.send(m, Message{Kind: Leaving})
		}
		if seed%3 == 0 { // the leaver dies instead of waiting to be let go
			until("the pause", func() bool { return w.ctl.state == Paused })
			w.kill(leavers[0], rng.IntN(2) == 0)
		}
		until("the pause", func() bool { return w.ctl.state == Paused && len(w.workers) == 3-len(leavers) })
		if _, reason := w.ctl.State(); reason == "" {
			t.Fatal("paused without a reason")
		}
		at := w.ctl.Done()
		w.ctl.Rescale(1, 0, 3)
		w.drain()
		until("steps after the pause", func() bool { return w.ctl.Done() >= at+5 })
		if n := len(w.ctl.gen.Workers); n != 3 || w.answers[1] != 1 {
			w.fatalf("%d workers, %d answers", n, w.answers[1])
		}
	}
}
