package conv

import "fmt"

// Samples are pictures of one layout that lie Stride elements apart.
type Samples struct {
	Data   []float32
	Stride int
}

// Forward computes y = conv(x) + bias for samples [lo,hi). w are weights from
// PackForward; bias has O elements and then zeros up to a multiple of 16, or is nil.
// It panics if an array is too small.
func (c *Conv) Forward(y, x Samples, w, bias []float32, lo, hi int) {
	const op = "Forward"
	c.want(op, "w", len(w), c.ForwardSize())
	if bias != nil {
		c.want(op, "bias", len(bias), blocks(c.shape.O)*Lanes)
	}
	if c.dense != nil {
		c.samples(op, "x", x, lo, hi, c.x.Size())
		c.samples(op, "y", y, lo, hi, c.y.Size())
		c.thinned(lo, hi, func(pixels Samples, from, to int) {
			for i := range to - from {
				c.take(pixels.Data[i*pixels.Stride:], x.Data[(from+i)*x.Stride:])
			}
			c.dense.Forward(Samples{y.Data[from*y.Stride:], y.Stride}, pixels, w, bias, 0, to-from)
		})
		return
	}
	b := batch{
		y: c.samples(op, "y", y, lo, hi, c.y.Size()), x: c.samples(op, "x", x, lo, hi, c.x.Size()),
		n: hi - lo, yn: y.Stride, xn: x.Stride,
	}
	c.each(&c.forward, b, w, bias)
}

// BackwardData computes, or with add adds to, dx = convᵀ(dy) for samples [lo,hi).
// w are weights from PackBackward. It panics if an array is too small.
func (c *Conv) BackwardData(dx, dy Samples, w []float32, add bool, lo, hi int) {
	const op = "BackwardData"
	c.want(op, "w", len(w), c.BackwardSize())
	if c.dense != nil {
		c.samples(op, "dx", dx, lo, hi, c.dx.Size())
		c.samples(op, "dy", dy, lo, hi, c.y.Size())
		c.thinned(lo, hi, func(pixels Samples, from, to int) {
			c.dense.BackwardData(pixels, Samples{dy.Data[from*dy.Stride:], dy.Stride}, w, false, 0, to-from)
			for i := range to - from {
				c.put(dx.Data[(from+i)*dx.Stride:], pixels.Data[i*pixels.Stride:], add)
			}
		})
		return
	}
	b := batch{
		y: c.samples(op, "dx", dx, lo, hi, c.dx.Size()), x: c.samples(op, "dy", dy, lo, hi, c.y.Size()),
		n: hi - lo, yn: dx.Stride, xn: dy.Stride, add: add,
	}
	c.each(&c.backward, b, w, nil)
}

// each runs a gather part by part.
func (c *Conv) each(g *gather, whole batch, w, bias []float32) {
	if whole.n == 0 {
		return
	}
	outputs := g.outputs[len(g.outputs)-1]
	blocks := outputs.first + outputs.n
	for p := range c.parts {
		b := whole
		b.y, b.x = b.y[p*blocks*g.out.plane():], b.x[p*g.units*g.in.plane():]
		b.w = w[p*len(w)/c.parts:]
		if bias != nil {
			b.bias = bias[p*blocks*Lanes:]
		}
		g.run(b)
	}
}

// Tasks is how many parts BackwardWeights can be split into.
func (c *Conv) Tasks() int { return c.parts * c.gradient.count() }

// BackwardWeights adds the gradient of the first n samples to tasks [lo,hi) of dw,
// which is packed (UnpackTasks). Tasks write to different elements of dw, so that
// they may run at the same time. It panics if an array is too small.
func (c *Conv) BackwardWeights(dw []float32, x, dy Samples, n, lo, hi int) {
	const op = "BackwardWeights"
	c.want(op, "dw", len(dw), c.GradientSize())
	c.wantTasks(op, lo, hi)
	xs, dys := c.samples(op, "x", x, 0, n, c.x.Size()), c.samples(op, "dy", dy, 0, n, c.y.Size())
	if n == 0 {
		return
	}
	scratch := c.buffer(c.gradient.scratch())
	defer c.scratch.Put(scratch)
	each, tasks := len(dw)/c.parts, c.gradient.count()
	for p := range c.parts {
		from, to := max(lo-p*tasks, 0), min(hi-p*tasks, tasks)
		if from < to {
			c.gradient.run(dw[p*each:], xs[p*c.partC*c.x.plane():], dys[p*c.partO*c.y.plane():], n, x.Stride, dy.Stride, from, to, *scratch)
		}
	}
}

func (c *Conv) want(op, name string, got, want int) {
	if got != want {
		panic(fmt.Sprintf("conv: %s of %v: %s has %d elements, not %d", op, c.shape, name, got, want))
	}
}

func (c *Conv) wantTasks(op string, lo, hi int) {
	if lo < 0 || hi > c.Tasks() || lo > hi {
		panic(fmt.Sprintf("conv: %s of %v: tasks [%d,%d) of %d", op, c.shape, lo, hi, c.Tasks()))
	}
}

// samples returns the elements from the first of samples [lo,hi) to the end of the last.
func (c *Conv) samples(op, name string, s Samples, lo, hi, size int) []float32 {
	if lo < 0 || hi < lo || s.Stride < size || hi > lo && len(s.Data) < (hi-1)*s.Stride+size {
		panic(fmt.Sprintf("conv: %s of %v: samples [%d,%d) of %s of %d elements, %d apart, do not fit into %d elements", op, c.shape, lo, hi, name, size, s.Stride, len(s.Data)))
	}
	if lo == hi {
		return nil
	}
	return s.Data[lo*s.Stride : (hi-1)*s.Stride+size]
}
