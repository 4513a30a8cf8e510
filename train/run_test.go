package train

import (
	"context"
	"log/slog"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"optimus/compute"
	"optimus/compute/optim"
	"optimus/spec"
	"optimus/worker"
)

// linear is fixture LIN1 of the trials: one weight w, prediction w·1, squared
// error; example i has target targets[i].
type linear struct {
	worker.Dense
	w, g    float32
	targets []float32
}

func (m *linear) SetParam(_, _ int, v []float32) { m.w = v[0] }
func (m *linear) Grad(int) compute.Grad          { return compute.Grad{Dense: []float32{m.g}} }

func (m *linear) Train(_ uint64, _ int, ids []int) (r compute.Result, err error) {
	m.g = 0
	for _, id := range ids {
		d := m.w - m.targets[id]
		m.g += 2 * d
		r.Add(compute.Result{Loss: float64(d) * float64(d), Weight: 1})
	}
	return r, nil
}

func (m *linear) Evaluate(ids []int) (compute.Result, error) {
	return compute.Result{Weight: int64(len(ids))}, nil
}

func lin1(targets ...float32) *Task {
	o := optim.Default(optim.SGD)
	o.LR, o.Momentum = 0.1, 0
	return &Task{Name: "lin1", Params: []optim.Param{{Name: "w", Shape: []int{1}}}, Optimizer: o,
		Batch: len(targets), Epochs: 3, Examples: len(targets),
		New: func(int) (worker.Model, error) { return &linear{targets: targets}, nil }}
}

func testJob(p, w int) spec.TrainingJob {
	j := spec.Default()
	j.Servers.Count, j.Workers.Count = p, w
	return j
}

func testOptions(t *testing.T) Options {
	log := slog.New(slog.DiscardHandler)
	if testing.Verbose() {
		log = slog.New(slog.NewTextHandler(os.Stderr, nil))
	}
	return Options{Root: t.TempDir(), Log: log, Tune: testTuning}
}

var testTuning = Tuning{Tick: 10 * time.Millisecond, Beat: 50 * time.Millisecond, Detect: 5 * time.Second}

func TestRunToTheEnd(t *testing.T) {
	defer goleak.VerifyNone(t)
	for _, c := range []struct{ p, w int }{{1, 1}, {1, 2}, {2, 3}} {
		o := testOptions(t)
		o.Task = lin1(2, 4, 6, 8)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		r, err := Run(ctx, testJob(c.p, c.w), o)
		cancel()
		if err != nil {
			t.Fatalf("%+v: %v", c, err)
		}
		if r.Steps != 3 || r.ParamsSHA256 == "" || r.Checkpoint == "" {
			t.Fatalf("%+v: result %+v", c, r)
		}
	}
}

// wide is a model of 20,000 parameters whose gradient costs nothing: what a
// test of the machinery around it needs.
type wide struct {
	worker.Dense
	sum, g []float32
}

const width = 20000

func (m *wide) SetParam(_, offset int, v []float32) { copy(m.sum[offset:], v) }
func (m *wide) Grad(int) compute.Grad               { return compute.Grad{Dense: m.g} }
func (m *wide) Train(_ uint64, _ int, ids []int) (compute.Result, error) {
	for i := range m.g {
		m.g[i] = float32(len(ids)) * (m.sum[i] - 1)
	}
	return compute.Result{Loss: float64(m.sum[0]), Weight: int64(len(ids))}, nil
}
func (m *wide) Evaluate(ids []int) (compute.Result, error) {
	return compute.Result{Weight: int64(len(ids))}, nil
}

func wideTask() *Task {
	t := many(1000, 20)
	t.Name, t.Params = "wide", []optim.Param{{Name: "w", Shape: []int{width}}}
	t.New = func(int) (worker.Model, error) {
		return &wide{sum: make([]float32, width), g: make([]float32, width)}, nil
	}
	return t
}
