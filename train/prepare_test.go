package train

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"optimus/elastic"
	"optimus/internal/failure"
	"optimus/spec"
)

// A job that could not start leaves no folder; one that had run before keeps its.
func TestFailedStartLeavesNothing(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	interrupted, cancel := context.WithCancel(t.Context())
	cancel()
	for name, breakIt := range map[string]func(*testing.T, *spec.TrainingJob){
		"checkpoint folder takes no files": func(t *testing.T, j *spec.TrainingJob) {
			if j.CheckpointDir = "/proc"; runtime.GOOS != "linux" {
				t.Skip("needs a folder that not even root can write to")
			}
		},
		"checkpoint folder is a file": func(_ *testing.T, j *spec.TrainingJob) { j.CheckpointDir = file },
		"interrupted":                 func(*testing.T, *spec.TrainingJob) {},
		"nothing to resume":           func(_ *testing.T, j *spec.TrainingJob) { j.Resume = "nobody" },
		"no room for the socket": func(t *testing.T, _ *spec.TrainingJob) {
			t.Setenv("TMPDIR", filepath.Join(t.TempDir(), strings.Repeat("x", 100)))
		},
	} {
		for _, job := range []string{"", "mine"} {
			t.Run(name+" "+job, func(t *testing.T) {
				o, j := testOptions(t), testJob(1, 1)
				o.Task, j.Name = lin1(1, 2), job
				breakIt(t, &j)
				ctx := t.Context()
				if name == "interrupted" {
					ctx = interrupted
				}
				if r, err := Run(ctx, j, o); err == nil || r.Job != "" {
					t.Fatalf("it ran: %+v, %v", r, err)
				}
				if left, err := os.ReadDir(o.Root); err != nil || len(left) > 0 {
					t.Errorf("it left %v, %v", left, err)
				}
			})
		}
	}
	o, j := testOptions(t), testJob(1, 1)
	o.Task, j.Name = lin1(1, 2), "mine"
	if _, err := Run(t.Context(), j, o); err != nil {
		t.Fatal(err)
	}
	if _, err := Run(t.Context(), j, o); err == nil { // it has a checkpoint
		t.Fatal("it was started over")
	}
	if _, _, err := FindCheckpoint(o.Root, "mine"); err != nil {
		t.Errorf("after a refused start: %v", err)
	}
}

// What a job says of itself is checked before anything starts: a task of one's own
// lends it only a name.
func TestJobIsValidated(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(*spec.TrainingJob)
		want  string
	}{
		"staleness": {func(j *spec.TrainingJob) { j.Mode = spec.SSP }, "staleness is 0; allowed: 1 to"},
		"name":      {func(j *spec.TrainingJob) { j.Name = "../x" }, `name is "../x"`},
		"mode":      {func(j *spec.TrainingJob) { j.Mode = "" }, `mode is ""`},
	} {
		for _, own := range []bool{true, false} {
			o, j := testOptions(t), testJob(1, 2)
			if o.Task = lin1(1, 2); !own {
				o.Task, j.Workload = nil, "cnn-rand"
			}
			c.spoil(&j)
			_, err := Run(t.Context(), j, o)
			if failure.KindOf(err) != failure.InvalidArgument || !strings.Contains(fmt.Sprint(err), c.want) {
				t.Errorf("%s, own task %v: %v, want %q", name, own, err, c.want)
			}
			if left, err := os.ReadDir(o.Root); err != nil || len(left) > 0 {
				t.Errorf("%s: it left %v, %v", name, left, err)
			}
		}
	}
	o := testOptions(t)
	o.Task = lin1(1, 2)
	o.Task.Name = ""
	if r, err := Run(t.Context(), testJob(1, 1), o); err != nil || r.Job != "task-1" {
		t.Errorf("a task without a name: job %q, %v", r.Job, err)
	}
}

// What a stopped job advises works: resume where something was saved, a new start
// where nothing was.
func TestStoppedAdvice(t *testing.T) {
	o := testOptions(t)
	o.Task = lin1(1, 2)
	stop := func(j spec.TrainingJob, cause error) string {
		t.Helper()
		ctx, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		o.Notify = func(s spec.Status) {
			if s.Step > 0 {
				cancel(cause)
			}
		}
		_, err := Run(ctx, j, o)
		if err == nil {
			t.Fatal("it was not stopped")
		}
		return err.Error()
	}
	j := testJob(1, 1)
	j.Name, j.Epochs = "job", 1<<30
	if got := stop(j, StopAtOnce); !strings.HasSuffix(got, "nothing was saved: start it anew") {
		t.Error(got)
	}
	if got := stop(j, context.Canceled); !strings.HasSuffix(got, "go on with --resume job") { // it was started anew
		t.Error(got)
	}
	if got := stop(j, StopAtOnce); !strings.HasSuffix(got, "go on with --resume job, or take another --job NAME") {
		t.Error(got)
	}
	j.Resume = "job"
	if got := stop(j, StopAtOnce); !strings.HasSuffix(got, "go on with --resume job") {
		t.Error(got)
	}
	dir, _, err := FindCheckpoint(o.Root, "job")
	if err != nil {
		t.Fatal(err)
	}
	j.Name = "other"
	if got := stop(j, StopAtOnce); !strings.HasSuffix(got, "go on with --resume "+dir) {
		t.Error(got)
	}
}

