package train

import (
	"math"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"optimus/compute"
	"optimus/compute/optim"
	"optimus/spec"
	"optimus/telemetry"
	"optimus/worker"
)

// exact is a model whose gradients are small whole numbers that depend on the
// example and on every bit of the parameter. Sums of them are exact in float32
// whatever their order, so a job ends with the same bits under any counts, and a
// share that was lost, counted twice or computed on another version changes them.
type exact struct {
	worker.Dense
	w, g [][]float32
}

const (
	exactExamples = 1000
	exactBatch    = 20
	exactEpoch    = exactExamples / exactBatch // steps
)

// exactSizes are cut into several pieces on two servers or more.
var exactSizes = []int{20000, 50}

func exactTask() *Task {
	o := optim.Default(optim.SGD)
	o.LR, o.Momentum = 0.01, 0.9
	t := &Task{Name: "exact", Optimizer: o, Batch: exactBatch, Epochs: 1, Examples: exactExamples}
	for i, n := range exactSizes {
		t.Params = append(t.Params, optim.Param{Name: string(rune('a' + i)), Shape: []int{n}})
	}
	t.New = func(int) (worker.Model, error) {
		m := new(exact)
		for _, n := range exactSizes {
			m.w, m.g = append(m.w, make([]float32, n)), append(m.g, make([]float32, n))
		}
		return m, nil
	}
	return t
}

func (m *exact) SetParam(block, offset int, v []float32) { copy(m.w[block][offset:], v) }
func (m *exact) Grad(block int) compute.Grad             { return compute.Grad{Dense: m.g[block]} }

// Train reports one parameter as each example's loss: the curve of a job shows on
// which version each step was computed.
func (m *exact) Train(_ uint64, _ int, ids []int) (compute.Result, error) {
	sum := 0
	for _, id := range ids {
		sum += id%13 + 1
	}
	for b := range m.w {
		for i, w := range m.w[b] {
			m.g[b][i] = float32(sum * (int(uint32(i)+math.Float32bits(w)&0xff)%5 - 2))
		}
	}
	n := len(ids)
	return compute.Result{Loss: float64(n) * float64(m.w[0][7]), Weight: int64(n)}, nil
}

func (m *exact) Evaluate(ids []int) (compute.Result, error) {
	return compute.Result{Weight: int64(len(ids))}, nil
}

// newExact is a job that trains exact, with a checkpoint every twenty steps. Each of
// its steps takes slow until hurry is called: what must happen in the midst of
// training happens there, however busy the machine is.
func newExact(t *testing.T, launch spec.Launch, p, w, steps int, faults ...string) *job {
	j := newJob(t, launch, p, w, steps)
	j.spec.Workload, j.o.Task, j.spec.CheckpointEvery = "", exactTask(), 20
	j.hasty = t.TempDir() + "/hurry"
	j.o.Slow = func(int) func() { return pace(slow, j.hasty) }
	j.o.Child = childArgs(j.hasty, faults...)
	j.o.Tune.Lease = 100 * time.Millisecond
	return j
}

const slow = 10 * time.Millisecond

// pace returns a worker's pause in each step, which ends for good once the file
// hasty exists.
func pace(pause time.Duration, hasty string) func() {
	hurry := false
	return func() {
		if !hurry {
			_, err := os.Stat(hasty)
			hurry = err == nil
		}
		if !hurry {
			time.Sleep(pause)
		}
	}
}

// hurry lets the job train at full speed.
func (j *job) hurry() {
	j.t.Helper()
	if err := os.WriteFile(j.hasty, nil, 0o644); err != nil {
		j.t.Fatal(err)
	}
}

// undisturbed is what a job of that many steps ends with if nothing happens.
type undisturbed struct {
	sha   string
	steps []telemetry.Step
}

var (
	undisturbedMu   sync.Mutex
	undisturbedRuns = map[kindOfRun]undisturbed{}
)

type kindOfRun struct {
	steps    int
	clipNorm float64
}

func undisturbedRun(t *testing.T, steps int, clipNorm float64) undisturbed {
	t.Helper()
	undisturbedMu.Lock()
	defer undisturbedMu.Unlock()
	kind := kindOfRun{steps, clipNorm}
	if u, ok := undisturbedRuns[kind]; ok {
		return u
	}
	j := newExact(t, spec.InProc, 1, 1, steps)
	j.spec.CheckpointEvery, j.spec.Optimizer.ClipNorm = 0, clipNorm
	j.hurry()
	j.start(t.Context())
	r, err := j.wait()
	if err != nil {
		t.Fatal(err)
	}
	u := undisturbed{r.ParamsSHA256, history(t, j.o.Root, "job")}
	undisturbedRuns[kind] = u
	return u
}

// asUndisturbed checks that a job of exact ended with the bits of an undisturbed
// run, and that its surviving history has each step once, computed on the right
// version, and each example once per epoch.
func (j *job) asUndisturbed(r spec.Result) {
	j.t.Helper()
	n := j.spec.Steps
	want := undisturbedRun(j.t, n, j.spec.Optimizer.ClipNorm)
	if r.Steps != n || r.ParamsSHA256 != want.sha {
		j.t.Errorf("%d steps, parameters %s; an undisturbed run has %d and %s", r.Steps, r.ParamsSHA256, n, want.sha)
	}
	j.sameHistory(want)
}

func (j *job) sameHistory(want undisturbed) {
	j.t.Helper()
	got := history(j.t, j.o.Root, "job")
	if len(got) != len(want.steps) {
		j.t.Fatalf("%d steps in the history, want %d", len(got), len(want.steps))
	}
	for i, w := range want.steps {
		if g := got[i]; g.Step != w.Step || g.Loss != w.Loss {
			j.t.Fatalf("step %d, loss %v in the history, want step %d, loss %v", g.Step, g.Loss, w.Step, w.Loss)
		}
		if diff := cmp.Diff(w.IDs, got[i].IDs); diff != "" {
			j.t.Fatalf("step %d used other examples: %s", w.Step, diff)
		}
	}
	for epoch := range len(got) / exactEpoch {
		if err := telemetry.Coverage(got, epoch, exactExamples); err != nil {
			j.t.Error(err)
		}
	}
}

// usedOften checks that the history has each example n times. It is for asp and
// ssp, whose pushes are no steps of an epoch.
func (j *job) usedOften(n int) {
	j.t.Helper()
	used := map[int]int{}
	for _, s := range history(j.t, j.o.Root, "job") {
		for _, id := range s.IDs {
			used[id]++
		}
	}
	if len(used) != exactExamples {
		j.t.Errorf("%d examples in the history, want %d", len(used), exactExamples)
	}
	for id, times := range used {
		if times != n {
			j.t.Errorf("example %d was used %d times, want %d", id, times, n)
		}
	}
}
