package conv

import (
	"fmt"
	"sync"

	"optimus/internal/level"
)

// Config is what a plan may be told beside the shape. Its zero value is useful.
type Config struct {
	// X and Y are halos that the pictures have beyond what the convolution needs
	// itself, for other readers' sake.
	X, Y Halo
	// Level names the instructions (package level); empty is the process's own.
	Level string
}

// Conv is a planned convolution. It holds no data and is safe for concurrent use.
type Conv struct {
	shape             Shape
	x, dx, y          Layout
	parts             int // groups, or as many of them together as fill blocks, run one by one
	partC, partO      int // blocks of a part
	forward, backward gather
	gradient          outer
	dense             *Conv // what forward and backward-data do with the pixels that a strided 1×1 takes, or nil
	scratch           sync.Pool
}

// New plans a convolution.
func New(s Shape, cfg Config) (*Conv, error) {
	s, err := s.normal()
	if err != nil {
		return nil, err
	}
	name := cfg.Level
	if name == "" {
		name, err = level.Current()
	} else {
		err = level.Check(name)
	}
	if err != nil {
		return nil, fmt.Errorf("plan convolution %v: %w", s, err)
	}
	if cfg.X.H < 0 || cfg.X.W < 0 || cfg.Y.H < 0 || cfg.Y.W < 0 {
		return nil, fmt.Errorf("plan convolution %v: halos %v and %v must not be negative", s, cfg.X, cfg.Y)
	}
	c := &Conv{shape: s}
	c.divide()
	c.layouts(cfg)
	k := kernelsFor(name)
	c.planGradient(k)
	if c.thins() {
		return c, c.thin(name)
	}
	c.planForward(k)
	c.planBackward(k)
	return c, nil
}

// divide merges groups until a part's channels fill whole blocks.
func (c *Conv) divide() {
	s := c.shape
	merged := 1
	for merged < s.Groups && (s.Groups%merged != 0 || s.C/s.Groups*merged%Lanes != 0 || s.O/s.Groups*merged%Lanes != 0) {
		merged++
	}
	c.parts = s.Groups / merged
	c.partC, c.partO = blocks(s.C/c.parts), blocks(s.O/c.parts)
}

// layouts chooses where the pixels lie. Rows outside a picture are never read, so
// only columns need a halo.
func (c *Conv) layouts(cfg Config) {
	s := c.shape
	h, w := s.OutH(), s.OutW()
	before, after := 0, 0
	for phase := range min(s.StrideW, s.W) {
		for _, r := range phaseReach(phase, s.KW, s.StrideW, s.PadW, w) {
			before = max(before, -r.shift)
			after = max(after, r.of((s.W-phase-1)/s.StrideW)-(w-1))
		}
	}
	widen := func(h Halo, w int) Halo { return Halo{h.H, max(h.W, w)} }
	c.dx = Layout{C: s.C, H: s.H, W: s.W, Halo: widen(cfg.X, s.PadW)}
	c.x = c.dx
	c.x.Plain = s.Groups == 1 && s.C <= plainChannels
	c.y = Layout{C: s.O, H: h, W: w, Halo: widen(cfg.Y, max(before, after))}
}

// plainChannels is how many input channels are so few that blocks of 16 would be
// mostly zeros.
const plainChannels = 4

// X is the layout of the input, plain if it has at most 4 channels.
func (c *Conv) X() Layout { return c.x }

// DX is the layout of the input's gradient: that of X, but always blocked.
func (c *Conv) DX() Layout { return c.dx }

// Y is the layout of the output and of its gradient.
func (c *Conv) Y() Layout { return c.y }

// Shape returns the shape, with ones for its zero strides and groups.
func (c *Conv) Shape() Shape { return c.shape }

// flat reports whether the convolution takes every pixel by itself from pictures
// without halos: then how a picture is cut into rows does not matter.
func (c *Conv) flat() bool {
	s := c.shape
	return s.KH == 1 && s.KW == 1 && s.StrideH == 1 && s.StrideW == 1 && s.PadH == 0 && s.PadW == 0 &&
		c.x.Halo == Halo{} && c.y.Halo == Halo{}
}

