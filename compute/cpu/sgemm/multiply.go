package sgemm

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

// product is one call.
type product struct {
	*family
	grid
	m          int
	a, b       matrix
	packed     []float32 // B as Packed holds it, instead of b
	accumulate bool
	c          []float32
	ldc        int
}

// strip is a row of tiles that lie side by side in C: what a microkernel
// computes in one go. Distances count elements.
type strip struct {
	span
	h, kb       int       // rows and products
	a           []float32 // a[i*rowA+p*stepA] is the element of row i and product p
	rowA, stepA int
	b           []float32 // from b[p*stepB] on stands row p of the first panel
	stepB       int
	nextB       int       // from panel to panel
	pack        []float32 // where to pack the rows of B, or nil
	accumulate  bool
	c           []float32
	rowC        int
	fetch       []float32 // what to bring near meanwhile, a line for each row of each panel
	stepFetch   int
	nextFetch   int // from panel to panel
}

// multiply is the blocked product; all sizes are positive and the slices long enough.
func (p *product) multiply() {
	s := pool.Get().(*scratch)
	s.grow(p)
	for j := 0; j < p.n; j += p.nb {
		s.spans = p.spans(min(p.nb, p.n-j), s.spans[:0])
		for q := 0; q < p.k; q += p.kb {
			p.block(s, j, q)
		}
	}
	s.strip, s.call = strip{}, call{} // do not keep the operands alive
	pool.Put(s)
}

// block multiplies all rows of A with the block of B at row q and column j.
func (p *product) block(s *scratch, j, q int) {
	kb := min(p.kb, p.k-q)
	packed, inPlace := s.packB, false
	switch {
	case p.packed != nil:
		packed = p.packed[p.offset(p.family, j, q):]
	case p.b.trans || !p.copies:
		for _, sp := range s.spans {
			p.pack(sp, kb, p.b, j, q, packed)
		}
	default:
		inPlace = true
	}
	tallest := p.tallest[s.spans[0].width/p.vector-1]
	left := (p.m + tallest - 1) / tallest // strips, of nearly equal height
	for i, n := 0, 0; i < p.m; n++ {
		h := (p.m - i + left - 1) / left
		left--
		s.strip = strip{h: h, kb: kb, accumulate: p.accumulate || q > 0, rowC: p.ldc}
		p.stripA(s, i, q)
		p.prefetch(s, j, q, n)
		for _, sp := range s.spans {
			s.span, s.c = sp, p.c[i*p.ldc+j+sp.column:]
			s.b, s.stepB, s.nextB, s.pack = packed[sp.column*kb:], sp.width, sp.width*kb, nil
			if inPlace && i == 0 {
				p.first(s, j, q, left > 0)
			}
			if s.ragged() && !p.masks {
				p.throughTile(s)
			} else {
				p.run(s)
			}
		}
		i += h
	}
}

// first lets the first strip read B where it is, and pack it if others follow.
// Where the microkernel cannot do so, B is packed beforehand.
func (p *product) first(s *scratch, j, q int, more bool) {
	if s.ragged() && !p.masks {
		p.pack(s.span, s.kb, p.b, j, q, s.packB)
		return
	}
	if more || s.ragged() {
		s.pack = s.b
	}
	s.b, s.stepB, s.nextB = p.b.from(q, j+s.column), p.b.ld, s.width
}

// stripA points the strip to its rows of A. Rows that are stored as columns are
// brought together, lest each product touch a page of its own.
func (p *product) stripA(s *scratch, i, q int) {
	s.a, s.rowA, s.stepA = p.a.from(i, q), p.a.ld, 1
	if p.a.trans {
		p.rows(s.kb, s.h, s.a, p.a.ld, s.packA, s.h)
		s.a, s.rowA, s.stepA = s.packA, 1, s.h
	}
}

// throughTile runs a strip of one ragged tile into scratch memory and moves what
// exists of it into C.
func (f *family) throughTile(s *scratch) {
	c, rowC, accumulate := s.c, s.rowC, s.accumulate
	s.c, s.rowC, s.accumulate = s.tile, s.width, false
	f.run(s)
	s.rowC, s.accumulate = rowC, accumulate
	for i := range s.h {
		from, to := s.tile[i*s.width:][:s.exist], c[i*rowC:][:s.exist]
		if !accumulate {
			copy(to, from)
			continue
		}
		for j, v := range from {
			to[j] += v
		}
	}
}
