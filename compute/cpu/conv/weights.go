package conv

// ForwardSize is the number of elements of the weights packed for Forward.
func (c *Conv) ForwardSize() int {
	return c.parts * c.forward.passes[0].wRows * c.partO * Lanes
}

// BackwardSize is the number of elements of the weights packed for BackwardData.
func (c *Conv) BackwardSize() int {
	n := 0
	for i := range c.backward.passes {
		n += c.backward.passes[i].wRows * c.partC * Lanes
	}
	return c.parts * n
}

// GradientSize is the number of elements of a packed gradient.
func (c *Conv) GradientSize() int {
	return c.parts * c.gradient.units * c.gradient.rows * c.partO * Lanes
}

// filter is where the filter of output channel o for input channel i, both
// counted over all groups, begins in [O][C/Groups][KH][KW].
func (c *Conv) filter(o, i int) (at int, ok bool) {
	s := c.shape
	if o >= s.O || i >= s.C || o/(s.O/s.Groups) != i/(s.C/s.Groups) {
		return 0, false
	}
	cg := s.C / s.Groups
	return (o*cg + i%cg) * s.KH * s.KW, true
}

// PackForward writes the weights [O][C/Groups][KH][KW] in the order in which
// Forward reads them.
func (c *Conv) PackForward(dst, w []float32) {
	c.want("PackForward", "dst", len(dst), c.ForwardSize())
	c.want("PackForward", "w", len(w), c.shape.Weights())
	p := &c.forward.passes[0]
	c.eachForward(c.forward.outputs, c.forward.units, p.wRows, func(at, from int) {
		if from < 0 {
			dst[at] = 0
		} else {
			dst[at] = w[from]
		}
	})
}

// UnpackGradient adds the gradient to dw [O][C/Groups][KH][KW].
func (c *Conv) UnpackGradient(dw, src []float32) {
	c.want("UnpackGradient", "dw", len(dw), c.shape.Weights())
	c.want("UnpackGradient", "src", len(src), c.GradientSize())
	g := &c.gradient
	c.eachForward(g.outputs, g.units, g.units*g.rows, func(at, to int) {
		if to >= 0 {
			dw[to] += src[at]
		}
	})
}

// eachForward visits the order of the forward weights and of the gradient: for every part
// and span of outputs [unit][KH][KW][16][16·n], or, if x is plain, [unit][KH][KW][16·n].
func (c *Conv) eachForward(outputs []span, units, rows int, visit func(packed, plain int)) {
	s := c.shape
	k := s.KH * s.KW
	lanes := c.x.pixel()
	for part := range c.parts {
		for _, o := range outputs {
			base := (part*c.partO + o.first) * rows * Lanes
			for u := range units {
				for i := range lanes {
					for q := range o.n * Lanes {
						from, ok := c.filter((part*c.partO+o.first)*Lanes+q, (part*c.partC+u)*lanes+i)
						for t := range k {
							at := base + (((u*k+t)*lanes+i)*o.n)*Lanes + q
							if ok {
								visit(at, from+t)
							} else {
								visit(at, -1)
							}
						}
					}
				}
			}
		}
	}
}

// PackBackward writes the weights [O][C/Groups][KH][KW] in the order in which
// BackwardData reads them.
func (c *Conv) PackBackward(dst, w []float32) {
	c.want("PackBackward", "dst", len(dst), c.BackwardSize())
	c.want("PackBackward", "w", len(w), c.shape.Weights())
	s := c.shape
	each := len(dst) / c.parts
	for part := range c.parts {
		for pi := range c.backward.passes {
			p := &c.backward.passes[pi]
			a, b := pi/min(s.StrideW, c.backward.out.W), pi%min(s.StrideW, c.backward.out.W)
			hs, ws := phasePlaces(a, s.KH, s.StrideH, s.PadH), phasePlaces(b, s.KW, s.StrideW, s.PadW)
			for _, o := range c.backward.outputs {
				base := part*each + p.w + o.first*Lanes*p.wRows
				for u := range c.partO {
					for hi, kh := range hs {
						for wi, kw := range ws {
							for k := range Lanes {
								for q := range o.n * Lanes {
									v := float32(0)
									if from, ok := c.filter((part*c.partO+u)*Lanes+k, (part*c.partC+o.first)*Lanes+q); ok {
										v = w[from+kh*s.KW+kw]
									}
									dst[base+(p.field.weight(u, hi, wi)+k)*o.n*Lanes+q] = v
								}
							}
						}
					}
				}
			}
		}
	}
}
