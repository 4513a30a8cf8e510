package wire

import (
	"math/bits"
	"sync"
	"sync/atomic"
)

// align is the alignment of pooled values in bytes: a cache line, and the width
// of the widest vector register that kernels load.
const align = 64

// alignWords is align in 4-byte words.
const alignWords = align / 4

// smallest is the size in words below which a buffer is not worth pooling.
const smallest = 1 << 10

// Pool keeps receive buffers for reuse, so that a steady stream of frames
// allocates nothing and touches no fresh pages. Its zero value is ready; it may
// be shared by any number of readers. What is idle is freed by the garbage
// collector.
type Pool struct {
	classes [4 * 64]sync.Pool // of *slab; sizes smallest·2^(c/4), four classes a doubling
}

// slab is one buffer. A frame's rows lie at its start, its values at the next
// multiple of align.
type slab struct {
	words    []float32 // aligned
	home     *sync.Pool
	released atomic.Bool
}

// get returns a slab of at least n words.
func (p *Pool) get(n int) *slab {
	if p == nil || n < smallest {
		return &slab{words: alignedWords(n)}
	}
	class, size := sizeClass(n)
	home := &p.classes[class]
	if s, ok := home.Get().(*slab); ok {
		s.released.Store(false)
		return s
	}
	return &slab{words: alignedWords(size), home: home}
}

// release gives the slab back; a second call does nothing.
func (s *slab) release() {
	if s.home != nil && !s.released.Swap(true) {
		s.home.Put(s)
	}
}

// sizeClass returns the class of buffers for n ≥ smallest words and the size of
// its buffers: the next multiple of a quarter of n's power of two, so at most a
// quarter is wasted.
func sizeClass(n int) (class, size int) {
	exp := bits.Len(uint(n - 1)) // 2^(exp-1) < n ≤ 2^exp
	quarter := 1 << (exp - 3)
	steps := (n + quarter - 1) / quarter // 5…8 quarters of 2^(exp-1)
	return 4*exp + steps - 5, steps * quarter
}

// alignedWords returns n words whose first lies on a multiple of align.
func alignedWords(n int) []float32 {
	if n == 0 {
		return nil
	}
	words := make([]float32, n+alignWords-1)
	skip := 0
	if over := misalignment(words); over != 0 {
		skip = (align - over) / 4
	}
	return words[skip : skip+n : skip+n]
}
