package conv

import "slices"

// gather is the engine of both directions that write pictures: every output pixel
// gathers the inputs below the filter. Backward-data with strides is one pass for
// each phase of the pixel, all of stride 1.
type gather struct {
	kernel   gatherKernel
	in, out  Layout
	outputs  []span
	passes   []pass
	stride   int  // rows of the output for each row of a pass
	sparse   bool // some outputs gather nothing
	rowBlock int  // rows of a pass that are done while their inputs are near
	near     int  // samples that are done while the weights are near
	units    int  // blocks (or planes) of input channels of a part
	chunk    int  // units that are taken together: a tile's inputs of them stay in the first cache
	heavy    bool // the weights do not stay in the second cache: they are fetched ahead
	memory   *memory
}

// span is a run of channel blocks that one kernel computes together.
type span struct{ first, n int }

// field says what the pixels of a pass read: output row r and filter row i meet at
// input row r·stride + shift of rows[i], likewise the columns. kin values lie side
// by side at each place, in each plane of the input.
type field struct {
	rows, cols []reach
	left       int // columns from the output's place to that of a tap without shift
	kin        int
}

// pass computes the pixels of one phase.
type pass struct {
	rows, cols int
	y, yr, yp  int // elements of the output: the first pixel, from row to row, from pixel to pixel
	xp         int // elements of the input from one output pixel to the next
	w, wRows   int // where the weights begin; rows of them for each block of outputs
	field      field
	class      []int // of each row
	top        []int // of each class: the filter row that its taps count from
	segments   []segment
}

// How a gather starts its sums. The assembly knows these values.
const (
	fromZero = iota
	fromBias
	fromY
)

// empty reports whether no output gathers anything.
func (f *field) empty() bool { return len(f.rows) == 0 || len(f.cols) == 0 }

// add appends a pass: it cuts the rows into tiles and lists the taps of each kind of
// tile. Its weights follow those of the pass before.
func (g *gather) add(p pass, widest int) {
	f := &p.field
	p.wRows = g.units * len(f.rows) * len(f.cols) * f.kin
	if n := len(g.passes); n > 0 {
		last := g.outputs[len(g.outputs)-1]
		p.w = g.passes[n-1].w + g.passes[n-1].wRows*(last.first+last.n)*Lanes
	}
	g.sparse = g.sparse || f.empty()
	m := g.memory
	class, examples := m.classes(p.rows, f.rows)
	p.class = class
	top := len(m.ints)
	for _, e := range examples {
		m.ints = append(m.ints, max(0, slices.IndexFunc(f.rows, func(r reach) bool { return r.inside(e) })))
	}
	p.top = m.ints[top:len(m.ints):len(m.ints)]
	from, first := 0, len(m.segments)
	for _, width := range m.tiling(p.cols, widest) {
		lists, taps := len(m.lists), len(m.taps)
		for c, e := range examples {
			m.lists = append(m.lists, m.list(f, g.in, g.units, e, p.top[c], from, width))
		}
		s := segment{from: from, tiles: 1, width: width, taps: m.lists[lists:len(m.lists):len(m.lists)]}
		from += width
		if n := len(m.segments); n > first && m.segments[n-1].joins(s) {
			m.segments[n-1].tiles++
			m.lists, m.taps = m.lists[:lists], m.taps[:taps]
			continue
		}
		m.segments = append(m.segments, s)
	}
	p.segments = m.segments[first:len(m.segments):len(m.segments)]
	g.passes = append(g.passes, p)
}

// list lists what a tile reads, without what lies in the padding: unit by unit, an
// equal number of each.
func (m *memory) list(f *field, in Layout, units, row, top, from, width int) []tap {
	first := len(m.taps)
	for u := range units {
		for i, r := range f.rows {
			if !r.inside(row) {
				continue
			}
			for j, c := range f.cols {
				skip, needed := c.skip(from, width)
				if !needed {
					continue
				}
				x := u*in.plane() + (r.shift-f.rows[top].shift)*in.row() + c.shift*in.pixel()
				w := ((u*len(f.rows)+i)*len(f.cols) + j) * f.kin
				m.taps = append(m.taps, tap{size * x, size * Lanes * w, skip})
			}
		}
	}
	return m.taps[first:len(m.taps):len(m.taps)]
}

// joins reports whether s continues the run of tiles.
func (r segment) joins(s segment) bool {
	return r.width == s.width && slices.EqualFunc(r.taps, s.taps, func(a, b []tap) bool { return slices.Equal(a, b) })
}

// batch is some samples of one part: y and x begin at its first channel block in
// the first sample, w at its weights, bias, which may be nil, at its biases.
type batch struct {
	y, x, w, bias []float32
	n, yn, xn     int // samples, and the elements from one to the next
	add           bool
}