// The log of a job in one process says what happened, in as many lines however
// long the job is, and the caller's log says the same.
func TestJobLog(t *testing.T) {
	lines := func(epochs int) []string {
		var caller bytes.Buffer
		o, j := testOptions(t), testJob(2, 2)
		o.Task, j.Name, j.Epochs = lin1(1, 2, 3, 4), "job", epochs
		o.Log = slog.New(slog.NewTextHandler(&caller, nil))
		if _, err := Run(t.Context(), j, o); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(filepath.Join(o.Root, "job", "logs", "job.log"))
		if err != nil {
			t.Fatal(err)
		}
		sorted := func(text []byte) []string { return slices.Sorted(strings.Lines(string(text))) } // members write at the same time
		if diff := cmp.Diff(sorted(text), sorted(caller.Bytes())); diff != "" {
			t.Errorf("the caller's log is another: %s", diff)
		}
		return sorted(text)
	}
	short, long := lines(5), lines(200)
	if len(short) != len(long) {
		t.Errorf("%d lines after 5 steps, %d after 200:\n%s", len(short), len(long), strings.Join(long, ""))
	}
	text := strings.Join(short, "")
	for _, want := range []string{"run begins", "generation=1", "servers=2 workers=2", "checkpoint's shards are on disk", "job is finished"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

// What may happen at every step is logged ever more rarely.
func TestSkippedStepsAreNotAllLogged(t *testing.T) {
	var log bytes.Buffer
	event := logEvents(slog.New(slog.NewTextHandler(&log, nil)))
	for step := range int64(1000) {
		event(elastic.Event{Kind: elastic.StepSkipped, Step: step + 1, Reason: "non-finite"})
		event(elastic.Event{Kind: elastic.StepDone, Step: step + 1})
	}
	if n := strings.Count(log.String(), "\n"); n != 10 || !strings.Contains(log.String(), "step=512 skipped=512") {
		t.Errorf("%d lines:\n%s", n, log.String())
	}
}

// Rescale refuses what no job can have, however large.
func TestRescaleBounds(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	o, j := testOptions(t), testJob(1, 1)
	o.Task, j.Name, j.Epochs = lin1(1, 2), "job", 1<<30
	asked := make(chan struct{})
	var once sync.Once
	o.Notify = func(s spec.Status) {
		if s.Step > 0 {
			once.Do(func() { close(asked) })
		}
	}
	go func() {
		defer cancel()
		select {
		case <-asked:
		case <-ctx.Done():
			return
		}
		for _, n := range []int{-1, spec.MaxMembers + 1, 1<<32 + 2} {
			if _, err := Rescale(ctx, o.Root, "job", n, 0); err == nil || !strings.Contains(err.Error(), "give 1 to 4096") {
				t.Errorf("%d servers: %v", n, err)
			}
		}
	}()
	if r, err := Run(ctx, j, o); err == nil || r.Servers != 1 {
		t.Errorf("result %+v, %v", r, err)
	}
}

// A folder of checkpoints is one job's: not two's at once, and another's only to
// go on from there.
func TestRunsDoNotShareCheckpoints(t *testing.T) {
	o, first := testOptions(t), testJob(1, 1)
	o.Task, first.Name, first.CheckpointDir = lin1(1, 2), "first", t.TempDir()
	second := first
	second.Name, second.Epochs = "second", 5
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var once sync.Once
	o.Notify = func(s spec.Status) {
		if s.Step > 0 {
			once.Do(func() {
				quiet := o
				quiet.Notify = nil
				if _, err := Run(t.Context(), second, quiet); failure.KindOf(err) != failure.Conflict || !strings.Contains(err.Error(), "a job that is running") {
					t.Errorf("at once: %v", err)
				}
			})
		}
	}
	if _, err := Run(ctx, first, o); err != nil {
		t.Fatal(err)
	}
	o.Notify = nil
	if _, err := Run(ctx, second, o); failure.KindOf(err) != failure.Conflict || !strings.Contains(err.Error(), "it holds the checkpoints of job first") {
		t.Errorf("after the other: %v", err)
	}
	if left, err := os.ReadDir(o.Root); err != nil || len(left) != 1 {
		t.Errorf("refused starts left %v, %v", left, err)
	}
	second.Resume = "first"
	if r, err := Run(ctx, second, o); err != nil || filepath.Dir(r.Checkpoint) != first.CheckpointDir {
		t.Errorf("going on: %+v, %v", r, err)
	}
}
