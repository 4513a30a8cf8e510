package checkpoint_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"optimus/elastic/checkpoint"
	"optimus/internal/faultfs"
)

// steps lists the steps of the complete checkpoints, newest first.
func steps(t *testing.T, fs checkpoint.FS, root string) []int64 {
	t.Helper()
	infos, err := checkpoint.List(fs, root)
	if err != nil {
		t.Fatal(err)
	}
	out := []int64{}
	for _, i := range infos {
		if i.Complete {
			out = append(out, i.Step)
		}
	}
	return out
}

func TestBO16_NewestIsTheLastSaved(t *testing.T) {
	fs, root := checkpoint.OS{}, t.TempDir()
	stray := filepath.Join(root, "best")
	if err := os.MkdirAll(stray, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(stray, "manifest.json"), []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	s := newState(1, []string{"m"}, smallModel()...)
	save := func(step int64, keep int) {
		t.Helper()
		sequence, err := checkpoint.NextSequence(fs, root)
		if err != nil {
			t.Fatal(err)
		}
		mustSave(t, s, fs, root, sequence, step, 2)
		if _, err := checkpoint.Prune(fs, root, keep, 1<<62); err != nil {
			t.Fatal(err)
		}
	}
	for _, step := range []int64{900, 1000, 9999, 10000, 100000} {
		save(step, 2)
	}
	if got := steps(t, fs, root); !cmp.Equal(got, []int64{100000, 10000}) {
		t.Errorf("after the first saves: %v", got)
	}
	if info, err := checkpoint.Newest(fs, root); err != nil || info.Step != 100000 {
		t.Errorf("resume takes %d, %v", info.Step, err)
	}
	// The job was taken back to step 1000 by hand and went on from there.
	save(1100, 2)
	if info, err := checkpoint.Newest(fs, root); err != nil || info.Step != 1100 {
		t.Errorf("after the rewind resume takes %d, %v", info.Step, err)
	}
	if got := steps(t, fs, root); !cmp.Equal(got, []int64{1100, 100000}) {
		t.Errorf("after the rewind: %v", got)
	}
	for _, keep := range []int{0, -1} {
		save(1200, keep)
	}
	if got := steps(t, fs, root); !cmp.Equal(got, []int64{1200, 1200, 1100, 100000}) {
		t.Errorf("keep < 1 keeps all: %v", got)
	}
	save(1300, 1)
	if got := steps(t, fs, root); !cmp.Equal(got, []int64{1300}) {
		t.Errorf("keep = 1: %v", got)
	}
	if b, err := os.ReadFile(filepath.Join(stray, "manifest.json")); err != nil || string(b) != "mine" {
		t.Errorf("the stray folder was touched: %q, %v", b, err)
	}
}

func TestBO16_FailedSaveDeletesNothing(t *testing.T) {
	fs := faultfs.New()
	s := newState(1, []string{"m"}, smallModel()...)
	for i := range int64(3) {
		mustSave(t, s, fs, "/c", i+1, 10*i, 2)
	}
	before := fs.Files()
	fs.Limit(1)
	if _, err := s.save(fs, "/c", 4, 40, 2); err == nil {
		t.Fatal("saved to a full disk")
	}
	if diff := cmp.Diff(before, fs.Files()); diff != "" {
		t.Error(diff)
	}
}

func TestPruneLeavesWhatItDoesNotKnow(t *testing.T) {
	fs := faultfs.New()
	s := newState(1, nil, smallModel()...)
	old := mustSave(t, s, fs, "/c", 1, 10, 1)
	replace(t, fs, old+"/notes.txt", []byte("mine"))
	mustSave(t, s, fs, "/c", 3, 30, 1)
	stamp := checkpoint.Stamp{}
	for _, dir := range []string{checkpoint.Dir("/c", 2, 20), checkpoint.Dir("/c", 4, 40)} { // killed; under way
		if _, err := checkpoint.WriteShard(fs, dir, stamp, checkpoint.Shard{}); err != nil {
			t.Fatal(err)
		}
	}
	removed, err := checkpoint.Prune(fs, "/c", 1, 1<<62)
	if err != nil || !cmp.Equal(removed, []string{checkpoint.Dir("/c", 2, 20)}) {
		t.Errorf("removed %v, %v", removed, err)
	}
	want := []string{"/c/000001-step10/notes.txt", "/c/000003-step30/manifest.json", "/c/000003-step30/server-0.safetensors", "/c/000004-step40/server-0.safetensors"}
	if diff := cmp.Diff(want, fs.Files()); diff != "" {
		t.Error(diff)
	}
}

func TestNoCheckpoint(t *testing.T) {
	root := filepath.Join(t.TempDir(), "none")
	if _, err := checkpoint.Newest(checkpoint.OS{}, root); checkpoint.FaultOf(err) != checkpoint.None {
		t.Errorf("got %v", err)
	}
	if n, err := checkpoint.NextSequence(checkpoint.OS{}, root); n != 1 || err != nil {
		t.Errorf("first sequence %d, %v", n, err)
	}
	_, err := checkpoint.Load(checkpoint.OS{}, root)
	var e *checkpoint.Error
	if !errors.As(err, &e) || e.Fault != checkpoint.Incomplete {
		t.Errorf("got %v", err)
	}
}

func Example() {
	root, err := os.MkdirTemp("", "checkpoints")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(root)
	var fs checkpoint.OS

	// Two servers hold half of one array each.
	dir := checkpoint.Dir(root, 1, 100)
	stamp := checkpoint.Stamp{Sequence: 1, Step: 100, Slots: []string{"momentum"}}
	manifest := checkpoint.Manifest{Sequence: 1, Step: 100, Slots: stamp.Slots,
		Arrays: []checkpoint.Array{{Name: "weight", Shape: []int{2, 2}}}}
	for server, half := range [][]float32{{1, 2}, {3, 4}} {
		file, err := checkpoint.WriteShard(fs, dir, stamp, checkpoint.Shard{Server: server, Pieces: []checkpoint.PieceState{
			{Block: 0, Offset: 2 * server, Size: 2, Params: half, Slots: [][]float32{{0, 0}}, Updates: 100},
		}})
		if err != nil {
			fmt.Println(err)
			return
		}
		manifest.Shards = append(manifest.Shards, file)
	}
	fmt.Println("commit:", checkpoint.Commit(fs, dir, manifest))

	// One server takes all.
	newest, err := checkpoint.Newest(fs, root)
	if err != nil {
		fmt.Println(err)
		return
	}
	r, err := checkpoint.Load(fs, newest.Dir)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer r.Close()
	params := make([]float32, 4)
	updates, err := r.Read(0, 0, params, nil)
	fmt.Println("step", newest.Step, "updates", updates, params, err)
	// Output:
	// commit: <nil>
	// step 100 updates 100 [1 2 3 4] <nil>
}
