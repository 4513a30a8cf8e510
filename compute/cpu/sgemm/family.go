package sgemm

import (
	"sync"
	"unsafe"
)

// kc is the longest run of k between two additions into C. It is shared by all
// families, because it fixes the bits of the result.
const kc = 384

// A family is one shape of microkernel with its cache blocking: mr×nr is the
// register tile, mc rows of A and nc columns of B are packed at a time.
type family struct {
	mr, nr, mc, nc int
	// Up to inPlace rows of A, rows of B are read where they are: packing B
	// would cost more than the product gains.
	inPlace int
	// ragged: tile writes fewer than nr columns by itself. Otherwise such tiles go
	// through a scratch tile.
	ragged bool
	// tile computes an h×w tile of C from a packed panel of A (h elements per k)
	// and a panel of B (ldb elements per k), over kb elements of k.
	tile func(h, w, kb int, a, b []float32, ldb int, c []float32, ldc int, accumulate bool)
	// rows copies kb rows of w ≤ width elements and fills them up to width with
	// zeros. It may write up to 15 elements after the last row.
	rows func(kb, w, width int, src []float32, lds int, dst []float32, ldd int)
	// transpose writes the block×block transpose of rows ≤ block rows; what stands
	// for missing rows has no meaning. With block = 0 there is none.
	transpose func(rows int, src []float32, lds int, dst []float32, ldd int)
	block     int
}

// kernels are the families of a level: one, or two of which the width of C decides.
type kernels struct {
	level        string
	narrow, wide *family
}

// pick returns the family that computes the fewest columns for nothing.
func (ks *kernels) pick(n int) *family {
	if ks.wide == nil {
		return ks.narrow
	}
	w, nw := roundUp(n, ks.wide.nr), roundUp(n, ks.narrow.nr)
	if w*100 <= nw*104 {
		return ks.wide
	}
	return ks.narrow
}

type matrix struct {
	data  []float32
	ld    int
	trans bool
}

// from returns the elements from row i and column j of op(X) on.
func (x matrix) from(i, j int) []float32 {
	if x.trans {
		i, j = j, i
	}
	return x.data[i*x.ld+j:]
}

// scratch is the packed copies and one tile, reused from call to call.
type scratch struct {
	a, b, tile []float32
}

var pool = sync.Pool{New: func() any { return new(scratch) }}

func (s *scratch) grow(na, nb, nt int) {
	if len(s.a) < na {
		s.a = aligned(na)
	}
	if len(s.b) < nb {
		s.b = aligned(nb)
	}
	if len(s.tile) < nt {
		s.tile = aligned(nt)
	}
}

// aligned returns n elements that start on a cache line.
func aligned(n int) []float32 {
	const line = 64
	s := make([]float32, n+line/4)
	skip := -uintptr(unsafe.Pointer(unsafe.SliceData(s))) % line / 4
	return s[skip : int(skip)+n]
}

// slack is room for what packing writes after its last row, for the next one to overwrite.
const slack = 16

// multiply is the blocked product; all sizes are positive and the slices long enough.
func (f *family) multiply(a, b matrix, m, n, k int, accumulate bool, c []float32, ldc int) {
	kb := even(k, kc, 16)
	mb := even(m, f.mc, 1)
	nb := even(n, f.nc, f.nr)
	s := pool.Get().(*scratch)
	s.grow(kb*mb+slack, kb*nb, f.mr*f.nr)
	for j := 0; j < n; j += nb {
		for p := 0; p < k; p += kb {
			g := gemm{f: f, s: s, b: b, p: p, j: j, kb: min(kb, k-p), nb: min(nb, n-j), accumulate: accumulate || p > 0}
			g.packB(m <= f.inPlace)
			for i := 0; i < m; i += mb {
				g.packA(a, i, min(mb, m-i))
				g.tiles(min(mb, m-i), c[i*ldc+j:], ldc)
			}
		}
	}
	pool.Put(s)
}

// even cuts n into the fewest equal parts of at most limit, and returns their
// size, rounded up to a multiple of unit.
func even(n, limit, unit int) int {
	parts := (n + limit - 1) / limit
	return roundUp((n+parts-1)/parts, unit)
}

