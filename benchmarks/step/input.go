package step

import (
	"math"

	"optimus/compute"
	"optimus/internal/rng"
)

// Input is one array of the batch as the layers see it: a picture after it was cut
// out, a sequence of its length.
type Input struct {
	Name  string `json:"name"`
	Shape []int  `json:"shape"` // per example; a single value is []
	From  int    `json:"from"`  // integers in [From,Limit), padding not among them
	Limit int    `json:"limit"` // 0: float32
	Zipf  bool   `json:"zipf"`  // id r with a chance in proportion to 1/(r+1), as in texts; else all alike
}

// Inputs describes the batch to another implementation of the model.
func (s *Step) Inputs() []Input {
	crops := map[int]compute.Image{}
	for _, f := range s.Program.Forward {
		if crop, ok := f.Op.(*compute.Crop); ok {
			crops[crop.In] = crop.To
		}
	}
	var list []Input
	for i, in := range s.Program.Inputs {
		shape := in.Shape
		if to, ok := crops[i]; ok {
			shape = []int{to.C, to.H, to.W}
		}
		if in.Limit > 0 && in.Size() == 1 {
			shape = []int{}
		}
		if in.Axis != 0 {
			shape = append([]int{length(s.Program, in.Axis)}, shape...)
		}
		from, below := bounds(s.Program, i)
		list = append(list, Input{Name: in.Name, Shape: shape, From: from, Limit: below, Zipf: zipf(s.Program, i)})
	}
	return list
}

// batch makes the inputs of n examples.
func batch(p *compute.Program, n int) *compute.Batch {
	b := &compute.Batch{N: n}
	for i, in := range p.Inputs {
		from, below := bounds(p, i)
		key, words := rng.NewKey(1, uint64(i)), zipf(p, i)
		var a compute.Array
		for j := range n * in.Size() * length(p, in.Axis) {
			u := key.Float64(uint64(j))
			switch {
			case in.Limit == 0:
				a.F = append(a.F, float32(u-0.5))
			case words:
				r := math.Pow(float64(below)+1, u) // 1 to below+1: its logarithm is uniform
				a.I = append(a.I, int32(min(int(r)-1, below-1)))
			default:
				a.I = append(a.I, int32(from+int(float64(below-from)*u)))
			}
		}
		b.Inputs = append(b.Inputs, a)
	}
	return b
}

// bounds returns the range [from,below) of an integer input: the length of the axis
// alone for lengths, rows of the table without the padding for a Bag, no blank for CTC.
func bounds(p *compute.Program, input int) (from, below int) {
	below = p.Inputs[input].Limit
	for _, f := range p.Forward {
		lengths := compute.None
		switch op := f.Op.(type) {
		case *compute.Bag:
			if op.Ids == input {
				below = min(below, p.Params[op.Table].Shape[0])
			}
		case *compute.CTC:
			if op.Labels == input && op.Blank == 0 {
				from = 1
			}
			if op.LabelLengths == input {
				lengths = input
			}
		case *compute.LSTM:
			lengths = op.Lengths
		case *compute.GRU:
			lengths = op.Lengths
		case *compute.LastStep:
			lengths = op.Lengths
		case *compute.AttentionDecoder:
			lengths = op.Lengths
		}
		if lengths == input {
			n := counted(p, input)
			return n, n + 1
		}
	}
	return from, below
}

// zipf reports whether an input has the ids of a table of rows: words, trigrams.
func zipf(p *compute.Program, input int) bool {
	for _, f := range p.Forward {
		switch op := f.Op.(type) {
		case *compute.Bag:
			if op.Ids == input {
				return p.Params[op.Table].Rows
			}
		case *compute.Lookup:
			if op.Ids == input {
				return p.Params[op.Table].Rows
			}
		}
	}
	return false
}

// counted is the length of the axis that an input of lengths counts.
func counted(p *compute.Program, input int) int {
	for i, a := range p.Axes {
		if a.Max+1 == p.Inputs[input].Limit {
			return length(p, compute.Axis(i+1))
		}
	}
	return p.Inputs[input].Limit - 1
}

// usual are lengths of axes far below the most that they may have: 8 of the 35
// seconds of speech, and their letters.
var usual = map[string]int{"windows": 800, "letters": 140}

// length is how many time steps the batch has on an axis; 1 for none.
func length(p *compute.Program, a compute.Axis) int {
	if a == 0 {
		return 1
	}
	axis := p.Axes[a-1]
	if axis.Of != 0 {
		return axis.Length(length(p, axis.Of))
	}
	if n, ok := usual[axis.Name]; ok {
		return min(n, axis.Max)
	}
	return axis.Max
}
