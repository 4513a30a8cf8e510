package nn

import (
	"slices"

	"optimus/compute"
	"optimus/compute/optim"
)

// Lengths adds an integer input that tells how many of the time steps of an axis
// are an example's own; those behind are padding.
func (n *Net) Lengths(name string, time compute.Axis) Ids {
	n.want(time != 0, "input %q: no time axis whose steps it counts", name)
	ids := n.Ints(name, 1, n.prog.Steps(time)+1)
	ids.counts = time
	return ids
}

// Recurrent configures a recurrent layer.
type Recurrent struct {
	Units   int  // cells
	Reverse bool // from the last time step to the first
	Lengths *Ids // of the examples; nil if all are as long as the batch
	Init    optim.Init
	Split   bool // GRU: blocks for reset and update gates, and others for the candidate
}

// LSTM is a layer of long short-term memory over x [in] per time step: [Units], from
// a state of zeros; zero where an example has ended. Blocks: W [4·Units,in],
// R [4·Units,Units] and their biases; see compute.LSTM for the equations.
func (n *Net) LSTM(name string, x *Value, c Recurrent) *Value {
	return n.recurrent(name, x, c, []string{""}, []int{4}, func(r compute.Recurrent) compute.Op { return &compute.LSTM{Recurrent: r} })
}

// GRU is a layer of gated recurrent units over x [in] per time step: [Units], from a
// state of zeros; zero where an example has ended. Blocks: W [3·Units,in],
// R [3·Units,Units] and their biases, or with Split such four for the gates, of
// 2·Units rows, and four for the candidate; see compute.GRU for the equations.
func (n *Net) GRU(name string, x *Value, c Recurrent) *Value {
	names, gates := []string{""}, []int{3}
	if c.Split {
		names, gates = []string{".gates", ".candidate"}, []int{2, 1}
	}
	return n.recurrent(name, x, c, names, gates, func(r compute.Recurrent) compute.Op { return &compute.GRU{Recurrent: r} })
}

func (n *Net) recurrent(name string, x *Value, c Recurrent, names []string, gates []int, wrap func(compute.Recurrent) compute.Op) *Value {
	in := x.Size()
	if !n.want(x.axis != 0 && len(x.Shape) == 1 && c.Units > 0, "layer %q: %d cells over %q of shape %v; it needs vectors over a time axis", name, c.Units, x.name, x.Shape) {
		return x
	}
	r := compute.Recurrent{Lengths: n.lengths(name, c.Lengths, x), In: in, H: c.Units, Reverse: c.Reverse}
	for i, g := range gates {
		w := func(of string, width int) int {
			return n.param(optim.Param{Name: name + names[i] + of + ".weight", Shape: []int{g * c.Units, width}, Init: c.Init})
		}
		b := func(of string) int { return n.bias(name+names[i]+of, g*c.Units) }
		input, state := compute.Gates{W: w(".input", in), G: g}, compute.Gates{G: g}
		if c.Split { // in the order of MXNet's cells of either kind
			input.B, state.W = b(".input"), w(".state", c.Units)
		} else {
			state.W, input.B = w(".state", c.Units), b(".input")
		}
		state.B = b(".state")
		r.Input, r.State = append(r.Input, input), append(r.State, state)
	}
	var y *Value
	y, r.IO = n.unary(name, x, true, c.Units)
	n.emit(wrap(r), x, compute.ParamGrad, compute.InputGrad)
	return y
}

// lengths checks that lengths are those of x and returns their input.
func (n *Net) lengths(name string, lengths *Ids, x *Value) int {
	if lengths == nil {
		return compute.None
	}
	root := x.axis
	for root != 0 && n.prog.Axes[root-1].Of != 0 {
		root = n.prog.Axes[root-1].Of
	}
	n.want(root != 0 && lengths.counts == root, "layer %q: the lengths do not count steps of the time axis of %q", name, x.name)
	return lengths.input
}

// Tanh is the hyperbolic tangent of x.
func (n *Net) Tanh(x *Value) *Value {
	y, io := n.unary(x.name+".tanh", x, false, x.Shape...)
	n.emit(&compute.Tanh{IO: io, Size: x.Size()}, x, compute.InputGrad)
	return y
}

// LastStep is x at the last time step of each example; lengths may be nil.
func (n *Net) LastStep(x *Value, lengths *Ids) *Value {
	name := x.name + ".last"
	if !n.want(x.axis != 0, "the last step of %q, which has no time axis", x.name) {
		return x
	}
	y := n.value(name, x.grad != compute.None, 0, x.Shape...)
	x.reads++
	io := compute.IO{X: x.buf, DX: x.grad, Y: y.buf, DY: y.grad}
	n.emit(&compute.LastStep{IO: io, Lengths: n.lengths(name, lengths, x), Size: x.Size()}, x, compute.InputGrad)
	return y
}

