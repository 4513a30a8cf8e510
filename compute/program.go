package compute

import (
	"fmt"

	"optimus/compute/optim"
)

// Buf indexes Program.Buffers; None says that an operation has no such buffer.
type Buf int

// None is the absent buffer, block, or auxiliary array.
const None = -1

// Axis is a time axis of a Program: 0 is none, k is Axes[k-1].
type Axis int

// TimeAxis is a dimension whose length differs from batch to batch: the padded
// length of the batch's sequences. Memory is for Max; work is for the length.
type TimeAxis struct {
	Name string
	Max  int
	// Of, if not 0, makes this the axis that a window leaves of an earlier one:
	// its length is (that of Of + 2·Pad - Window)/Stride + 1.
	Of                  Axis
	Window, Stride, Pad int
}

// Length returns the length of the axis for that of the axis Of.
func (a TimeAxis) Length(of int) int { return (of+2*a.Pad-a.Window)/a.Stride + 1 }

// Buffer is an activation or its gradient: float32 values of a shape per example
// and, with an Axis, per time step. Operations may see it in another shape of the
// same size.
type Buffer struct {
	Name  string
	Shape []int
	Axis  Axis
}

// Size returns the number of values per example, or per time step of an example.
func (b Buffer) Size() int { return product(b.Shape) }

// Input is one array of a batch.
type Input struct {
	Name  string
	Shape []int // per example and, with an Axis, per time step
	Axis  Axis
	// Limit is 0 for float inputs; otherwise the input holds int32 values in
	// [0, Limit): token ids, labels.
	Limit int
}

// Size returns the number of values per example, or per time step of an example.
func (in Input) Size() int { return product(in.Shape) }

// Pass says which part of an operation a Step runs.
type Pass int

const (
	Forward   Pass = iota
	InputGrad      // gradient with respect to the inputs, from that of the output
	ParamGrad      // gradient with respect to the blocks, from that of the output
)

// Step is one operation in one pass, with the marks for the worker.
type Step struct {
	Op    Op
	Pass  Pass
	Wait  []int // blocks first needed here: Hooks.Wait is called before the step
	Ready []int // blocks whose gradient is final and whose values are no longer read: Hooks.Ready is called after the step
}

// Program is the step of a model. It holds no values and is not changed after
// Seal, so one Program may be compiled many times.
type Program struct {
	Name    string
	Axes    []TimeAxis // those that a batch sets, and those made of them
	Inputs  []Input    // in the order of Batch.Inputs
	Buffers []Buffer
	Params  []optim.Param // the Blocks, in the order in which the forward pass needs them
	// Aux are arrays that follow statistics of the data instead of a gradient:
	// batch norm's running mean and variance. After a step the servers set
	//	aux = AuxMomentum*aux + (1-AuxMomentum) * sum over workers of AuxSum / sum of weights.
	Aux         []optim.Param
	AuxMomentum float64
	Forward     []Step
	Backward    []Step
	Metric      Metric
}

// Parameters returns the number of elements of all blocks.
func (p *Program) Parameters() int {
	n := 0
	for _, b := range p.Params {
		n += b.Size()
	}
	return n
}

// Seal checks that axes can be measured, that every step names buffers, blocks
// and inputs that exist, and sets the Wait and Ready marks. A block must be used
// forward and have a gradient, else a worker would wait for ever.
func (p *Program) Seal() error {
	if err := p.checkAxes(); err != nil {
		return fmt.Errorf("seal program %s: %w", p.Name, err)
	}
	first, last := make([]int, len(p.Params)), make([]int, len(p.Params))
	for b := range p.Params {
		first[b], last[b] = -1, -1
	}
	graded := make([]bool, len(p.Params))
	scan := func(steps []Step, visit func(step, block int)) error {
		for i := range steps {
			s := &steps[i]
			s.Wait, s.Ready = nil, nil
			if err := p.checkStep(s); err != nil {
				return fmt.Errorf("seal program %s: step %d (%T): %w", p.Name, i, s.Op, err)
			}
			for _, b := range s.Op.Uses().Blocks {
				if b != None {
					visit(i, b)
				}
			}
		}
		return nil
	}
	if err := scan(p.Forward, func(i, b int) {
		if first[b] < 0 {
			first[b] = i
		}
	}); err != nil {
		return err
	}
	if err := scan(p.Backward, func(i, b int) {
		last[b] = i
		graded[b] = graded[b] || p.Backward[i].Pass == ParamGrad
	}); err != nil {
		return err
	}
	for b, param := range p.Params {
		if first[b] < 0 || !graded[b] {
			return fmt.Errorf("seal program %s: block %d (%s) has no forward use or no gradient; remove it or connect it to the loss", p.Name, b, param.Name)
		}
		w, r := &p.Forward[first[b]], &p.Backward[last[b]]
		w.Wait, r.Ready = append(w.Wait, b), append(r.Ready, b)
	}
	return nil
}

// checkAxes verifies that each axis has a length: by an input, or by the axis that
// it is made of.
func (p *Program) checkAxes() error {
	known := make([]bool, len(p.Axes)+1)
	known[0] = true
	for _, in := range p.Inputs {
		if in.Axis < 0 || int(in.Axis) > len(p.Axes) {
			return fmt.Errorf("input %q: axis %d of %d", in.Name, in.Axis, len(p.Axes))
		}
		known[in.Axis] = true
	}
	for i, a := range p.Axes {
		k := Axis(i + 1)
		switch {
		case a.Max < 1:
			return fmt.Errorf("axis %q: the most steps are %d; at least 1 is needed", a.Name, a.Max)
		case a.Of < 0 || a.Of >= k:
			return fmt.Errorf("axis %q is made of axis %d; it must be an earlier one", a.Name, a.Of)
		case a.Of == 0 && !known[k]:
			return fmt.Errorf("axis %q: no input tells its length", a.Name)
		case a.Of != 0 && (a.Stride < 1 || a.Window < 1 || a.Max != a.Length(p.Axes[a.Of-1].Max)):
			return fmt.Errorf("axis %q: %+v does not follow from axis %q", a.Name, a, p.Axes[a.Of-1].Name)
		}
	}
	for _, b := range p.Buffers {
		if b.Axis < 0 || int(b.Axis) > len(p.Axes) {
			return fmt.Errorf("buffer %q: axis %d of %d", b.Name, b.Axis, len(p.Axes))
		}
	}
	return nil
}

// Steps returns the most time steps of an axis; 1 for none.
func (p *Program) Steps(a Axis) int {
	if a == 0 {
		return 1
	}
	return p.Axes[a-1].Max
}

func (p *Program) checkStep(s *Step) error {
	reads, writes := s.Op.Touch(s.Pass)
	for _, list := range [][]Buf{reads, writes} {
		for _, b := range list {
			if b != None && (b < 0 || int(b) >= len(p.Buffers)) {
				return fmt.Errorf("buffer %d of %d", b, len(p.Buffers))
			}
		}
	}
	u := s.Op.Uses()
	for _, list := range []struct {
		what string
		ids  []int
		n    int
	}{{"block", u.Blocks, len(p.Params)}, {"input", u.Inputs, len(p.Inputs)}, {"auxiliary array", u.Aux, len(p.Aux)}} {
		for _, id := range list.ids {
			if id != None && (id < 0 || id >= list.n) {
				return fmt.Errorf("%s %d of %d", list.what, id, list.n)
			}
		}
	}
	return nil
}

func product(shape []int) int {
	n := 1
	for _, d := range shape {
		n *= d
	}
	return n
}
