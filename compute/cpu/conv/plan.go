package conv

// flat reports whether the convolution takes every pixel by itself from pictures
// without halos: then how a picture is cut into rows does not matter.
func (c *Conv) flat() bool {
	s := c.shape
	return s.KH == 1 && s.KW == 1 && s.StrideH == 1 && s.StrideW == 1 && s.PadH == 0 && s.PadW == 0 &&
		c.x.Halo == Halo{} && c.y.Halo == Halo{}
}

// flatten joins rows of a flat picture up to 112 pixels: more tiles for each call,
// and no narrow ones.
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

// span cuts n blocks of outputs into runs of at most most, each of 1, 2 or 4.
func (m *memory) span(n, most int) []span {
	from := len(m.spans)
	for first := 0; first < n; first += most {
		for most > n-first {
			most /= 2
		}
		m.spans = append(m.spans, span{first, most})
	}
	return m.spans[from:len(m.spans):len(m.spans)]
}

// choose returns of how many blocks of outputs and at most how many pixels the
// tiles of a row are.
func (c *Conv) choose(k *kernels, blocks, columns int) (n, pixels int) {
	if c.small > 0 {
		return 1, k.smallPixels
	}
	best := 0.0
	for i, widest := range k.widest {
		if widest == 0 || i > 0 && 1<<i > blocks {
			continue
		}
		cost := 0.0
		for _, w := range c.memory.tiling(columns, widest) {
			// Products, at least as many as hide their latency; reading inputs, which a
			// tile of 4 blocks does twice, and weights; the tile's own beginning and end.
			cost += float64(max(w<<i, 8)) + 0.4*float64(w*((1<<i+1)/2)) + 0.8*float64(int(1)<<i) + 4
		}
		cost /= float64(int(1) << i)
		if n == 0 || cost < best {
			n, pixels, best = 1<<i, widest, cost
		}
	}
	return n, pixels
}

func (c *Conv) gatherKernel(k *kernels) gatherKernel {
	if c.small > 0 {
		return k.gatherSmall
	}
	return k.gather
}

// values is how many inputs of a block each output takes.
func (c *Conv) values() int {
	if c.small > 0 {
		return c.small
	}
	return Lanes
}

func (c *Conv) planForward(k *kernels) gather {
	s := c.shape
	in, out := flatten(c.x, c.flat()), flatten(c.y, c.flat())
	n, widest := c.choose(k, c.partO, out.W)
	g := gather{
		kernel: c.gatherKernel(k), in: in, out: out, outputs: c.memory.span(c.partO, n), stride: 1, units: c.partC,
		memory: &c.memory, passes: c.forward.passes[:0],
	}
	f := field{rows: c.memory.filterReach(s.KH, s.StrideH, s.PadH, in.H), kin: c.values()}
	if in.Plain { // a row of the filter is one tap, whose values lie side by side
		g.units = s.C
		f.kin, f.left, f.cols = s.KW, -s.PadW, c.memory.filterReach(1, s.StrideW, 0, limit*limit)
	} else {
		f.cols = c.memory.filterReach(s.KW, s.StrideW, s.PadW, in.W)
	}
	g.add(pass{
		rows: out.H, cols: out.W, y: out.at(0, 0), yr: out.row(), yp: Lanes, xp: s.StrideW * in.pixel(), field: f,
	}, widest)
	g.tune()
	return g
}

func (c *Conv) planBackward(k *kernels) gather {
	s := c.shape
	in, out := flatten(c.y, c.flat()), flatten(c.dx, c.flat())
	n, widest := c.choose(k, c.partC, (out.W+s.StrideW-1)/s.StrideW)
	g := gather{
		kernel: c.gatherKernel(k), in: in, out: out, outputs: c.memory.span(c.partC, n), stride: s.StrideH, units: c.partO,
		memory: &c.memory, passes: c.backward.passes[:0],
	}
	for a := range min(s.StrideH, s.H) {
		for b := range min(s.StrideW, s.W) {
			g.add(pass{
				rows: (out.H - a + s.StrideH - 1) / s.StrideH, cols: (out.W - b + s.StrideW - 1) / s.StrideW,
				y: out.at(a, b), yr: s.StrideH * out.row(), yp: s.StrideW * Lanes, xp: Lanes,
				field: field{
					kin:  c.values(),
					rows: c.memory.phaseReach(a, s.KH, s.StrideH, s.PadH, in.H), cols: c.memory.phaseReach(b, s.KW, s.StrideW, s.PadW, in.W),
				},
			}, widest)
		}
	}
	g.tune()
	return g
}

