package conv

// A strided 1×1 convolution takes single pixels out of the picture. They are
// copied together first: the loops over output channels then read them side by
// side, from half as many cache sets per stride.

// thins reports whether the convolution is of that kind.
func (c *Conv) thins() bool {
	s := c.shape
	return s.KH == 1 && s.KW == 1 && s.PadH == 0 && s.PadW == 0 && s.StrideH*s.StrideW > 1 && !c.x.Plain && c.small == 0
}

// thin plans the convolution of the pixels that are taken.
func (c *Conv) thin() error {
	s := c.shape
	s.H, s.W, s.StrideH, s.StrideW = c.y.H, c.y.W, 1, 1
	var err error
	if c.dense == nil {
		c.dense, err = New(s, Config{Y: c.y.Halo, Blocked: true, Level: c.level})
	} else {
		err = c.dense.Replan(s.H)
	}
	if err == nil {
		c.forward, c.backward = c.dense.forward, c.dense.backward
	}
	return err
}

// buffer returns n elements with anything in them, to be given back to c.scratch.
func (c *Conv) buffer(n int) *[]float32 {
	if b, ok := c.scratch.Get().(*[]float32); ok && cap(*b) >= n {
		*b = (*b)[:n]
		return b
	}
	b := make([]float32, n)
	return &b
}

// thinned calls do with as many samples of [lo,hi) at a time as stay near, and a
// buffer for their pixels.
func (c *Conv) thinned(lo, hi int, do func(pixels Samples, lo, hi int)) {
	each := c.dense.x.Size()
	many := max(1, nearWeights/(each*size))
	b := c.buffer(many * each)
	for ; lo < hi; lo += many {
		do(Samples{*b, each}, lo, min(lo+many, hi))
	}
	c.scratch.Put(b)
}

// take copies the pixels of a sample.
func (c *Conv) take(dst, x []float32) {
	s, to := c.shape, &c.dense.x
	for b := range c.x.planes() {
		for h := range to.H {
			takeRow(dst[b*to.plane()+h*to.row():][:to.row()], x[b*c.x.plane()+c.x.at(h*s.StrideH, 0):], s.StrideW*Lanes)
		}
	}
}

// takeRow fills dst with pixels that lie step elements apart.
func takeRow(dst, x []float32, step int) {
	for i, at := 0, 0; i < len(dst); i, at = i+Lanes, at+step {
		*(*[Lanes]float32)(dst[i:]) = *(*[Lanes]float32)(x[at:])
	}
}

// put writes, or adds, the pixels of a sample to dx; those between become zero.
func (c *Conv) put(dx, src []float32, add bool) {
	s, from := c.shape, &c.dense.dx
	for b := range c.dx.planes() {
		for h := range c.dx.H {
			row := dx[b*c.dx.plane()+c.dx.at(h, 0):][:c.dx.W*Lanes]
			if !add {
				clear(row)
			}
			if h%s.StrideH != 0 {
				continue
			}
			pixels := src[b*from.plane()+h/s.StrideH*from.row():][:from.row()]
			for i, at := 0, 0; i < len(pixels); i, at = i+Lanes, at+s.StrideW*Lanes {
				to, p := (*[Lanes]float32)(row[at:]), (*[Lanes]float32)(pixels[i:])
				if !add {
					*to = *p
					continue
				}
				for k, v := range p {
					to[k] += v
				}
			}
		}
	}
}
