package train

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"optimus/spec"
	"optimus/telemetry"
)

// slowWorker makes worker id take d longer for each step, and counts steps.
func slowWorker(id int, d time.Duration, counts []atomic.Int64) func(int) func() {
	return func(worker int) func() {
		return func() {
			counts[worker].Add(1)
			if worker == id {
				time.Sleep(d)
			} else {
				time.Sleep(d / 5)
			}
		}
	}
}

// many is LIN1 with n examples.
func many(n, batch int) *Task {
	targets := make([]float32, n)
	for i := range targets {
		targets[i] = float32(i % 7)
	}
	t := lin1(targets...)
	t.Batch, t.Optimizer.LR = batch, 0.01
	return t
}

// TestStalenessBound: with ssp no update is made on parameters that lag more
// than s steps behind, even with one worker five times slower; with asp the
// fast workers do not wait for it.
func TestStalenessBound(t *testing.T) {
	long(t)
	const steps, pause = 1000, 5 * time.Millisecond
	run := func(mode spec.Mode, s int) (counts []atomic.Int64, took time.Duration, j *job) {
		counts = make([]atomic.Int64, 3)
		j = newJob(t, spec.InProc, 2, 3, steps)
		j.spec.Mode, j.spec.Staleness, j.spec.Workload = mode, s, ""
		j.o.Task = many(100000, 30)
		j.o.Slow = slowWorker(2, pause, counts)
		begin := time.Now()
		j.start(t.Context())
		if _, err := j.wait(); err != nil {
			t.Fatal(err)
		}
		return counts, time.Since(begin), j
	}
	for _, s := range []int{1, 4} {
		counts, _, j := run(spec.SSP, s)
		worst, n := int64(0), 0
		for _, r := range records(t, j.o.Root, "job") {
			switch r := r.(type) {
			case telemetry.Step:
				n++
			case telemetry.Staleness:
				worst = max(worst, int64(len(r.Counts)-1))
			}
		}
		if n != steps {
			t.Errorf("ssp(%d): %d steps, want %d", s, n, steps)
		}
		if worst < 1 || worst > int64(s) {
			t.Errorf("ssp(%d): staleness %d was seen", s, worst)
		}
		if fast, slow := counts[0].Load(), counts[2].Load(); fast > slow+int64(s)+2+slow/2 {
			t.Errorf("ssp(%d): the fast worker made %d steps, the slow one %d", s, fast, slow)
		}
	}
	counts, _, _ := run(spec.ASP, 0)
	if fast, slow := counts[0].Load(), counts[2].Load(); fast < 3*slow {
		t.Errorf("asp: the fast worker made %d steps, the slow one %d: it waited", fast, slow)
	}
}

// TestSSPOutlivesHalts: a checkpoint after nearly every push halts the workers in
// the midst of steps, which are given up. Their clocks must not count these, or all
// would wait at the bound of staleness.
func TestSSPOutlivesHalts(t *testing.T) {
	const steps = 30
	j := newJob(t, spec.InProc, 2, 2, steps)
	j.spec.Mode, j.spec.Staleness, j.spec.Workload, j.spec.CheckpointEvery = spec.SSP, 1, "", 1
	j.o.Task = many(1000, 4)
	j.o.Slow = slowWorker(1, 5*time.Millisecond, make([]atomic.Int64, 2))
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	j.start(ctx)
	r, err := j.wait()
	if err != nil {
		t.Fatal(err)
	}
	if r.Steps != steps {
		t.Errorf("%d steps, want %d", r.Steps, steps)
	}
}
