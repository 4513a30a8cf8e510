package cpu

import "optimus/compute/cpu/sgemm"

// recurrentTile is how many examples a task takes through time together.
const recurrentTile = 16

// stretch is the examples of a task, on their way through time. What a recurrent
// kernel keeps of them lies together, step by step in the order of the work: a
// step's rows are one matrix, and so are those of all steps.
type stretch struct{ lo, n, steps int }

func (e *executable) stretch(task, steps int) stretch {
	lo, hi := span(task, recurrentTile, e.n)
	return stretch{lo, hi - lo, steps}
}

// at returns the rows of step s, width values each, of an array of all steps.
func (v stretch) at(data []float32, width, s int) []float32 {
	from := (v.lo*v.steps + s*v.n) * width
	return data[from : from+v.n*width]
}

// all returns the rows of all steps.
func (v stretch) all(data []float32, width int) []float32 {
	return data[v.lo*v.steps*width : (v.lo+v.n)*v.steps*width]
}

// states is the stretch in arrays that hold the state before each step, and that
// after the last.
func (v stretch) states() stretch {
	v.steps++
	return v
}

// product multiplies rows of in values with the weights of a layer: out values. The
// weights may lie in several blocks, each for some of the values.
type product struct {
	in, out int
	parts   []*part
}

// part is the weights W [rows,in] and the bias of values [at,at+rows) of a product. W
// may be some columns of a block whose rows have ld values.
type part struct {
	block        int
	at, rows, ld int
	w, dw, b, db []float32
	ahead, back  sgemm.Packed
	version      int // of the block, when it was packed
}

// add adds a block of weights and one of biases, which may be None.
func (p *product) add(e *executable, w, b, rows int) { p.columns(e, w, b, rows, 0, p.in) }

// columns adds the columns of a block of weights from one on; its rows have ld values.
func (p *product) columns(e *executable, w, b, rows, from, ld int) {
	t := &part{block: w, at: p.out, rows: rows, ld: ld, version: -1}
	value, grad := e.block(w)
	t.w, t.dw = value[from:], grad[from:]
	t.b, t.db = e.block(b)
	p.parts, p.out = append(p.parts, t), p.out+rows
}

// pack brings the weights into the order in which they are read, if they have changed.
func (p *product) pack(e *executable) {
	for _, t := range p.parts {
		if version := e.versions[t.block]; version != t.version {
			t.ahead.Pack(true, t.rows, p.in, t.w, t.ld)
			t.back.Pack(false, p.in, t.rows, t.w, t.ld)
			t.version = version
		}
	}
}

// multiply makes y = x·Wᵀ + b of rows of x, or adds to y.
func (p *product) multiply(y, x []float32, accumulate bool) {
	n := len(x) / p.in
	for _, t := range p.parts {
		sgemm.GemmPacked(false, n, x, p.in, &t.ahead, accumulate, y[t.at:], p.out)
		for i := 0; t.b != nil && i < n; i++ {
			add(y[i*p.out+t.at:][:t.rows], t.b)
		}
	}
}

// multiplyGrad makes dx = dy·W of rows of dy, or adds to dx.
func (p *product) multiplyGrad(dx, dy []float32, accumulate bool) {
	n := len(dx) / p.in
	for i, t := range p.parts {
		sgemm.GemmPacked(false, n, dy[t.at:], p.out, &t.back, accumulate || i > 0, dx, p.in)
	}
}

// share is the gradient of some of the rows of a part's weights, over the batch. dy
// holds what was multiplied in steps 0, 1, …, and x in steps from, from+1, … of so
// many steps more.
type share struct {
	*part
	in, out    int
	lo, hi     int
	dy, x      []float32
	from, more int
}

// shares divides the gradient of a product's weights.
func (p *product) shares(dy, x []float32, from, more int) (list []share) {
	for _, t := range p.parts {
		for i := range tiles(t.rows, denseTile) {
			lo, hi := span(i, denseTile, t.rows)
			list = append(list, share{t, p.in, p.out, lo, hi, dy, x, from, more})
		}
	}
	return list
}

// sum adds the share of a batch of so many time steps.
func (s *share) sum(e *executable, steps int) {
	for task := range tiles(e.n, recurrentTile) {
		v := e.stretch(task, steps)
		rows := v.n * steps
		dy := v.all(s.dy, s.out)[s.at+s.lo:]
		x := s.x[(v.lo*(steps+s.more)+v.n*s.from)*s.in:][:rows*s.in]
		sgemm.Gemm(true, false, s.hi-s.lo, s.in, rows, dy, s.out, x, s.in, true, s.dw[s.lo*s.ld:], s.ld)
		for i := 0; s.db != nil && i < rows; i++ {
			add(s.db[s.lo:s.hi], dy[i*s.out:][:s.hi-s.lo])
		}
	}
}