func roundUp(n, unit int) int { return (n + unit - 1) / unit * unit }

// gemm is the product of one block of k (from p, kb long) and one of columns
// (from j, nb wide).
type gemm struct {
	f            *family
	s            *scratch
	b            matrix
	p, j, kb, nb int
	inPlace      bool
	accumulate   bool
}

// packB copies the block of B into panels of nr columns, except those that can
// be read in place.
func (g *gemm) packB(inPlace bool) {
	f := g.f
	g.inPlace = inPlace && !g.b.trans
	for j := 0; j < g.nb; j += f.nr {
		w := min(f.nr, g.nb-j)
		if g.direct(w) {
			continue
		}
		src, dst := g.b.from(g.p, g.j+j), g.s.b[j*g.kb:(j+f.nr)*g.kb]
		if g.b.trans {
			f.packColumns(g.kb, w, f.nr, src, g.b.ld, dst)
		} else {
			f.rows(g.kb, w, f.nr, src, g.b.ld, dst, f.nr)
		}
	}
}

// direct reports whether a panel of w columns of B is read in place.
func (g *gemm) direct(w int) bool { return g.inPlace && (g.f.ragged || w == g.f.nr) }

// panelB returns the panel of w columns from column j of the block, and its stride.
func (g *gemm) panelB(j, w int) ([]float32, int) {
	if g.direct(w) {
		return g.b.from(g.p, g.j+j), g.b.ld
	}
	return g.s.b[j*g.kb:], g.f.nr
}

// packA copies mb rows of A from row i into panels of nearly equal height.
func (g *gemm) packA(a matrix, i, mb int) {
	for off := 0; off < mb; {
		h := g.height(mb, off)
		src, dst := a.from(i+off, g.p), g.s.a[off*g.kb:]
		if a.trans {
			g.f.rows(g.kb, h, h, src, a.ld, dst, h)
		} else {
			g.f.packColumns(g.kb, h, h, src, a.ld, dst)
		}
		off += h
	}
}

// height returns the height of the panel that starts at row off of mb.
func (g *gemm) height(mb, off int) int {
	left := (mb - off + g.f.mr - 1) / g.f.mr
	return (mb - off + left - 1) / left
}

// tiles multiplies the packed blocks into mb rows of C.
func (g *gemm) tiles(mb int, c []float32, ldc int) {
	f := g.f
	for j := 0; j < g.nb; j += f.nr {
		w := min(f.nr, g.nb-j)
		b, ldb := g.panelB(j, w)
		for off := 0; off < mb; {
			h := g.height(mb, off)
			a, to := g.s.a[off*g.kb:], c[off*ldc+j:]
			if f.ragged || w == f.nr {
				f.tile(h, w, g.kb, a, b, ldb, to, ldc, g.accumulate)
			} else {
				f.tile(h, f.nr, g.kb, a, b, ldb, g.s.tile, f.nr, false)
				spill(h, w, g.s.tile, f.nr, to, ldc, g.accumulate)
			}
			off += h
		}
	}
}

// spill moves h×w elements of the scratch tile into C.
func spill(h, w int, tile []float32, nr int, c []float32, ldc int, accumulate bool) {
	for i := range h {
		from, to := tile[i*nr:][:w], c[i*ldc:][:w]
		if !accumulate {
			copy(to, from)
			continue
		}
		for j, v := range from {
			to[j] += v
		}
	}
}

// packColumns writes kb rows of width elements: row p holds element p of each of
// the w rows of src. What lies beyond w is left as it is: its products are never stored.
func (f *family) packColumns(kb, w, width int, src []float32, lds int, dst []float32) {
	p := 0
	if f.block > 0 {
		for ; p+f.block <= kb; p += f.block {
			for j := 0; j < w; j += f.block {
				f.transpose(min(f.block, w-j), src[j*lds+p:], lds, dst[p*width+j:], width)
			}
		}
	}
	for ; p < kb; p++ {
		for j := range w {
			dst[p*width+j] = src[j*lds+p]
		}
	}
}
