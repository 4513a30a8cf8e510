package nn

import (
	"optimus/compute"
	"optimus/compute/optim"
)

// Ints adds an integer input: t values per example, each in [0, limit).
func (n *Net) Ints(name string, t, limit int) Ids {
	n.want(t > 0 && limit > 0, "input %q: %d values below %d; both must be positive", name, t, limit)
	return Ids{T: t, Limit: limit, input: n.input(compute.Input{Name: name, Shape: []int{t}, Limit: limit})}
}

// Floats adds a float input.
func (n *Net) Floats(name string, shape ...int) *Value {
	in := n.input(compute.Input{Name: name, Shape: shape})
	v := n.value(name, false, shape...)
	n.emit(&compute.Load{In: in, Y: v.buf, Size: v.Size()}, v)
	return v
}

func (n *Net) input(in compute.Input) int {
	n.unique(in.Name)
	n.prog.Inputs = append(n.prog.Inputs, in)
	return len(n.prog.Inputs) - 1
}

// Embedding looks ids up in a table [Limit,width]: [T,width]. The table is one
// block whose rows are pulled and pushed one by one.
func (n *Net) Embedding(name string, ids Ids, width int, init optim.Init) *Value {
	table := n.param(optim.Param{Name: name + ".weight", Shape: []int{ids.Limit, width}, Rows: true, Init: init})
	v := n.value(name, true, ids.T, width)
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

// Concat flattens its inputs and puts them one behind the other.
func (n *Net) Concat(xs ...*Value) *Value {
	op := &compute.Concat{}
	total, learned := 0, &Value{slot: &slot{grad: compute.None}}
	for _, x := range xs {
		n.read(x)
		op.X, op.DX, op.Sizes = append(op.X, x.buf), append(op.DX, x.grad), append(op.Sizes, x.Size())
		total += x.Size()
		if x.grad != compute.None {
			learned = x
		}
	}
	y := n.value("concat", learned.grad != compute.None, total)
	op.Y, op.DY = y.buf, y.grad
	n.emit(op, learned, compute.InputGrad)
	return y
}

// Flatten gives x the shape [Size]. It costs nothing.
func (n *Net) Flatten(x *Value) *Value {
	return &Value{Shape: []int{x.Size()}, slot: x.slot}
}

// SoftmaxCrossEntropy ends the model: the loss is -log softmax(x)[label], summed
// over the labels; x is [classes], or [T,classes] for T labels per example. The
// metric is the accuracy.
func (n *Net) SoftmaxCrossEntropy(x *Value, labels Ids) {
	classes := x.Shape[len(x.Shape)-1]
	n.want(!n.loss, "the model has two losses")
	n.want(x.grad != compute.None, "the loss reads %q, below which nothing is learned", x.name)
	n.want(classes == labels.Limit && x.Size() == labels.T*classes,
		"the loss reads %q of shape %v, but there are %d labels of %d classes", x.name, x.Shape, labels.T, labels.Limit)
	n.read(x)
	n.emit(&compute.SoftmaxLoss{X: x.buf, DX: x.grad, Labels: labels.input, Rows: labels.T, Classes: classes}, x)
	n.prog.Metric = "accuracy"
	n.loss = true
}
