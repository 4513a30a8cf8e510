package sgemm

import (
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"optimus/internal/level"
)

// at returns the bits of C's element.
func (p *trial) at(c []float32, i, j int) uint32 { return math.Float32bits(c[i*p.ldc+j]) }

// equal reports the first element of an m×n block that differs between two results.
func equal(m, n int, x, y func(i, j int) uint32) error {
	for i := range m {
		for j := range n {
			if x(i, j) != y(i, j) {
				return fmt.Errorf("element (%d,%d): bits %#x and %#x", i, j, x(i, j), y(i, j))
			}
		}
	}
	return nil
}

// TestTiles: a tile of C computed alone has the bits that it has in the whole.
func TestTiles(t *testing.T) {
	each(t, func(t *testing.T, kn Kernel) {
		rapid.Check(t, func(t *rapid.T) {
			p := draw(t)
			if p.m == 0 || p.n == 0 || p.k == 0 {
				return
			}
			whole, tile := p.run(kn), append([]float32(nil), p.c...)
			i0, j0 := rapid.IntRange(0, p.m-1).Draw(t, "i0"), rapid.IntRange(0, p.n-1).Draw(t, "j0")
			m, n := rapid.IntRange(1, p.m-i0).Draw(t, "tile m"), rapid.IntRange(1, p.n-j0).Draw(t, "tile n")
			a, b := matrix{p.a, p.lda, p.transA}, matrix{p.b, p.ldb, p.transB}
			kn.Gemm(p.transA, p.transB, m, n, p.k, a.from(i0, 0), p.lda, b.from(0, j0), p.ldb, p.accumulate, tile[i0*p.ldc+j0:], p.ldc)
			err := equal(m, n, func(i, j int) uint32 { return p.at(whole, i0+i, j0+j) }, func(i, j int) uint32 { return p.at(tile, i0+i, j0+j) })
			if err != nil {
				t.Fatalf("%v: tile %d×%d at (%d,%d): %v", p, m, n, i0, j0, err)
			}
		})
	})
}

// TestCut: a product that is too large for the blocks of small ones has the same
// bits when its rows, or its columns, are cut among workers.
func TestCut(t *testing.T) {
	each(t, func(t *testing.T, kn Kernel) {
		p := trial{m: 400, n: 110, k: 700, transB: true}
		if p.m*p.k <= 2*blockB {
			t.Fatalf("m·k = %d is no large product", p.m*p.k)
		}
		p.make(1)
		whole, rows, columns := p.run(kn), append([]float32(nil), p.c...), append([]float32(nil), p.c...)
		for i := 0; i < p.m; i += 150 {
			kn.Gemm(false, true, min(150, p.m-i), p.n, p.k, p.a[i*p.lda:], p.lda, p.b, p.ldb, false, rows[i*p.ldc:], p.ldc)
		}
		for j := 0; j < p.n; j += 50 {
			kn.Gemm(false, true, p.m, min(50, p.n-j), p.k, p.a, p.lda, p.b[j*p.ldb:], p.ldb, false, columns[j:], p.ldc)
		}
		for name, got := range map[string][]float32{"rows": rows, "columns": columns} {
			if err := equal(p.m, p.n, func(i, j int) uint32 { return p.at(whole, i, j) }, func(i, j int) uint32 { return p.at(got, i, j) }); err != nil {
				t.Errorf("cut by %s: %v", name, err)
			}
		}
	})
}