// TokenCrossEntropy ends a model of language: it is SoftmaxCrossEntropy with the
// perplexity as its metric. Labels equal to ignore are padding, without loss and
// weight; compute.None if there are none.
func (n *Net) TokenCrossEntropy(x *Value, labels Ids, ignore int) {
	n.softmax(x, labels, ignore, compute.Perplexity)
}

// Table is an embedding that several layers read.
type Table struct{ block, rows, width int }

// Table adds an embedding [rows,width] for Bag. It is one block whose rows are pulled
// and pushed one by one.
func (n *Net) Table(name string, rows, width int, init optim.Init) Table {
	n.want(rows > 0 && width > 0, "table %q: %d rows of %d values; both must be positive", name, rows, width)
	block := n.param(optim.Param{Name: name + ".weight", Shape: []int{rows, width}, Rows: true, Init: init})
	return Table{block, rows, width}
}

// Bag sums the rows that ids name, in so many bags of equally many ids: [width], or
// [bags,width] where there are several. Ids equal to the number of rows are padding.
func (n *Net) Bag(name string, table Table, ids Ids, bags int) *Value {
	ok := bags > 0 && ids.T%max(bags, 1) == 0 && ids.Limit == table.rows+1 && ids.axis == 0
	n.want(ok, "layer %q: %d bags of %d ids below %d; the ids must fill the bags, and their limit be one more than the %d rows", name, bags, ids.T, ids.Limit, table.rows)
	shape := []int{bags, table.width}
	if bags == 1 {
		shape = shape[1:]
	}
	v := n.value(name, true, 0, shape...)
	n.emit(&compute.Bag{Ids: ids.input, Table: table.block, Y: v.buf, DY: v.grad, Bags: bags, Most: ids.T / max(bags, 1), Width: table.width}, v, compute.ParamGrad)
	return v
}

// SampledLogistic ends a model with the loss of negative sampling of x [width] and
// candidates [K,width], of which the first is the true one; see compute.SampledLoss.
// The metric is the share of examples whose true candidate has the highest score.
func (n *Net) SampledLogistic(x, candidates *Value) {
	ok := len(x.Shape) == 1 && len(candidates.Shape) == 2 && candidates.Shape[1] == x.Shape[0] && x.axis == 0 && candidates.axis == 0
	if !n.want(ok, "the loss reads %q of shape %v and candidates %q of shape %v; it needs [width] and [K,width]", x.name, x.Shape, candidates.name, candidates.Shape) {
		return
	}
	loss := &compute.SampledLoss{X: x.buf, DX: x.grad, C: candidates.buf, DC: candidates.grad, K: candidates.Shape[0], Width: x.Shape[0]}
	n.end(loss, compute.Accuracy, x, candidates)
}

// Attention configures an attention decoder.
type Attention struct {
	Lengths *Ids // of the memory; nil if all are as long as the batch
	Init    optim.Init
}

// AttentionDecoder is a layer of LSTM cells over x [in] per time step of a target,
// which attends to memory [H] per time step of a source and begins with the states h0
// and c0 [H]: [H] per time step of the target. Blocks: W [4H,in+H], R [4H,H] and their
// biases; W_q [H,H]; W_c [H,2H], b_c [H]; see compute.AttentionDecoder for the equations.
func (n *Net) AttentionDecoder(name string, x, memory, h0, c0 *Value, c Attention) *Value {
	in, h := x.Size(), h0.Size()
	vectors := len(x.Shape) == 1 && len(memory.Shape) == 1 && x.axis != 0 && memory.axis != 0 && h0.axis == 0 && c0.axis == 0
	if !n.want(vectors && memory.Size() == h && c0.Size() == h, "layer %q: target %v, memory %v, states %v and %v; it needs vectors over two time axes, and states as long as the memory's",
		name, x.Shape, memory.Shape, h0.Shape, c0.Shape) {
		return x
	}
	n.want(memory.grad != compute.None, "layer %q: nothing is learned below the memory %q", name, memory.name)
	w := func(of string, out, width int) int {
		return n.param(optim.Param{Name: name + of + ".weight", Shape: []int{out, width}, Init: c.Init})
	}
	op := &compute.AttentionDecoder{Memory: memory.buf, DMemory: memory.grad, H0: h0.buf, DH0: h0.grad, C0: c0.buf, DC0: c0.grad,
		Lengths: n.lengths(name, c.Lengths, memory), In: in, H: h}
	op.Input, op.State = compute.Gates{W: w(".input", 4*h, in+h), G: 4}, compute.Gates{W: w(".state", 4*h, h), G: 4}
	op.Input.B, op.State.B = n.bias(name+".input", 4*h), n.bias(name+".state", 4*h)
	op.Query, op.Combine, op.Bias = w(".query", h, h), w(".combine", h, 2*h), n.bias(name+".combine", h)
	for _, v := range []*Value{memory, h0, c0} {
		v.reads++
	}
	var y *Value
	y, op.IO = n.unary(name, x, true, h)
	n.emit(op, x, compute.ParamGrad)
	return y
}

