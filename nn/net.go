package nn

import (
	"errors"
	"fmt"

	"optimus/compute"
	"optimus/compute/optim"
)

// ErrModel is the error that Program's errors wrap.
var ErrModel = errors.New("invalid model")

// Value is what a layer returns: an array per example.
type Value struct {
	Shape []int // per example, or per time step of an example
	*slot
}

// slot is what a value and its reshapings share.
type slot struct {
	name  string
	axis  compute.Axis // of time; 0 for none
	buf   compute.Buf
	grad  compute.Buf // compute.None if nothing learned lies below
	reads int         // layers that read it
}

// Size returns the number of elements per example, or per time step.
func (v *Value) Size() int { return product(v.Shape) }

// Ids is an integer input: T values per example, or per time step, in [0, Limit).
type Ids struct {
	T, Limit int
	axis     compute.Axis
	input    int
	counts   compute.Axis // whose time steps it counts; 0 for none
}

// Net records the layers of one model.
type Net struct {
	prog   compute.Program
	tape   []node
	slots  []*slot
	names  map[string]bool
	layers uint64 // random layers so far: their keys
	loss   bool
	err    error
}

// node is an operation and the backward passes it needs, in order.
type node struct {
	op       compute.Op
	backward []compute.Pass
}

// New starts a model.
func New(name string) *Net {
	return &Net{prog: compute.Program{Name: name, AuxMomentum: 0.9}, names: map[string]bool{}}
}

// Program returns the finished step: forward in the order of the calls, backward
// in reverse. A Net yields one Program.
func (n *Net) Program() (*compute.Program, error) {
	if !n.loss {
		n.fail("the model has no loss; end it with SoftmaxCrossEntropy")
	}
	for _, v := range n.slots {
		if v.grad != compute.None && v.reads == 0 {
			n.fail("the value of layer %q is not used; connect it to the loss or remove it", v.name)
		}
	}
	if n.err != nil {
		return nil, n.err
	}
	for _, t := range n.tape {
		n.prog.Forward = append(n.prog.Forward, compute.Step{Op: t.op, Pass: compute.Forward})
	}
	for i := len(n.tape) - 1; i >= 0; i-- {
		for _, pass := range n.tape[i].backward {
			n.prog.Backward = append(n.prog.Backward, compute.Step{Op: n.tape[i].op, Pass: pass})
		}
	}
	if err := n.prog.Seal(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrModel, err)
	}
	return &n.prog, nil
}

// fail keeps the first error.
func (n *Net) fail(format string, args ...any) {
	if n.err == nil {
		n.err = fmt.Errorf("%w %s: %s", ErrModel, n.prog.Name, fmt.Sprintf(format, args...))
	}
}

// want records an error unless ok, and returns ok.
func (n *Net) want(ok bool, format string, args ...any) bool {
	if !ok {
		n.fail(format, args...)
	}
	return ok && n.err == nil
}

// value makes the result of a layer; learned says whether it has a gradient.
func (n *Net) value(name string, learned bool, axis compute.Axis, shape ...int) *Value {
	v := &Value{Shape: shape, slot: &slot{name: name, axis: axis, grad: compute.None}}
	if !n.want(len(shape) > 0 && product(shape) > 0, "layer %q: its result has shape %v; every dimension must be positive", name, shape) {
		v.Shape = []int{1} // what follows may compute with it; Program reports the error
		return v
	}
	v.buf = n.buffer(name, axis, shape)
	if learned {
		v.grad = n.buffer(name+".grad", axis, shape)
	}
	n.slots = append(n.slots, v.slot)
	return v
}

func (n *Net) buffer(name string, axis compute.Axis, shape []int) compute.Buf {
	n.prog.Buffers = append(n.prog.Buffers, compute.Buffer{Name: name, Axis: axis, Shape: shape})
	return compute.Buf(len(n.prog.Buffers) - 1)
}

// unary connects a layer that has one input: it makes the output and the four
// buffers. learned says whether the layer itself has blocks.
func (n *Net) unary(name string, x *Value, learned bool, shape ...int) (*Value, compute.IO) {
	y := n.value(name, learned || x.grad != compute.None, x.axis, shape...)
	x.reads++
	return y, compute.IO{X: x.buf, DX: x.grad, Y: y.buf, DY: y.grad}
}

// emit records an operation over x. It drops the passes that nobody needs: the
// gradient of an input that is data.
func (n *Net) emit(op compute.Op, x *Value, backward ...compute.Pass) {
	var need []compute.Pass
	for _, pass := range backward {
		if pass == compute.ParamGrad || x.grad != compute.None {
			need = append(need, pass)
		}
	}
	n.tape = append(n.tape, node{op, need})
}

// param adds a block and returns its index.
func (n *Net) param(p optim.Param) int {
	n.unique(p.Name)
	n.prog.Params = append(n.prog.Params, p)
	return len(n.prog.Params) - 1
}

// aux adds an auxiliary array and returns its index.
func (n *Net) aux(p optim.Param) int {
	n.unique(p.Name)
	n.prog.Aux = append(n.prog.Aux, p)
	return len(n.prog.Aux) - 1
}

func (n *Net) unique(name string) {
	n.want(name != "" && !n.names[name], "the name %q is empty or used twice; name each layer differently", name)
	n.names[name] = true
}

// layer numbers a layer that draws random values.
func (n *Net) layer() uint64 {
	n.layers++
	return n.layers
}

func product(shape []int) int {
	n := 1
	for _, d := range shape {
		n *= d
	}
	return n
}
