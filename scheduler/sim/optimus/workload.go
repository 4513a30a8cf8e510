package optimus

import (
	"fmt"

	"optimus/internal/rng"
	"optimus/scheduler/sim"
	"optimus/scheduler/trace"
)

// Workload says which jobs are drawn.
type Workload struct {
	Jobs     int // 0 is 90
	Arrivals trace.Arrivals
	Modes    []Mode // of which each job gets one at random; nil is both
	Known    bool   // the scheduler sees the truth, to which the simulator may add errors (Fig 15)
	Seed     uint64
}

// defaultJobs is a guess: the paper does not say how many jobs it ran. Its code draws 60; with 90 about as many tasks run
// in the mean under DRF and Tetris as Fig 14 shows.
const defaultJobs = 90

// thresholds from which owners draw δ (§6.1).
const minDelta, maxDelta = .01, .05

// Workload draws jobs: kind, mode and threshold at random, as in §6.1.
func (t *Truths) Workload(w Workload) []sim.Job {
	if w.Jobs == 0 {
		w.Jobs = defaultJobs
	}
	if len(w.Modes) == 0 {
		w.Modes = []Mode{Sync, Async}
	}
	jobs := make([]sim.Job, w.Jobs)
	key := rng.NewKey(w.Seed, 0x0e)
	for i, at := range w.Arrivals.Draw(w.Jobs, w.Seed) {
		draw := rng.NewKey(uint64(key), uint64(i))
		kind := int(draw.Float64(0) * float64(len(t.kinds)))
		mode := w.Modes[int(draw.Float64(1)*float64(len(w.Modes)))]
		delta := minDelta + (maxDelta-minDelta)*draw.Float64(2)
		j := t.newJob(kind, mode, delta, rng.NewKey(uint64(draw), 1))
		j.known = w.Known
		jobs[i] = sim.Job{Name: fmt.Sprintf("%02d-%s-%v", i, j.kind.Name, mode), Submit: at, Process: j}
	}
	return jobs
}