// TestTransposed: how an operand is stored does not change the bits.
func TestTransposed(t *testing.T) {
	turn := func(x []float32, rows, cols, ld int) []float32 {
		out := make([]float32, rows*cols)
		for i := range rows {
			for j := range cols {
				out[j*rows+i] = x[i*ld+j]
			}
		}
		return out
	}
	each(t, func(t *testing.T, kn Kernel) {
		rapid.Check(t, func(t *rapid.T) {
			p := draw(t)
			if p.m == 0 || p.n == 0 || p.k == 0 {
				return
			}
			q := *p
			q.transA, q.transB = !p.transA, !p.transB
			ra, ca, rb, cb := p.m, p.k, p.k, p.n
			if p.transA {
				ra, ca = ca, ra
			}
			if p.transB {
				rb, cb = cb, rb
			}
			q.a, q.lda = turn(p.a, ra, ca, p.lda), ra
			q.b, q.ldb = turn(p.b, rb, cb, p.ldb), rb
			x, y := p.run(kn), q.run(kn)
			if err := equal(p.m, p.n, func(i, j int) uint32 { return p.at(x, i, j) }, func(i, j int) uint32 { return p.at(y, i, j) }); err != nil {
				t.Fatalf("%v and its operands turned: %v", p, err)
			}
		})
	})
}

// TestLevels: avx2 and avx512 give the same bits.
func TestLevels(t *testing.T) {
	two, err := For(level.AVX2)
	if err != nil {
		t.Skip(err)
	}
	five, err := For(level.AVX512)
	if err != nil {
		t.Skip(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		p := draw(t)
		want, got := p.run(two), p.run(five)
		if err := equal(p.m, p.n, func(i, j int) uint32 { return p.at(want, i, j) }, func(i, j int) uint32 { return p.at(got, i, j) }); err != nil {
			t.Fatalf("%v: avx2 and avx512: %v", p, err)
		}
	})
}

// TestSpecials: with k = 0 the product is zero, and NaN and infinities go where
// they belong and nowhere else.
func TestSpecials(t *testing.T) {
	each(t, func(t *testing.T, kn Kernel) {
		c := []float32{1, 2, 9, 3, 4, 9}
		kn.Gemm(false, false, 2, 2, 0, nil, 0, nil, 2, true, c, 3)
		if got := fmt.Sprint(c); got != "[1 2 9 3 4 9]" {
			t.Errorf("k = 0, accumulating: %s", got)
		}
		kn.Gemm(false, false, 2, 2, 0, nil, 0, nil, 2, false, c, 3)
		if got := fmt.Sprint(c); got != "[0 0 9 0 0 9]" {
			t.Errorf("k = 0: %s", got)
		}
		one := []float32{0}
		kn.Gemm(false, false, 1, 1, 1, []float32{2}, math.MaxInt, []float32{3}, math.MaxInt, false, one, math.MaxInt)
		if one[0] != 6 {
			t.Errorf("strides of single rows, which do not matter: 2·3 = %v", one[0])
		}
		p := trial{m: 30, n: 70, k: 40}
		p.make(1)
		p.a[7*p.lda+3], p.b[5*p.ldb+60] = float32(math.NaN()), float32(math.Inf(1))
		got := p.run(kn)
		for x, v := range got {
			if i, j := x/p.ldc, x%p.ldc; (i == 7 || j == 60) == (math.Abs(float64(v)) < 100) {
				t.Errorf("c[%d,%d] is %v", i, j, v)
			}
		}
	})
}

// TestShort: every slice that does not hold its matrix is refused before the assembly runs.
func TestShort(t *testing.T) {
	x := make([]float32, 100)
	type args struct {
		transA, transB bool
		m, n, k        int
		a              []float32
		lda            int
		b              []float32
		ldb            int
		c              []float32
		ldc            int
	}
	good := args{m: 10, n: 5, k: 8, a: x[:80], lda: 8, b: x[:40], ldb: 5, c: make([]float32, 50), ldc: 5}
	for _, bad := range []struct {
		cause string
		spoil func(g *args)
	}{
		{"negative", func(g *args) { g.m = -1 }},
		{"A: 79", func(g *args) { g.a = x[:79] }},
		{"A: stride 7", func(g *args) { g.lda = 7 }},
		{"A: stride 8 is below its 10", func(g *args) { g.transA = true }},
		{"B: 39", func(g *args) { g.b = x[:39] }},
		{"B: stride 4", func(g *args) { g.ldb = 4 }},
		{"B: stride 5 is below its 8", func(g *args) { g.transB = true }},
		{"C: 49", func(g *args) { g.c = g.c[:49] }},
		{"C: stride 0", func(g *args) { g.ldc = 0 }},
		{"C: stride -5", func(g *args) { g.ldc = -5 }},
		{"A: 80", func(g *args) { g.lda = math.MaxInt / 2 }},
		{"A: 80", func(g *args) { g.k, g.lda = math.MaxInt/2, math.MaxInt/2 }},
		{"C: 50", func(g *args) { g.m = math.MaxInt }},
	} {
		each(t, func(t *testing.T, kn Kernel) {
			g := good
			bad.spoil(&g)
			defer func() {
				if got := fmt.Sprint(recover()); !strings.HasPrefix(got, "sgemm: ") || !strings.Contains(got, bad.cause) {
					t.Errorf("%s: panic %q", bad.cause, got)
				}
			}()
			kn.Gemm(g.transA, g.transB, g.m, g.n, g.k, g.a, g.lda, g.b, g.ldb, false, g.c, g.ldc)
		})
	}
}

