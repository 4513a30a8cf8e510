package train

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"optimus/elastic"
	"optimus/elastic/checkpoint"
	"optimus/internal/failure"
	"optimus/internal/rundir"
	"optimus/spec"
)

// live marks a test that sends signals to processes and looks at them in /proc.
func live(t *testing.T) {
	t.Helper()
	long(t)
	if runtime.GOOS != "linux" {
		t.Skip("needs /proc")
	}
}

// soak reports whether the tests run in their long variants: see make soak.
func soak() bool { return os.Getenv("OPTIMUS_SOAK") != "" }

// eventually waits for a condition, and fails with the last state that it told.
func eventually(t *testing.T, what string, within time.Duration, ok func() (state string, ok bool)) {
	t.Helper()
	for end := time.Now().Add(within); ; time.Sleep(5 * time.Millisecond) {
		state, ok := ok()
		if ok {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("no %s within %v; last: %s", what, within, state)
		}
	}
}

// processState returns the kernel's letter for a process (R, S, T stopped, Z
// zombie) and its parent; 0 once it is gone.
func processState(pid int) (state byte, parent int) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, 0
	}
	fields := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
	parent, _ = strconv.Atoi(fields[1])
	return fields[0][0], parent
}

// children lists the processes whose parent is pid, zombies included.
func children(t *testing.T, pid int) (list []int) {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range stats {
		child, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if _, parent := processState(child); parent == pid {
			list = append(list, child)
		}
	}
	return list
}

// ended waits until processes have ended; a zombie whose parent has not looked
// yet has.
func ended(t *testing.T, within time.Duration, pids ...int) {
	t.Helper()
	for _, pid := range pids {
		eventually(t, fmt.Sprintf("end of process %d", pid), within, func() (string, bool) {
			state, parent := processState(pid)
			return fmt.Sprintf("state %q, parent %d", state, parent), state == 0 || state == 'Z'
		})
	}
}

// outOfReach is a starter that cannot end one member: the first order to kill it
// comes to nothing, as if its machine had lost its network.
type outOfReach struct {
	starter
	spare elastic.Role
	id    int
	once  bool
}

func (s *outOfReach) kill(m elastic.Member) {
	if m.Role == s.spare && m.ID == s.id && !s.once {
		s.once = true
		return
	}
	s.starter.kill(m)
}

// logOf returns what a member of the job wrote.
func (j *job) logOf(role string, id, incarnation int) string {
	j.t.Helper()
	dir, err := rundir.Open(j.o.Root, "job")
	if err != nil {
		j.t.Fatal(err)
	}
	b, err := os.ReadFile(dir.Log(role, id, int64(incarnation)))
	if err != nil {
		j.t.Fatal(err)
	}
	return string(b)
}

// finish waits for the job's end, which must be a good one and that of an
// undisturbed run.
func (j *job) finish() spec.Result {
	j.t.Helper()
	r, err := j.wait()
	if err != nil {
		j.t.Fatal(err)
	}
	j.asUndisturbed(r)
	return r
}

// The first members of a job have incarnations 1, 2, … servers first.
func firstIncarnation(p int, role elastic.Role, id int) uint64 {
	if role == elastic.Worker {
		id += p
	}
	return uint64(id + 1)
}

// TestBO13_StoppedAndContinued: a process that stands still for longer than the
// detection takes is replaced. When it goes on, in the midst of a push, nothing
// of it is applied, and it leaves.
func TestBO13_StoppedAndContinued(t *testing.T) {
	live(t)
	for _, c := range []struct {
		name string
		mode spec.Mode
		role elastic.Role
		n    int // see fault
	}{
		{"worker", spec.BSP, elastic.Worker, 1},
		{"server", spec.BSP, elastic.Server, 3},
		{"worker asp", spec.ASP, elastic.Worker, 1},
	} {
		t.Run(c.name, func(t *testing.T) { stoppedAndContinued(t, c.mode, c.role, c.n) })
	}
}

