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
			if err := fenced(t, kn, draw(r), rapid.Bool().Draw(r, "front")); err != nil {
				r.Fatal(err)
			}
		})
	})
}

// TestEveryKernel does the same for every height and width of a tile, alone
// in C and twice, where the second reads what the first packed.
func TestEveryKernel(t *testing.T) {
	each(t, func(t *testing.T, kn Kernel) {
		for h := 1; h <= kn.family.tallest[0]; h++ {
			for _, n := range []int{1, 4, 15, 16, 17, 32, 33, 47, 48, 100} {
				for kind := range 16 {
					p := &trial{transA: kind&1 != 0, transB: kind&2 != 0, accumulate: kind&4 != 0, m: h, n: n, k: 1 + (h+n+kind)%9, padC: kind % 3}
					if kind&8 != 0 {
						p.m *= 2
					}
					p.make(uint64(kind))
					if err := fenced(t, kn, p, (h+kind)%2 == 0); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
	})
}

// fenced runs a product, also with B packed beforehand, with fences around all operands.
func fenced(t *testing.T, kn Kernel, p *trial, front bool) error {
	p.a, p.b = fence(t, p.a, front), fence(t, p.b, front)
	c, d := fence(t, p.c, front), fence(t, p.c, front)
	kn.Gemm(p.transA, p.transB, p.m, p.n, p.k, p.a, p.lda, p.b, p.ldb, p.accumulate, c, p.ldc)
	if err := p.verify(c); err != nil {
		return err
	}
	var b Packed
	kn.Pack(&b, p.transB, p.n, p.k, p.b, p.ldb)
	GemmPacked(p.transA, p.m, p.a, p.lda, &b, p.accumulate, d, p.ldc)
	return p.verify(d)
}
