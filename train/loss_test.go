package train

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"optimus/internal/failure"
	"optimus/spec"
	"optimus/telemetry"
)

// job is a training job under test, with its status as it runs.
type job struct {
	t      *testing.T
	o      Options
	spec   spec.TrainingJob
	status chan spec.Status
	result spec.Result
	err    error
	done   chan struct{}
	hasty  string // see newExact
}

func newJob(t *testing.T, launch spec.Launch, p, w, steps int) *job {
	j := &job{t: t, o: testOptions(t), spec: testJob(p, w), status: make(chan spec.Status, 100000), done: make(chan struct{})}
	j.spec.Name, j.spec.Workload, j.spec.Steps, j.spec.Launch = "job", "cnn-rand", steps, launch
	j.o.Child = []string{"member"}
	return j
}

func (j *job) start(ctx context.Context) {
	j.o.Notify = func(s spec.Status) { j.status <- s }
	go func() {
		defer close(j.done)
		j.result, j.err = Run(ctx, j.spec, j.o)
	}()
}

// until waits for a status that satisfies ok.
func (j *job) until(what string, ok func(spec.Status) bool) spec.Status {
	j.t.Helper()
	deadline := time.After(3 * time.Minute)
	var last spec.Status
	for {
		select {
		case <-j.done:
			if len(j.status) == 0 {
				j.t.Fatalf("the job ended (%v) before %s; last: step %d %s %s", j.err, what, last.Step, last.State, last.Reason)
			}
		case s := <-j.status:
			if last = s; ok(s) {
				return s
			}
		case <-deadline:
			j.t.Fatalf("no %s; last: step %d %s %s", what, last.Step, last.State, last.Reason)
		}
	}
}

func (j *job) step(n int) spec.Status {
	j.t.Helper()
	return j.until(fmt.Sprintf("step %d", n), func(s spec.Status) bool { return s.Step >= n })
}

// wait returns the job's end.
func (j *job) wait() (spec.Result, error) {
	j.t.Helper()
	deadline := time.After(3 * time.Minute)
	var last spec.Status
	for {
		select {
		case last = <-j.status:
		case <-deadline:
			if b, err := os.ReadFile(filepath.Join(j.o.Root, "job", "journal.jsonl")); err == nil {
				j.t.Logf("%s", b)
			}
			j.t.Fatalf("the job does not end; last: step %d %s %s %+v", last.Step, last.State, last.Reason, last.Members)
		case <-j.done:
			return j.result, j.err
		}
	}
}

func pid(t *testing.T, s spec.Status, role string, id int) int {
	t.Helper()
	for _, m := range s.Members {
		if m.Role == role && m.ID == id {
			return m.PID
		}
	}
	t.Fatalf("no %s %d in %+v", role, id, s.Members)
	return 0
}