// flatten joins rows of a flat picture up to 112 pixels: more tiles for each call, and
// no narrow ones.
func flatten(l Layout, flat bool) Layout {
	if !flat {
		return l
	}
	for n := l.H; n > 1; n-- {
		if l.H%n == 0 && n*l.W <= 112 {
			l.H, l.W = l.H/n, n*l.W
			break
		}
	}
	return l
}

// spans cuts n blocks of outputs into runs of at most most, each of 1, 2 or 4.
func spans(n, most int) []span {
	var out []span
	for first := 0; first < n; first += most {
		for most > n-first {
			most /= 2
		}
		out = append(out, span{first, most})
	}
	return out
}

// choose returns how many blocks of outputs and at most how many pixels a tile of a gather takes.
func (k *kernels) choose(blocks, columns int) (n, pixels int) {
	best := 0.0
	for i, widest := range k.widest {
		if widest == 0 || i > 0 && 1<<i > blocks {
			continue
		}
		cost := 0.0
		for _, w := range tiling(columns, widest) {
			// multiplications, at least as many as hide their latency, and what a tile costs besides
			cost += float64(max(w<<i, 8))*1.0 + 0.4*float64(w+1<<i)
		}
		cost /= float64(int(1) << i)
		if n == 0 || cost < best {
			n, pixels, best = 1<<i, widest, cost
		}
	}
	return n, pixels
}

func (c *Conv) planForward(k *kernels) {
	s := c.shape
	in, out := flatten(c.x, c.flat()), flatten(c.y, c.flat())
	n, widest := k.choose(c.partO, out.W)
	c.forward = gather{kernels: k, in: in, out: out, outputs: spans(c.partO, n), stride: 1}
	units := c.partC
	f := field{kin: Lanes}
	for i := range s.KH {
		f.rows = append(f.rows, reach{i - s.PadH, s.StrideH, s.H})
	}
	for j := range s.KW {
		f.cols = append(f.cols, reach{j - s.PadW, s.StrideW, s.W})
	}
	f.weight = func(unit, i, j int) int { return ((unit*s.KH+i)*s.KW + j) * Lanes }
	if c.flat() {
		f.rows, f.cols = []reach{{0, 1, in.H}}, []reach{{0, 1, in.W}}
	}
	p := pass{rows: out.H, cols: out.W, y: out.at(0, 0), yr: out.row(), yp: Lanes, xp: s.StrideW * in.pixel(), wRows: c.partC * s.KH * s.KW * Lanes}
	if c.x.Plain {
		units, f.kin, f.left = s.C, s.KW, -s.PadW
		f.cols = []reach{{0, s.StrideW, limit * limit}}
		f.weight = func(unit, i, _ int) int { return (unit*s.KH + i) * s.KW }
		p.wRows = s.C * s.KH * s.KW
	}
	p.field = f
	p.plan(in, units, widest)
	c.forward.units = units
	c.forward.passes = []pass{p}
	c.forward.tune()
}

// phaseReach is what the input pixels phase, phase+stride, … receive from: filter place k
// carries the gradient of output shift + n to the n-th of them.
func phaseReach(phase, k, stride, pad, out int) []reach {
	var rs []reach
	for _, i := range phasePlaces(phase, k, stride, pad) {
		rs = append(rs, reach{(phase + pad - i) / stride, 1, out})
	}
	return rs
}

// phasePlaces are the filter's places that touch the input pixels of a phase.
func phasePlaces(phase, k, stride, pad int) []int {
	var at []int
	for i := (phase + pad) % stride; i < k; i += stride {
		at = append(at, i)
	}
	return at
}

