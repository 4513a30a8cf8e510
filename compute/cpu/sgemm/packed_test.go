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

// TestPacked: to pack B beforehand does not change the bits, and a Packed can be
// packed again with another matrix.
func TestPacked(t *testing.T) {
	each(t, func(t *testing.T, kn Kernel) {
		var b Packed
		rapid.Check(t, func(t *rapid.T) {
			p := draw(t)
			want, got := p.run(kn), p.runPacked(kn, &b)
			if err := equal(p.m, p.n, func(i, j int) uint32 { return p.at(want, i, j) }, func(i, j int) uint32 { return p.at(got, i, j) }); err != nil {
				t.Fatalf("%v, packed: %v", p, err)
			}
			if err := p.verify(got); err != nil {
				t.Fatal(err)
			}
		})
	})
}

// TestPackedShared: goroutines may multiply with one Packed at once.
func TestPackedShared(t *testing.T) {
	each(t, func(t *testing.T, kn Kernel) {
		whole := trial{m: 64, n: 130, k: 400, transB: true}
		whole.make(1)
		var b Packed
		want := whole.runPacked(kn, &b)
		got := append([]float32(nil), whole.c...)
		var wg sync.WaitGroup
		for i := 0; i < whole.m; i += 16 {
			wg.Go(func() {
				GemmPacked(false, 16, whole.a[i*whole.lda:], whole.lda, &b, false, got[i*whole.ldc:], whole.ldc)
			})
		}
		wg.Wait()
		if err := equal(whole.m, whole.n, func(i, j int) uint32 { return whole.at(want, i, j) }, func(i, j int) uint32 { return whole.at(got, i, j) }); err != nil {
			t.Error(err)
		}
	})
}

func TestPackedEdges(t *testing.T) {
	each(t, func(t *testing.T, kn Kernel) {
		var b Packed
		GemmPacked(false, 3, nil, 0, &b, false, nil, 0) // 3×0
		kn.Pack(&b, false, 2, 0, nil, 2)
		c := []float32{1, 2, 9, 3, 4, 9}
		GemmPacked(false, 2, nil, 0, &b, true, c, 3)
		GemmPacked(false, 1, nil, 0, &b, false, c, 3)
		if got := fmt.Sprint(c); got != "[0 0 9 3 4 9]" {
			t.Errorf("k = 0: %s", got)
		}
		x := make([]float32, 40)
		kn.Pack(&b, false, 5, 8, x, 5)
		for cause, f := range map[string]func(){
			"negative size n=-1": func() { kn.Pack(&b, false, -1, 8, x, 5) },
			"B: 39":              func() { kn.Pack(&b, false, 5, 8, x[:39], 5) },
			"B: stride 7":        func() { kn.Pack(&b, true, 5, 8, x, 7) },
			"B: 40":              func() { kn.Pack(&b, true, math.MaxInt, math.MaxInt, x, math.MaxInt) },
			"A: 39":              func() { GemmPacked(false, 5, x[:39], 8, &b, false, make([]float32, 25), 5) },
			"A: stride 8":        func() { GemmPacked(true, 9, x, 8, &b, false, make([]float32, 45), 5) },
			"C: 24":              func() { GemmPacked(false, 5, x, 8, &b, false, make([]float32, 24), 5) },
			"negative size m=-5": func() { GemmPacked(false, -5, x, 8, &b, false, make([]float32, 25), 5) },
		} {
			if got := panicOf(f); !strings.HasPrefix(got, "sgemm: ") || !strings.Contains(got, cause) {
				t.Errorf("%s: panic %q", cause, got)
			}
		}
	})
}

func panicOf(f func()) (text string) {
	defer func() { text = fmt.Sprint(recover()) }()
	f()
	return ""
}

func TestPeak(t *testing.T) {
	each(t, func(t *testing.T, kn Kernel) {
		perRound := map[string]int{level.AVX2: 12 * 8 * 2, level.AVX512: 12 * 16 * 2}[kn.Level()]
		for n, want := range map[int]int{-1: 0, 0: 0, 1: perRound, 1000: 1000 * perRound} {
			if got := kn.Peak(n); got != want {
				t.Errorf("Peak(%d) = %d, want %d", n, got, want)
			}
		}
	})
}

func ExamplePacked() {
	// The recurrent weights of a layer, stored as outputs × inputs, serve every step.
	weights := []float32{1, 2, 3, 4} // 2×2
	var w Packed
	w.Pack(true, 2, 2, weights, 2)
	h := []float32{1, 1}
	for range 3 {
		next := make([]float32, 2)
		GemmPacked(false, 1, h, 2, &w, false, next, 2)
		h = next
	}
	fmt.Println(h)
	// Output: [91 199]
}