func stoppedAndContinued(t *testing.T, mode spec.Mode, role elastic.Role, n int) {
	const p, w, steps, at = 2, 3, 300, 25
	f := fault{firstIncarnation(p, role, 1), at, n, syscall.SIGSTOP}
	j := newExact(t, spec.Process, p, w, steps, f.args()...)
	if mode != spec.BSP {
		j.spec.Mode, j.spec.Steps, j.spec.Epochs = mode, 0, steps/exactEpoch
	}
	j.o.Tune.Detect = 1500 * time.Millisecond
	j.o.reach = func(c *coordinator) { c.starter = &outOfReach{starter: c.starter, spare: role, id: 1} }
	j.start(t.Context())
	old := pid(t, j.step(1), string(role), 1)
	t.Cleanup(func() { syscall.Kill(old, syscall.SIGKILL) })
	stopped(t, old)
	s := j.until("a replacement", func(s spec.Status) bool {
		return s.State == spec.Running && s.Workers == w && slices.ContainsFunc(s.Members, func(m spec.Member) bool {
			return m.Role == string(role) && m.ID == 1 && m.PID != old && m.PID != 0
		})
	})
	j.step(s.Step + 20)
	if state, _ := processState(old); state != 'T' {
		t.Fatalf("the old process is in state %q, not stopped", state)
	}
	if err := syscall.Kill(old, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	ended(t, 20*time.Second, old)
	j.hurry()
	r, err := j.wait()
	if err != nil {
		t.Fatal(err)
	}
	if mode == spec.BSP {
		j.asUndisturbed(r)
	} else {
		j.usedOften(steps / exactEpoch)
	}
	verifyCheckpoints(t, j)
	if role == elastic.Server {
		return // what it still took nobody will ever read
	}
	late := outcomes(j.logOf("worker", 1, int(f.incarnation)))
	if len(late) == 0 {
		t.Error("no push came late: the trial tried nothing")
	}
	if slices.Contains(late, 0) {
		t.Errorf("outcomes of the late pushes: %v, none may be accepted (0)", late)
	}
}

// stopped waits until a process stands still.
func stopped(t *testing.T, pid int) {
	t.Helper()
	eventually(t, fmt.Sprintf("stop of process %d", pid), time.Minute, func() (string, bool) {
		state, _ := processState(pid)
		return fmt.Sprintf("state %q", state), state == 'T'
	})
}

// verifyCheckpoints reads every checkpoint of the job in full.
func verifyCheckpoints(t *testing.T, j *job) {
	t.Helper()
	list, err := checkpoint.List(checkpoint.OS{}, filepath.Join(j.o.Root, "job", "checkpoints"))
	if err != nil {
		t.Fatal(err)
	}
	if len(list) == 0 {
		t.Error("the job has no checkpoint")
	}
	for _, c := range list {
		if err := checkpoint.Verify(checkpoint.OS{}, c.Dir); err != nil {
			t.Error(err)
		}
	}
}

// TestBO04_ServerDiesBetweenPushAndAnswer: a server is killed, or stands still
// for longer than the workers wait, after it took a push and before its answer
// went out. The push is sent again, to the server that was restarted from the
// checkpoint or to the same one, and counts once.
func TestBO04_ServerDiesBetweenPushAndAnswer(t *testing.T) {
	live(t)
	const p, w, steps, at = 2, 3, 150, 25
	for _, c := range []struct {
		name   string
		n      int // answers of the step; see fault
		signal syscall.Signal
	}{
		{"killed with the first push", 1, syscall.SIGKILL},
		{"killed with a step applied", w, syscall.SIGKILL},
		{"late", w, syscall.SIGSTOP},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := fault{firstIncarnation(p, elastic.Server, 1), at, c.n, c.signal}
			j := newExact(t, spec.Process, p, w, steps, append(f.args(), "--retry", "300ms")...)
			j.start(t.Context())
			old := pid(t, j.step(1), "server", 1)
			if c.signal == syscall.SIGKILL {
				j.until("word of the loss", func(s spec.Status) bool { return strings.Contains(s.Reason, "server 1#2 was lost") })
				j.hurry()
				j.finish()
				return
			}
			t.Cleanup(func() { syscall.Kill(old, syscall.SIGKILL) })
			stopped(t, old)
			time.Sleep(time.Second) // the workers ask again
			if err := syscall.Kill(old, syscall.SIGCONT); err != nil {
				t.Fatal(err)
			}
			j.hurry()
			j.finish()
			if late := outcomes(j.logOf("server", 1, int(f.incarnation))); !slices.Contains(late, 1) {
				t.Errorf("outcomes of the pushes after the pause: %v, want duplicates (1) among them", late)
			}
		})
	}
}

// TestTwentyRescalesOfProcesses: the supervisor keeps no child, zombie or
// descriptor of the members that come and go.
func TestTwentyRescalesOfProcesses(t *testing.T) {
	live(t)
	defer goleak.VerifyNone(t)
	self := os.Getpid()
	descriptors := func() int {
		fds, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", self))
		if err != nil {
			t.Fatal(err)
		}
		return len(fds)
	}
	before := descriptors()
	j := newExact(t, spec.Process, 2, 2, 1000000)
	j.spec.CheckpointEvery = 0
	j.hurry()
	j.start(t.Context())
	j.step(2)
	// settled waits until the members are the only children, and returns the
	// descriptors that are open then.
	settled := func(members int) (open int) {
		t.Helper()
		eventually(t, "rest after a rescale", 30*time.Second, func() (string, bool) {
			list := children(t, self)
			zombies := 0
			for _, pid := range list {
				if state, _ := processState(pid); state == 'Z' {
					zombies++
				}
			}
			was := open
			open = descriptors()
			return fmt.Sprintf("%d children for %d members, %d zombies; %d descriptors, %d at start", len(list), members, zombies, open, before),
				len(list) == members && zombies == 0 && open == was
		})
		return open
	}
	sizes := [][2]int{{3, 3}, {1, 2}, {2, 4}, {2, 2}}
	first := settled(4)
	for i := range 20 {
		s := sizes[i%len(sizes)]
		if _, err := Rescale(t.Context(), j.o.Root, "job", s[0], s[1]); err != nil {
			t.Fatalf("rescale %d to %v: %v", i, s, err)
		}
		if open := settled(s[0] + s[1]); s == [2]int{2, 2} && open > first {
			t.Errorf("after %d rescales %d descriptors are open, at first %d", i+1, open, first)
		}
	}
	if err := stop(t, j.o.Root, "job"); err != nil {
		t.Fatal(err)
	}
	if _, err := j.wait(); failure.KindOf(err) != failure.Canceled {
		t.Fatal(err)
	}
	if len(j.result.Rescales) != 20 {
		t.Errorf("%d rescales in the result, want 20", len(j.result.Rescales))
	}
	if open := settled(0); open > before {
		t.Errorf("%d descriptors are open after the job, %d before it", open, before)
	}
}
