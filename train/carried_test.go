package train

import (
	"context"
	"fmt"
	"math"
	"testing"
	"time"

	"optimus/compute"
	"optimus/compute/optim"
	"optimus/internal/failure"
	"optimus/spec"
	"optimus/telemetry"
	"optimus/worker"
)

// reader is a model of running text with a state of two values: how many windows were
// read since the beginning of the lane, and a running mean of what stands in them, which
// times w is to be the next.
type reader struct {
	worker.Dense
	w, g  float32
	start []float32
	state []float32
}

const readerWidth = 2

func (m *reader) SetParam(_, _ int, v []float32) { m.w = v[0] }
func (m *reader) Grad(int) compute.Grad          { return compute.Grad{Dense: []float32{m.g}} }
func (m *reader) Begin(states []float32)         { m.start = append(m.start[:0], states...) }
func (m *reader) State() []float32               { return m.state }

func (m *reader) read(ids []int) (r compute.Result) {
	if m.g = 0; len(m.start) == 0 {
		m.start = make([]float32, readerWidth*len(ids))
	}
	m.state = m.state[:0]
	for i, id := range ids {
		count, mean := m.start[2*i], m.start[2*i+1]
		word := float32(id%5) - 1.5
		d := m.w*mean - word
		m.g += 2 * d * mean
		r.Add(compute.Result{Loss: float64(d) * float64(d), Weight: 1, Counts: compute.Counts{int64(count)}})
		m.state = append(m.state, count+1, (mean+word)/2)
	}
	m.start = m.start[:0]
	return r
}

func (m *reader) Train(_ uint64, _ int, ids []int) (compute.Result, error) { return m.read(ids), nil }
func (m *reader) Evaluate(ids []int) (compute.Result, error)               { return m.read(ids), nil }

// text is a task of so many windows in lanes.
func text(windows, valid, lanes int) *Task {
	o := optim.Default(optim.SGD)
	o.LR, o.Momentum = 0.05, 0
	return &Task{Name: "text", Params: []optim.Param{{Name: "w", Shape: []int{1}}}, Optimizer: o, Batch: lanes, Epochs: 3,
		Examples: windows, Validation: valid, Carried: readerWidth, New: func(int) (worker.Model, error) { return new(reader), nil }}
}

// alone trains a text as one lane after the other, without servers and workers, and
// returns the loss of each step and of each epoch's evaluation.
func alone(task *Task, epochs int) (steps, evaluations []float64) {
	lane := func(n, windows, b int) int { // window n of lane b
		size, extra := windows/task.Batch, windows%task.Batch
		at, end := b*size+min(b, extra), (b+1)*size+min(b+1, extra)
		if at+n >= end {
			return -1
		}
		return at + n
	}
	m := new(reader)
	pass := func(windows int, update bool) (losses []float64) {
		states := make([]float32, readerWidth*task.Batch)
		for n := 0; lane(n, windows, 0) >= 0; n++ {
			var sum compute.Result
			var g float32
			for b := range task.Batch {
				if id := lane(n, windows, b); id >= 0 {
					m.Begin(states[2*b : 2*b+2])
					sum.Add(m.read([]int{id}))
					copy(states[2*b:], m.State())
					g += m.g
				}
			}
			if update {
				m.w -= float32(task.Optimizer.LR) * g / float32(sum.Weight)
				losses = append(losses, sum.Mean())
			} else {
				losses = append(losses, sum.Loss)
			}
		}
		return losses
	}
	for range epochs {
		steps = append(steps, pass(task.Examples, true)...)
		total := 0.0
		for _, l := range pass(task.Validation, false) {
			total += l
		}
		evaluations = append(evaluations, total/float64(task.Validation))
	}
	return steps, evaluations
}

func sameLosses(t *testing.T, what string, got, want []float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d values, want %d", what, len(got), len(want))
	}
	for i := range want {
		if math.Abs(got[i]-want[i]) > 1e-5*max(1, math.Abs(want[i])) {
			t.Fatalf("%s %d: %v, want %v", what, i+1, got[i], want[i])
		}
	}
}

// curves reads a job's losses, and those of its evaluations.
func curves(t *testing.T, root string) (steps, evaluations []float64) {
	t.Helper()
	for _, s := range history(t, root, "job") {
		steps = append(steps, float64(s.Loss))
	}
	for _, r := range records(t, root, "job") {
		if e, ok := r.(telemetry.Evaluation); ok {
			evaluations = append(evaluations, float64(e.Loss))
		}
	}
	return steps, evaluations
}

