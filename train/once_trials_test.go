package train

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"optimus/data/order"
	"optimus/elastic"
	"optimus/elastic/checkpoint"
	"optimus/internal/failure"
	"optimus/spec"
	"optimus/telemetry"
)

// The pure part of these trials is in data/order; here whole jobs must end, and use
// what the plan says.

// newOnce is a synchronous job of one server that trains LIN1 on n examples.
func newOnce(t *testing.T, n, batch, epochs, workers int) *job {
	j := newJob(t, spec.InProc, 1, workers, 0)
	j.spec.Workload, j.spec.Epochs, j.spec.Seed, j.o.Task = "", epochs, 7, many(n, batch)
	return j
}

// slowFrom makes the steps of a job slow from step n on: what is to happen soon
// after it happens there, however busy the machine is.
func (j *job) slowFrom(n int) {
	j.o.Slow = func(int) func() {
		step := 0
		return func() {
			if step++; step > n {
				time.Sleep(40 * time.Millisecond)
			}
		}
	}
}

// asPlanned checks that the surviving history of a job is that of its plan: each
// step once, with its examples in their order, and each example once an epoch.
func (j *job) asPlanned() {
	j.t.Helper()
	p := order.Plan{Seed: j.spec.Seed, Examples: j.o.Task.Examples, Batch: j.o.Task.Batch}
	steps := history(j.t, j.o.Root, "job")
	if want := int64(j.spec.Epochs) * p.StepsPerEpoch(); int64(len(steps)) != want {
		j.t.Fatalf("%d steps in the history, want %d", len(steps), want)
	}
	for i, s := range steps {
		k := int64(i) + 1
		if s.Step != k || s.Epoch != p.Epoch(k) {
			j.t.Fatalf("step %d, epoch %d comes in the place of step %d, epoch %d", s.Step, s.Epoch, k, p.Epoch(k))
		}
		if diff := cmp.Diff(p.IDs(k, nil), s.IDs); diff != "" {
			j.t.Fatalf("step %d used other examples: %s", k, diff)
		}
	}
	for epoch := range j.spec.Epochs {
		if err := telemetry.Coverage(steps, epoch, p.Examples); err != nil {
			j.t.Error(err)
		}
	}
}

