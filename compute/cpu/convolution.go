package cpu

import (
	"optimus/compute"
	"optimus/compute/cpu/conv"
	"optimus/compute/cpu/norm"
	"optimus/compute/cpu/plane"
)

// conv2D runs a planned convolution (package conv). Weights are packed once after
// they have changed.
type conv2D struct {
	e             *executable
	op            *compute.Conv2D
	x, dx, y, dy  image
	plan          *conv.Conv // of the batch at hand: a time axis has many lengths
	w, dw, b, db  []float32
	ahead, back   packed
	grad          []float32 // packed
	bias          []float32 // b, filled up to whole blocks
	loaded        bool      // the copy of dy, if there is one, is that of this step
	fwd, bwd, par func(task, thread int)
	pack, empty   func(task, thread int)
	sum           []norm.Moments // of the bias, by blocks of channels
	sums          func(task, thread int)
}

// packed are weights in the order of the plan for some rows of the input.
type packed struct {
	w             []float32
	rows, version int
}

func newConv2D(e *executable, op *compute.Conv2D) (kernel, error) {
	k := &conv2D{e: e, op: op}
	k.w, k.dw = e.block(op.Filter)
	k.b, k.db = e.block(op.B)
	x, dx, y, dy := e.port(op.X), e.sink(op, op.DX), e.port(op.Y), e.port(op.DY)
	var cfg conv.Config
	if x.pic != nil {
		cfg.X = conv.Halo{H: x.pic.HaloH, W: x.pic.HaloW}
	}
	if y.pic != nil {
		cfg.Y = conv.Halo{H: y.pic.HaloH, W: y.pic.HaloW}
	}
	plan, err := conv.New(shapeOf(op, op.In.H), cfg)
	if err != nil {
		return nil, err
	}
	k.plan = plan
	k.x, k.dx = newImage(e, x, plan.X()), newImage(e, dx, plan.DX())
	k.y, k.dy = newImage(e, y, plan.Y()), newImage(e, dy, plan.Y())
	k.ahead.w, k.grad = make([]float32, plan.ForwardSize()), make([]float32, plan.GradientSize())
	if dx.data != nil {
		k.back.w = make([]float32, plan.BackwardSize())
	}
	if k.b != nil {
		k.bias = make([]float32, plane.Blocks(op.Out.C)*plane.Lanes)
		k.sum = make([]norm.Moments, plane.Blocks(op.Out.C))
	}
	k.fwd, k.bwd, k.par, k.sums = k.samples, k.samplesGrad, k.tiles, k.biasGrad
	k.pack, k.empty = k.packWeights, k.clearGrad
	return k, nil
}

func (k *conv2D) forward() {
	rows := frame(k.op.In, k.x.port).H
	if err := k.plan.Replan(rows); err != nil {
		panic(err) // Compile planned the longest; the time axis has windows for no shorter ones
	}
	k.x.layout, k.dx.layout, k.y.layout, k.dy.layout = k.plan.X(), k.plan.DX(), k.plan.Y(), k.plan.Y()
	k.loaded = false
	k.e.pool.run(2, k.pack)
	copy(k.bias, k.b)
	k.e.pool.run(k.e.shares(k.e.n), k.fwd)
}

// stale reports whether weights must be packed for so many rows, and notes that they are.
func (p *packed) stale(rows, version int) bool {
	if p.rows == rows && p.version == version {
		return false
	}
	p.rows, p.version = rows, version
	return true
}

// packWeights brings the weights into both orders, in training: one task for each.
func (k *conv2D) packWeights(task, _ int) {
	rows, version := k.plan.Shape().H, k.e.versions[k.op.Filter]
	switch {
	case task == 0 && k.ahead.stale(rows, version):
		k.plan.PackForward(k.ahead.w, k.w)
	case task == 1 && k.e.train && k.back.w != nil && k.back.stale(rows, version):
		k.plan.PackBackward(k.back.w[:k.plan.BackwardSize()], k.w)
	}
}

func (k *conv2D) samples(task, thread int) {
	lo, hi := k.e.share(task, k.e.n)
	for i := lo; i < hi; i++ {
		k.x.load(i, k.e.scratch[thread])
		k.y.begin(i)
	}
	k.plan.Forward(k.y.samples(), k.x.samples(), k.ahead.w, k.bias, lo, hi)
	for i := lo; i < hi; i++ {
		k.y.store(i, k.e.scratch[thread])
	}
}

