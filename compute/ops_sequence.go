package compute

// Operations over a time axis. A Lengths input, where there is one, holds one value
// per example: how many time steps of the axis are its own; those behind are
// padding. It counts steps of an axis that a batch sets; on an axis that is made of
// that, the length of each example follows as TimeAxis.Length says.

// Gates are the blocks of a recurrent layer for some of its gates: G gates of H
// cells read W [G·H,Width] and B [G·H].
type Gates struct{ W, B, G int }

// Recurrent is what recurrent layers have in common: X [In] per time step to Y [H],
// from a state of zeros, with Reverse from the last step to the first. Steps behind
// the length of an example leave its state alone, and Y is zero there. ParamGrad
// comes before InputGrad, which needs what it leaves.
type Recurrent struct {
	IO
	Input, State []Gates // blocks for the input and for the last state, in the order of the gates
	Lengths      int     // input, or None
	In, H        int
	Reverse      bool
}

// LSTM is long short-term memory (Hochreiter and Schmidhuber, 1997) with forget
// gates: with W [4H,In], R [4H,H], biases b and b', gates in the order i, f, g, o,
//
//	a = W·x + b + R·h' + b'    i, f, o = σ(a₀), σ(a₁), σ(a₃)    g = tanh(a₂)
//	c = f⊙c' + i⊙g    y = h = o⊙tanh(c)
//
// where c' and h' are the states of the step before. Forward, ParamGrad, InputGrad.
type LSTM struct{ Recurrent }

// GRU is the gated recurrent unit (Cho et al., 2014) in the variant of cuDNN and
// MXNet, which resets behind the product: with W [3H,In], R [3H,H], biases b and b',
// gates in the order r, z, n,
//
//	a = W·x + b    u = R·h' + b'    r, z = σ(a₀+u₀), σ(a₁+u₁)
//	n = tanh(a₂ + r⊙u₂)    y = h = (1-z)⊙n + z⊙h'
//
// Forward, ParamGrad, InputGrad.
type GRU struct{ Recurrent }

// Tanh is Y = tanh(X). Forward, InputGrad.
type Tanh struct {
	IO
	Size int
}

// LastStep is X at the last time step of each example: X [Size] per time step to
// Y [Size], zero for an example of length 0. Forward, InputGrad.
type LastStep struct {
	IO
	Lengths int // input, or None
	Size    int
}

// AttentionDecoder is an LSTM that at each step attends to a sequence, its memory, and
// reads at the next what came of that (Luong et al., "Effective approaches to
// attention-based neural machine translation", 2015: global attention with a general
// score, and input feeding, §3.3). From the states in H0 and C0 and a zero ỹ',
//
//	h, c = LSTM([x; ỹ'], h', c')    q = W_q·h    p = softmax(M·q)
//	y = ỹ = tanh(W_c·[Σ pₛ·Mₛ; h] + b_c)
//
// where M is the memory's steps up to the length of the example, and ' marks the
// step before. Forward, ParamGrad, which also writes the gradients of all inputs.
type AttentionDecoder struct {
	IO                    // X [In] and Y [H] per time step
	Memory, DMemory Buf   // [H] per time step of another axis
	H0, DH0         Buf   // [H]
	C0, DC0         Buf   // [H]
	Input, State    Gates // the LSTM's: W [4H,In+H] and [4H,H]
	Query           int   // block W_q [H,H]
	Combine, Bias   int   // blocks W_c [H,2H], b_c [H]
	Lengths         int   // input, of the memory, or None
	In, H           int
}

// Greedy translates in evaluation, and does nothing in training: it runs the cells of
// a Decoder anew, and what it reads at each step is the likeliest word of the step
// before, Begin at first; up to the word End, or the most steps of the target's axis.
// Counts are those of BLEU, between these words and the references. As any word may
// come up, each batch needs all rows of the table.
//
// Where words are made of Pieces, BLEU is of the words: of what is written and of the
// references, a piece that ends in Mark is joined to what follows, less the mark. Two
// words are the same if their letters are, however they were cut. Forward.
type Greedy struct {
	Decoder    *AttentionDecoder
	Table      int // block of the decoder's words, [Words,In]
	W, B       int // blocks of the words' scores, [Words,H] and [Words]
	References int // input, [T]: words up to End
	Begin, End int
	Words      int
	Pieces     []string // Words texts, or nil where each is a word
	Mark       string
}

