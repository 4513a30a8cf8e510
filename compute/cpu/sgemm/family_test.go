package sgemm

import (
	"testing"

	"pgregory.net/rapid"
)

// wide has the shapes of AVX-512 on any processor.
var wide = family{vector: 16, tallest: []int{14, 14, 8}}

// TestSpans: panels lie side by side, cover every column once, and are ragged
// only at the end; none is a single vector if two can share.
func TestSpans(t *testing.T) {
	for _, f := range []*family{&plain, &wide, {vector: 16, tallest: []int{6}}} {
		for w := 1; w < 400; w++ {
			column := 0
			spans := f.spans(w, nil)
			for i, sp := range spans {
				switch last := i == len(spans)-1; {
				case sp.column != column || sp.panels < 1 || sp.width%f.vector != 0 || sp.width > f.widest():
					t.Fatalf("vector %d, %d columns: %+v", f.vector, w, spans)
				case sp.ragged() && (!last || sp.panels > 1 || sp.width-sp.exist >= f.vector):
					t.Fatalf("vector %d, %d columns: ragged before the end: %+v", f.vector, w, spans)
				case len(f.tallest) > 1 && sp.width == f.vector && w > f.vector:
					t.Fatalf("vector %d, %d columns: a lone vector: %+v", f.vector, w, spans)
				}
				column += (sp.panels-1)*sp.width + sp.exist
			}
			if column != w || len(spans) > 4 {
				t.Fatalf("vector %d, %d columns: %+v cover %d", f.vector, w, spans, column)
			}
		}
	}
}

// TestGrid: how k is cut depends on k alone; blocks end where panels do, are no larger than the
// cache allows, and in a Packed stand one after the other.
func TestGrid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, k := rapid.IntRange(1, 20000).Draw(t, "n"), rapid.IntRange(1, 20000).Draw(t, "k")
		g := wide.grid(n, k)
		if g.kb < 1 || g.kb > kc || g.kb != wide.grid(1, k).kb || g.kb != plain.grid(n, k).kb {
			t.Fatalf("%+v: k is cut otherwise with n = 1: %+v", g, wide.grid(1, k))
		}
		if g.nb < n && g.nb%wide.widest() != 0 || g.nb*g.kb > blockB {
			t.Fatalf("%+v: a block is %d elements, at most %d", g, g.nb*g.kb, blockB)
		}
		at := 0
		for j, q := 0, 0; j < n; j, q = g.after(j, q) {
			if got := g.offset(&wide, j, q); got != at {
				t.Fatalf("%+v: the block at (%d,%d) stands at %d, want %d", g, q, j, got, at)
			}
			at += min(g.kb, k-q) * roundUp(min(g.nb, n-j), wide.vector)
		}
		if want := k * roundUp(n, wide.vector); at != want {
			t.Fatalf("%+v: all blocks take %d, want %d", g, at, want)
		}
	})
}
