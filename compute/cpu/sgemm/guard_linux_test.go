package sgemm

import (
	"os"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"
)

// fence copies x to the end of a mapping whose next page cannot be touched, or,
// if front, to the start of one whose page before cannot be.
func fence(t *testing.T, x []float32, front bool) []float32 {
	page := os.Getpagesize()
	bytes := (len(x)*4 + page - 1) / page * page
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
	all := unsafe.Slice((*float32)(unsafe.Pointer(&mem[page])), bytes/4)
	out := all[len(all)-len(x):]
	if front {
		out = all[:len(x)]
	}
	copy(out, x)
	return out
}

// TestFences puts each operand against a page that must not be touched: the
// assembly, which no bounds check sees, would end the test process if it read
// or wrote one element outside.
func TestFences(t *testing.T) {
	each(t, func(t *testing.T, kn Kernel) {
		rapid.Check(t, func(r *rapid.T) {
			p := draw(r)
			front := rapid.Bool().Draw(r, "front")
			p.a, p.b = fence(t, p.a, front), fence(t, p.b, front)
			c := fence(t, p.c, front)
			kn.Gemm(p.transA, p.transB, p.m, p.n, p.k, p.a, p.lda, p.b, p.ldb, p.accumulate, c, p.ldc)
			if err := p.verify(c); err != nil {
				r.Fatal(err)
			}
		})
	})
}
