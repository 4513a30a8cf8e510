package conv

import (
	"os"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"
)

// fence returns memory for n elements at the end of a mapping whose next page
// cannot be touched, or, if front, at the start of one whose page before cannot be.
func fence(t *testing.T, n int, front bool) []float32 {
	page := os.Getpagesize()
	bytes := (n*size + page - 1) / page * page
	mem, err := unix.Mmap(-1, 0, bytes+2*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Munmap(mem); err != nil {
			t.Error(err)
		}
	})
	for _, guard := range [][]byte{mem[:page], mem[page+bytes:]} {
		if err := unix.Mprotect(guard, unix.PROT_NONE); err != nil {
			t.Fatal(err)
		}
	}
	all := unsafe.Slice((*float32)(unsafe.Pointer(&mem[page])), bytes/size)
	if front {
		return all[:n]
	}
	return all[len(all)-n:]
}

// TestFences puts each array against a page that must not be touched: the
// assembly, which no bounds check sees, would end the test process if it read or
// wrote one element outside.
func TestFences(t *testing.T) {
	each(t, func(t *testing.T, name string) {
		rapid.Check(t, func(r *rapid.T) {
			front := rapid.Bool().Draw(r, "front")
			p := newProblem(draw(r), rapid.IntRange(1, 2).Draw(r, "n"))
			c, err := plan(p.s, Config{Level: name})
			if err != nil {
				r.Fatal(err)
			}
			a := p.load(c, func(n int) []float32 { return fence(t, n, front) })
			p.run(c, a, 1)
			if err := p.verify(c, a); err != nil {
				r.Fatal(err)
			}
		})
	})
}