// run computes a batch. Weights are read once for near samples whose inputs fit
// the cache together, inputs once for as many rows as fit.
func (g *gather) run(b batch) {
	rows := g.passes[0].rows
	for ; b.n > 0; b.n -= g.near {
		v := visit{near: min(b.n, g.near), add: b.add, weights: b.w, bias: b.bias}
		for v.row = 0; v.row < rows; v.row = v.end {
			v.end = min(v.row+g.rowBlock, rows)
			v.x = g.next(b, v.end)
			for i, o := range g.outputs {
				v.o, v.next = o, g.outputs[(i+1)%len(g.outputs)]
				for v.unit = 0; v.unit < g.units; v.unit += g.chunk {
					for v.sample = range v.near {
						g.rows(&v, b.y[v.sample*b.yn+o.first*g.out.plane():], b.x[v.sample*b.xn:])
					}
				}
			}
		}
		if b.n > g.near {
			b.y, b.x = b.y[v.near*b.yn:], b.x[v.near*b.xn:]
		}
	}
}

// visit is what is computed at a time: rows [row,end) of every pass of a span of
// outputs, in one of near samples, as far as a chunk of units contributes.
type visit struct {
	o, next       span // next is the span after o
	unit          int  // the chunk's first
	row, end      int
	sample, near  int
	add           bool
	weights, bias []float32
	x             fetch // inputs of the rows to come
}

// next is the input of the rows that are computed after those before row, in
// this sample or the next.
func (g *gather) next(b batch, row int) fetch {
	p := &g.passes[0]
	x := b.x
	if row >= p.rows {
		row = 0
		if b.n <= g.near {
			return fetch{}
		}
		x = x[g.near*b.xn:]
	}
	step := 1
	if len(p.field.rows) > 0 {
		step = p.field.rows[0].stride
	}
	from, to := row*step, min(g.in.H, (row+g.rowBlock)*step)
	if from >= to || (to-from)*g.in.row()*g.units*size > nearInputs {
		return fetch{}
	}
	return fetch{x: x[g.in.at(from, 0):], planes: g.units, plane: g.in.plane(), size: (to - from) * g.in.row()}
}

// fetch is memory that will be read soon: size elements in each of planes.
type fetch struct {
	x                   []float32
	planes, plane, size int
	at                  int // in the first plane that is left
}

// take returns where to fetch the next lines, or nil if there is nothing left.
func (f *fetch) take(lines int) []float32 {
	if f.planes == 0 || lines == 0 {
		return nil
	}
	out := f.x[f.at:]
	f.at += lines * line / size
	if f.at >= f.size {
		f.at = 0
		f.planes--
		f.x = f.x[min(f.plane, len(f.x)-1):]
	}
	return out
}

// rows makes a visit. y begins at its outputs.
func (g *gather) rows(v *visit, y, x []float32) {
	if g.sparse && !v.add && v.unit == 0 {
		g.clear(v, y)
	}
	start, bias := fromZero, v.bias
	switch {
	case v.add || v.unit > 0:
		start = fromY
	case bias != nil:
		start, bias = fromBias, bias[v.o.first*Lanes:]
	}
	for i := range g.passes {
		p := &g.passes[i]
		w := v.weights[p.w+v.o.first*Lanes*p.wRows:]
		ahead := g.ahead(p, v)
		for r := v.row; r < min(v.end, p.rows); r++ {
			c := p.class[r]
			below := 0
			if len(p.field.rows) > 0 {
				below = g.in.at(p.field.rows[p.top[c]].of(r), p.field.left)
			}
			for j := range p.segments {
				s := &p.segments[j]
				each := len(s.taps[c]) / g.units
				if each == 0 && (start == fromY || g.sparse) {
					continue
				}
				t := tiles{
					n: s.tiles, pixels: s.width, blocks: v.o.n,
					taps: s.taps[c][each*v.unit : each*min(v.unit+g.chunk, g.units)], kin: p.field.kin,
					xs: p.xp, ys: p.yp, plane: g.out.plane(), start: start,
				}
				if t.ahead = ahead.take(t.lines()); t.ahead == nil {
					t.ahead = v.x.take(t.lines())
				}
				g.kernel(t, x, below+s.from*p.xp, w, y[p.y+r*p.yr+s.from*p.yp:], bias)
			}
		}
	}
}

// ahead is the share of this sample in fetching the weights of the next chunk.
func (g *gather) ahead(p *pass, v *visit) fetch {
	if !g.heavy {
		return fetch{}
	}
	o, unit := v.o, v.unit+g.chunk
	if unit >= g.units {
		o, unit = v.next, 0
	}
	each := o.n * Lanes * p.wRows / g.units // elements of a unit
	n := each * min(g.chunk, g.units-unit)
	from := n * v.sample / v.near &^ (Lanes - 1)
	n = n*(v.sample+1)/v.near - from
	if n == 0 {
		return fetch{}
	}
	return fetch{x: v.weights[p.w+o.first*Lanes*p.wRows+each*unit+from:], planes: 1, size: n}
}

// clear zeroes the rows of outputs that some pass may leave out.
func (g *gather) clear(v *visit, y []float32) {
	for b := range v.o.n {
		for r := v.row * g.stride; r < min(v.end*g.stride, g.out.H); r++ {
			at := b*g.out.plane() + g.out.at(r, 0)
			clear(y[at : at+g.out.W*Lanes])
		}
	}
}
