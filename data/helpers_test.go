package data

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"optimus/data/source"
)

// at is a path of the file system.
func at(path string) source.Path {
	return source.Local(filepath.Dir(path)).Root().Join(filepath.Base(path))
}

// put writes files (name, contents in turn) into a new folder.
func put(t testing.TB, files ...string) string {
	t.Helper()
	dir := t.TempDir()
	for i := 0; i < len(files); i += 2 {
		if err := os.WriteFile(filepath.Join(dir, files[i]), []byte(files[i+1]), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func read(t testing.TB, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// wantError checks kind, that all parts are named, that it says what to do, and
// that it is one line.
func wantError(t testing.TB, err error, kind Kind, parts ...string) {
	t.Helper()
	if KindOf(err) != kind {
		t.Fatalf("error %v is of kind %q, want %q", err, KindOf(err), kind)
	}
	text := err.Error()
	for _, p := range parts {
		if !strings.Contains(text, p) {
			t.Errorf("error %q does not name %q", text, p)
		}
	}
	if strings.Contains(text, "\n") || !strings.Contains(text, "; ") {
		t.Errorf("error %q is not one line with what to do", text)
	}
}

// texts returns a set's sentences as "label words", sorted.
func texts(t testing.TB, s *Set) []string {
	t.Helper()
	var list []string
	var b Batch
	for _, split := range []Split{s.Train, s.Valid} {
		for i := range split.Len() {
			if err := split.Fill([]int{i}, &b); err != nil {
				t.Fatal(err)
			}
			words := []string{s.Classes[b.Inputs[1].I[0]]}
			for _, w := range b.Inputs[0].I {
				if w != 0 {
					words = append(words, s.Vocabulary[w])
				}
			}
			list = append(list, strings.Join(words, " "))
		}
	}
	slices.Sort(list)
	return list
}

// plain hides what a Split of this package can do beyond the interface.
type plain struct{ Split }

func ids(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}
