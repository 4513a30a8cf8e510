package data

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"optimus/data/source"
)

// crowd is a file system of class folders with as many pictures each, of which no file
// exists.
type crowd struct{ classes, each int }

func (c crowd) Open(string) (fs.File, error) { return nil, errors.New("there is no content") }

func (c crowd) Stat(name string) (fs.FileInfo, error) { return crowdEntry{name, true}, nil }

func (c crowd) ReadDir(name string) ([]fs.DirEntry, error) {
	n := c.each
	if name == "." {
		n = c.classes
	}
	list := make([]fs.DirEntry, n)
	for i := range list {
		if name == "." {
			list[i] = crowdEntry{fmt.Sprintf("n%08d", i), true}
		} else {
			list[i] = crowdEntry{fmt.Sprintf("%s_%d.JPEG", name, i), false}
		}
	}
	return list, nil
}

type crowdEntry struct {
	name string
	dir  bool
}

func (e crowdEntry) Name() string               { return e.name }
func (e crowdEntry) IsDir() bool                { return e.dir }
func (e crowdEntry) Type() fs.FileMode          { return e.Mode().Type() }
func (e crowdEntry) Info() (fs.FileInfo, error) { return e, nil }
func (e crowdEntry) Size() int64                { return 110_000 }
func (e crowdEntry) ModTime() time.Time         { return time.Unix(1, 0) }
func (e crowdEntry) Sys() any                   { return nil }

func (e crowdEntry) Mode() fs.FileMode {
	if e.dir {
		return fs.ModeDir
	}
	return 0
}

// TestListAll lists as many pictures as ImageNet has, and bounds what a listed picture
// takes in memory: its name, its label, its size and version.
func TestListAll(t *testing.T) {
	set := crowd{1000, 1281}
	before := heap()
	l, err := listClasses(&faults{}, source.Of(set, "crowd").Root(), "")
	if err != nil {
		t.Fatal(err)
	}
	n := set.classes * set.each
	if len(l.files) != n || len(l.classes) != set.classes || l.path(n-1).String() != "crowd/n00000999/n00000999_1280.JPEG" {
		t.Errorf("%d pictures of %d classes, the last %v", len(l.files), len(l.classes), l.path(len(l.files)-1))
	}
	if each := float64(heap()-before) / float64(n); each > 90 {
		t.Errorf("%.1f bytes a picture", each)
	}
	runtime.KeepAlive(l)
}

// heap is how many bytes are in use.
func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// BenchmarkListClasses lists the pictures of class folders, as the plain walk beside it
// does, which asks for no sizes. It tells how much memory a listed picture takes.
func BenchmarkListClasses(b *testing.B) {
	const classes, each = 10, 400
	dir := b.TempDir()
	for k := range classes {
		class := filepath.Join(dir, fmt.Sprintf("n%08d", k))
		if err := os.Mkdir(class, 0o755); err != nil {
			b.Fatal(err)
		}
		for i := range each {
			if err := os.WriteFile(filepath.Join(class, fmt.Sprintf("n%08d_%d.JPEG", k, i)), []byte("x"), 0o644); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.Run("list", func(b *testing.B) {
		before := heap()
		var l *classFolders
		for b.Loop() {
			var err error
			if l, err = listClasses(&faults{}, at(dir), ""); err != nil || len(l.files) != classes*each {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(heap()-before)/(classes*each), "B/picture")
		runtime.KeepAlive(l)
	})
	b.Run("walk", func(b *testing.B) {
		for b.Loop() {
			n := 0
			err := filepath.WalkDir(dir, func(string, fs.DirEntry, error) error { n++; return nil })
			if err != nil || n < classes*each {
				b.Fatal(n, err)
			}
		}
	})
}
