package source_test

import (
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"optimus/data/source"
	"optimus/data/source/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// open opens a location with a cache of its own, until the test's end.
func open(t testing.TB, s *storetest.Store, folder string, parameters ...string) *source.Tree {
	t.Helper()
	tree, err := source.Open(t.Context(), s.Location(folder, append([]string{"cache_dir", t.TempDir()}, parameters...)...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tree.Close(); err != nil {
			t.Error(err)
		}
	})
	return tree
}

// content reads a file whole.
func content(p source.Path) (string, error) {
	f, err := p.Open()
	if err != nil {
		return "", err
	}
	defer f.Close()
	b, err := io.ReadAll(f)
	return string(b), err
}

// pattern is n bytes of which no two blocks are the same.
func pattern(n int) string {
	b := make([]byte, 0, n+8)
	for i := uint64(0); len(b) < n; i++ {
		b = binary.LittleEndian.AppendUint64(b, i*0x9e3779b97f4a7c15)
	}
	return string(b[:n])
}

// write writes files below a new folder: names and contents in turn.
func write(t testing.TB, files ...string) string {
	t.Helper()
	dir := t.TempDir()
	for i := 0; i < len(files); i += 2 {
		path := filepath.Join(dir, files[i])
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(files[i+1]), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// walk lists all below a path: names, sizes, and what is in files.
func walk(t testing.TB, p source.Path, prefix string) (list []string) {
	t.Helper()
	entries, err := p.ReadDir()
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		below := p.Join(e.Name())
		if e.IsDir() {
			list = append(list, walk(t, below, prefix+e.Name()+"/")...)
			continue
		}
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		text, err := content(below)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, fmt.Sprintf("%s%s %d %s", prefix, e.Name(), info.Size(), text))
	}
	return list
}

// wantFault checks that an error is a store's, names the file and all parts, and says
// what to do.
func wantFault(t testing.TB, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Fatal("no error")
	}
	if !source.IsFault(err) {
		t.Fatalf("error %v is no fault of the store", err)
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("error %q does not name %q", err, part)
		}
	}
}

// breaking makes the answers to requests for objects those of f.
func breaking(s *storetest.Store, f func(server http.Handler, w http.ResponseWriter, r *http.Request)) {
	s.Break.Store(&f)
}
