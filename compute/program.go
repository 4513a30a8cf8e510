package compute

import (
	"fmt"

	"optimus/compute/optim"
)

// Buf indexes Program.Buffers; None says that an operation has no such buffer.
type Buf int

// None is the absent buffer, block, or auxiliary array.
const None = -1

// Buffer is an activation or its gradient: Size float32 values per example.
type Buffer struct {
	Name string
	Size int
	// Accumulate marks the gradient of a value that several operations read:
	// it is cleared before a training step and every writer adds to it.
	Accumulate bool
}

// Input is one array of a batch.
type Input struct {
	Name  string
	Shape []int // per example
	// Limit is 0 for float inputs; otherwise the input holds int32 values in
	// [0, Limit): token ids, labels.
	Limit int
}

// Size returns the number of values per example.
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
	Inputs  []Input // in the order of Batch.Inputs
	Buffers []Buffer
	Params  []optim.Param // the Blocks, in the order in which the forward pass needs them
	// Aux are arrays that follow statistics of the data instead of a gradient:
	// batch norm's running mean and variance. After a step the servers set
	//	aux = AuxMomentum*aux + (1-AuxMomentum) * sum over workers of AuxSum / sum of weights.
	Aux         []optim.Param
	AuxMomentum float64
	Forward     []Step
	Backward    []Step
	// Metric names Result.Correct / Result.Weight: "accuracy".
	Metric string
}

// Parameters returns the number of elements of all blocks.
func (p *Program) Parameters() int {
	n := 0
	for _, b := range p.Params {
		n += b.Size()
	}
	return n
}

// Seal checks that every step names buffers, blocks and inputs that exist, and
// sets the Wait and Ready marks. A block must be used forward and have a
// gradient, else a worker would wait for ever.
func (p *Program) Seal() error {
	first, last := make([]int, len(p.Params)), make([]int, len(p.Params))
	for b := range p.Params {
		first[b], last[b] = -1, -1
	}
	graded := make([]bool, len(p.Params))
	scan := func(steps []Step, visit func(step, block int)) error {
		for i := range steps {
			s := &steps[i]
			s.Wait, s.Ready = nil, nil
			use := s.Op.Uses()
			if err := p.checkUse(use); err != nil {
				return fmt.Errorf("seal program %s: step %d (%T): %w", p.Name, i, s.Op, err)
			}
			for _, b := range use.Blocks {
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

func (p *Program) checkUse(u Use) error {
	for _, b := range u.Buffers {
		if b != None && (b < 0 || int(b) >= len(p.Buffers)) {
			return fmt.Errorf("buffer %d of %d", b, len(p.Buffers))
		}
	}
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
