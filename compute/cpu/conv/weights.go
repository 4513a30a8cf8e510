package conv

// packing is an order of the filters. For each part and span of outputs it is
//
//	[unit][place][value][lane]
//
// where place is a place of the filter, value an input of the kernels' and lane,
// of 16 for each block of the span, an output. Backward-data has one for each
// pass, and its inputs are the output channels of the convolution.
type packing struct {
	outputs  []span
	units    int
	values   int
	places   []int // of the filter, row by row
	at, part int   // where it begins; elements from part to part
	backward bool
}

func (p *packing) rows() int { return p.units * len(p.places) * p.values }

// packForward is the order of the weights that Forward reads and, for other
// spans, of the gradient.
func (c *Conv) packForward(outputs []span) packing {
	p := packing{outputs: outputs, units: c.partC, values: c.values()}
	if c.x.Plain {
		p.units, p.values = c.shape.C, 1
	}
	m := &c.memory
	from := len(m.ints)
	for place := range c.shape.KH * c.shape.KW {
		m.ints = append(m.ints, place)
	}
	p.places = m.ints[from:len(m.ints):len(m.ints)]
	p.part = p.rows() * c.partO * Lanes
	return p
}

// packBackward is the order of the weights that BackwardData reads.
func (c *Conv) packBackward(outputs []span) []packing {
	s, m := c.shape, &c.memory
	ps := c.backwardOrder[:0]
	at := 0
	for a := range min(s.StrideH, s.H) {
		for b := range min(s.StrideW, s.W) {
			p := packing{outputs: outputs, units: c.partO, values: c.values(), at: at, backward: true}
			from := len(m.ints)
			for i := firstPlace(a, s.StrideH, s.PadH); i < s.KH; i += s.StrideH {
				for j := firstPlace(b, s.StrideW, s.PadW); j < s.KW; j += s.StrideW {
					m.ints = append(m.ints, i*s.KW+j)
				}
			}
			p.places = m.ints[from:len(m.ints):len(m.ints)]
			at += p.rows() * c.partC * Lanes
			ps = append(ps, p)
		}
	}
	for i := range ps {
		ps[i].part = at
	}
	return ps
}

// ForwardSize is the number of elements of the weights packed for Forward.
func (c *Conv) ForwardSize() int { return c.parts * c.forwardOrder.part }

// BackwardSize is the number of elements of the weights packed for BackwardData.
func (c *Conv) BackwardSize() int { return c.parts * c.backwardOrder[0].part }

// GradientSize is the number of elements of a packed gradient.
func (c *Conv) GradientSize() int { return c.parts * c.gradientOrder.part }

// PackForward writes the filters w [O][C/Groups][KH][KW] in the order in which
// Forward reads them.
func (c *Conv) PackForward(dst, w []float32) {
	c.want("PackForward", "dst", len(dst), c.ForwardSize())
	c.want("PackForward", "w", len(w), c.shape.Weights())
	if len(dst) != len(w) {
		clear(dst)
	}
	c.pack(&c.forwardOrder, dst, w)
}

// PackBackward writes the filters w [O][C/Groups][KH][KW] in the order in which
// BackwardData reads them.
func (c *Conv) PackBackward(dst, w []float32) {
	c.want("PackBackward", "dst", len(dst), c.BackwardSize())
	c.want("PackBackward", "w", len(w), c.shape.Weights())
	if len(dst) != len(w) {
		clear(dst)
	}
	for i := range c.backwardOrder {
		c.pack(&c.backwardOrder[i], dst, w)
	}
}

// UnpackGradient adds the packed gradient src to dw [O][C/Groups][KH][KW].
func (c *Conv) UnpackGradient(dw, src []float32) { c.UnpackTasks(dw, src, 0, c.Tasks()) }

// UnpackTasks is UnpackGradient for what tasks [lo,hi) of BackwardWeights have written.
func (c *Conv) UnpackTasks(dw, src []float32, lo, hi int) {
	const op = "UnpackTasks"
	c.want(op, "dw", len(dw), c.shape.Weights())
	c.want(op, "src", len(src), c.GradientSize())
	c.wantTasks(op, lo, hi)
	p, area, each := &c.gradientOrder, c.shape.KH*c.shape.KW, c.gradient.count()
	for t := lo; t < hi; t++ {
		outputs, unit, _ := c.gradient.task(t % each)
		c.unitRuns(p, t/each, outputs, unit, func(r run) {
			filters := dw[r.filter : r.filter+r.n*area]
			for t, place := range p.places {
				at := r.at + t*r.place
				for f := place; f < len(filters); f += area {
					filters[f] += src[at]
					at += r.channel
				}
			}
		})
	}
}

func (c *Conv) pack(p *packing, dst, w []float32) {
	area := c.shape.KH * c.shape.KW
	c.runs(p, func(r run) {
		filters := w[r.filter : r.filter+r.n*area]
		for t, place := range p.places {
			at := r.at + t*r.place
			for f := place; f < len(filters); f += area {
				dst[at] = filters[f]
				at += r.channel
			}
		}
	})
}

// run is n filters of one output channel, for input channels side by side.
type run struct {
	filter, n      int // where the first begins in [O][C/Groups][KH][KW]
	at             int // where its first place lies in the packed order
	channel, place int // elements from filter to filter and from place to place
}

// runs visits all filters, those that lie near in the packed order one after the
// other.
func (c *Conv) runs(p *packing, visit func(r run)) {
	for part := range c.parts {
		for _, s := range p.outputs {
			for u := range p.units {
				c.unitRuns(p, part, s, u, visit)
			}
		}
	}
}

// unitRuns visits the filters of a span of outputs for one unit.
func (c *Conv) unitRuns(p *packing, part int, s span, u int, visit func(r run)) {
	lanes := s.n * Lanes
	r := run{at: p.at + part*p.part + s.first*p.rows()*Lanes + u*len(p.places)*p.values*lanes, place: p.values * lanes}
	switch {
	case c.small > 0:
		c.smallRuns(p, r, part, visit)
	case p.backward:
		r.channel = 1
		for k := range p.values {
			c.visit(r, (part*c.partO+u)*Lanes+k, (part*c.partC+s.first)*Lanes, lanes, visit)
			r.at += lanes
		}
	default:
		r.channel = lanes
		for q := range lanes {
			c.visit(r, (part*c.partO+s.first)*Lanes+q, (part*c.partC+u)*p.values, p.values, visit)
			r.at++
		}
	}
}

// smallRuns visits the filters of a block of small groups: output lane q takes the
// values q/s·s + k of its group.
func (c *Conv) smallRuns(p *packing, r run, block int, visit func(r run)) {
	at := r.at
	for q := range Lanes {
		group := q &^ (c.small - 1)
		r.at, r.channel = at+q, Lanes
		if p.backward { // the lanes are inputs, the value is output q
			r.at, r.channel = at+(q-group)*Lanes+group, 1
		}
		c.visit(r, block*Lanes+q, block*Lanes+group, c.small, visit)
	}
}

// visit visits those filters of output channel o for input channels [i,i+n) that
// there are; r stands at channel i.
func (c *Conv) visit(r run, o, i, n int, visit func(r run)) {
	s := &c.shape
	if o >= s.O {
		return
	}
	each := s.C
	first := 0
	if s.Groups > 1 {
		each /= s.Groups
		first = o / (s.O / s.Groups) * each
	}
	from, to := max(i, first), min(i+n, first+each)
	if from >= to {
		return
	}
	r.filter, r.n = (o*each+from-first)*s.KH*s.KW, to-from
	r.at += (from - i) * r.channel
	visit(r)
}