func (k *conv2D) inputGrad() {
	k.e.pool.run(k.e.shares(k.e.n), k.bwd)
	k.loaded = true
}

func (k *conv2D) samplesGrad(task, thread int) {
	lo, hi := k.e.share(task, k.e.n)
	for i := lo; i < hi; i++ {
		k.dy.load(i, k.e.scratch[thread])
		k.dx.begin(i)
	}
	k.plan.BackwardData(k.dx.samples(), k.dy.samples(), k.back.w[:k.plan.BackwardSize()], k.dx.add && k.dx.shadow == nil, lo, hi)
	for i := lo; i < hi; i++ {
		k.dx.store(i, k.e.scratch[thread])
	}
}

func (k *conv2D) paramGrad() {
	for i := range k.e.n {
		if !k.loaded {
			k.dy.load(i, k.e.scratch[0])
		}
	}
	k.e.pool.run(k.e.shares(len(k.grad)), k.empty)
	k.e.pool.run(k.e.shares(k.plan.Tasks()), k.par)
	if k.db != nil {
		k.e.pool.run(len(k.sum), k.sums)
	}
}

func (k *conv2D) clearGrad(task, _ int) {
	lo, hi := k.e.share(task, len(k.grad))
	clear(k.grad[lo:hi])
}

func (k *conv2D) tiles(task, _ int) {
	lo, hi := k.e.share(task, k.plan.Tasks())
	k.plan.BackwardWeights(k.grad, k.x.samples(), k.dy.samples(), k.e.n, lo, hi)
	k.plan.UnpackTasks(k.dw, k.grad, lo, hi)
}

// biasGrad adds the gradients of a block of channels up, in float64.
func (k *conv2D) biasGrad(b, _ int) {
	lo, hi := b*plane.Lanes, min((b+1)*plane.Lanes, k.op.Out.C)
	if k.dy.pic == nil {
		out := frame(k.op.Out, k.y.port)
		area := out.H * out.W
		for i := range k.e.n {
			for o := lo; o < hi; o++ {
				k.db[o] += float32(sum(k.dy.at(i)[o*area : (o+1)*area]))
			}
		}
		return
	}
	m := &k.sum[b]
	m.Start(nil) // plain sums
	for i := range k.e.n {
		m.Plane(k.dy.plane(i, b))
	}
	for o := lo; o < hi; o++ {
		k.db[o] += float32(m.Sum[o-lo])
	}
}

// image is a buffer as a convolution reads and writes it: as it is, or where it is
// held otherwise, a copy.
type image struct {
	port
	halo   conv.Halo // of the buffer
	layout conv.Layout
	shadow []float32
}

func newImage(e *executable, p port, l conv.Layout) image {
	m := image{port: p, layout: l}
	if p.data == nil {
		return m
	}
	if p.pic != nil {
		m.halo = conv.Halo{H: p.pic.HaloH, W: p.pic.HaloW}
	}
	if p.pic == nil || l.Plain || m.halo != l.Halo {
		m.shadow = make([]float32, e.capacity*l.Size())
		e.reserve(l.C * l.H * l.W)
	}
	return m
}

func (m *image) samples() conv.Samples {
	if m.shadow != nil {
		return conv.Samples{Data: m.shadow, Stride: m.layout.Size()}
	}
	return conv.Samples{Data: m.data, Stride: m.len()}
}

// begin prepares example i for a writer.
func (m *image) begin(i int) {
	if m.shadow == nil {
		for b := range plane.Blocks(m.pic.channels) {
			m.target(i, b, false)
		}
	}
}

func (m *image) copy(i int) []float32 {
	n := m.layout.Size()
	return m.shadow[i*n : (i+1)*n]
}

// load brings example i to its copy.
func (m *image) load(i int, scratch []float32) {
	switch {
	case m.shadow == nil:
	case m.pic == nil:
		m.layout.Put(m.copy(i), m.at(i))
	default:
		rows := scratch[:m.layout.C*m.layout.H*m.layout.W]
		m.toRows(i, rows)
		m.layout.Put(m.copy(i), rows)
	}
}

// store takes the copy of example i back to rows.
func (m *image) store(i int, scratch []float32) {
	switch {
	case m.shadow == nil:
	case m.add:
		rows := scratch[:m.layout.C*m.layout.H*m.layout.W]
		m.layout.Get(rows, m.copy(i))
		add(m.at(i), rows)
	default:
		m.layout.Get(m.at(i), m.copy(i))
	}
}
