package checkpoint_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"optimus/elastic/checkpoint"
	"optimus/internal/failure"
	"optimus/internal/faultfs"
	"optimus/internal/safetensors"
)

// TestEveryFlippedByteIsFound flips each byte of each file of a checkpoint.
func TestEveryFlippedByteIsFound(t *testing.T) {
	s := newState(1, []string{"m"}, smallModel()...)
	fs := faultfs.New()
	dir := mustSave(t, s, fs, "/c", 1, 5, 2)
	flips := 0
	for _, name := range fs.Files() {
		size, place := layout(t, fs, name)
		for at := range size {
			mask := byte(1) << (at % 8)
			if err := fs.Flip(name, at, mask); err != nil {
				t.Fatal(err)
			}
			err := checkpoint.Verify(fs, dir)
			var e *checkpoint.Error
			if !errors.As(err, &e) {
				t.Fatalf("%s byte %d: got %v", name, at, err)
			}
			if e.Path != name || e.Fault != checkpoint.Corrupt || strings.Contains(err.Error(), "\n") || failure.KindOf(err) != failure.Corrupt {
				t.Fatalf("%s byte %d: got %q about %q", name, at, err, e.Path)
			}
			if want := place(at); want != "" && e.Tensor != want {
				t.Fatalf("%s byte %d: names tensor %q, want %q", name, at, e.Tensor, want)
			}
			flips++
			if err := fs.Flip(name, at, mask); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := checkpoint.Verify(fs, dir); err != nil || flips < 1000 {
		t.Fatalf("after %d flips: %v", flips, err)
	}
}

// layout returns a file's size and which tensor a byte belongs to.
func layout(t *testing.T, fs *faultfs.FS, name string) (int64, func(int64) string) {
	t.Helper()
	f, err := fs.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasSuffix(name, ".safetensors") {
		return info.Size(), func(int64) string { return "" }
	}
	r, err := safetensors.Open(f, info.Size(), name)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size(), func(at int64) string {
		for _, x := range r.Tensors() {
			if at >= r.DataStart()+x.Begin && at < r.DataStart()+x.End {
				return x.Name
			}
		}
		return ""
	}
}

// replace writes a whole file in the fake file system.
func replace(t *testing.T, fs *faultfs.FS, name string, b []byte) {
	t.Helper()
	f, err := fs.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write(b); err != nil {
		t.Fatal(err)
	}
}

func content(t *testing.T, fs *faultfs.FS, name string) []byte {
	t.Helper()
	f, err := fs.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	info, _ := f.Stat()
	b, err := io.ReadAll(io.NewSectionReader(f, 0, info.Size()))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestBO21_DamagedCheckpoints damages the newest of two checkpoints: loading it
// says what is wrong, and Newest falls back to the one before.
func TestBO21_DamagedCheckpoints(t *testing.T) {
	const shard, manifest = "server-1.safetensors", "manifest.json"
	for _, c := range []struct {
		name   string
		damage func(fs *faultfs.FS, dir string)
		fault  checkpoint.Fault
		say    string
	}{
		{"manifest flipped", func(fs *faultfs.FS, dir string) { _ = fs.Flip(filepath.Join(dir, manifest), 200, 4) }, checkpoint.Corrupt, manifest},
		{"manifest empty", func(fs *faultfs.FS, dir string) { replace(t, fs, filepath.Join(dir, manifest), nil) }, checkpoint.Corrupt, "too few"},
		{"manifest gone", func(fs *faultfs.FS, dir string) { _ = fs.Remove(filepath.Join(dir, manifest)) }, checkpoint.Incomplete, "did not finish"},
		{"shard gone", func(fs *faultfs.FS, dir string) { _ = fs.Remove(filepath.Join(dir, shard)) }, checkpoint.Missing, shard},
		{"shard truncated", func(fs *faultfs.FS, dir string) {
			b := content(t, fs, filepath.Join(dir, shard))
			replace(t, fs, filepath.Join(dir, shard), b[:len(b)/2])
		}, checkpoint.Truncated, shard},
		{"shard of another save", func(fs *faultfs.FS, dir string) {
			old := checkpoint.Dir("/c", 1, 5)
			replace(t, fs, filepath.Join(dir, shard), content(t, fs, filepath.Join(old, shard)))
		}, checkpoint.Corrupt, "different saves"},
		{"header claims too much", func(fs *faultfs.FS, dir string) {
			b := content(t, fs, filepath.Join(dir, shard))
			binary.LittleEndian.PutUint64(b, 1<<63)
			replace(t, fs, filepath.Join(dir, shard), b)
		}, checkpoint.Corrupt, "claims"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newState(1, []string{"m"}, smallModel()...)
			fs := faultfs.New()
			// Both cut alike, so that their shards have one size.
			mustSave(t, s, fs, "/c", 1, 5, 2)
			dir := mustSave(t, s, fs, "/c", 2, 5, 2)
			c.damage(fs, dir)
			_, err := checkpoint.Load(fs, dir)
			if checkpoint.FaultOf(err) != c.fault || !strings.Contains(err.Error(), c.say) || !strings.Contains(err.Error(), dir) {
				t.Errorf("got %v (%s), want %s with %q", err, checkpoint.FaultOf(err), c.fault, c.say)
			}
			if info, err := checkpoint.Newest(fs, "/c"); err != nil || info.Sequence != 1 {
				t.Errorf("newest is %d, %v", info.Sequence, err)
			}
			if removed, err := checkpoint.Prune(fs, "/c", 1, 1<<62); err != nil || len(removed) != 0 {
				t.Errorf("pruning removed %v, %v", removed, err)
			}
		})
	}
}

// NewestVerified also finds what only a read of the data shows, passes over the
// damaged and names them, and looks at no save before the one it is told.
func TestNewestVerified(t *testing.T) {
	s := newState(1, []string{"m"}, smallModel()...)
	fs := faultfs.New()
	var dirs []string
	for sequence := int64(1); sequence <= 4; sequence++ {
		dirs = append(dirs, mustSave(t, s, fs, "/c", sequence, 10*sequence, 2))
	}
	find := func(from int64) (int64, []string, error) {
		info, damaged, err := checkpoint.NewestVerified(fs, "/c", from)
		var passed []string
		for _, d := range damaged {
			if checkpoint.FaultOf(d.Err) != checkpoint.Corrupt {
				t.Errorf("%s is passed over: %v", d.Dir, d.Err)
			}
			passed = append(passed, d.Dir)
		}
		return info.Sequence, passed, err
	}
	if n, passed, err := find(1); n != 4 || len(passed) != 0 || err != nil {
		t.Fatalf("newest whole is %d (%v), passed over %v", n, err, passed)
	}
	if err := fs.MkdirAll(checkpoint.Dir("/c", 5, 50)); err != nil { // a save under way is nobody's fault
		t.Fatal(err)
	}
	for _, dir := range dirs[2:] {
		name := filepath.Join(dir, "server-1.safetensors")
		b := content(t, fs, name)
		b[len(b)-5] ^= 1
		replace(t, fs, name, b)
	}
	if info, err := checkpoint.Newest(fs, "/c"); err != nil || info.Sequence != 4 {
		t.Errorf("the cheap checks find %d (%v)", info.Sequence, err)
	}
	if n, passed, err := find(2); n != 2 || !slices.Equal(passed, []string{dirs[3], dirs[2]}) || err != nil {
		t.Errorf("newest whole is %d (%v), passed over %v", n, err, passed)
	}
	if _, passed, err := find(3); checkpoint.FaultOf(err) != checkpoint.None || !strings.Contains(err.Error(), dirs[3]) || len(passed) != 2 {
		t.Errorf("none is whole: %v, passed over %v", err, passed)
	}
	if _, passed, err := find(6); checkpoint.FaultOf(err) != checkpoint.None || len(passed) != 0 {
		t.Errorf("there is none: %v, passed over %v", err, passed)
	}
}

func TestNewerFormatIsRefused(t *testing.T) {
	s := newState(1, nil, smallModel()...)
	fs := faultfs.New()
	dir := mustSave(t, s, fs, "/c", 1, 5, 1)
	name := filepath.Join(dir, "manifest.json")
	body := strings.Replace(string(content(t, fs, name)), `"format":1`, `"format":2,"shards_of_the_future":true`, 1)
	replace(t, fs, name, checkpoint.Reseal([]byte(body)))
	if _, err := checkpoint.Load(fs, dir); checkpoint.FaultOf(err) != checkpoint.Version {
		t.Errorf("got %v", err)
	}
}

func FuzzManifest(f *testing.F) {
	f.Add([]byte(`{}`))
	f.Add([]byte(`{"format":1,"arrays":[{"name":"w","shape":[2]}],"shards":[{"name":"server-0.safetensors","pieces":[{"size":2,"crc32c":[1]}]}]}`))
	f.Add([]byte(`{"format":1,"arrays":[{"shape":[4294967296,4294967296]}],"shards":null}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		fs := faultfs.New()
		if err := fs.MkdirAll("/c"); err != nil {
			t.Fatal(err)
		}
		w, err := fs.Create("/c/manifest.json")
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(w, "%s", checkpoint.Seal(body))
		r, err := checkpoint.Load(fs, "/c")
		if err != nil {
			if checkpoint.FaultOf(err) == "" {
				t.Fatalf("an error without a fault: %v", err)
			}
			return
		}
		if len(r.Manifest().Shards) != 0 {
			t.Fatal("shards that are not there were loaded")
		}
	})
}
