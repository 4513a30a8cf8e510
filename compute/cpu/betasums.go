package cpu

import (
	"slices"

	"optimus/compute/cpu/norm"
	"optimus/compute/cpu/plane"
)

// betaSums computes a betaGrad. With dX the gradient of the convolution's input,
//
//	dβ[c] = Σ dX[c] = Σ over filters o and their places i,j of W[o,c,i,j] · Σ dY[o]
//
// where the last sum is over the outputs for which place i,j lies inside the picture:
// a rectangle. The edges of all these rectangles cut the output into a few cells, whose
// sums are taken in one pass.
type betaSums struct {
	none
	e          *executable
	op         *betaGrad
	dy         port
	rows, cols side
	cells      [][]norm.Moments // of each block of filters, row by row
	w, dbeta   []float32
	total      []float64 // of dX, per channel
	sum        func(task, thread int)
}

// side is the height or the width of a picture.
type side struct {
	inside [][2]int // for each place of a filter: from and up to which output it lies inside
	cuts   []int    // all of these numbers, in order, each once
}

func newSide(kernel, stride, pad, in, out int) (s side) {
	behind := func(at int) int { return min(max((at+stride-1)/stride, 0), out) } // outputs that begin before at
	s.cuts = []int{0, out}
	for k := range kernel {
		from, to := behind(pad-k), behind(pad-k+in)
		s.inside, s.cuts = append(s.inside, [2]int{from, to}), append(s.cuts, from, to)
	}
	slices.Sort(s.cuts)
	s.cuts = slices.Compact(s.cuts)
	return s
}

func newBetaSums(e *executable, op *betaGrad) kernel {
	c := op.conv
	k := &betaSums{
		e: e, op: op, dy: e.port(c.DY), total: make([]float64, c.In.C),
		rows:  newSide(c.KH, c.StrideH, c.PadH, c.In.H, c.Out.H),
		cols:  newSide(c.KW, c.StrideW, c.PadW, c.In.W, c.Out.W),
		cells: make([][]norm.Moments, plane.Blocks(c.Out.C)),
	}
	for b := range k.cells {
		k.cells[b] = make([]norm.Moments, len(k.rows.cuts)*len(k.cols.cuts))
	}
	k.w, _ = e.block(c.Filter)
	_, k.dbeta = e.block(op.norm.Beta)
	k.sum = k.block
	return k
}

func (k *betaSums) forward() {}

func (k *betaSums) paramGrad() {
	k.e.pool.run(len(k.cells), k.sum)
	clear(k.total)
	c := k.op.conv
	each := c.In.C / c.Groups
	for o := range c.Out.C {
		sums := k.total[o/(c.Out.C/c.Groups)*each:][:each]
		for i := range c.KH {
			for j := range c.KW {
				dy := k.under(o, i, j)
				for in := range sums {
					sums[in] += float64(dy * float64(k.w[((o*each+in)*c.KH+i)*c.KW+j]))
				}
			}
		}
	}
	for in, v := range k.total {
		k.dbeta[in] += float32(v)
	}
}

// block sums the cells of 16 filters over the batch.
func (k *betaSums) block(b, _ int) {
	cells, width := k.cells[b], len(k.cols.cuts)
	clear(cells)
	for i := range k.e.n {
		p := k.dy.plane(i, b)
		for r, top := range k.rows.cuts[1:] {
			for y := k.rows.cuts[r]; y < top; y++ {
				row := p.Row(y)
				for c, right := range k.cols.cuts[1:] {
					left := k.cols.cuts[c]
					cells[r*width+c].Plane(plane.Of(plane.Shape{H: 1, W: right - left}, row[left*plane.Lanes:right*plane.Lanes]))
				}
			}
		}
	}
}

// under returns the sum of dY[o] over the outputs for which place i,j of the filter lies
// inside the picture.
func (k *betaSums) under(o, i, j int) (sum float64) {
	cells, rows, cols := k.cells[o/plane.Lanes], k.rows.inside[i], k.cols.inside[j]
	for r, top := range k.rows.cuts {
		for c, left := range k.cols.cuts {
			if rows[0] <= top && top < rows[1] && cols[0] <= left && left < cols[1] {
				sum += cells[r*len(k.cols.cuts)+c].Sum[o%plane.Lanes]
			}
		}
	}
	return sum
}