// TestBO23_UnevenBatchCounts: where the batches do not divide the examples or the
// workers the batch, and where one joins shortly before an epoch's end, nobody
// waits for a batch that another does not have.
func TestBO23_UnevenBatchCounts(t *testing.T) {
	defer goleak.VerifyNone(t)
	for _, c := range []struct{ examples, batch, epochs, workers, join int }{
		{10, 2, 4, 2, 0},
		{6007, 256, 2, 3, 0},
		{6007, 256, 2, 3, 24 - 2}, // of 24 steps an epoch
	} {
		t.Run(fmt.Sprintf("%+v", c), func(t *testing.T) {
			j := newOnce(t, c.examples, c.batch, c.epochs, c.workers)
			if c.join > 0 {
				j.slowFrom(c.join)
			}
			j.start(t.Context())
			if c.join > 0 {
				j.step(c.join)
				if _, err := Rescale(t.Context(), j.o.Root, "job", 1, c.workers+1); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := j.wait(); err != nil {
				t.Fatal(err)
			}
			j.asPlanned()
		})
	}
}

// TestBO25_Resume: a job that is stopped in the midst of an epoch goes on, with as
// many workers or others, as if it had never stopped.
func TestBO25_Resume(t *testing.T) {
	defer goleak.VerifyNone(t)
	for _, workers := range []int{4, 3, 7} {
		t.Run(fmt.Sprint(workers), func(t *testing.T) {
			j := newOnce(t, 1000, 8, 3, 4)
			j.slowFrom(40)
			ctx, cancel := context.WithCancelCause(t.Context())
			j.start(ctx)
			j.step(40)
			cancel(errors.New("stopped"))
			r, err := j.wait()
			if failure.KindOf(err) != failure.Canceled {
				t.Fatalf("stopped: %v", err)
			}
			if r.Steps%125 == 0 || r.Steps >= 375 {
				t.Fatalf("stopped at step %d, which is an epoch's end: the trial tried nothing", r.Steps)
			}
			rest := newOnce(t, 1000, 8, 3, workers)
			rest.o.Root, rest.spec.Resume = j.o.Root, "job"
			rest.start(t.Context())
			if _, err := rest.wait(); err != nil {
				t.Fatal(err)
			}
			rest.asPlanned()
		})
	}
}

// TestBO27_MeanOverExamples: two examples on one worker count twice as much as one
// on another, in the step and in the loss that is reported.
func TestBO27_MeanOverExamples(t *testing.T) {
	defer goleak.VerifyNone(t)
	j := newJob(t, spec.InProc, 1, 2, 1)
	j.spec.Workload, j.o.Task = "", lin1(1, 1, 4)
	j.start(t.Context())
	r, err := j.wait()
	if err != nil {
		t.Fatal(err)
	}
	steps := history(t, j.o.Root, "job")
	if len(steps) != 1 || float64(steps[0].Loss) != 6 {
		t.Fatalf("%+v, want one step with the mean loss (1+1+16)/3", steps)
	}
	c, err := checkpoint.Load(checkpoint.OS{}, r.Checkpoint)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	w := make([]float32, 1)
	if _, err := c.Read(0, 0, w, nil); err != nil {
		t.Fatal(err)
	}
	if w[0] < 0.3999 || w[0] > 0.4001 {
		t.Errorf("w = %v after the step, want 0.4", w[0])
	}
}

// TestBO26_ShardInProgress: chunks that are in the hands of workers when those are
// killed are finished by others, also across a stop without a last checkpoint.
// What is repeated stays within the pushes that were in flight, and is counted.
func TestBO26_ShardInProgress(t *testing.T) {
	long(t)
	defer goleak.VerifyNone(t)
	const examples, batch, epochs, workers = 1200, 12, 2, 3 // in chunks of 48
	open := func() (*job, func(elastic.Role, int)) {
		j := newCounter(t, spec.ASP, 2, workers)
		j.spec.Epochs, j.spec.CheckpointEvery = epochs, 60
		j.o.Task.Examples, j.o.Task.Batch = examples, batch
		return j, j.killer()
	}
	random := rand.New(rand.NewPCG(1, 2))
	kills := 0
	harass := func(j *job, kill func(elastic.Role, int), from, times int) {
		for range times {
			s := j.until("all workers", func(s spec.Status) bool { return s.Step > from && s.State == spec.Running && s.Workers == workers })
			kill(elastic.Worker, random.IntN(workers))
			kills++
			from = s.Step + 40
			j.until("the loss", func(s spec.Status) bool { return s.State != spec.Running || s.Workers < workers })
		}
	}
	j, kill := open()
	ctx, cancel := context.WithCancelCause(t.Context())
	j.start(ctx)
	harass(j, kill, 70, 2)
	cancel(StopAtOnce) // the coordinator is gone: the last checkpoint counts
	r, err := j.wait()
	if failure.KindOf(err) != failure.Canceled {
		t.Fatalf("stopped: %v", err)
	}
	rest, kill := open()
	rest.o.Root, rest.spec.Resume = j.o.Root, "job"
	rest.start(t.Context())
	harass(rest, kill, int(stepOf(t, r.Checkpoint))+10, 2)
	if r, err = rest.wait(); err != nil {
		t.Fatal(err)
	}
	used, repeats := make([][examples]int, epochs), 0
	for _, s := range history(t, j.o.Root, "job") {
		for _, id := range s.IDs {
			if used[s.Epoch][id]++; used[s.Epoch][id] > 1 {
				repeats++
			}
		}
	}
	for epoch := range used {
		for id, n := range used[epoch] {
			if n == 0 {
				t.Errorf("example %d was lost in epoch %d", id, epoch)
			}
		}
	}
	checkRepeats(t, r.Checkpoint, repeats, kills, batch)
}

// checkRepeats compares what a job of counter did twice with the account of its
// last checkpoint, and with what can have been in flight. A push that a worker
// could not report any more is on the servers and not in the history.
func checkRepeats(t *testing.T, dir string, repeats, kills, batch int) {
	t.Helper()
	c, err := checkpoint.Load(checkpoint.OS{}, dir)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	m := c.Manifest()
	var at order.Cursor
	if err := json.Unmarshal(m.Cursor, &at); err != nil {
		t.Fatal(err)
	}
	if done, total := at.Ledger().Progress(); done != total {
		t.Errorf("%d of %d positions are done", done, total)
	}
	counted := at.Ledger().Repeats()
	t.Logf("%d kills: %d examples repeated in the history, at most %d counted", kills, repeats, counted)
	if int64(repeats) > counted || counted > int64(kills*batch) {
		t.Errorf("%d examples were repeated, %d counted, with %d kills and batches of %d", repeats, counted, kills, batch)
	}
	for block, n := range counterSizes {
		values := make([]float32, n)
		if _, err := c.Read(block, 0, values, nil); err != nil {
			t.Fatal(err)
		}
		for i, v := range values {
			if extra := -float64(v) - float64(m.Step); extra < 0 || extra > float64(kills) {
				t.Fatalf("element %d of block %d took %v pushes; %d were reported, with %d kills", i, block, -v, m.Step, kills)
			}
		}
	}
}
