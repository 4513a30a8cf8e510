package step

import "optimus/compute"

// FLOP returns the floating-point operations of a step in products, where a
// multiplication and an addition are two. Norms, activations and the optimizer do
// not count.
func (s *Step) FLOP() float64 {
	total := 0.0
	for _, list := range [][]compute.Step{s.Program.Forward, s.Program.Backward} {
		for _, f := range list {
			total += 2 * s.macs(f)
		}
	}
	return total * float64(s.Batch)
}

// macs returns the multiply-adds of one step of the Program for one example.
func (s *Step) macs(f compute.Step) float64 {
	p := s.Program
	over := func(b compute.Buf, n ...int) float64 { // the product of n, per time step of b
		x := float64(length(p, p.Buffers[b].Axis))
		for _, v := range n {
			x *= float64(v)
		}
		return x
	}
	switch op := f.Op.(type) {
	case *compute.Conv2D:
		n := op.Out.Size()
		if p.Buffers[op.Y].Axis != 0 {
			n /= op.Out.H // time runs down the picture
		}
		return over(op.Y, n, op.In.C/op.Groups, op.KH, op.KW)
	case *compute.Dense:
		return over(op.Y, op.Rows, op.In, op.Out)
	case *compute.Conv1D:
		return over(op.Y, op.T-op.H+1, op.H, op.E, op.F)
	case *compute.ConvMax:
		if f.Pass == compute.Forward {
			return over(op.Y, op.T-op.H+1, op.H, op.E, op.F)
		}
		return over(op.Y, op.H, op.E, op.F) // one window of each filter
	case *compute.LSTM:
		return recurrent(f.Pass, over(op.Y, 4*op.H, op.In), over(op.Y, 4*op.H, op.H))
	case *compute.GRU:
		return recurrent(f.Pass, over(op.Y, 3*op.H, op.In), over(op.Y, 3*op.H, op.H))
	case *compute.AttentionDecoder:
		memory := length(p, p.Buffers[op.Memory].Axis)
		forward := over(op.Y, op.H, 4*(op.In+2*op.H)+3*op.H+2*memory)
		if f.Pass == compute.Forward {
			return forward
		}
		return 2 * forward
	}
	return 0
}

// recurrent layers make the gradients of weights and states in one pass and that
// of the input in another.
func recurrent(p compute.Pass, input, state float64) float64 {
	switch p {
	case compute.Forward:
		return input + state
	case compute.ParamGrad:
		return input + 2*state
	}
	return input
}

// Memory is what a step holds, in bytes.
type Memory struct {
	Weights     int64 `json:"weights"`     // twice: the server's and the executable's
	State       int64 `json:"state"`       // of the optimizer
	Gradients   int64 `json:"gradients"`   // of the blocks
	Activations int64 `json:"activations"` // all buffers of the program, their gradients among them
	Heap        int64 `json:"heap"`        // what the process allocated and keeps for it
}

// Counted is the sum of the parts.
func (m Memory) Counted() int64 { return m.Weights + m.State + m.Gradients + m.Activations }

// memory counts what the program asks for. Of tables it counts all rows.
func memory(p *compute.Program, batch, slots int) Memory {
	const float = 4
	params := int64(p.Parameters()) * float
	m := Memory{Weights: 2 * params, State: int64(slots) * params, Gradients: params}
	for _, b := range p.Buffers {
		m.Activations += int64(b.Size()*p.Steps(b.Axis)*batch) * float
	}
	return m
}
