package rundir_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"optimus/internal/failure"
	"optimus/internal/rundir"
)

// TestMain lets the test's own program be the second process that holds a lock.
func TestMain(m *testing.M) {
	if path := os.Getenv("RUNDIR_TEST_HOLD"); path != "" {
		os.Exit(hold(path))
	}
	goleak.VerifyTestMain(m)
}

// hold runs the job until its standard input ends.
func hold(path string) int {
	d, err := rundir.Open(filepath.Dir(path), filepath.Base(path))
	if err != nil {
		return 1
	}
	if _, err := d.Lock(); err != nil {
		return 2
	}
	fmt.Fprintln(os.Stdout, "held")
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
	return 0
}

func create(t *testing.T, name string) *rundir.Dir {
	t.Helper()
	d, err := rundir.Create(t.TempDir(), name)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestNames(t *testing.T) {
	root := t.TempDir()
	for _, name := range []string{"", strings.Repeat("x", 51), "A", "a_b", "a/b", "..", ".", "a b", "é", "a\n", "0", "-"} {
		for what, err := range map[string]error{"Open": second(rundir.Open(root, name)), "Create": second(rundir.Create(root, name))} {
			if failure.KindOf(err) != failure.InvalidArgument || !strings.Contains(err.Error(), "1 to 50 characters of a-z, 0-9 and '-'") || strings.Contains(err.Error(), "\n") {
				t.Errorf("%s %q: %v", what, name, err)
			}
		}
	}
	if left, err := os.ReadDir(root); err != nil || len(left) > 0 {
		t.Errorf("refused names left %v, %v", left, err)
	}
}

func second(_ *rundir.Dir, err error) error { return err }

func TestLayout(t *testing.T) {
	state := t.TempDir()
	t.Setenv("XDG_STATE_HOME", state)
	d, err := rundir.Create("", "mine")
	if err != nil {
		t.Fatal(err)
	}
	base := filepath.Join(state, "optimus", "jobs", "mine")
	got := []string{d.Path, d.Spec(), d.Telemetry(), d.Journal(), d.Checkpoints(), d.JobLog(), d.Log("server", 2, 5)}
	want := []string{base, base + "/spec.json", base + "/telemetry.jsonl", base + "/journal.jsonl", base + "/checkpoints", base + "/logs/job.log", base + "/logs/server-2-5.log"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for _, dir := range []string{d.Checkpoints(), d.Logs()} {
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			t.Errorf("%s: %v", dir, err)
		}
	}
	t.Setenv("XDG_STATE_HOME", "relative")
	t.Setenv("HOME", state)
	if root, err := rundir.DefaultRoot(); err != nil || root != filepath.Join(state, ".local/state/optimus/jobs") {
		t.Errorf("root %q, %v", root, err)
	}
}

func TestListAndOpen(t *testing.T) {
	root := t.TempDir()
	if dirs, err := rundir.List(filepath.Join(root, "none")); err != nil || len(dirs) != 0 {
		t.Errorf("no root: %v, %v", dirs, err)
	}
	for _, name := range []string{"b", "a"} {
		if _, err := rundir.Create(root, name); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Mkdir(filepath.Join(root, "Not A Job"), 0o755), os.WriteFile(filepath.Join(root, "file"), nil, 0o644)); err != nil {
		t.Fatal(err)
	}
	dirs, err := rundir.List(root)
	if err != nil || len(dirs) != 2 || dirs[0].Name != "a" || dirs[1].Path != filepath.Join(root, "b") {
		t.Errorf("%v, %v", dirs, err)
	}
	if _, err := rundir.Open(root, "a"); err != nil {
		t.Error(err)
	}
	if _, err := rundir.Open(root, "c"); failure.KindOf(err) != failure.NotFound || !strings.Contains(err.Error(), "job c") {
		t.Errorf("got %v", err)
	}
	if _, err := rundir.Open(root, "file"); err == nil {
		t.Error("a file was opened as a job")
	}
}

func TestUniqueNamesWithoutRaces(t *testing.T) {
	root := t.TempDir()
	const n = 20
	names := make([]string, n)
	var group sync.WaitGroup
	for i := range n {
		group.Go(func() {
			if d, err := rundir.CreateUnique(root, "cnn-rand"); err == nil {
				names[i] = d.Name
			}
		})
	}
	group.Wait()
	sort.Slice(names, func(i, j int) bool {
		return len(names[i]) < len(names[j]) || len(names[i]) == len(names[j]) && names[i] < names[j]
	})
	for i, name := range names {
		if name != fmt.Sprintf("cnn-rand-%d", i+1) {
			t.Fatalf("names %v", names)
		}
	}
}

func TestUnwritableFolderIsOneLineThatNamesIt(t *testing.T) {
	root := t.TempDir()
	blocked := filepath.Join(root, "blocked") // a file where a folder is needed: works for root too
	if err := os.WriteFile(blocked, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{second(rundir.Create(blocked, "job")), second(rundir.CreateUnique(blocked, "job"))} {
		if err == nil || !strings.Contains(err.Error(), blocked+"/job") || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), "XDG_STATE_HOME") {
			t.Errorf("got %v", err)
		}
	}
	if os.Getuid() != 0 {
		closed := filepath.Join(root, "closed")
		if err := os.Mkdir(closed, 0o500); err != nil {
			t.Fatal(err)
		}
		if err := second(rundir.Create(closed, "job")); failure.KindOf(err) != failure.Permission {
			t.Errorf("got %v", err)
		}
	}
}