// TestCarriedState: a text is read lane by lane, each window from the state behind the
// one before, whatever the counts of servers and workers, with more workers than lanes
// too; evaluations are.
func TestCarriedState(t *testing.T) {
	for _, c := range []struct{ windows, valid, lanes, p, w int }{
		{40, 11, 4, 1, 1}, {40, 11, 4, 2, 3}, {37, 3, 5, 2, 7}, {3, 1, 8, 1, 2}, {1, 1, 1, 1, 1},
	} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			j := newJob(t, spec.InProc, c.p, c.w, 0)
			j.spec.Workload, j.spec.Epochs, j.o.Task = "", 3, text(c.windows, c.valid, c.lanes)
			j.start(t.Context())
			if _, err := j.wait(); err != nil {
				t.Fatal(err)
			}
			wantSteps, wantEvaluations := alone(j.o.Task, 3)
			steps, evaluations := curves(t, j.o.Root)
			sameLosses(t, "step", steps, wantSteps)
			sameLosses(t, "evaluation", evaluations, wantEvaluations)
			for epoch := range 3 {
				if err := telemetry.Coverage(history(t, j.o.Root, "job"), epoch, c.windows); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// TestCarriedStateMoves: states go with their lanes through rescales, the loss of a
// worker in the midst of a step, and a stop without a save followed by a resume.
func TestCarriedStateMoves(t *testing.T) {
	const epochs = 3
	j := newJob(t, spec.InProc, 1, 1, 0)
	j.spec.Workload, j.spec.Epochs, j.spec.CheckpointEvery, j.o.Task = "", epochs, 7, text(300, 20, 6)
	j.o.Slow = func(int) func() { return func() { time.Sleep(2 * time.Millisecond) } }
	var running *coordinator
	j.o.reach = func(c *coordinator) { running = c }
	ctx, cancel := context.WithCancelCause(t.Context())
	j.start(ctx)
	for _, r := range [][3]int{{10, 2, 3}, {25, 1, 8}, {40, 3, 2}} {
		j.step(r[0])
		if _, err := Rescale(ctx, j.o.Root, "job", r[1], r[2]); err != nil {
			t.Fatal(err)
		}
	}
	s := j.step(60)
	running.post(func() { running.starter.kill(running.ctl.Generation().Workers[0].Member) })
	j.until("a worker's loss", func(now spec.Status) bool { return now.Generation > s.Generation })
	j.step(90)
	cancel(StopAtOnce)
	if _, err := j.wait(); failure.KindOf(err) != failure.Canceled {
		t.Fatalf("stopped: %v", err)
	}
	again := newJob(t, spec.InProc, 2, 4, 0)
	again.spec.Workload, again.spec.Epochs, again.o.Task, again.o.Root, again.spec.Resume = "", epochs, j.o.Task, j.o.Root, "job"
	again.start(t.Context())
	if _, err := again.wait(); err != nil {
		t.Fatal(err)
	}
	want, _ := alone(j.o.Task, epochs)
	steps := history(t, j.o.Root, "job")
	if len(steps) != len(want) {
		t.Fatalf("%d steps, want %d", len(steps), len(want))
	}
	for i, s := range steps {
		// Of a step whose worker was lost behind its push the loss lacks its part.
		if math.Abs(float64(s.Loss)-want[i]) > 1e-5*max(1, want[i]) && int(s.Weight) == s.BatchExamples {
			t.Fatalf("step %d: loss %v, want %v", i+1, s.Loss, want[i])
		}
	}
	for epoch := range epochs {
		if err := telemetry.Coverage(steps, epoch, 300); err != nil {
			t.Error(err)
		}
	}
}

// A state takes a model that can carry it; without common steps windows begin anew.
func TestCarriedStateNeedsAModel(t *testing.T) {
	o := testOptions(t)
	o.Task = lin1(1, 2, 3)
	o.Task.Carried = 2
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := Run(ctx, testJob(1, 1), o); err == nil {
		t.Error("a model without a state carries one")
	}
	j := newJob(t, spec.InProc, 1, 2, 0)
	j.spec.Workload, j.spec.Mode, j.spec.Epochs, j.o.Task = "", spec.ASP, 1, text(40, 0, 4)
	j.start(t.Context())
	if _, err := j.wait(); err != nil {
		t.Fatal(err)
	}
	if err := telemetry.Coverage(history(t, j.o.Root, "job"), 0, 40); err != nil {
		t.Error(err)
	}
}
