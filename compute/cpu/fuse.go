package cpu

import (
	"slices"

	"optimus/compute"
)

// normed is a batch norm with what follows it in residual nets, in one pass over
// the pixels: y = max(0, norm(x) + residual), where residual and maximum may be
// left out. Y and DY are those of the last operation.
type normed struct {
	compute.BatchNorm
	ReLU                bool
	Residual, DResidual compute.Buf
}

// Touch differs from BatchNorm's by the residual, and by the sign of Y where there
// is a maximum.
func (o *normed) Touch(p compute.Pass) (reads, writes []compute.Buf) {
	switch p {
	case compute.Forward:
		return []compute.Buf{o.X, o.Residual}, []compute.Buf{o.Y}
	case compute.InputGrad:
		writes = []compute.Buf{o.DX, o.DResidual}
	}
	reads = []compute.Buf{o.X, o.DY}
	if o.ReLU {
		reads = append(reads, o.Y)
	}
	return reads, writes
}

// fuse returns the program that is run: p with every batch norm made a normed
// that takes in the sum of two and the ReLU behind it, where nobody else reads what
// lies between. It stands where the last of them stood.
func fuse(p *compute.Program) (*compute.Program, error) {
	q := *p
	q.Forward, q.Backward = slices.Clone(p.Forward), slices.Clone(p.Backward)
	readers := map[compute.Buf][]compute.Op{}
	for _, s := range p.Forward {
		reads, _ := s.Op.Touch(compute.Forward)
		for _, b := range reads {
			readers[b] = append(readers[b], s.Op)
		}
	}
	only := func(b compute.Buf) compute.Op {
		if len(readers[b]) != 1 {
			return nil
		}
		return readers[b][0]
	}
	taken := map[compute.Op]bool{}
	for _, s := range p.Forward {
		norm, ok := s.Op.(*compute.BatchNorm)
		if !ok {
			continue
		}
		o := &normed{BatchNorm: *norm, Residual: compute.None, DResidual: compute.None}
		parts := []compute.Op{norm}
		if sum, ok := only(o.Y).(*compute.Add); ok && len(sum.X) == 2 && sum.X[0] != sum.X[1] && !taken[sum] {
			other := 1 - slices.Index(sum.X, o.Y)
			o.Residual, o.DResidual, o.Y, o.DY = sum.X[other], sum.DX[other], sum.Y, sum.DY
			parts = append(parts, sum)
		}
		if relu, ok := only(o.Y).(*compute.ReLU); ok {
			o.ReLU, o.Y, o.DY = true, relu.Y, relu.DY
			parts = append(parts, relu)
		}
		for _, part := range parts {
			taken[part] = true
		}
		q.Forward = replace(q.Forward, parts, o, compute.Forward)
		q.Backward = replace(q.Backward, parts, o, passes(p.Backward, norm, o.DResidual)...)
	}
	shorten(&q)
	return &q, q.Seal()
}

// passes returns the backward passes of a batch norm; a residual's gradient needs
// the second even where that of X is not needed.
func passes(steps []compute.Step, norm compute.Op, residual compute.Buf) []compute.Pass {
	var list []compute.Pass
	for _, s := range steps {
		if s.Op == norm {
			list = append(list, s.Pass)
		}
	}
	if residual != compute.None && !slices.Contains(list, compute.InputGrad) {
		list = append(list, compute.InputGrad)
	}
	return list
}

// replace takes the steps of parts out and puts the passes of op in: forward where
// the last part stood, backward where the first step of the last part did.
func replace(steps []compute.Step, parts []compute.Op, op compute.Op, passes ...compute.Pass) []compute.Step {
	var out []compute.Step
	last, done := parts[len(parts)-1], false
	for _, s := range steps {
		if s.Op == last && !done {
			for _, pass := range passes {
				out = append(out, compute.Step{Op: op, Pass: pass})
			}
			done = true
		}
		if !slices.Contains(parts, s.Op) {
			out = append(out, s)
		}
	}
	return out
}

// betaGrad is the gradient of β of a batch norm with fixed γ, from the output's gradient
// of the convolution that reads the norm. ParamGrad.
type betaGrad struct {
	conv *compute.Conv2D
	norm *normed
}

func (o *betaGrad) Uses() compute.Use {
	return compute.Use{Blocks: []int{o.norm.Gamma, o.norm.Beta, o.conv.Filter}}
}

func (o *betaGrad) Touch(compute.Pass) (reads, writes []compute.Buf) {
	return []compute.Buf{o.conv.DY}, nil
}

// shorten puts a betaGrad where a convolution would compute the gradient of its input
// for nothing but the β of a norm, as behind a norm of the data: β needs only sums of it.
func shorten(p *compute.Program) {
	for i, s := range p.Backward {
		old, ok := s.Op.(*compute.Conv2D)
		if !ok || s.Pass != compute.InputGrad || p.Buffers[old.Y].Axis != 0 {
			continue
		}
		steps := touching(p.Backward, old.DX)
		if len(steps) != 2 {
			continue
		}
		norm, ok := p.Backward[steps[1]].Op.(*normed)
		if !ok || norm.ReLU || !norm.FixGamma {
			continue
		}
		conv := *old
		conv.DX, norm.DY = compute.None, compute.None
		p.Backward[i] = compute.Step{Op: &betaGrad{&conv, norm}, Pass: compute.ParamGrad}
		p.Forward = replace(p.Forward, []compute.Op{old}, &conv, compute.Forward)
		p.Backward = replace(slices.Delete(p.Backward, steps[1], steps[1]+1), []compute.Op{old}, &conv, compute.ParamGrad)
		return // there is one norm of the data
	}
}

// touching returns which steps read or write b.
func touching(steps []compute.Step, b compute.Buf) (list []int) {
	for i, s := range steps {
		reads, writes := s.Op.Touch(s.Pass)
		if slices.Contains(reads, b) || slices.Contains(writes, b) {
			list = append(list, i)
		}
	}
	return list
}