// What a failed start made goes; what was there before stays.
func TestDiscard(t *testing.T) {
	root := t.TempDir()
	for _, make := range []func() (*rundir.Dir, error){
		func() (*rundir.Dir, error) { return rundir.Create(root, "job-1") },
		func() (*rundir.Dir, error) { return rundir.CreateUnique(root, "job") },
	} {
		d, err := make()
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Discard(); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(d.Path); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is still there: %v", d.Path, err)
		}
	}
	if _, err := rundir.Create(root, "kept"); err != nil {
		t.Fatal(err)
	}
	again, err := rundir.Create(root, "kept")
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Discard(); err != nil {
		t.Fatal(err)
	}
	if _, err := rundir.Open(root, "kept"); err != nil {
		t.Errorf("a folder of an earlier run went: %v", err)
	}
}

func TestLockInOneProcess(t *testing.T) {
	d := create(t, "job")
	if pid, running := d.Running(); running || pid != 0 {
		t.Errorf("runs as %d before it began", pid)
	}
	l, err := d.Lock()
	if err != nil {
		t.Fatal(err)
	}
	if pid, running := d.Running(); !running || pid != os.Getpid() {
		t.Errorf("running %v as %d", running, pid)
	}
	_, err = d.Lock()
	if failure.KindOf(err) != failure.Conflict || !strings.Contains(err.Error(), strconv.Itoa(os.Getpid())) || !strings.Contains(err.Error(), "job job") {
		t.Errorf("got %v", err)
	}
	if err := l.Unlock(); err != nil {
		t.Fatal(err)
	}
	if _, running := d.Running(); running {
		t.Error("runs after the end")
	}
	again, err := d.Lock()
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Unlock(); err != nil {
		t.Fatal(err)
	}
}

func TestLockFolder(t *testing.T) {
	dir := t.TempDir()
	first, err := rundir.LockFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := rundir.LockFolder(dir); failure.KindOf(err) != failure.Conflict || !strings.Contains(err.Error(), dir) || !strings.Contains(err.Error(), "another --checkpoint-dir") {
		t.Errorf("locked twice: %v", err)
	}
	other, err := rundir.LockFolder(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(first.Close(), other.Close()); err != nil {
		t.Fatal(err)
	}
	again, err := rundir.LockFolder(dir)
	if err != nil {
		t.Fatalf("after its holder let go: %v", err)
	}
	if err := again.Close(); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("it left %v, %v", left, err)
	}
	if _, err := rundir.LockFolder(filepath.Join(dir, "nowhere")); failure.KindOf(err) != failure.NotFound {
		t.Errorf("got %v", err)
	}
}

func TestLockDiesWithItsProcess(t *testing.T) {
	d := create(t, "job")
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), "RUNDIR_TEST_HOLD="+d.Path)
	in, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "held\n" {
		t.Fatalf("the child says %q, %v", line, err)
	}
	if pid, running := d.Running(); !running || pid != child.Process.Pid {
		t.Errorf("running %v as %d, want %d", running, pid, child.Process.Pid)
	}
	if _, err := d.Lock(); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("process %d", child.Process.Pid)) {
		t.Errorf("got %v", err)
	}
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait() // killed
	if _, running := d.Running(); running {
		t.Error("runs after its process was killed")
	}
	l, err := d.Lock()
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Unlock(); err != nil {
		t.Fatal(err)
	}
}

