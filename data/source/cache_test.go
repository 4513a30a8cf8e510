package source_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"optimus/data/source"
	"optimus/data/source/storetest"
)

const slot = 32 << 10

func cacheSize(t testing.TB, dir string) int64 {
	t.Helper()
	info, err := os.Stat(filepath.Join(dir, "blocks"))
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

// readAll reads files 0 to n-1 and counts the requests that it took.
func readAll(t testing.TB, s *storetest.Store, root source.Path, n int) int64 {
	t.Helper()
	before := s.Requests.Load()
	entries, err := root.ReadDir()
	if err != nil || len(entries) != n {
		t.Fatalf("%d files, %v", len(entries), err)
	}
	for i, e := range entries {
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		f, err := root.Join(e.Name()).OpenStamped(source.StampOf(info))
		if err != nil {
			t.Fatal(err)
		}
		b := make([]byte, info.Size())
		if _, err := f.ReadAt(b, 0); err != nil || string(b) != fileText(i) {
			t.Fatalf("file %d: %v", i, err)
		}
	}
	return s.Requests.Load() - before - 1
}

func fileText(i int) string { return fmt.Sprint(i) + pattern(70_000+1000*i) } // three blocks

func fillStore(t testing.TB, n int) *storetest.Store {
	s := storetest.New(t)
	for i := range n {
		s.Put(t, fmt.Sprintf("set/%03d", i), []byte(fileText(i)))
		s.Put(t, fmt.Sprintf("other/%03d", i), []byte(fileText(i)))
	}
	return s
}

// What fits is read once, whoever reads it: another process would be another tree.
func TestCacheShared(t *testing.T) {
	const n = 20
	s := fillStore(t, n)
	dir := t.TempDir()
	if got := readAll(t, s, open(t, s, "set", "cache_dir", dir, "cache", "10MB").Root(), n); got != n {
		t.Errorf("%d requests for %d files", got, n)
	}
	if got := readAll(t, s, open(t, s, "set", "cache_dir", dir, "cache", "10MB").Root(), n); got > n/10 {
		t.Errorf("%d requests the second time", got)
	}
	if got := readAll(t, s, open(t, s, "set", "cache", "0").Root(), n); got != n {
		t.Errorf("%d requests without a cache", got)
	}
}

// The bound holds, what came first is kept, and another location's blocks take their
// place.
func TestCacheBound(t *testing.T) {
	const n, slots = 40, 60 // for 120 blocks
	s := fillStore(t, n)
	dir := t.TempDir()
	bound := fmt.Sprint(slots * slot)
	root := open(t, s, "set", "cache_dir", dir, "cache", bound).Root()
	readAll(t, s, root, n)
	for range 3 { // always the same third or so is kept
		if got := readAll(t, s, root, n); got < n/2 || got >= n {
			t.Errorf("%d requests for %d files of which a half fits", got, n)
		}
		if size := cacheSize(t, dir); size > slots*slot {
			t.Fatalf("%d bytes, the bound is %d", size, slots*slot)
		}
	}
	other := open(t, s, "other", "cache_dir", dir, "cache", bound).Root()
	readAll(t, s, other, n)
	if got := readAll(t, s, other, n); got >= n {
		t.Errorf("the other location found no room: %d requests", got)
	}
	if size := cacheSize(t, dir); size > slots*slot {
		t.Fatalf("%d bytes, the bound is %d", size, slots*slot)
	}
	open(t, s, "set", "cache_dir", dir, "cache", fmt.Sprint(10*slot))
	if size := cacheSize(t, dir); size > 10*slot {
		t.Errorf("%d bytes after the bound was lowered to %d", size, 10*slot)
	}
}

// Damage of any byte, a cut file, and readers and writers at the same time never show
// in what is read.
func TestCacheDamaged(t *testing.T) {
	const n = 12
	s := fillStore(t, n)
	dir := t.TempDir()
	path := filepath.Join(dir, "blocks")
	root := open(t, s, "set", "cache_dir", dir, "cache", "2MB").Root()
	readAll(t, s, root, n)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 8 {
		bad := append([]byte(nil), whole...)
		for at := 0; at < len(bad); at += slot { // one bit of each slot
			bad[min(at+r.IntN(slot), len(bad)-1)] ^= 1 << r.IntN(8)
		}
		if err := os.WriteFile(path, bad[:len(bad)-r.IntN(slot)], 0o600); err != nil {
			t.Fatal(err)
		}
		readAll(t, s, root, n)
	}
	if got := readAll(t, s, root, n); got > n/4 {
		t.Errorf("%d requests after the damage was made good", got)
	}
	var group sync.WaitGroup
	for i := range 4 {
		tree := open(t, s, "set", "cache_dir", dir, "cache", fmt.Sprint((20+i)*slot)) // so that they disagree on places
		group.Go(func() {
			for range 5 {
				readAll(t, s, tree.Root(), n)
			}
		})
	}
	group.Wait()
}

// A new version of an object takes the room of the old one.
func TestCacheVersions(t *testing.T) {
	s := storetest.New(t)
	dir := t.TempDir()
	for v := range 10 {
		s.Put(t, "set/000", []byte(fileText(v)))
		root := open(t, s, "set", "cache_dir", dir, "cache", fmt.Sprint(8*slot)).Root()
		for pass := range 2 {
			before := s.Requests.Load()
			text, err := content(root.Join("000"))
			if err != nil || text != fileText(v) {
				t.Fatalf("version %d: %v", v, err)
			}
			if got := s.Requests.Load() - before; pass == 1 && got != 1 { // for the size
				t.Errorf("version %d: %d requests the second time", v, got)
			}
		}
	}
}

func TestCacheNowhere(t *testing.T) {
	s := storetest.New(t)
	file := filepath.Join(write(t, "file", ""), "file")
	_, err := source.Open(t.Context(), s.Location("set", "cache_dir", file))
	wantFault(t, err, file)
}