// Bag sums rows of an embedding: Y[b] = Σ Table[id] over the ids of bag b, of which
// there are up to Most; the id that equals the number of rows is padding. Forward,
// ParamGrad.
type Bag struct {
	Ids               int // input, [Bags·Most]
	Table             int // block, usually with Rows
	Y, DY             Buf // [Bags,Width]
	Bags, Most, Width int
}

// SampledLoss is the loss of negative sampling (Mikolov et al., "Distributed
// representations of words and phrases and their compositionality", 2013): of K
// candidates C [K,Width] the first goes with X [Width], the others were drawn at
// random. With the scores s = C·x it is
//
//	log(1+exp(-s₀)) + Σ_{k>0} log(1+exp(sₖ))
//
// with weight 1 per example; Counts[0] is how often the first had the highest score.
// DX and DC are written by Forward in training.
type SampledLoss struct {
	X, DX, C, DC Buf
	K, Width     int
}

// CTC is the loss of connectionist temporal classification (Graves et al., 2006):
// -log of the probability that the softmax of X [Classes] per time step gives to all
// paths that become the labels when repeats are merged and blanks dropped. It has
// weight 1 per example. Labels that no path of an example's length makes are an error
// of the batch, which names the example. DX is written by Forward in training.
//
// Counts are those of CharacterErrors, of the likeliest path (greedy decoding): edits
// of labels, labels, and of words, which the label Space parts, edits and number.
type CTC struct {
	X, DX        Buf
	Labels       int // input, over an axis of its own
	LabelLengths int // input: how many labels an example has
	Lengths      int // input, of X, or None
	Classes      int
	Blank        int
	Space        int // a label, or None
}

func (o Recurrent) Uses() Use {
	u := Use{Inputs: []int{o.Lengths}}
	for _, list := range [][]Gates{o.Input, o.State} {
		for _, g := range list {
			u.Blocks = append(u.Blocks, g.W, g.B)
		}
	}
	return u
}
func (o Greedy) Uses() Use {
	u := o.Decoder.Uses()
	return Use{Blocks: append(u.Blocks, o.Table, o.W, o.B), Inputs: append(u.Inputs, o.References)}
}
func (o CTC) Uses() Use { return Use{Inputs: []int{o.Labels, o.LabelLengths, o.Lengths}} }
func (o AttentionDecoder) Uses() Use {
	return Use{Blocks: []int{o.Input.W, o.State.W, o.Input.B, o.State.B, o.Query, o.Combine, o.Bias}, Inputs: []int{o.Lengths}}
}
func (Tanh) Uses() Use        { return Use{} }
func (o LastStep) Uses() Use  { return Use{Inputs: []int{o.Lengths}} }
func (o Bag) Uses() Use       { return Use{Blocks: []int{o.Table}, Inputs: []int{o.Ids}} }
func (SampledLoss) Uses() Use { return Use{} }

func (o Bag) Touch(p Pass) (reads, writes []Buf) {
	if p == ParamGrad {
		return []Buf{o.DY}, nil
	}
	return nil, []Buf{o.Y}
}

func (o SampledLoss) Touch(Pass) (reads, writes []Buf) {
	return []Buf{o.X, o.C}, []Buf{o.DX, o.DC}
}

// Touch differs from the usual in that the backend keeps what the gradients need.
func (o Recurrent) Touch(p Pass) (reads, writes []Buf) {
	switch p {
	case ParamGrad:
		return []Buf{o.DY}, nil
	case InputGrad:
		return nil, []Buf{o.DX}
	}
	return o.IO.Touch(p)
}

func (o Greedy) Touch(Pass) (reads, writes []Buf) {
	return []Buf{o.Decoder.Memory, o.Decoder.H0, o.Decoder.C0}, nil
}
func (o CTC) Touch(Pass) (reads, writes []Buf) { return []Buf{o.X}, []Buf{o.DX} }

// Touch is that of four inputs, whose gradients one pass makes.
func (o AttentionDecoder) Touch(p Pass) (reads, writes []Buf) {
	if p == ParamGrad {
		return []Buf{o.Memory, o.DY}, []Buf{o.DX, o.DMemory, o.DH0, o.DC0}
	}
	return []Buf{o.X, o.Memory, o.H0, o.C0}, []Buf{o.Y}
}

// Touch differs from the usual in that the gradient needs Y.
func (o Tanh) Touch(p Pass) (reads, writes []Buf) {
	if p == InputGrad {
		return []Buf{o.Y, o.DY}, []Buf{o.DX}
	}
	return o.IO.Touch(p)
}
