package sgemm

// kc is the longest run of k between two additions into C. It is shared by all
// families, because it fixes the bits of the result.
const kc = 384

// blockB is how many elements of B all rows of A are multiplied with before the
// next ones: 512 KiB, which the second cache of today's processors holds with
// room to spare for what streams through it.
const blockB = 128 << 10

// A family is the microkernels of a level.
type family struct {
	level string
	// vector counts the columns of a vector; a tile of C is 1 to len(tallest) vectors
	// wide, and tallest holds the most rows for each width.
	vector  int
	tallest []int
	// copies: run can read B where it is, and pack it at the same time.
	copies bool
	// masks: run leaves alone the columns that do not exist.
	masks bool
	// run multiplies one strip of tiles.
	run func(s *scratch)
	// rows copies kb rows of w ≤ vector elements and fills them up with zeros. It
	// may write up to 15 elements after the last row.
	rows func(kb, w int, src []float32, lds int, dst []float32, ldd int)
	// transpose copies w ≤ vector columns of kb elements into kb rows, which it
	// fills up with anything.
	transpose func(kb, w int, src []float32, lds int, dst []float32, ldd int)
	// peak runs n rounds of a loop of fused multiply-adds and returns how many
	// operations those are; nil if there is none.
	peak func(n int) int
}

// widest returns the columns of the widest panel.
func (f *family) widest() int { return len(f.tallest) * f.vector }

// span is a run of panels of equal width that lie side by side in a block of B.
type span struct {
	column, panels int
	width, exist   int // exist < width only in the one panel of a ragged span
}

func (s span) ragged() bool { return s.exist < s.width }

// spans divides w columns into panels. A single vector left over at the end would
// keep the multipliers waiting for operands: it shares evenly with the panel before.
func (f *family) spans(w int, out []span) []span {
	widest := len(f.tallest)
	vectors := (w + f.vector - 1) / f.vector
	var count [4]int
	count[widest] = vectors / widest
	switch rest := vectors % widest; {
	case rest == 1 && vectors > widest:
		count[widest]--
		count[(widest+1)/2] += 2
	case rest > 0:
		count[rest]++
	}
	column := 0
	for v := widest; v > 0; v-- {
		for width := v * f.vector; count[v] > 0; {
			n := min(count[v], max(1, (w-column)/width))
			out = append(out, span{column, n, width, min(width, w-column)})
			column += n * width
			count[v] -= n
		}
	}
	return out
}

// grid is how B, k×n, is cut into blocks of kb×nb.
type grid struct{ n, k, nb, kb int }

func (f *family) grid(n, k int) grid {
	kb := even(k, kc, 16)
	if n <= blockB/kc {
		return grid{n, k, n, kb}
	}
	unit := f.widest()
	return grid{n, k, even(n, max(blockB/kb/unit, 1)*unit, unit), kb}
}

// narrow returns the grid whose blocks are one panel wide.
func (g grid) narrow(f *family) grid {
	g.nb = f.widest()
	return g
}

// after returns the place of the block after that at row q and column j.
func (g grid) after(j, q int) (int, int) {
	if q += g.kb; q < g.k {
		return j, q
	}
	return j + g.nb, 0
}

// offset is where the block at row q and column j stands in a Packed.
func (g grid) offset(f *family, j, q int) int {
	return j*g.k + q*roundUp(min(g.nb, g.n-j), f.vector)
}

// even cuts n into the fewest equal parts of at most limit, and returns their
// size, rounded up to a multiple of unit.
func even(n, limit, unit int) int {
	parts := (n + limit - 1) / limit
	return roundUp((n+parts-1)/parts, unit)
}

func roundUp(n, unit int) int { return (n + unit - 1) / unit * unit }

// pack copies the panels of a span of the block at row q and column j into
// rows of their width, one panel after the other.
func (f *family) pack(sp span, kb int, b matrix, j, q int, dst []float32) {
	for i := range sp.panels {
		column := sp.column + i*sp.width
		panel := dst[column*kb : (column+sp.width)*kb]
		for v := 0; v < sp.exist; v += f.vector {
			w := min(f.vector, sp.exist-v)
			src := b.from(q, j+column+v)
			if b.trans {
				f.transpose(kb, w, src, b.ld, panel[v:], sp.width)
			} else {
				f.rows(kb, w, src, b.ld, panel[v:], sp.width)
			}
		}
	}
}
