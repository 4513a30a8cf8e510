package cpu

import (
	"optimus/compute"
	"optimus/compute/cpu/sgemm"
)

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

// product multiplies rows of in values with the weights of a layer: out values, or so
// many with those of another product behind them. The weights may lie in several blocks,
// each for some of the values.
type product struct {
	in, out int
	parts   []*part
}

// part is the weights W [rows,in] and the bias of values [at,at+rows) of a product. W
// may be a piece of a block whose rows have ld values.
type part struct {
	block        int
	at, rows, ld int
	w, dw, b, db []float32
	packed       sgemm.Packed
	direction    direction // in which it is packed
	version      int       // of the block, when it was packed
}

// direction is the order in which weights are read: ahead as Wᵀ, back as W.
type direction int

const (
	ahead direction = iota
	back
)

// add adds a block of weights and one of biases, which may be None.
func (p *product) add(e *executable, w, b, rows int) { p.piece(e, w, b, rows, 0, p.in) }

// piece adds rows of a block of weights from some element on; its rows have ld values.
func (p *product) piece(e *executable, w, b, rows, from, ld int) {
	t := &part{block: w, at: p.out, rows: rows, ld: ld, version: -1}
	value, grad := e.block(w)
	t.w, t.dw = value[from:], grad[from:]
	if b != compute.None {
		value, grad = e.block(b)
		row := from / ld
		t.b, t.db = value[row:row+rows], grad[row:row+rows]
	}
	p.parts, p.out = append(p.parts, t), p.out+rows
}

// pack brings the weights into the order of a direction, if they are not in it or have
// changed. Both share one memory: a training step changes the weights anyway.
func (p *product) pack(e *executable, d direction) {
	for _, t := range p.parts {
		version := e.versions[t.block]
		if version == t.version && d == t.direction {
			continue
		}
		if d == ahead {
			t.packed.Pack(true, t.rows, p.in, t.w, t.ld)
		} else {
			t.packed.Pack(false, p.in, t.rows, t.w, t.ld)
		}
		t.version, t.direction = version, d
	}
}

// multiply makes y = x·Wᵀ + b of rows of x, or adds to y; W is packed ahead.
func (p *product) multiply(y, x []float32, accumulate bool) {
	n := len(x) / p.in
	for _, t := range p.parts {
		sgemm.GemmPacked(false, n, x, p.in, &t.packed, accumulate, y[t.at:], p.out)
		for i := 0; t.b != nil && i < n; i++ {
			add(y[i*p.out+t.at:][:t.rows], t.b)
		}
	}
}

// multiplyGrad makes dx = dy·W of rows of dy, or adds to dx; W is packed back.
func (p *product) multiplyGrad(dx, dy []float32, accumulate bool) {
	n := len(dx) / p.in
	for i, t := range p.parts {
		sgemm.GemmPacked(false, n, dy[t.at:], p.out, &t.packed, accumulate || i > 0, dx, p.in)
	}
}

// steps are those from, from+1, … of an array that holds more steps than a batch has.
type steps struct {
	data       []float32
	from, more int
}

// rows returns the rows of a stretch, width values each.
func (x steps) rows(v stretch, width int) []float32 {
	return x.data[(v.lo*(v.steps+x.more)+v.n*x.from)*width:][:v.n*v.steps*width]
}

// share is the gradient of some of the rows of a part's weights, over the batch: the
// products of dy and x, time step by time step.
type share struct {
	*part
	in, out int
	lo, hi  int
	dy, x   steps
}

// shares divides the gradient of a product's weights.
func (p *product) shares(dy, x steps) (list []share) {
	for _, t := range p.parts {
		for i := range tiles(t.rows, denseTile) {
			lo, hi := span(i, denseTile, t.rows)
			list = append(list, share{t, p.in, p.out, lo, hi, dy, x})
		}
	}
	return list
}

// sum adds the share of a batch of so many time steps.
func (s *share) sum(e *executable, steps int) {
	for task := range tiles(e.n, recurrentTile) {
		v := e.stretch(task, steps)
		rows := v.n * steps
		dy, x := s.dy.rows(v, s.out)[s.at+s.lo:], s.x.rows(v, s.in)
		sgemm.Gemm(true, false, s.hi-s.lo, s.in, rows, dy, s.out, x, s.in, true, s.dw[s.lo*s.ld:], s.ld)
		for i := 0; s.db != nil && i < rows; i++ {
			add(s.db[s.lo:s.hi], dy[i*s.out:][:s.hi-s.lo])
		}
	}
}
