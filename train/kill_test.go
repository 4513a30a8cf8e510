package train

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"optimus/elastic/checkpoint"
	"optimus/spec"
	"optimus/telemetry"
)

// jobMain is the main of a supervisor: it trains exact in child processes.
func jobMain(args []string) int {
	fs := flag.NewFlagSet("job", flag.ExitOnError)
	j := testJob(0, 0)
	var o Options
	var hasty string
	fs.StringVar(&o.Root, "root", "", "")
	fs.StringVar(&hasty, "hasty", "", "")
	fs.StringVar(&j.Resume, "resume", "", "")
	fs.IntVar(&j.Servers.Count, "servers", 0, "")
	fs.IntVar(&j.Workers.Count, "workers", 0, "")
	fs.IntVar(&j.Steps, "steps", 0, "")
	fs.IntVar(&j.CheckpointEvery, "checkpoint-every", 0, "")
	fs.Parse(args)
	j.Name, j.Launch = "job", spec.Process
	o.Task, o.Child, o.Tune = exactTask(), childArgs(hasty), testTuning
	o.Log = slog.New(slog.NewTextHandler(os.Stderr, nil))
	if _, err := Run(context.Background(), j, o); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// supervisor is a job as a process of its own, with its members.
type supervisor struct {
	j    *job
	cmd  *exec.Cmd
	out  bytes.Buffer
	done chan struct{} // closed when it has ended
	err  error
}

// supervise starts the job, or goes on with it.
func (j *job) supervise(resume bool) *supervisor {
	j.t.Helper()
	exe, err := os.Executable()
	if err != nil {
		j.t.Fatal(err)
	}
	args := []string{"job", "--root", j.o.Root, "--hasty", j.hasty, "--steps", fmt.Sprint(j.spec.Steps), "--checkpoint-every", fmt.Sprint(j.spec.CheckpointEvery),
		"--servers", fmt.Sprint(j.spec.Servers.Count), "--workers", fmt.Sprint(j.spec.Workers.Count)}
	if resume {
		args = append(args, "--resume", "job")
	}
	s := &supervisor{j: j, cmd: exec.Command(exe, args...), done: make(chan struct{})}
	s.cmd.Stdout, s.cmd.Stderr = &s.out, &s.out
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	s.cmd.WaitDelay = 20 * time.Second
	if err := s.cmd.Start(); err != nil {
		j.t.Fatal(err)
	}
	go func() {
		defer close(s.done)
		s.err = s.cmd.Wait()
	}()
	j.t.Cleanup(func() {
		syscall.Kill(-s.cmd.Process.Pid, syscall.SIGKILL)
		<-s.done
	})
	return s
}

// running fails the test if the job has ended.
func (s *supervisor) running() {
	s.j.t.Helper()
	select {
	case <-s.done:
		s.j.t.Fatalf("the job ended (%v):\n%s", s.err, &s.out)
	default:
	}
}

// kill ends the supervisor's process group, and waits for the end of its members,
// each of which has a group of its own: the kernel kills them.
func (s *supervisor) kill() {
	s.j.t.Helper()
	members := children(s.j.t, s.cmd.Process.Pid)
	if err := syscall.Kill(-s.cmd.Process.Pid, syscall.SIGKILL); err != nil {
		s.j.t.Fatal(err)
	}
	<-s.done // at most WaitDelay
	ended(s.j.t, 20*time.Second, members...)
}

// tear leaves half a line at a file's end, as a kill in the midst of a write does.
func tear(t *testing.T, path string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteString(`{"kind":"step","ti`)
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
}

// TestBO15_KilledWhileSaving: the whole job is killed again and again at random
// moments while it saves every few steps. Each time it goes on from the newest
// whole checkpoint; in the end its parameters and its history are those of an
// undisturbed run.
func TestBO15_KilledWhileSaving(t *testing.T) {
	live(t)
	kills := 3
	if soak() {
		kills = 100
	}
	const every = 3
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	j := newExact(t, spec.Process, 2, 2, 100+20*kills)
	j.spec.CheckpointEvery = every
	root := filepath.Join(j.o.Root, "job", "checkpoints")
	torn, newest := 0, checkpoint.Info{}
	var from []int64 // steps that the runs went on from
	for range kills {
		last := newest.Step
		s := j.supervise(last > 0)
		eventually(t, "new checkpoint", time.Minute, func() (string, bool) {
			s.running()
			info, err := checkpoint.Newest(checkpoint.OS{}, root)
			return fmt.Sprintf("the newest is of step %d (%v), the run before left step %d", info.Step, err, last), info.Step > last
		})
		time.Sleep(time.Duration(rnd.Int64N(int64(2 * every * slow))))
		s.running()
		s.kill()
		tear(t, filepath.Join(j.o.Root, "job", "telemetry.jsonl"))
		list, err := checkpoint.List(checkpoint.OS{}, root)
		if err != nil {
			t.Fatal(err)
		}
		if !list[0].Complete {
			torn++
		}
		if newest, err = checkpoint.Newest(checkpoint.OS{}, root); err != nil {
			t.Fatal(err)
		}
		if err := checkpoint.Verify(checkpoint.OS{}, newest.Dir); err != nil {
			t.Error(err)
		}
		from = append(from, newest.Step)
	}
	t.Logf("%d of %d kills left an unfinished save; the last checkpoint is of step %d", torn, kills, newest.Step)
	j.hurry()
	j.spec.CheckpointEvery = 50
	s := j.supervise(true)
	select {
	case <-s.done:
	case <-time.After(2 * time.Minute):
		s.kill()
		t.Fatalf("the job does not end:\n%s", &s.out)
	}
	if s.err != nil {
		t.Fatalf("%v:\n%s", s.err, &s.out)
	}
	want := undisturbedRun(t, j.spec.Steps, 0)
	if newest, err := checkpoint.Newest(checkpoint.OS{}, root); err != nil || newest.Manifest.ParamsSHA256 != want.sha {
		t.Errorf("the last checkpoint is %+v (%v); an undisturbed run has parameters %s", newest, err, want.sha)
	}
	j.sameHistory(want)
	var began []int64
	for _, r := range records(t, j.o.Root, "job") {
		if g, ok := r.(telemetry.GenerationStart); ok && g.Source == telemetry.SourceCheckpoint {
			began = append(began, g.Step)
		}
	}
	if diff := cmp.Diff(from, began); diff != "" {
		t.Errorf("runs began from other steps than those of the newest checkpoints (-want +got):\n%s", diff)
	}
}
