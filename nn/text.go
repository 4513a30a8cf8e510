package nn

import (
	"optimus/compute"
	"optimus/compute/optim"
)

// Conv1D slides a window of h rows over x [T,E] with full width: [T-h+1,filters].
// Blocks: W [filters,1,h,E] (layout OIHW), b [filters].
func (n *Net) Conv1D(name string, x *Value, h, filters int, init optim.Init) *Value {
	t := n.windows(name, x, h)
	return n.conv1D(name, x, h, filters, init, func(op compute.Conv1D) compute.Op { return &op }, t, filters)
}

// ConvMax is Conv1D and then MaxOverTime: [filters]. It gives the same values and
// gradients much faster, since only the best window of each filter has a gradient.
func (n *Net) ConvMax(name string, x *Value, h, filters int, init optim.Init) *Value {
	n.windows(name, x, h)
	return n.conv1D(name, x, h, filters, init, func(op compute.Conv1D) compute.Op { return &compute.ConvMax{Conv1D: op} }, filters)
}

// windows checks x and returns how many windows of h rows it has.
func (n *Net) windows(name string, x *Value, h int) int {
	if !n.want(len(x.Shape) == 2 && h > 0 && h <= x.Shape[0], "layer %q: a window of %d rows over shape %v; it needs [T,E] with T of at least the window", name, h, x.Shape) {
		return 1
	}
	return x.Shape[0] - h + 1
}

func (n *Net) conv1D(name string, x *Value, h, filters int, init optim.Init, wrap func(compute.Conv1D) compute.Op, shape ...int) *Value {
	t, e := x.Shape[0], x.Shape[len(x.Shape)-1]
	w := n.param(optim.Param{Name: name + ".weight", Shape: []int{filters, 1, h, e}, Init: init})
	b := n.bias(name, filters)
	y, io := n.unary(name, x, true, shape...)
	n.emit(wrap(compute.Conv1D{IO: io, W: w, B: b, T: t, E: e, H: h, F: filters}), x, compute.InputGrad, compute.ParamGrad)
	return y
}

// MaxOverTime is the maximum over the first dimension of x [T,F]: [F].
func (n *Net) MaxOverTime(x *Value) *Value {
	if !n.want(len(x.Shape) == 2, "max over time of %q: shape %v is not [T,F]", x.name, x.Shape) {
		return x
	}
	y, io := n.unary(x.name+".max", x, false, x.Shape[1])
	n.emit(&compute.MaxTime{IO: io, T: x.Shape[0], F: x.Shape[1]}, x, compute.InputGrad)
	return y
}
