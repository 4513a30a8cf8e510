package faultfs_test

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"optimus/internal/faultfs"
)

// put writes a file; how far it is made durable is the caller's choice.
func put(t *testing.T, f *faultfs.FS, name, text string, sync bool) {
	t.Helper()
	w, err := f.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
	if sync {
		if err := w.Sync(); err != nil {
			t.Fatal(err)
		}
	}
}

func get(f *faultfs.FS, name string) (string, error) {
	r, err := f.Open(name)
	if err != nil {
		return "", err
	}
	info, err := r.Stat()
	if err != nil {
		return "", err
	}
	b, err := io.ReadAll(io.NewSectionReader(r, 0, info.Size()))
	return string(b), err
}

func check(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func TestCrashKeepsWhatWasSynced(t *testing.T) {
	f := faultfs.New()
	check(t, f.MkdirAll("/d"), f.SyncDir("/"))
	put(t, f, "/d/durable", "old", true)
	put(t, f, "/d/nameless", "lost", true)
	check(t, f.Remove("/d/nameless"), f.SyncDir("/d"))
	put(t, f, "/d/nameless", "bytes without a name", true)
	put(t, f, "/d/hollow.tmp", "a name without bytes", false)
	check(t, f.Rename("/d/hollow.tmp", "/d/hollow"))
	put(t, f, "/d/durable", "new", true) // replaces the name, not yet durable

	for name, want := range map[string]string{"/d/durable": "new", "/d/hollow": "a name without bytes"} {
		if got, err := get(f, name); got != want || err != nil {
			t.Errorf("before: %s is %q, %v", name, got, err)
		}
	}
	f.Crash(nil)
	if diff := cmp.Diff([]string{"/d/durable"}, f.Files()); diff != "" {
		t.Fatal(diff)
	}
	if got, _ := get(f, "/d/durable"); got != "old" {
		t.Errorf("the durable file is %q", got)
	}
	put(t, f, "/d/hollow", "a name without bytes", false)
	check(t, f.SyncDir("/d"))
	f.Crash(nil)
	if got, err := get(f, "/d/hollow"); got != "" || err != nil {
		t.Errorf("a synced name of bytes that were not holds %q, %v", got, err)
	}
}

func TestCrashMayKeepSomeOfTheRest(t *testing.T) {
	outcomes := map[string]int{}
	for seed := range uint64(200) {
		run := func() string {
			f := faultfs.New()
			put(t, f, "/a", "abc", false)
			put(t, f, "/b", "", true)
			f.Crash(rand.New(rand.NewPCG(seed, 0)))
			a, err := get(f, "/a")
			return fmt.Sprint(a, err == nil, f.Files())
		}
		first := run()
		if again := run(); again != first {
			t.Fatalf("seed %d gives %s and %s", seed, first, again)
		}
		outcomes[first]++
	}
	if len(outcomes) != 2*(4+1) { // /b there or not; /a with 0…3 bytes or not there
		t.Errorf("outcomes %v", outcomes)
	}
}

func TestKillStopsHalfWayAndForGood(t *testing.T) {
	f := faultfs.New()
	f.KillAt(2)
	w, err := f.Create("/a")
	check(t, err)
	if n, err := io.WriteString(w, "abcdef"); n != 3 || !errors.Is(err, faultfs.ErrKilled) {
		t.Errorf("wrote %d, %v", n, err)
	}
	if n, err := io.WriteString(w, "more"); n != 0 || !errors.Is(err, faultfs.ErrKilled) {
		t.Errorf("after the kill: wrote %d, %v", n, err)
	}
	for _, err := range []error{w.Sync(), f.Remove("/a"), f.MkdirAll("/x"), f.Rename("/a", "/b"), f.SyncDir("/")} {
		if !errors.Is(err, faultfs.ErrKilled) {
			t.Errorf("after the kill: %v", err)
		}
	}
	if f.Ops() != 8 {
		t.Errorf("%d operations", f.Ops())
	}
	f.Restart()
	if got, err := get(f, "/a"); got != "abc" || err != nil {
		t.Errorf("left behind: %q, %v", got, err)
	}
}

func TestFailAtFailsOnce(t *testing.T) {
	f := faultfs.New()
	f.FailAt(1, syscall.EIO)
	if err := f.MkdirAll("/a"); !errors.Is(err, syscall.EIO) {
		t.Errorf("got %v", err)
	}
	check(t, f.MkdirAll("/a"))
}

func TestLimitAndNames(t *testing.T) {
	f := faultfs.New()
	f.Limit(4)
	w, err := f.Create("/a")
	check(t, err)
	if n, err := io.WriteString(w, "abcdef"); n != 4 || !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("wrote %d, %v", n, err)
	}
	if free, err := f.Free("/"); free != 0 || err != nil {
		t.Errorf("free %d, %v", free, err)
	}
	check(t, f.MkdirAll("/d/e"))
	_, missing := f.Open("/none")
	_, folder := f.Open("/d")
	_, under := f.Create("/a/b")
	_, list := f.ReadDir("/a")
	for want, err := range map[error]error{
		fs.ErrNotExist:    missing,
		syscall.EISDIR:    folder,
		syscall.ENOTDIR:   errors.Join(under, list, f.MkdirAll("/a/b"), f.SyncDir("/a")),
		syscall.ENOTEMPTY: f.Remove("/d"),
		fs.ErrInvalid:     f.Flip("/a", 4, 1),
	} {
		if !errors.Is(err, want) {
			t.Errorf("got %v, want %v", err, want)
		}
	}
	entries, err := f.ReadDir("/")
	check(t, err, f.Flip("/a", 0, 1))
	if len(entries) != 2 || entries[0].Name() != "a" || !entries[1].IsDir() {
		t.Errorf("entries %v", entries)
	}
	if got, _ := get(f, "/a"); got != "`bcd" {
		t.Errorf("flipped: %q", got)
	}
}

func Example() {
	save := func(f *faultfs.FS) error { // forgets to sync
		w, err := f.Create("/state")
		if err != nil {
			return err
		}
		if _, err := io.WriteString(w, "precious"); err != nil {
			return err
		}
		return w.Close()
	}
	f := faultfs.New()
	fmt.Println(save(f), f.Files())
	f.Crash(nil)
	fmt.Println(f.Files())
	// Output:
	// <nil> [/state]
	// []
}
