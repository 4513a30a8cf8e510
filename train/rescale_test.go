package train

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"optimus/internal/rpc"
	"optimus/internal/rundir"
	"optimus/spec"
	"optimus/telemetry"
)

// records reads a job's telemetry back.
func records(t *testing.T, root, job string) []telemetry.Record {
	t.Helper()
	f, err := os.Open(filepath.Join(root, job, "telemetry.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	list, err := telemetry.Read(f)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func history(t *testing.T, root, job string) []telemetry.Step {
	t.Helper()
	steps, err := telemetry.History(records(t, root, job))
	if err != nil {
		t.Fatal(err)
	}
	return steps
}

// rescaleAt asks the running job for other counts over its socket, as a second
// process would, once it has reached a step.
func rescaleAt(ctx context.Context, root, job string, status <-chan spec.Status, step, p, w int) (*spec.RescaleReport, error) {
	for s := range status {
		if s.Step >= step {
			break
		}
	}
	r, err := Rescale(ctx, root, job, p, w)
	return &r, err
}

// curve trains the generated cnn-rand set and returns the loss of each step.
func curve(t *testing.T, p, w int, rescales ...[3]int) []telemetry.Step {
	t.Helper()
	o := testOptions(t)
	j := testJob(p, w)
	j.Name, j.Workload, j.Steps, j.Optimizer.Name, j.LR = "curve", "cnn-rand", 300, "momentum", 0.02
	status := make(chan spec.Status, 10000)
	o.Notify = func(s spec.Status) { status <- s }
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	done := make(chan error, 1)
	go func() {
		for _, r := range rescales {
			if _, err := rescaleAt(ctx, o.Root, "curve", status, r[0], r[1], r[2]); err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	if _, err := Run(ctx, j, o); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	return history(t, o.Root, "curve")
}

// The batch of a step is the same whoever computes it, so counts change the loss
// only by the order in which sums are made.
func TestSameCurveWhateverTheCounts(t *testing.T) {
	long(t)
	want := curve(t, 1, 1)
	for name, got := range map[string][]telemetry.Step{
		"2,3":               curve(t, 2, 3),
		"3,5":               curve(t, 3, 5),
		"2,3 to 3,5 to 1,2": curve(t, 2, 3, [3]int{60, 3, 5}, [3]int{150, 1, 2}),
	} {
		if len(got) != len(want) {
			t.Fatalf("%s: %d steps, want %d", name, len(got), len(want))
		}
		for i := range want {
			tolerance := 1e-4
			if i >= 100 {
				tolerance = 1e-2
			}
			a, b := float64(want[i].Loss), float64(got[i].Loss)
			if math.Abs(a-b) > tolerance*math.Abs(a) {
				t.Fatalf("%s: step %d: loss %v, one worker has %v", name, i+1, b, a)
			}
			if diff := cmp.Diff(want[i].IDs, got[i].IDs); diff != "" {
				t.Fatalf("%s: step %d used other examples: %s", name, i+1, diff)
			}
		}
		for epoch := range want[len(want)-1].Epoch {
			if err := telemetry.Coverage(got, epoch, 9596); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// stop ends a job over its socket, as another process would.
func stop(t *testing.T, root, job string) error {
	t.Helper()
	dir, err := rundir.Open(root, job)
	if err != nil {
		return err
	}
	socket, err := dir.Socket()
	if err != nil {
		return err
	}
	client, err := rpc.Dial(t.Context(), socket)
	if err != nil {
		return err
	}
	defer client.Close()
	_, err = client.Stop(t.Context(), &rpc.StopRequest{Checkpoint: true})
	return err
}
