package nn

import (
	"math"

	"optimus/compute"
	"optimus/compute/optim"
)

// Pictures adds a float input [c,h,w] that is augmented in training: shifted by
// up to pad pixels either way and, with mirror, mirrored half the time.
func (n *Net) Pictures(name string, c, h, w, pad int, mirror bool) *Value {
	return n.Crops(name, compute.Image{C: c, H: h, W: w}, h, w, pad, mirror)
}

// Crops adds a float input of pictures of which pieces [C,h,w] are used: in
// training from a random place of the picture with a border of pad zeros, mirrored
// half the time with mirror; else from the middle.
func (n *Net) Crops(name string, from compute.Image, h, w, pad int, mirror bool) *Value {
	in := n.input(compute.Input{Name: name, Shape: []int{from.C, from.H, from.W}})
	v := n.value(name, false, 0, from.C, h, w)
	if n.want(pad >= 0 && h <= from.H && w <= from.W, "input %q: pieces of %d×%d of pictures of %d×%d with a border of %d; pieces are no larger than pictures, borders not negative", name, h, w, from.H, from.W, pad) {
		to := compute.Image{C: from.C, H: h, W: w}
		n.emit(&compute.Crop{In: in, Y: v.buf, From: from, To: to, Pad: pad, Mirror: mirror, Layer: n.layer()}, v)
	}
	return v
}

// Conv configures a two-dimensional convolution.
type Conv struct {
	Filters, Kernel int
	Stride          int // 0 means 1
	Pad             int
	// Window, if set, stands for Kernel, Stride and Pad where height and width
	// differ.
	Window compute.Window
	Groups int  // 0 means 1; divides both numbers of channels
	NoBias bool // for a batch norm behind it, which has a bias of its own
	Init   optim.Init
}

// Conv2D convolves x [C,H,W]: [filters,H',W'], H' = (H+2·Pad-Kernel)/Stride + 1.
// Blocks: W [filters,C/groups,kernel,kernel], b [filters].
func (n *Net) Conv2D(name string, x *Value, c Conv) *Value {
	w := square(c.Window, c.Kernel, c.Stride, c.Pad)
	c.Groups = max(c.Groups, 1)
	if !n.want(w.KH > 0 && w.KW > 0 && c.Filters > 0 && w.PadH >= 0 && w.PadW >= 0, "layer %q: %+v; sizes must be positive", name, c) || !n.picture(name, x, w) ||
		!n.want(x.Shape[0]%c.Groups == 0 && c.Filters%c.Groups == 0, "layer %q: %d groups do not divide %d channels and %d filters", name, c.Groups, x.Shape[0], c.Filters) {
		return x
	}
	in := n.image(x)
	filter := n.param(optim.Param{Name: name + ".weight", Shape: []int{c.Filters, in.C / c.Groups, w.KH, w.KW}, Init: c.Init})
	bias := compute.None
	if !c.NoBias {
		bias = n.bias(name, c.Filters)
	}
	y, io := n.slide(name, x, w, true, c.Filters, false)
	n.emit(&compute.Conv2D{IO: io, Filter: filter, B: bias, In: in, Out: n.image(y), Window: w, Groups: c.Groups}, x, compute.InputGrad, compute.ParamGrad)
	return y
}

// square returns w, or if it is not set that of a kernel as wide as high.
func square(w compute.Window, kernel, stride, pad int) compute.Window {
	if w == (compute.Window{}) {
		w = compute.Window{KH: kernel, KW: kernel, StrideH: stride, StrideW: stride, PadH: pad, PadW: pad}
	}
	w.StrideH, w.StrideW = max(w.StrideH, 1), max(w.StrideW, 1)
	return w
}

// image returns the geometry of x [C,H,W], or of [C,1,W] with a time axis.
func (n *Net) image(x *Value) compute.Image {
	m := compute.Image{C: x.Shape[0], H: x.Shape[1], W: x.Shape[2]}
	if x.axis != 0 {
		m.H = n.prog.Steps(x.axis)
	}
	return m
}

// slide makes the output of a layer that moves a window over x. With a time axis
// the output has one of its own, unless the window keeps the length.
func (n *Net) slide(name string, x *Value, w compute.Window, learned bool, channels int, full bool) (*Value, compute.IO) {
	in := n.image(x)
	h, wd := w.Over(in.H, in.W)
	axis := x.axis
	if full {
		h, wd = overhang(h, in.H, w.KH, w.StrideH, w.PadH), overhang(wd, in.W, w.KW, w.StrideW, w.PadW)
	}
	if axis != 0 {
		if of := (compute.TimeAxis{Of: axis, Window: w.KH, Stride: w.StrideH, Pad: w.PadH}); of.Length(in.H) != in.H || w.StrideH != 1 {
			of.Name, of.Max = name, of.Length(in.H)
			n.prog.Axes = append(n.prog.Axes, of)
			axis = compute.Axis(len(n.prog.Axes))
		}
		h = 1
	}
	y := n.value(name, learned || x.grad != compute.None, axis, channels, h, wd)
	x.reads++
	return y, compute.IO{X: x.buf, DX: x.grad, Y: y.buf, DY: y.grad}
}

// overhang returns how many windows there are if one more may hang over the edge,
// as long as it begins inside the picture or the border before it.
func overhang(whole, size, kernel, stride, pad int) int {
	if (size+2*pad-kernel)%stride != 0 && whole*stride < size+pad {
		return whole + 1
	}
	return whole
}

