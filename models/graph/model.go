package graph

import (
	"fmt"
	"slices"

	"gorgonia.org/tensor"

	"optimus/compute"
	"optimus/compute/optim"
	"optimus/data/order"
	"optimus/internal/failure"
	"optimus/worker"
)

// model is a worker's instance: its parameters and gradients, and a graph for each
// size of batch that it met lately. All graphs read the same parameters.
type model struct {
	worker.Dense
	Config
	blocks        []optim.Param
	params, grads [][]float32
	programs      []*program // the last used first
}

// keep is how many graphs an instance keeps. A job meets two sizes in training and
// two in an evaluation; a rescale brings others.
const keep = 6

func newModel(c Config, params []optim.Param) *model {
	m := &model{Config: c, blocks: params}
	for _, p := range params {
		m.params = append(m.params, make([]float32, p.Size()))
		m.grads = append(m.grads, make([]float32, p.Size()))
	}
	return m
}

func (m *model) SetParam(block, offset int, v []float32) { copy(m.params[block][offset:], v) }
func (m *model) Grad(block int) compute.Grad             { return compute.Grad{Dense: m.grads[block]} }

// Train adds up the gradients of the parts that the examples are computed in.
func (m *model) Train(_ uint64, _ int, ids []int) (r compute.Result, err error) {
	for _, g := range m.grads {
		clear(g)
	}
	err = m.each(ids, true, func(p *program, n int) (float32, *tensor.Dense, error) {
		return p.train(m.params, func(block int, grad []float32) {
			sum := m.grads[block]
			for i, g := range grad {
				sum[i] += float32(n) * g
			}
		})
	}, &r)
	return r, err
}

// Evaluate computes loss and hits over validation examples.
func (m *model) Evaluate(ids []int) (r compute.Result, err error) {
	err = m.each(ids, false, func(p *program, _ int) (float32, *tensor.Dense, error) { return p.evaluate(m.params) }, &r)
	return r, err
}

// each cuts the examples into parts of about one size, fills a graph with each and
// runs it. n is the number of the part's examples.
func (m *model) each(ids []int, training bool, run func(p *program, n int) (float32, *tensor.Dense, error), sum *compute.Result) error {
	parts := min(1, len(ids))
	if m.Largest > 0 {
		parts = (len(ids) + m.Largest - 1) / m.Largest
	}
	for i := range parts {
		lo, hi := order.Slice(len(ids), i, parts)
		part := ids[lo:hi]
		copies := 1
		if len(part) == 1 {
			part, copies = []int{part[0], part[0]}, 2
		}
		p, err := m.program(len(part))
		if err != nil {
			return err
		}
		fail := func(doing string, err error) error {
			return m.failed("run graph", fmt.Sprintf("%d examples, the first %d", hi-lo, part[0]), failure.Internal, fmt.Errorf("%s: %w", doing, err), "")
		}
		for _, in := range p.inputs {
			in.Zero()
		}
		if err := m.Fill(part, training, p.inputs); err != nil {
			return fail("filling the inputs", err)
		}
		loss, output, err := run(p, hi-lo)
		if err != nil {
			return fail("computing", err)
		}
		r := compute.Result{Loss: float64(loss) * float64(hi-lo), Weight: int64(hi - lo)}
		if m.Hits != nil {
			hits, err := m.Hits(output, p.inputs)
			if err == nil && (hits < 0 || hits > len(part)) {
				err = fmt.Errorf("%d of %d", hits, len(part))
			}
			if err != nil {
				return fail("counting hits", err)
			}
			r.Counts[0] = int64(hits / copies)
		}
		sum.Add(r)
	}
	return nil
}

// program returns the graph for a batch, built if need be.
func (m *model) program(batch int) (*program, error) {
	at := slices.IndexFunc(m.programs, func(p *program) bool { return p.batch == batch })
	if at < 0 {
		p, err := newProgram(m.Config, batch)
		if err != nil {
			return nil, err
		}
		if err := sameParams(m.blocks, p.learned()); err != nil {
			return nil, m.invalid("", err, doSame)
		}
		m.programs = slices.Insert(m.programs, 0, p)
		m.programs = m.programs[:min(len(m.programs), keep)]
		return p, nil
	}
	p := m.programs[at]
	m.programs = slices.Insert(slices.Delete(m.programs, at, at+1), 0, p)
	return p, nil
}