// Transcript is what a recording says: labels over an axis of their own.
type Transcript struct {
	Labels, Counts Ids  // the labels, and how many each example has (see Lengths)
	Lengths        *Ids // of the recordings; nil if all are as long as the batch
	Blank          int  // the class that is no label
	Space          int  // the label between words; compute.None if there is none
}

// CTC ends a model with the loss of connectionist temporal classification of x
// [classes] per time step; see compute.CTC. The metric is the rate of character errors.
func (n *Net) CTC(x *Value, t Transcript) {
	classes := x.Size()
	n.want(x.axis != 0 && len(x.Shape) == 1 && t.Labels.axis != 0 && t.Labels.T == 1 && t.Labels.Limit == classes && t.Counts.counts == t.Labels.axis,
		"the loss reads %q of shape %v, but labels of %d classes; it needs both over time axes, and the labels' lengths", x.name, x.Shape, t.Labels.Limit)
	n.want(t.Blank >= 0 && t.Blank < classes && t.Space < classes && t.Space != t.Blank, "the loss has blank %d and space %d of %d classes", t.Blank, t.Space, classes)
	if n.err != nil {
		return
	}
	loss := &compute.CTC{X: x.buf, DX: x.grad, Labels: t.Labels.input, LabelLengths: t.Counts.input, Lengths: n.lengths("ctc", t.Lengths, x), Classes: classes, Blank: t.Blank, Space: t.Space}
	n.end(loss, compute.CharacterErrors, x)
}

// BLEU makes the metric of a model of translation BLEU, of what it writes by itself:
// scores are those of words that a dense layer makes of an AttentionDecoder over an
// Embedding, and the references end with the word end. See compute.Greedy.
func (n *Net) BLEU(scores *Value, references Ids, begin, end int) {
	n.BLEUOfPieces(scores, references, begin, end, nil, "")
}

// BLEUOfPieces is BLEU of the words that pieces make: those whose text ends in mark go
// on with the next piece.
func (n *Net) BLEUOfPieces(scores *Value, references Ids, begin, end int, pieces []string, mark string) {
	dense, ok := producer[*compute.Dense](n, scores.buf)
	if !n.want(ok && dense.B != compute.None, "BLEU of %q, which is no dense layer", scores.name) {
		return
	}
	decoder, ok := producer[*compute.AttentionDecoder](n, dense.X)
	if !n.want(ok, "BLEU of %q, below which there is no attention decoder", scores.name) {
		return
	}
	words, ok := producer[*compute.Lookup](n, decoder.X)
	n.want(ok, "BLEU of %q, whose decoder reads no embedding", scores.name)
	n.want(references.axis == scores.axis && references.T == 1 && references.Limit == dense.Out && min(begin, end) >= 0 && max(begin, end) < dense.Out,
		"BLEU of %q: %d words from %d to %d, and references of %d", scores.name, dense.Out, begin, end, references.Limit)
	n.want(pieces == nil || len(pieces) == dense.Out && mark != "", "BLEU of %q: %d pieces with mark %q, want %d and a mark", scores.name, len(pieces), mark, dense.Out)
	if n.err != nil {
		return
	}
	n.want(n.prog.Params[words.Table].Shape[0] == dense.Out, "BLEU of %q: %d words, but its decoder reads %d", scores.name, dense.Out, n.prog.Params[words.Table].Shape[0])
	n.emit(&compute.Greedy{Decoder: decoder, Table: words.Table, W: dense.W, B: dense.B, References: references.input, Begin: begin, End: end, Words: dense.Out,
		Pieces: pieces, Mark: mark}, scores)
	n.prog.Metric = compute.BLEU
}

// producer returns the operation of a kind that writes b.
func producer[T compute.Op](n *Net, b compute.Buf) (op T, ok bool) {
	for _, t := range n.tape {
		if op, ok = t.op.(T); ok {
			if _, writes := op.Touch(compute.Forward); slices.Contains(writes, b) {
				return op, true
			}
		}
	}
	return op, false
}