func TestFor(t *testing.T) {
	each(t, func(t *testing.T, kn Kernel) {
		if name := t.Name()[strings.LastIndex(t.Name(), "/")+1:]; kn.Level() != name {
			t.Errorf("level is %q, want %q", kn.Level(), name)
		}
	})
	if _, err := For("mmx"); err == nil || !strings.Contains(err.Error(), "no such level") {
		t.Errorf("For(mmx): error %v", err)
	}
	kn, err := Current()
	if err != nil || kn.Level() != Level() {
		t.Errorf("current kernel is %q (%v), level %q", kn.Level(), err, Level())
	}
}

// TestTogether runs calls of many shapes at once: they share scratch memory.
func TestTogether(t *testing.T) {
	each(t, func(t *testing.T, kn Kernel) {
		var wg sync.WaitGroup
		errs := make([]error, 8)
		for w := range errs {
			wg.Go(func() {
				for i := range 10 {
					p := trial{m: 1 + 13*w, n: 1 + 17*i, k: 1 + 31*w + i, transA: w%2 == 0, transB: i%2 == 0}
					p.make(uint64(w))
					if err := p.verify(p.run(kn)); err != nil {
						errs[w] = err
					}
				}
			})
		}
		wg.Wait()
		for _, err := range errs {
			if err != nil {
				t.Error(err)
			}
		}
	})
}

// FuzzShapes explores shapes, strides and levels beyond those of the tests.
func FuzzShapes(f *testing.F) {
	f.Add(uint8(0), uint16(3), uint16(5), uint16(7), uint8(0), uint8(1), uint8(2))
	f.Add(uint8(7), uint16(15), uint16(49), uint16(385), uint8(0), uint8(0), uint8(0))
	f.Fuzz(func(t *testing.T, bits uint8, m, n, k uint16, padA, padB, padC uint8) {
		p := trial{
			transA: bits&1 != 0, transB: bits&2 != 0, accumulate: bits&4 != 0, m: int(m % 200), n: int(n % 200), k: int(k % 800),
			padA: int(padA), padB: int(padB), padC: int(padC),
		}
		p.make(uint64(bits))
		for _, name := range level.Present() {
			kn, err := For(name)
			if err != nil {
				t.Fatal(err)
			}
			got := p.run(kn)
			if err := p.verify(got); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			packed := p.runPacked(kn, new(Packed))
			if err := equal(p.m, p.n, func(i, j int) uint32 { return p.at(got, i, j) }, func(i, j int) uint32 { return p.at(packed, i, j) }); err != nil {
				t.Fatalf("%s: %v, packed: %v", name, &p, err)
			}
		}
	})
}

func ExampleGemm() {
	a := []float32{1, 2, 3, 4, 5, 6} // 2×3
	b := []float32{1, 0, 0, 1, 1, 1} // 3×2
	c := make([]float32, 4)
	Gemm(false, false, 2, 2, 3, a, 3, b, 2, false, c, 2)
	fmt.Println(c)
	// Output: [4 5 10 11]
}
