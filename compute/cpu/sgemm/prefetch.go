package sgemm

// line is a cache line in elements.
const line = 16

// prefetch lets the first strips of a block bring what comes next of B into the
// second cache. With many rows in A that hardly matters; with few, as in
// recurrent layers, the multipliers would wait for memory, and then memory for them.
//
// A microkernel fetches one line for each row of each panel that it reads, so
// it takes as many strips as a row of the widest panel has lines; n counts them.
func (p *product) prefetch(s *scratch, j, q, n int) {
	s.fetch = s.a[:1] // which is at hand: nothing
	lines := p.widest() / line
	var next []float32
	var from, step, panel int
	switch {
	case p.packed != nil: // the next block
		if j, q = p.after(j, q); j < p.n {
			next = p.packed[p.offset(p.family, j, q):]
		}
		from, step, panel = n*s.kb*line*(p.nb/p.widest()), line, s.kb*line
	case p.b.trans: // the next columns, which lie together, of a narrow block
		if j += p.nb; j < p.n && p.nb == p.widest() {
			next = p.b.from(0, j)
		}
		from, step, panel = (q*lines+n*s.kb)*line, line, s.kb*line
	default: // the next block; not by the first strip, which waits for this one
		n--
		if j, q = p.after(j, q); j < p.n {
			next = p.b.from(q, j)
		}
		from, step, panel = n*line, p.b.ld, p.widest()
	}
	if 0 <= n && n < lines && from < len(next) {
		s.fetch, s.stepFetch, s.nextFetch = next[from:], step, panel
	}
}