// Probing whether a job runs must not make its start fail.
func TestProbesDoNotDisturbTheLock(t *testing.T) {
	d := create(t, "job")
	stop := make(chan struct{})
	var group sync.WaitGroup
	for range 2 {
		group.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					d.Running()
				}
			}
		})
	}
	for range 50 {
		l, err := d.Lock()
		if err != nil {
			t.Error(err)
			break
		}
		if err := l.Unlock(); err != nil {
			t.Error(err)
		}
	}
	close(stop)
	group.Wait()
}

func TestSocket(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", filepath.Join(temp, "s"))
	deep := filepath.Join(temp, strings.Repeat("deep/", 60)) // itself too long for a socket
	d, err := rundir.Create(deep, strings.Repeat("long-", 9)+"name")
	if err != nil {
		t.Fatal(err)
	}
	path, err := d.Socket()
	if err != nil {
		t.Fatal(err)
	}
	again, err := d.Socket()
	if err != nil || again != path || len(path) > 103 {
		t.Errorf("%q, then %q, %v", path, again, err)
	}
	if info, err := os.Stat(filepath.Dir(path)); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info, err)
	}
	if other, err := create(t, "other").Socket(); err != nil || other == path {
		t.Errorf("another job's socket is %q, %v", other, err)
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}

	if err := os.Chmod(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Socket(); failure.KindOf(err) != failure.Permission || !strings.Contains(err.Error(), "others may enter") {
		t.Errorf("an open folder: %v", err)
	}
	t.Setenv("TMPDIR", filepath.Join(temp, strings.Repeat("x", 100)))
	if _, err := d.Socket(); err == nil || !strings.Contains(err.Error(), "TMPDIR") {
		t.Errorf("a long folder: %v", err)
	}
}

func TestJournal(t *testing.T) {
	d := create(t, "job")
	if records, err := rundir.ReadJournal(d.Journal()); err != nil || len(records) != 0 {
		t.Errorf("no journal: %v, %v", records, err)
	}
	appendAll := func(values ...string) {
		t.Helper()
		j, err := rundir.OpenJournal(d.Journal())
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range values {
			if err := j.Append(v); err != nil {
				t.Fatal(err)
			}
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
	}
	read := func() (out []string) {
		t.Helper()
		records, err := rundir.ReadJournal(d.Journal())
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range records {
			var s string
			if err := json.Unmarshal(r, &s); err != nil {
				t.Fatal(err)
			}
			out = append(out, s)
		}
		return out
	}
	appendAll("one", "two\nlines")
	whole, err := os.ReadFile(d.Journal())
	if err != nil {
		t.Fatal(err)
	}
	// Cut anywhere in the second line: the first is there, and a new record
	// begins on its own line.
	for n := len("\"one\"\n"); n < len(whole); n++ {
		if err := os.WriteFile(d.Journal(), whole[:n], 0o644); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"one"}, read()); diff != "" {
			t.Fatalf("cut at %d: %s", n, diff)
		}
		appendAll("three")
		if diff := cmp.Diff([]string{"one", "three"}, read()); diff != "" {
			t.Fatalf("cut at %d: %s", n, diff)
		}
	}
	if err := os.WriteFile(d.Journal(), []byte("1\nbad\n2\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	records, err := rundir.ReadJournal(d.Journal())
	if failure.KindOf(err) != failure.Corrupt || !strings.Contains(err.Error(), "line 2") || len(records) != 1 {
		t.Errorf("got %v, %v", records, err)
	}
}

func TestJournalFailuresAreErrors(t *testing.T) {
	d := create(t, "job")
	if _, err := rundir.OpenJournal(filepath.Join(d.Path, "none", "j")); failure.KindOf(err) != failure.NotFound {
		t.Errorf("got %v", err)
	}
	j, err := rundir.OpenJournal(d.Journal())
	if err != nil {
		t.Fatal(err)
	}
	if err := j.Append(func() {}); failure.KindOf(err) != failure.InvalidArgument {
		t.Errorf("got %v", err)
	}
	if err := j.Append(1); err != nil {
		t.Errorf("after a record that JSON cannot carry: %v", err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if err := j.Append(2); err == nil || !strings.Contains(err.Error(), d.Journal()) {
		t.Errorf("got %v", err)
	}
	if records, err := rundir.ReadJournal(d.Journal()); err != nil || len(records) != 1 {
		t.Errorf("%v, %v", records, err)
	}
}
