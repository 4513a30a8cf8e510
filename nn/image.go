package nn

import (
	"math"

	"optimus/compute"
	"optimus/compute/optim"
)

// Pictures adds a float input [c,h,w] that is augmented in training: shifted by
// up to pad pixels either way and, with mirror, mirrored half the time.
func (n *Net) Pictures(name string, c, h, w, pad int, mirror bool) *Value {
	n.want(pad >= 0, "input %q: pad %d is negative", name, pad)
	in := n.input(compute.Input{Name: name, Shape: []int{c, h, w}})
	v := n.value(name, false, c, h, w)
	n.emit(&compute.Crop{In: in, Y: v.buf, C: c, H: h, W: w, Pad: pad, Mirror: mirror, Layer: n.layer()}, v)
	return v
}

// Conv configures a two-dimensional convolution.
type Conv struct {
	Filters, Kernel int
	Stride          int // 0 means 1
	Pad             int
	NoBias          bool // for a batch norm behind it, which has a bias of its own
	Init            optim.Init
}

// Conv2D convolves x [C,H,W]: [filters,H',W'], H' = (H+2·Pad-Kernel)/Stride + 1.
// Blocks: W [filters,C,kernel,kernel], b [filters].
func (n *Net) Conv2D(name string, x *Value, c Conv) *Value {
	if c.Stride == 0 {
		c.Stride = 1
	}
	if !n.picture(name, x, c.Kernel-2*c.Pad, c.Stride) || !n.want(c.Kernel > 0 && c.Filters > 0 && c.Pad >= 0, "layer %q: %+v; sizes must be positive", name, c) {
		return x
	}
	in, h, w := x.Shape[0], x.Shape[1], x.Shape[2]
	filter := n.param(optim.Param{Name: name + ".weight", Shape: []int{c.Filters, in, c.Kernel, c.Kernel}, Init: c.Init})
	bias := compute.None
	if !c.NoBias {
		bias = n.bias(name, c.Filters)
	}
	oh, ow := (h+2*c.Pad-c.Kernel)/c.Stride+1, (w+2*c.Pad-c.Kernel)/c.Stride+1
	y, io := n.unary(name, x, true, c.Filters, oh, ow)
	n.emit(&compute.Conv2D{IO: io, Filter: filter, B: bias, C: in, H: h, W: w, O: c.Filters, K: c.Kernel,
		Stride: c.Stride, Pad: c.Pad, OutHeight: oh, OutWidth: ow}, x, compute.InputGrad, compute.ParamGrad)
	return y
}

// BatchNorm normalises each channel of x [C,H,W] (or [C]) over the batch, then
// scales and shifts it. Blocks: γ, β; auxiliary arrays: running mean, variance.
func (n *Net) BatchNorm(name string, x *Value) *Value {
	c := x.Shape[0]
	one := optim.Init{Kind: optim.Constant, Scale: 1}
	op := &compute.BatchNorm{
		Gamma: n.param(optim.Param{Name: name + ".gamma", Shape: []int{c}, Init: one, NoDecay: true}),
		Beta:  n.param(optim.Param{Name: name + ".beta", Shape: []int{c}, NoDecay: true}),
		Mean:  n.aux(optim.Param{Name: name + ".mean", Shape: []int{c}}),
		Var:   n.aux(optim.Param{Name: name + ".var", Shape: []int{c}, Init: one}),
		C:     c, Area: x.Size() / c, Eps: 1e-5,
	}
	y, io := n.unary(name, x, true, x.Shape...)
	op.IO = io
	n.emit(op, x, compute.ParamGrad, compute.InputGrad)
	return y
}

// MaxPool is the maximum over k×k windows of x [C,H,W], stride apart.
func (n *Net) MaxPool(x *Value, k, stride int) *Value { return n.pool(x, k, stride, false) }

// AvgPool is the mean over k×k windows of x [C,H,W], stride apart.
func (n *Net) AvgPool(x *Value, k, stride int) *Value { return n.pool(x, k, stride, true) }

// GlobalAvgPool is the mean over all pixels of x [C,S,S]: [C,1,1].
func (n *Net) GlobalAvgPool(x *Value) *Value {
	if !n.want(len(x.Shape) == 3 && x.Shape[1] == x.Shape[2], "global pool of %q: shape %v is not [C,S,S]", x.name, x.Shape) {
		return x
	}
	return n.pool(x, x.Shape[1], 1, true)
}

func (n *Net) pool(x *Value, k, stride int, avg bool) *Value {
	name := x.name + ".pool"
	if !n.picture(name, x, k, stride) || !n.want(k > 0, "layer %q: window %d", name, k) {
		return x
	}
	c, h, w := x.Shape[0], x.Shape[1], x.Shape[2]
	oh, ow := (h-k)/stride+1, (w-k)/stride+1
	y, io := n.unary(name, x, false, c, oh, ow)
	n.emit(&compute.Pool{IO: io, Avg: avg, C: c, H: h, W: w, K: k, Stride: stride, OutHeight: oh, OutWidth: ow}, x, compute.InputGrad)
	return y
}

// picture checks that x is [C,H,W] and that a window of k fits.
func (n *Net) picture(name string, x *Value, k, stride int) bool {
	return n.want(len(x.Shape) == 3 && stride > 0 && k <= x.Shape[1] && k <= x.Shape[2],
		"layer %q: a window of %d, stride %d, does not fit shape %v, which must be [C,H,W]", name, k, stride, x.Shape)
}

// He is the initialisation for layers before a ReLU: normal with standard
// deviation √(2/fan-in) (He et al., 2015, equation 10).
func He(fanIn int) optim.Init {
	return optim.Init{Kind: optim.Normal, Scale: math.Sqrt(2 / float64(fanIn))}
}
