package data

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

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
	heap := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	b.Run("list", func(b *testing.B) {
		before := heap()
		var l *classFolders
		for b.Loop() {
			var err error
			if l, err = listClasses(&faults{}, dir, ""); err != nil || len(l.files) != classes*each {
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
