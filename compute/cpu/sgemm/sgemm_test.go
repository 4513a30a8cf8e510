package sgemm

import (
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"

	"optimus/internal/level"
	"optimus/internal/rng"
)

// each runs a test with the kernel of every level of this processor.
func each(t *testing.T, f func(t *testing.T, kn Kernel)) {
	for _, name := range level.Present() {
		t.Run(name, func(t *testing.T) {
			kn, err := For(name)
			if err != nil {
				t.Fatal(err)
			}
			f(t, kn)
		})
	}
}

// trial is one call: its shape, operands and the memory around them.
type trial struct {
	transA, transB   bool
	m, n, k          int
	padA, padB, padC int
	accumulate       bool
	a, b, c          []float32
	lda, ldb, ldc    int
	exact            []float64 // see verify
}

// make fills the operands; what lies between the rows is NaN, so that a read or a
// write outside the matrices shows.
func (p *trial) make(seed uint64) {
	matrix := func(stream uint64, rows, cols, pad int) ([]float32, int) {
		ld := cols + pad
		x := make([]float32, max(0, (rows-1)*ld+cols))
		key := rng.NewKey(seed, stream)
		for i := range x {
			x[i] = float32(math.NaN())
			if i%max(ld, 1) < cols {
				x[i] = float32(key.Float64(uint64(i)) - 0.5)
			}
		}
		return x, ld
	}
	rows := func(trans bool, r, c int) (int, int) {
		if trans {
			return c, r
		}
		return r, c
	}
	r, c := rows(p.transA, p.m, p.k)
	p.a, p.lda = matrix(1, r, c, p.padA)
	r, c = rows(p.transB, p.k, p.n)
	p.b, p.ldb = matrix(2, r, c, p.padB)
	p.c, p.ldc = matrix(3, p.m, p.n, p.padC)
}

func (p *trial) run(kn Kernel) []float32 {
	c := append([]float32(nil), p.c...)
	kn.Gemm(p.transA, p.transB, p.m, p.n, p.k, p.a, p.lda, p.b, p.ldb, p.accumulate, c, p.ldc)
	return c
}

// runPacked is run with B packed beforehand.
func (p *trial) runPacked(kn Kernel, b *Packed) []float32 {
	kn.Pack(b, p.transB, p.n, p.k, p.b, p.ldb)
	c := append([]float32(nil), p.c...)
	GemmPacked(p.transA, p.m, p.a, p.lda, b, p.accumulate, c, p.ldc)
	return c
}

// want is the product in float64, by the definition.
func (p *trial) want(i, j int) float64 {
	s := 0.0
	if p.accumulate {
		s = float64(p.c[i*p.ldc+j])
	}
	for q := range p.k {
		ai, bi := i*p.lda+q, q*p.ldb+j
		if p.transA {
			ai = q*p.lda + i
		}
		if p.transB {
			bi = j*p.ldb + q
		}
		s += float64(p.a[ai]) * float64(p.b[bi])
	}
	return s
}

// verify compares c with the definition, computed once for all levels, and
// checks that the padding is untouched.
func (p *trial) verify(c []float32) error {
	if p.exact == nil {
		p.exact = make([]float64, p.m*p.n)
		for x := range p.exact {
			p.exact[x] = p.want(x/p.n, x%p.n)
		}
	}
	// Each of k products of at most 1/4 is rounded, and each sum: a loose bound.
	tol := 1e-6 + float64(p.k)*2e-7
	for x, got := range c {
		i, j := x/p.ldc, x%p.ldc
		if j >= p.n {
			if !math.IsNaN(float64(got)) {
				return fmt.Errorf("%v: wrote outside C at (%d,%d)", p, i, j)
			}
			continue
		}
		if want := p.exact[i*p.n+j]; !(math.Abs(float64(got)-want) <= tol) {
			return fmt.Errorf("%v: c[%d,%d] = %v, want %v", p, i, j, got, want)
		}
	}
	return nil
}

func (p *trial) String() string {
	return fmt.Sprintf("transA %v transB %v m %d n %d k %d lda %d ldb %d ldc %d accumulate %v",
		p.transA, p.transB, p.m, p.n, p.k, p.lda, p.ldb, p.ldc, p.accumulate)
}

func TestShapes(t *testing.T) {
	sizes := []struct{ m, n, k int }{
		{1, 1, 1}, {3, 5, 0}, {0, 4, 4}, {4, 0, 4}, {1, 100, 7}, {100, 1, 7}, {2, 2, 1000}, {14, 32, 16}, {15, 33, 17},
		{8, 48, 384}, {9, 49, 385}, {6, 16, 256}, {7, 17, 257}, {29, 95, 769}, {64, 64, 64}, {170, 130, 70}, {340, 48, 33},
		{20, 650, 260}, {512, 17, 5}, {5, 3100, 40}, {130, 1030, 3},
	}
	var trials []*trial
	for _, s := range sizes {
		for bits := range 16 {
			p := &trial{transA: bits&1 != 0, transB: bits&2 != 0, accumulate: bits&4 != 0, m: s.m, n: s.n, k: s.k}
			if bits&8 != 0 {
				p.padA, p.padB, p.padC = 3, 1, 5
			}
			p.make(uint64(bits))
			trials = append(trials, p)
		}
	}
	each(t, func(t *testing.T, kn Kernel) {
		for _, p := range trials {
			if err := p.verify(p.run(kn)); err != nil {
				t.Error(err)
			}
		}
	})
}

// draw returns a product of any kind; one in eight has several blocks of columns.
func draw(t *rapid.T) *trial {
	m, n, k := 45, 110, 850
	if rapid.IntRange(0, 7).Draw(t, "kind") == 7 {
		m, n, k = 9, 900, 450
	}
	p := &trial{
		transA: rapid.Bool().Draw(t, "transA"), transB: rapid.Bool().Draw(t, "transB"), accumulate: rapid.Bool().Draw(t, "accumulate"),
		m: rapid.IntRange(0, m).Draw(t, "m"), n: rapid.IntRange(0, n).Draw(t, "n"), k: rapid.IntRange(0, k).Draw(t, "k"),
		padA: rapid.IntRange(0, 20).Draw(t, "padA"), padB: rapid.IntRange(0, 20).Draw(t, "padB"), padC: rapid.IntRange(0, 20).Draw(t, "padC"),
	}
	p.make(rapid.Uint64().Draw(t, "seed"))
	return p
}

func TestRandomShapes(t *testing.T) {
	each(t, func(t *testing.T, kn Kernel) {
		rapid.Check(t, func(t *rapid.T) {
			p := draw(t)
			if err := p.verify(p.run(kn)); err != nil {
				t.Fatal(err)
			}
		})
	})
}
