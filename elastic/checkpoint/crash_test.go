package checkpoint_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"

	"optimus/elastic/checkpoint"
	"optimus/internal/faultfs"
)

// TestBO15_KilledAtEveryOperation kills a save, with the pruning that follows it,
// at each of its operations: by the process's death alone, by a power cut that
// loses all that was not synced, and by power cuts that lose some of it.
func TestBO15_KilledAtEveryOperation(t *testing.T) {
	const root = "/runs/a/checkpoints"
	slots := []string{"m", "v"}
	states := map[int64]*state{10: newState(10, slots, smallModel()...), 20: newState(20, slots, smallModel()...), 30: newState(30, slots, smallModel()...)}
	begin := func() *faultfs.FS {
		fs := faultfs.New()
		mustSave(t, states[10], fs, root, 1, 10, 3)
		return fs
	}
	save := func(fs *faultfs.FS) (committed bool, err error) {
		if _, err = states[20].save(fs, root, 2, 20, 3); err != nil {
			return false, err
		}
		_, err = checkpoint.Prune(fs, root, 1, 1<<62)
		return true, err
	}

	counted := begin()
	before := counted.Ops()
	if _, err := save(counted); err != nil {
		t.Fatal(err)
	}
	total := counted.Ops() - before
	loads := map[int64]int{}
	for n := 1; n <= total; n++ {
		for power := range 8 {
			fs := begin()
			fs.KillAt(n)
			committed, err := save(fs)
			if !errors.Is(err, faultfs.ErrKilled) {
				t.Fatalf("operation %d: got %v", n, err)
			}
			switch power {
			case 0:
				fs.Restart()
			case 1:
				fs.Crash(nil)
			default:
				fs.Crash(rand.New(rand.NewPCG(uint64(n), uint64(power))))
			}
			what := fmt.Sprintf("killed at operation %d of %d, power cut %d", n, total, power)
			step, err := restart(fs, root, states)
			if err != nil {
				t.Fatalf("%s: %v\nfiles: %v", what, err, fs.Files())
			}
			if committed && step != 20 {
				t.Fatalf("%s: step %d was loaded though the save of step 20 had succeeded", what, step)
			}
			loads[step]++
			if err := saveNext(fs, root, states[30]); err != nil {
				t.Fatalf("%s: %v\nfiles: %v", what, err, fs.Files())
			}
		}
	}
	if loads[10] == 0 || loads[20] == 0 {
		t.Fatalf("the kills did not reach both sides of the commit: %v", loads)
	}
	t.Logf("%d operations, 8 kinds of stop each: %v restarts by step loaded", total, loads)
}

// restart loads the newest checkpoint as a job does and checks all of it.
func restart(fs checkpoint.FS, root string, states map[int64]*state) (int64, error) {
	info, err := checkpoint.Newest(fs, root)
	if err != nil {
		return 0, err
	}
	if err := checkpoint.Verify(fs, info.Dir); err != nil {
		return 0, err
	}
	r, err := checkpoint.Load(fs, info.Dir)
	if err != nil {
		return 0, err
	}
	defer r.Close()
	if states[info.Step] == nil {
		return 0, fmt.Errorf("step %d was never saved", info.Step)
	}
	return info.Step, states[info.Step].equals(r, 2)
}

// saveNext makes one more checkpoint, after which nothing else may be left.
func saveNext(fs *faultfs.FS, root string, s *state) error {
	sequence, err := checkpoint.NextSequence(fs, root)
	if err != nil {
		return err
	}
	dir, err := s.save(fs, root, sequence, 30, 2)
	if err != nil {
		return err
	}
	if _, err := checkpoint.Prune(fs, root, 1, 1<<62); err != nil {
		return err
	}
	for _, f := range fs.Files() {
		if !strings.HasPrefix(f, dir+"/") {
			return fmt.Errorf("%s was left behind", f)
		}
	}
	return nil
}

func TestBO17_FullDiskNamesNeedAndSpaceAndHarmsNothing(t *testing.T) {
	const root = "/checkpoints"
	s := newState(1, []string{"m"}, checkpoint.Array{Name: "w", Shape: []int{1000, 10}})
	fs := faultfs.New()
	first := mustSave(t, s, fs, root, 1, 10, 1)
	used := int64(10000 * 4 * 2)
	fs.Limit(used + used/2)
	dir, err := s.save(fs, root, 2, 20, 1)
	if checkpoint.FaultOf(err) != checkpoint.Full || !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("got %v", err)
	}
	for _, want := range []string{dir + "/server-0.safetensors", "needs 80", "were free", "free space"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error %q does not say %q", err, want)
		}
	}
	if err := checkpoint.Verify(fs, first); err != nil {
		t.Error(err)
	}
	if info, err := checkpoint.Newest(fs, root); err != nil || info.Step != 10 {
		t.Errorf("newest is %+v, %v", info, err)
	}
	for _, f := range fs.Files() {
		if strings.HasPrefix(f, dir) {
			t.Errorf("%s still takes space", f)
		}
	}
	fs.Limit(10 * used) // space returns
	mustSave(t, s, fs, root, 2, 20, 1)
	if info, err := checkpoint.Newest(fs, root); err != nil || info.Step != 20 {
		t.Errorf("newest is %+v, %v", info, err)
	}
}

func TestFailedOperationsLeaveTheOldCheckpoint(t *testing.T) {
	const root = "/checkpoints"
	s := newState(1, []string{"m"}, smallModel()...)
	for n := 1; ; n++ {
		fs := faultfs.New()
		first := mustSave(t, s, fs, root, 1, 10, 2)
		fs.FailAt(n, syscall.EIO)
		_, err := s.save(fs, root, 2, 20, 2)
		if err == nil {
			if n < 20 {
				t.Fatalf("operation %d failed and the save succeeded", n)
			}
			return // past the save's last operation
		}
		if checkpoint.FaultOf(err) != checkpoint.IO || strings.Contains(err.Error(), "\n") {
			t.Fatalf("operation %d: got %v", n, err)
		}
		if err := checkpoint.Verify(fs, first); err != nil {
			t.Fatalf("operation %d: %v", n, err)
		}
	}
}
