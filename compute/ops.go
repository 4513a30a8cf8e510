package compute

// Op is one operation of a Program: a pointer to one of the structs of this
// package; the steps that run its passes share the pointer. X and Y are its input
// and output, DX and DY the gradients of the loss with respect to them (None where
// nobody needs one). Shapes are row-major and per example; where the buffers have
// a time axis, T stands for its length, and sizes without T are per time step. A
// backend implements every Op in the passes that its comment names.
type Op interface {
	// Uses lists the blocks, inputs and auxiliary arrays of the operation; entries
	// may be None.
	Uses() Use
	// Touch lists the buffers that a pass reads and those that it writes; entries
	// may be None. A gradient that several operations write is their sum: the
	// first in the order of the steps sets it, the others add.
	Touch(Pass) (reads, writes []Buf)
}

// Use is what an operation touches besides buffers.
type Use struct {
	Blocks []int
	Inputs []int
	Aux    []int
}

// IO is the usual set of buffers of an operation.
type IO struct{ X, DX, Y, DY Buf }

// Touch is the usual: forward from X to Y, the input's gradient from that of the
// output, and the blocks' gradients from that and X.
func (io IO) Touch(p Pass) (reads, writes []Buf) {
	switch p {
	case InputGrad:
		return []Buf{io.DY}, []Buf{io.DX}
	case ParamGrad:
		return []Buf{io.X, io.DY}, nil
	}
	return []Buf{io.X}, []Buf{io.Y}
}

// Many are the buffers of an operation with several inputs.
type Many struct {
	X, DX []Buf
	Y, DY Buf
}

// Touch is that of an operation without blocks.
func (m Many) Touch(p Pass) (reads, writes []Buf) {
	if p == InputGrad {
		return []Buf{m.DY}, m.DX
	}
	return m.X, []Buf{m.Y}
}

// Load copies float input In to Y. Forward.
type Load struct {
	In   int
	Y    Buf
	Size int
}

// Lookup reads rows of an embedding: Y[t] = Table[ids[t]], T ids per example (or
// time step) of Width values each. Forward, ParamGrad.
type Lookup struct {
	Ids      int // input
	Table    int // block, usually with Rows
	Y, DY    Buf
	T, Width int
}

// Dense is Y = X·Wᵀ + b on each of Rows rows of an example (or time step):
// W [Out,In], b [Out] (or None). Forward, InputGrad, ParamGrad.
type Dense struct {
	IO
	W, B          int
	Rows, In, Out int
}

// Conv1D slides a window of H rows over X [T,E]: Y [T-H+1,F], with
// Y[t,f] = b[f] + Σ_j W[f,j]·X[t+j], W [F,H,E]. Forward, InputGrad, ParamGrad.
type Conv1D struct {
	IO
	W, B       int
	T, E, H, F int
}

// ConvMax is MaxTime after Conv1D in one: Y [F] = b + max over t of the window
// products (Kim, "Convolutional neural networks for sentence classification",
// EMNLP 2014, equations 2 and 3; ReLU is monotone and may come after). Only one
// window per filter has a gradient, which makes the backward pass some fifty
// times cheaper than Conv1D's. Forward, InputGrad, ParamGrad.
type ConvMax struct{ Conv1D }

// MaxTime is Y [F] = max over t of X [T,F]; the first of equals has the gradient.
// Forward, InputGrad.
type MaxTime struct {
	IO
	T, F int
}

// ReLU is Y = max(X, 0), with gradient 0 at 0. Forward, InputGrad.
type ReLU struct {
	IO
	Size int
}

// Add is the sum of its inputs. Forward, InputGrad.
type Add struct {
	Many
	Size int
}

// Concat puts its inputs one behind the other. Forward, InputGrad.
type Concat struct {
	Many
	Sizes []int
}

// Dropout zeroes a share Rate of X in training and scales the rest by
// 1/(1-Rate); in evaluation it copies. Element e of an example is decided by
// (seed, epoch, example, Layer, e). Forward, InputGrad.
type Dropout struct {
	IO
	Size  int
	Rate  float64
	Layer uint64
}

// SoftmaxLoss is the cross entropy of softmax(X) with integer labels, on each of
// Rows rows of Classes values; it sums up the step's Result with weight 1 per row.
// Rows with the label Ignore are padding: without loss, gradient and weight.
// DX = softmax(X) - onehot(label), written by Forward in training.
type SoftmaxLoss struct {
	X, DX         Buf
	Labels        int // input
	Rows, Classes int
	Ignore        int // a label, or None
}

func (o Load) Uses() Use        { return Use{Inputs: []int{o.In}} }
func (o Lookup) Uses() Use      { return Use{Blocks: []int{o.Table}, Inputs: []int{o.Ids}} }
func (o Dense) Uses() Use       { return Use{Blocks: []int{o.W, o.B}} }
func (o Conv1D) Uses() Use      { return Use{Blocks: []int{o.W, o.B}} }
func (o SoftmaxLoss) Uses() Use { return Use{Inputs: []int{o.Labels}} }
func (MaxTime) Uses() Use       { return Use{} }
func (ReLU) Uses() Use          { return Use{} }
func (Add) Uses() Use           { return Use{} }
func (Concat) Uses() Use        { return Use{} }
func (Dropout) Uses() Use       { return Use{} }

func (o Load) Touch(Pass) (reads, writes []Buf)        { return nil, []Buf{o.Y} }
func (o SoftmaxLoss) Touch(Pass) (reads, writes []Buf) { return []Buf{o.X}, []Buf{o.DX} }
func (o Lookup) Touch(p Pass) (reads, writes []Buf) {
	if p == ParamGrad {
		return []Buf{o.DY}, nil
	}
	return nil, []Buf{o.Y}
}

// Touch differs from the usual in that the gradient needs the sign of Y.
func (o ReLU) Touch(p Pass) (reads, writes []Buf) {
	if p == InputGrad {
		return []Buf{o.Y, o.DY}, []Buf{o.DX}
	}
	return o.IO.Touch(p)
}