// Norm configures a batch norm.
type Norm struct {
	Eps      float64 // 0 means 1e-5
	FixGamma bool    // γ stays 1
}

// BatchNorm normalises each channel of x [C,H,W] (or [C]) over the batch, then
// scales and shifts it. Blocks: γ, β; auxiliary arrays: running mean, variance.
func (n *Net) BatchNorm(name string, x *Value) *Value { return n.Normalise(name, x, Norm{}) }

// Normalise is BatchNorm with settings.
func (n *Net) Normalise(name string, x *Value, c Norm) *Value {
	if c.Eps == 0 {
		c.Eps = 1e-5
	}
	channels := x.Shape[0]
	one := optim.Init{Kind: optim.Constant, Scale: 1}
	op := &compute.BatchNorm{
		Gamma: n.param(optim.Param{Name: name + ".gamma", Shape: []int{channels}, Init: one, NoDecay: true}),
		Beta:  n.param(optim.Param{Name: name + ".beta", Shape: []int{channels}, NoDecay: true}),
		Mean:  n.aux(optim.Param{Name: name + ".mean", Shape: []int{channels}}),
		Var:   n.aux(optim.Param{Name: name + ".var", Shape: []int{channels}, Init: one}),
		C:     channels, Area: x.Size() / channels, FixGamma: c.FixGamma, Eps: c.Eps,
	}
	y, io := n.unary(name, x, true, x.Shape...)
	op.IO = io
	n.emit(op, x, compute.ParamGrad, compute.InputGrad)
	return y
}

// MaxPool is the maximum over k×k windows of x [C,H,W], stride apart.
func (n *Net) MaxPool(x *Value, k, stride int) *Value {
	return n.Pool(x, Pooling{Kernel: k, Stride: stride})
}

// AvgPool is the mean over k×k windows of x [C,H,W], stride apart.
func (n *Net) AvgPool(x *Value, k, stride int) *Value {
	return n.Pool(x, Pooling{Avg: true, Kernel: k, Stride: stride})
}

// GlobalAvgPool is the mean over all pixels of x [C,H,W]: [C,1,1].
func (n *Net) GlobalAvgPool(x *Value) *Value {
	if !n.want(len(x.Shape) == 3 && x.axis == 0, "global pool of %q: shape %v is not [C,H,W]", x.name, x.Shape) {
		return x
	}
	return n.Pool(x, Pooling{Avg: true, Window: compute.Window{KH: x.Shape[1], KW: x.Shape[2]}})
}

// Pooling configures a pooling layer.
type Pooling struct {
	Avg                 bool // the mean; else the maximum
	Kernel, Stride, Pad int
	Window              compute.Window // as in Conv
	Full                bool           // a last window may hang over the edge: sizes are rounded up
	Inside              bool           // a mean leaves the border out of its divisor
}

// Pool takes the maximum or mean of windows of x [C,H,W].
func (n *Net) Pool(x *Value, c Pooling) *Value {
	name, w := x.name+".pool", square(c.Window, c.Kernel, c.Stride, c.Pad)
	if !n.want(w.KH > 0 && w.KW > 0 && w.PadH >= 0 && w.PadW >= 0 && w.PadH < w.KH && w.PadW < w.KW, "layer %q: %+v; a window needs a size, and its border must be narrower", name, c) ||
		!n.picture(name, x, w) || !n.want(x.axis == 0 || !c.Full, "layer %q: windows over time cannot hang over the edge", name) {
		return x
	}
	y, io := n.slide(name, x, w, false, x.Shape[0], c.Full)
	n.emit(&compute.Pool{IO: io, Avg: c.Avg, Inside: c.Inside, In: n.image(x), Out: n.image(y), Window: w}, x, compute.InputGrad)
	return y
}

// Frames turns pictures over time [C,1,W] into vectors [C·W], one per time step.
func (n *Net) Frames(x *Value) *Value {
	if !n.want(len(x.Shape) == 3 && x.axis != 0, "frames of %q: shape %v is not [C,1,W] over a time axis", x.name, x.Shape) {
		return x
	}
	y, io := n.unary(x.name+".frames", x, false, x.Size())
	n.emit(&compute.Frames{IO: io, C: x.Shape[0], W: x.Shape[2]}, x, compute.InputGrad)
	return y
}

// picture checks that x is [C,H,W] and that a window fits.
func (n *Net) picture(name string, x *Value, w compute.Window) bool {
	ok := len(x.Shape) == 3 && (x.axis == 0 || x.Shape[1] == 1)
	if ok {
		in := n.image(x)
		ok = w.KH <= in.H+2*w.PadH && w.KW <= in.W+2*w.PadW
	}
	return n.want(ok, "layer %q: a window %+v does not fit shape %v, which must be [C,H,W]", name, w, x.Shape)
}

// He is the initialisation for layers before a ReLU: normal with standard
// deviation √(2/fan-in) (He et al., 2015, equation 10).
func He(fanIn int) optim.Init { return Xavier(optim.Normal, fanIn, 2) }

// Xavier is MXNet's initialiser of that name with factor type "in", after Glorot
// and Bengio (2010) and He et al. (2015): of the kind optim.Normal with standard
// deviation √(magnitude/fan-in), or optim.Uniform within ± that.
func Xavier(kind string, fanIn int, magnitude float64) optim.Init {
	return optim.Init{Kind: kind, Scale: math.Sqrt(magnitude / float64(fanIn))}
}