// What the order of the loops is tuned to, in bytes. The second cache has 1 MiB
// (Zen 4) or 2 MiB (Sapphire Rapids).
const (
	nearInputs  = 128 << 10 // inputs that stay near while all weights pass over them, but
	mostInputs  = 1 << 20   // up to this, a quarter of what the weights are
	nearWeights = 512 << 10 // weights that stay in the second cache
	unitsTile   = 45        // units of which a tile's inputs stay in the first cache
	chunkUnits  = 32        // of more, so many are taken together
)

// gradientUnits is how many units backward-weights takes together: so often are
// their inputs read while they are near, and so seldom dy from further away.
const gradientUnits = 16

// tune chooses the order of the loops.
func (g *gather) tune() {
	p := &g.passes[0] // of the phases none has more rows
	f := &p.field
	row := g.units * f.kin * p.cols * size // bytes of inputs for a row of outputs, of those that are used
	switch {
	case g.in.Plain:
		row = g.units * g.in.row() * size * f.rows[0].stride
	case !f.empty():
		row *= min(f.rows[0].stride, len(f.rows)) * min(f.cols[0].stride, len(f.cols))
	}
	last := g.outputs[len(g.outputs)-1]
	weights := p.wRows * (last.first + last.n) * Lanes * size
	inputs := min(max(nearInputs, weights/4), mostInputs)
	g.heavy = weights > nearWeights
	g.rowBlock = max(1, min(p.rows, inputs/row))
	g.near = 1
	if g.rowBlock == p.rows {
		g.near = max(1, inputs/(row*p.rows))
	}
	chunks := 1
	if g.units > unitsTile {
		chunks = (g.units + chunkUnits - 1) / chunkUnits
	}
	g.chunk = (g.units + chunks - 1) / chunks
}

func (c *Conv) planGradient(k *kernels) outer {
	s := c.shape
	x, dy := flatten(c.x, c.flat()), flatten(c.y, c.flat())
	g := outer{
		kernel: k.outer, x: x, dy: dy, units: c.partC, outputs: c.memory.span(c.partO, k.blocks),
		stride: s.StrideH, xs: s.StrideW * x.pixel(), height: dy.H, width: dy.W,
		rows: s.KH * s.KW * c.values(), compact: c.thins(),
		memory: &c.memory, taps: c.gradient.taps[:0],
	}
	switch {
	case c.small > 0:
		g.kernel, g.group, g.outputs = k.outerSmall, c.small, c.memory.span(1, 1)
		g.rowTaps(s, c.small, k.smallPlaces[log2(c.small)])
	case x.Plain:
		g.units, g.rows = s.C, s.KH*s.KW
		g.rowTaps(s, 1, k.inputs)
	default:
		g.placeTaps(s, k.inputs)
	}
	g.near = min(g.units, gradientUnits)
	return g
}

// placeTaps lists the taps that take the 16 channels of a pixel, for every place of
// the filter, most channels at a time.
func (g *outer) placeTaps(s Shape, most int) {
	rows, cols := g.memory.filterReach(s.KH, s.StrideH, s.PadH, g.x.H), g.memory.filterReach(s.KW, s.StrideW, s.PadW, g.x.W)
	for i, r := range rows {
		for j, q := range cols {
			t := outerTap{x: g.x.at(r.shift, q.shift), row: (i*s.KW + j) * Lanes, tiles: Lanes / most, inputs: most}
			t.top, t.bottom = r.span(g.height)
			t.left, t.right = q.span(g.width)
			g.taps = append(g.taps, t)
		}
	}
}

// rowTaps lists the taps that take pixels side by side, for every row of the
// filter: most places at a time and the rest one by one, with rows of the gradient
// for each. They read the halo as well, which is zero.
func (g *outer) rowTaps(s Shape, rows, most int) {
	for i, r := range g.memory.filterReach(s.KH, s.StrideH, s.PadH, g.x.H) {
		t := outerTap{tiles: 1, right: g.width}
		t.top, t.bottom = r.span(g.height)
		for j := 0; j < s.KW; j += t.inputs {
			t.inputs = min(most, s.KW-j)
			if g.group > 0 && t.inputs < most {
				t.inputs = 1
			}
			t.x, t.row = g.x.at(r.shift, j-s.PadW), (i*s.KW+j)*rows
			g.taps = append(g.taps, t)
		}
	}
}