func (c *Conv) planBackward(k *kernels) {
	s := c.shape
	in, out := flatten(c.y, c.flat()), flatten(c.dx, c.flat())
	n, widest := k.choose(c.partC, (out.W+s.StrideW-1)/s.StrideW)
	c.backward = gather{kernels: k, in: in, out: out, outputs: spans(c.partC, n), stride: s.StrideH, units: c.partO}
	w := 0
	for a := range min(s.StrideH, out.H) {
		for b := range min(s.StrideW, out.W) {
			f := field{
				kin:  Lanes,
				rows: phaseReach(a, s.KH, s.StrideH, s.PadH, in.H), cols: phaseReach(b, s.KW, s.StrideW, s.PadW, in.W),
			}
			f.weight = func(unit, i, j int) int { return ((unit*len(f.rows)+i)*len(f.cols) + j) * Lanes }
			p := pass{
				rows: (out.H - a + s.StrideH - 1) / s.StrideH, cols: (out.W - b + s.StrideW - 1) / s.StrideW,
				y: out.at(a, b), yr: s.StrideH * out.row(), yp: s.StrideW * Lanes, xp: Lanes,
				w: w, wRows: c.partO * len(f.rows) * len(f.cols) * Lanes, field: f,
			}
			p.plan(in, c.partO, widest)
			c.backward.passes = append(c.backward.passes, p)
			w += p.wRows * c.partC * Lanes
		}
	}
	c.backward.tune()
}

// What the order of the loops is tuned to, in bytes. The second cache has 1 MiB
// (Zen 4) or 2 MiB (Sapphire Rapids).
const (
	nearInputs  = 256 << 10 // inputs that stay near while all weights pass over them,
	heavyInputs = 1 << 20   // or, where the weights are as large as the second cache, these
	nearWeights = 512 << 10 // weights, or their gradients, that stay in the second cache
	unitsTile   = 45        // units of which a tile's inputs stay in the first cache
)

// tune chooses the order of the loops.
func (g *gather) tune() {
	p := &g.passes[0] // of the phases none has more rows
	f := &p.field
	row := g.units * f.kin * p.cols * size // bytes of inputs for a row of outputs, of those that are used
	switch {
	case g.in.Plain:
		row = g.units * g.in.row() * size * f.rows[0].stride
	case len(f.rows)*len(f.cols) > 0:
		row *= min(f.rows[0].stride, len(f.rows)) * min(f.cols[0].stride, len(f.cols))
	}
	last := g.outputs[len(g.outputs)-1]
	weights := p.wRows * (last.first + last.n) * Lanes * size
	inputs := nearInputs
	if weights >= heavyInputs {
		inputs = heavyInputs
	}
	g.heavy = weights > nearWeights
	g.rowBlock = max(1, min(p.rows, inputs/row))
	g.near = 1
	if g.rowBlock == p.rows {
		g.near = max(1, inputs/(row*p.rows))
	}
	chunks := 1
	if g.units > unitsTile {
		chunks = (g.units + 31) / 32
	}
	g.chunk = (g.units + chunks - 1) / chunks
	for i := range g.passes {
		f := &g.passes[i].field
		g.sparse = g.sparse || len(f.rows)*len(f.cols) == 0
	}
}

func (c *Conv) planGradient(k *kernels) {
	s := c.shape
	x, dy := flatten(c.x, c.flat()), flatten(c.y, c.flat())
	g := outer{
		kernels: k, x: x, dy: dy, units: c.partC, outputs: spans(c.partO, k.blocks),
		stride: s.StrideH, xs: s.StrideW * x.pixel(), height: dy.H, width: dy.W, rows: s.KH * s.KW * Lanes,
	}
	inputs, places := Lanes, s.KW
	if x.Plain {
		g.units, g.rows, inputs, places = s.C, s.KH*s.KW, s.KW, 1
	}
	for i := range s.KH {
		for j := range places {
			r, q := reach{i - s.PadH, s.StrideH, x.H}, reach{j - s.PadW, s.StrideW, x.W}
			t := outerTap{}
			t.top, t.bottom = r.span(dy.H)
			t.left, t.right = q.span(dy.W)
			if x.Plain {
				t.left, t.right = 0, dy.W
			}
			for from := 0; from < inputs; from += t.tiles * t.inputs {
				t.x, t.row = x.at(r.shift, q.shift)+from, (i*places+j)*inputs+from
				t.tiles, t.inputs = max(1, (inputs-from)/k.inputs), min(k.inputs, inputs-from)
				g.taps = append(g.taps, t)
			}
		}
	}
	g.compact = c.thins()
	tile := g.rows * Lanes * g.outputs[0].n * size * len(g.outputs)
	g.near = max(1, min(g.units, nearWeights/tile))
	if g.compact {
		g.near = min(g.near, nearWeights/(chunkPixels*Lanes*size))
	}
	c.gradient = g
}
