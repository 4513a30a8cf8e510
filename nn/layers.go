package nn

import (
	"slices"

	"optimus/compute"
	"optimus/compute/optim"
)

// Time adds a time axis of up to limit steps. How many a batch has is told by the
// inputs over the axis.
func (n *Net) Time(name string, limit int) compute.Axis {
	n.want(limit > 0, "axis %q: %d time steps; there must be at least 1", name, limit)
	n.prog.Axes = append(n.prog.Axes, compute.TimeAxis{Name: name, Max: limit})
	return compute.Axis(len(n.prog.Axes))
}

// Ints adds an integer input: t values per example, each in [0, limit).
func (n *Net) Ints(name string, t, limit int) Ids { return n.IntsOver(0, name, t, limit) }

// IntsOver adds an integer input of t values per time step, each in [0, limit).
func (n *Net) IntsOver(time compute.Axis, name string, t, limit int) Ids {
	n.want(t > 0 && limit > 0, "input %q: %d values below %d; both must be positive", name, t, limit)
	return Ids{T: t, Limit: limit, axis: time, input: n.input(compute.Input{Name: name, Shape: []int{t}, Axis: time, Limit: limit})}
}

// Floats adds a float input.
func (n *Net) Floats(name string, shape ...int) *Value { return n.FloatsOver(0, name, shape...) }

// FloatsOver adds a float input of one shape per time step. Pictures whose rows
// are time have the shape [C,1,W].
func (n *Net) FloatsOver(time compute.Axis, name string, shape ...int) *Value {
	in := n.input(compute.Input{Name: name, Shape: shape, Axis: time})
	v := n.value(name, false, time, shape...)
	n.emit(&compute.Load{In: in, Y: v.buf, Size: v.Size()}, v)
	return v
}

func (n *Net) input(in compute.Input) int {
	n.unique(in.Name)
	n.prog.Inputs = append(n.prog.Inputs, in)
	return len(n.prog.Inputs) - 1
}

// Embedding looks ids up in a table [Limit,width]: [T,width], or [width] where
// there is one id per time step. The table is one
// block whose rows are pulled and pushed one by one.
func (n *Net) Embedding(name string, ids Ids, width int, init optim.Init) *Value {
	table := n.param(optim.Param{Name: name + ".weight", Shape: []int{ids.Limit, width}, Rows: true, Init: init})
	shape := []int{ids.T, width}
	if ids.axis != 0 && ids.T == 1 {
		shape = shape[1:]
	}
	v := n.value(name, true, ids.axis, shape...)
	n.emit(&compute.Lookup{Ids: ids.input, Table: table, Y: v.buf, DY: v.grad, T: ids.T, Width: width}, v, compute.ParamGrad)
	return v
}

// Dense is x·Wᵀ + b over the last dimension of x: [..., in] to [..., out].
// Blocks: W [out,in], b [out].
func (n *Net) Dense(name string, x *Value, out int, init optim.Init) *Value {
	in := x.Shape[len(x.Shape)-1]
	w := n.param(optim.Param{Name: name + ".weight", Shape: []int{out, in}, Init: init})
	b := n.bias(name, out)
	shape := append(append([]int(nil), x.Shape[:len(x.Shape)-1]...), out)
	y, io := n.unary(name, x, true, shape...)
	n.emit(&compute.Dense{IO: io, W: w, B: b, Rows: x.Size() / in, In: in, Out: out}, x, compute.InputGrad, compute.ParamGrad)
	return y
}

func (n *Net) bias(name string, size int) int {
	return n.param(optim.Param{Name: name + ".bias", Shape: []int{size}, NoDecay: true})
}

// ReLU is max(x, 0).
func (n *Net) ReLU(x *Value) *Value {
	y, io := n.unary(x.name+".relu", x, false, x.Shape...)
	n.emit(&compute.ReLU{IO: io, Size: x.Size()}, x, compute.InputGrad)
	return y
}

// Dropout zeroes a share rate of x in training and scales the rest by 1/(1-rate).
func (n *Net) Dropout(x *Value, rate float64) *Value {
	n.want(rate >= 0 && rate < 1, "dropout after %q: rate %v is outside [0,1)", x.name, rate)
	y, io := n.unary(x.name+".dropout", x, false, x.Shape...)
	n.emit(&compute.Dropout{IO: io, Size: x.Size(), Rate: rate, Layer: n.layer()}, x, compute.InputGrad)
	return y
}

