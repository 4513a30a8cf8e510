package train

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"go.uber.org/goleak"

	"optimus/compute"
	"optimus/compute/optim"
	"optimus/elastic/checkpoint"
	"optimus/internal/failure"
	"optimus/internal/faultnet"
	"optimus/internal/rpc"
	"optimus/internal/rundir"
	"optimus/internal/wire"
	"optimus/spec"
	"optimus/transport"
	"optimus/worker"
)

// counter is a model whose every push lowers every dense parameter by exactly
// one. A push that is on some pieces only, or on one of them twice, stays visible
// in the values as long as the job lives.
type counter struct {
	worker.Dense
	ones    [][]float32
	weight  int64
	touched []int32
}

const (
	counterExamples = 600
	counterRows     = 40
	counterTable    = 3 // the block that is pushed by rows
)

var counterSizes = []int{700, 300, 50}

func counterTask() *Task {
	t := &Task{Name: "counter", Optimizer: optim.Config{Kind: optim.SGD, LR: 1}, Batch: 20, Epochs: 3, Examples: counterExamples}
	for i, n := range counterSizes {
		t.Params = append(t.Params, optim.Param{Name: fmt.Sprint("dense", i), Shape: []int{n}})
	}
	t.Params = append(t.Params, optim.Param{Name: "table", Shape: []int{counterRows, 2}, Rows: true})
	t.New = func(int) (worker.Model, error) {
		m := new(counter)
		for _, n := range counterSizes {
			m.ones = append(m.ones, make([]float32, n))
		}
		return m, nil
	}
	return t
}

func (m *counter) SetParam(int, int, []float32) {}

func (m *counter) Rows(_, _ int, ids []int, _ bool) ([]int32, error) {
	return []int32{int32(ids[0] % counterRows)}, nil
}

func (m *counter) Train(_ uint64, _ int, ids []int) (compute.Result, error) {
	m.weight, m.touched = int64(len(ids)), []int32{int32(ids[0] % counterRows)}
	return compute.Result{Weight: m.weight}, nil
}

func (m *counter) Evaluate(ids []int) (compute.Result, error) {
	return compute.Result{Weight: int64(len(ids))}, nil
}

func (m *counter) Grad(block int) compute.Grad {
	if block == counterTable {
		return compute.Grad{Rows: m.touched, Values: []float32{0, 0}}
	}
	for i := range m.ones[block] {
		m.ones[block][i] = float32(m.weight)
	}
	return compute.Grad{Dense: m.ones[block]}
}

// checkWhole checks that a checkpoint holds the job's pushes, all of them and each
// on every piece.
func checkWhole(t *testing.T, dir string) {
	t.Helper()
	r, err := checkpoint.Load(checkpoint.OS{}, dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	m := r.Manifest()
	for _, s := range m.Shards {
		for _, p := range s.Pieces {
			if p.Updates != m.Step {
				t.Errorf("%s: piece %d@%d took %d pushes of %d", dir, p.Block, p.Offset, p.Updates, m.Step)
			}
		}
	}
	for block, n := range counterSizes {
		values := make([]float32, n)
		if _, err := r.Read(block, 0, values, nil); err != nil {
			t.Fatal(err)
		}
		for i, v := range values {
			if v != -float32(m.Step) {
				t.Fatalf("%s: element %d of block %d is %v after %d pushes", dir, i, block, v, m.Step)
			}
		}
	}
}

// checkUse checks that the surviving history used each example once an epoch.
func checkUse(t *testing.T, j *job, epochs int) {
	t.Helper()
	used := map[int]int{}
	for _, s := range history(t, j.o.Root, "job") {
		for _, id := range s.IDs {
			used[id]++
		}
	}
	for id := range counterExamples {
		if used[id] != epochs {
			t.Errorf("example %d was used %d times in %d epochs", id, used[id], epochs)
		}
	}
}

// uneven delays pushes, each piece differently, so that a halt finds some that
// have arrived at one server and not yet at another.
func uneven(d faultnet.Direction, f *wire.Frame) faultnet.Action {
	if f.Kind != wire.Push || d != faultnet.ToListener {
		return faultnet.Action{}
	}
	n := 7*uint64(f.Sequence) + 5*uint64(f.Block) + f.Offset
	return faultnet.Action{After: time.Duration(n%6) * time.Millisecond / 2}
}

func newCounter(t *testing.T, mode spec.Mode, p, w int) *job {
	j := newJob(t, spec.InProc, p, w, 0)
	j.spec.Workload, j.spec.Mode, j.spec.Epochs, j.o.Task = "", mode, 3, counterTask()
	if mode == spec.SSP {
		j.spec.Staleness = 2
	}
	j.o.network = faultnet.Wrap(transport.InProcess(), uneven)
	return j
}

// save takes a checkpoint of the running job, as another process would, and
// returns its folder.
func (j *job) save() string {
	j.t.Helper()
	dir, err := rundir.Open(j.o.Root, "job")
	if err != nil {
		j.t.Fatal(err)
	}
	socket, err := dir.Socket()
	if err != nil {
		j.t.Fatal(err)
	}
	client, err := rpc.Dial(j.t.Context(), socket)
	if err != nil {
		j.t.Fatal(err)
	}
	defer client.Close()
	reply, err := client.Checkpoint(j.t.Context(), &rpc.CheckpointRequest{})
	if err != nil {
		j.t.Fatal(err)
	}
	return reply.Path
}

// TestRescalesDrain: asp and ssp jobs are rescaled again and again under load, and
// after each rescale every piece has taken every push, once; at the end every
// example was used once an epoch, also across a stop and a resume. The ssp job is
// stopped at once: what it did after its last checkpoint is done again.
func TestRescalesDrain(t *testing.T) {
	for _, mode := range []spec.Mode{spec.ASP, spec.SSP} {
		t.Run(string(mode), func(t *testing.T) {
			defer goleak.VerifyNone(t)
			j := newCounter(t, mode, 2, 3)
			ctx, cancel := context.WithCancelCause(t.Context())
			j.start(ctx)
			j.step(5)
			last := ""
			for _, size := range [][2]int{{3, 4}, {1, 2}, {4, 3}, {2, 4}} {
				if _, err := Rescale(t.Context(), j.o.Root, "job", size[0], size[1]); err != nil {
					t.Fatalf("to %v: %v", size, err)
				}
				last = j.save()
				checkWhole(t, last)
			}
			cause := errors.New("stopped")
			if mode == spec.SSP {
				j.step(int(stepOf(t, last)) + 10)
				cause = StopAtOnce
			}
			cancel(cause)
			r, err := j.wait()
			if failure.KindOf(err) != failure.Canceled || (r.Checkpoint == last) != (mode == spec.SSP) {
				t.Fatalf("stopped: %v, checkpoint %s after %s", err, r.Checkpoint, last)
			}
			checkWhole(t, r.Checkpoint)
			rest := newCounter(t, mode, 3, 2)
			rest.o.Root, rest.spec.Resume = j.o.Root, "job"
			rest.start(t.Context())
			if r, err = rest.wait(); err != nil {
				t.Fatal(err)
			}
			checkWhole(t, r.Checkpoint)
			checkUse(t, rest, 3)
		})
	}
}