func kill9(t *testing.T, pids ...int) {
	t.Helper()
	for _, p := range pids {
		if err := syscall.Kill(p, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
}

// TestWorkerKilled: the step in flight is redone by the survivors, a replacement
// joins, and the surviving history uses each example once.
func TestWorkerKilled(t *testing.T) {
	j := newJob(t, spec.Process, 2, 3, 260)
	j.start(t.Context())
	s := j.step(30)
	kept := pid(t, s, "server", 0)
	kill9(t, pid(t, s, "worker", 1))
	j.until("two workers", func(s spec.Status) bool { return s.Workers == 2 })
	s = j.until("three workers again", func(s spec.Status) bool { return s.Workers == 3 })
	if pid(t, s, "server", 0) != kept {
		t.Error("server 0 was restarted")
	}
	if _, err := j.wait(); err != nil {
		t.Fatal(err)
	}
	steps := history(t, j.o.Root, "job")
	if len(steps) != 260 {
		t.Errorf("%d steps in the history, want 260", len(steps))
	}
	if err := telemetry.Coverage(steps, 0, 9596); err != nil {
		t.Error(err)
	}
}

// TestBO08_ServerKilled: the share of a lost server comes back from the last
// checkpoint on all servers, never empty; without a checkpoint the job fails
// loudly.
func TestBO08_ServerKilled(t *testing.T) {
	long(t)
	clean := newJob(t, spec.InProc, 2, 3, 120)
	clean.start(t.Context())
	want, err := clean.wait()
	if err != nil {
		t.Fatal(err)
	}
	for name, victims := range map[string][]int{"one": {1}, "both": {0, 1}} {
		t.Run(name, func(t *testing.T) {
			j := newJob(t, spec.Process, 2, 3, 120)
			j.spec.CheckpointEvery = 20
			j.start(t.Context())
			s := j.step(50)
			for _, id := range victims {
				kill9(t, pid(t, s, "server", id))
			}
			j.until("word of the loss", func(s spec.Status) bool { return strings.Contains(s.Reason, "server") })
			got, err := j.wait()
			if err != nil {
				t.Fatal(err)
			}
			if got.ParamsSHA256 != want.ParamsSHA256 {
				t.Errorf("parameters %s, an undisturbed run has %s", got.ParamsSHA256, want.ParamsSHA256)
			}
		})
	}
	t.Run("no checkpoint", func(t *testing.T) {
		j := newJob(t, spec.Process, 2, 3, 5000)
		j.start(t.Context())
		kill9(t, pid(t, j.step(20), "server", 1))
		if _, err := j.wait(); err == nil || !strings.Contains(err.Error(), "no checkpoint") {
			t.Errorf("error %v, want one that says there is no checkpoint", err)
		}
	})
}

// TestResumeIsTheSameRun: a job that is cut off and resumed with the same counts
// ends with the same bits; with others it goes on from the same step.
func TestResumeIsTheSameRun(t *testing.T) {
	long(t)
	clean := newJob(t, spec.InProc, 2, 3, 90)
	clean.start(t.Context())
	want, err := clean.wait()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ p, w int }{{2, 3}, {3, 2}, {1, 1}} {
		j := newJob(t, spec.InProc, 2, 3, 90)
		j.spec.CheckpointEvery = 20
		ctx, cancel := context.WithCancelCause(t.Context())
		j.start(ctx)
		j.step(47)
		cancel(StopAtOnce) // as abrupt as one process can end itself: no checkpoint
		if _, err := j.wait(); failure.KindOf(err) != failure.Canceled {
			t.Fatalf("stopped job: %v, want kind canceled", err)
		}
		again := newJob(t, spec.InProc, c.p, c.w, 90)
		again.o.Root, again.spec.Resume = j.o.Root, "job"
		again.start(t.Context())
		got, err := again.wait()
		if err != nil {
			t.Fatal(err)
		}
		if c.w == 3 && got.ParamsSHA256 != want.ParamsSHA256 {
			t.Errorf("%+v: parameters %s, undisturbed %s", c, got.ParamsSHA256, want.ParamsSHA256)
		}
		a, b := history(t, clean.o.Root, "job"), history(t, j.o.Root, "job")
		if len(a) != len(b) {
			t.Fatalf("%+v: %d steps, want %d", c, len(b), len(a))
		}
		for i := range a {
			if d := float64(a[i].Loss - b[i].Loss); d > 1e-3 || d < -1e-3 {
				t.Fatalf("%+v: step %d: loss %v, undisturbed %v", c, i+1, b[i].Loss, a[i].Loss)
			}
		}
	}
}

func TestInterruptWritesACheckpoint(t *testing.T) {
	j := newJob(t, spec.Process, 1, 2, 100000)
	ctx, cancel := context.WithCancelCause(t.Context())
	j.start(ctx)
	j.step(10)
	cancel(errors.New("interrupted"))
	got, err := j.wait()
	if failure.KindOf(err) != failure.Canceled || got.Checkpoint == "" {
		t.Fatalf("result %+v, error %v", got, err)
	}
	r, err := digestOf(got.Checkpoint)
	if err != nil || r != got.ParamsSHA256 {
		t.Fatalf("checkpoint digest %s (%v), result %s", r, err, got.ParamsSHA256)
	}
}

// long marks a test that trains for many seconds: the short run, which the race
// detector slows, leaves it out.
func long(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("trains for many seconds; run without -short")
	}
}