// Concat puts its inputs one behind the other along their first dimension; the
// others must agree. Of vectors it makes a longer vector, of pictures one with
// more channels.
func (n *Net) Concat(xs ...*Value) *Value {
	if !n.want(len(xs) > 0, "a concat of nothing") {
		return &Value{Shape: []int{1}, slot: &slot{grad: compute.None}}
	}
	shape := append([]int{0}, xs[0].Shape[1:]...)
	for _, x := range xs {
		shape[0] += x.Shape[0]
		n.want(slices.Equal(x.Shape[1:], shape[1:]) && (x.axis == 0 || len(shape) == 1), "concat: %q of shape %v does not go with %q of shape %v", x.name, x.Shape, xs[0].name, xs[0].Shape)
	}
	op := &compute.Concat{}
	for _, x := range xs {
		op.Sizes = append(op.Sizes, x.Size())
	}
	var y, learned *Value
	y, learned, op.X, op.DX = n.join("concat", xs, shape)
	op.Y, op.DY = y.buf, y.grad
	n.emit(op, learned, compute.InputGrad)
	return y
}

// Add is the sum of values of one shape.
func (n *Net) Add(xs ...*Value) *Value {
	if !n.want(len(xs) > 0, "a sum of nothing") {
		return &Value{Shape: []int{1}, slot: &slot{grad: compute.None}}
	}
	for _, x := range xs {
		n.want(slices.Equal(x.Shape, xs[0].Shape), "sum: %q of shape %v does not go with %q of shape %v", x.name, x.Shape, xs[0].name, xs[0].Shape)
	}
	op := &compute.Add{Size: xs[0].Size()}
	var y, learned *Value
	y, learned, op.X, op.DX = n.join("sum", xs, xs[0].Shape)
	op.Y, op.DY = y.buf, y.grad
	n.emit(op, learned, compute.InputGrad)
	return y
}

// join makes the output of a layer that reads several values; learned is one of
// those that have a gradient, if any has.
func (n *Net) join(name string, xs []*Value, shape []int) (y, learned *Value, x, dx []compute.Buf) {
	learned = xs[0]
	for _, v := range xs {
		n.want(v.axis == xs[0].axis, "%s: %q and %q do not run over the same time axis", name, v.name, xs[0].name)
		v.reads++
		x, dx = append(x, v.buf), append(dx, v.grad)
		if v.grad != compute.None {
			learned = v
		}
	}
	return n.value(name, learned.grad != compute.None, xs[0].axis, shape...), learned, x, dx
}

// Flatten gives x, or each of its time steps, the shape [Size]. It costs nothing.
func (n *Net) Flatten(x *Value) *Value {
	return &Value{Shape: []int{x.Size()}, slot: x.slot}
}

// SoftmaxCrossEntropy ends the model: the loss is -log softmax(x)[label], summed
// over the labels; x is [classes], or [T,classes] for T labels per example. The
// metric is the accuracy.
func (n *Net) SoftmaxCrossEntropy(x *Value, labels Ids) {
	n.softmax(x, labels, compute.None, compute.Accuracy)
}

func (n *Net) softmax(x *Value, labels Ids, ignore int, metric compute.Metric) {
	classes := x.Shape[len(x.Shape)-1]
	n.want(classes == labels.Limit && x.Size() == labels.T*classes && x.axis == labels.axis,
		"the loss reads %q of shape %v, but there are %d labels of %d classes", x.name, x.Shape, labels.T, labels.Limit)
	n.end(&compute.SoftmaxLoss{X: x.buf, DX: x.grad, Labels: labels.input, Rows: labels.T, Classes: classes, Ignore: ignore}, metric, x)
}

// end adds the loss, which reads xs and has a metric.
func (n *Net) end(loss compute.Op, metric compute.Metric, xs ...*Value) {
	n.want(!n.loss, "the model has two losses")
	for _, x := range xs {
		n.want(x.grad != compute.None, "the loss reads %q, below which nothing is learned", x.name)
		x.reads++
	}
	n.emit(loss, xs[0])
	n.prog.Metric, n.loss = metric, true
}
