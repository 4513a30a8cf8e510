package cpu

import (
	"fmt"

	"optimus/compute"
)

// executable implements compute.Executable.
type executable struct {
	p        *compute.Program
	capacity int
	threads  int
	pool     *pool

	bufs          [][]float32
	pictures      []*picture   // of each buffer: how it holds pictures; nil for rows
	setters       []compute.Op // of each buffer: who writes it first
	kernels       map[compute.Op]*compiled
	building      compute.Op  // while compiling: the operation whose kernel is made,
	copies        []*copies   // and its copies
	params, grads [][]float32 // nil for Rows blocks
	versions      []int       // of params: how often they were set
	tables        []*table    // nil for dense blocks
	lookups       [][]int     // of Rows blocks: inputs of ids; None for all rows
	aux, auxSum   [][]float32
	scratch       [][]float32 // per thread
	scratchSize   int
	checks        []func(*compute.Batch) error // what operations ask of a batch beyond sizes and ids

	forward, backward []step

	// The step that runs.
	n      int
	steps  []int // time steps of each axis; steps[0], of no axis, is 1
	train  bool
	batch  *compute.Batch
	key    compute.Key
	result compute.Result
}

func (e *executable) Program() *compute.Program { return e.p }

func (e *executable) SetParam(block, offset int, v []float32) {
	copy(e.params[block][offset:offset+len(v)], v)
	e.versions[block]++
}

func (e *executable) SetRow(block, row, offset int, v []float32) {
	e.tables[block].set(int32(row), offset, v)
}

func (e *executable) SetAux(i, offset int, v []float32) {
	copy(e.aux[i][offset:offset+len(v)], v)
}

func (e *executable) AuxSum(i int) []float32 { return e.auxSum[i] }

func (e *executable) Grad(block int) compute.Grad {
	if t := e.tables[block]; t != nil {
		return compute.Grad{Rows: t.gradRows, Values: t.gradient()}
	}
	return compute.Grad{Dense: e.grads[block]}
}

func (e *executable) Close() { e.pool.close() }

func (e *executable) Rows(block int, b *compute.Batch) ([]int32, error) {
	if block < 0 || block >= len(e.tables) || e.tables[block] == nil {
		return nil, fmt.Errorf("rows of %s: block %d has no rows; ask for Rows blocks only", e.p.Name, block)
	}
	if err := e.check(b); err != nil {
		return nil, fmt.Errorf("rows of %s: %w", e.p.Name, err)
	}
	return e.need(block, b), nil
}

// need makes the rows of b the working set of a table.
func (e *executable) need(block int, b *compute.Batch) []int32 {
	t := e.tables[block]
	t.begin()
	for _, ids := range e.lookups[block] {
		switch {
		case ids != compute.None:
			t.want(b.Inputs[ids].I)
		case b.N > 0:
			t.wantAll()
		}
	}
	return t.commit()
}

func (e *executable) Train(b *compute.Batch, k compute.Key, hooks compute.Hooks) (compute.Result, error) {
	if k.Examples != nil && len(k.Examples) != b.N {
		return compute.Result{}, fmt.Errorf("train %s: %w: the key names %d examples, the batch has %d", e.p.Name, ErrInput, len(k.Examples), b.N)
	}
	e.key, e.train = k, true
	if err := e.start(b); err != nil {
		return compute.Result{}, fmt.Errorf("train %s: %w", e.p.Name, err)
	}
	e.clear()
	if err := e.walk(e.forward, hooks); err != nil {
		return compute.Result{}, err
	}
	if err := e.walk(e.backward, hooks); err != nil {
		return compute.Result{}, err
	}
	for _, a := range e.auxSum {
		for j := range a {
			a[j] *= float32(e.result.Weight)
		}
	}
	return e.result, nil
}

func (e *executable) Evaluate(b *compute.Batch) (compute.Result, error) {
	e.key, e.train = compute.Key{}, false
	if err := e.start(b); err != nil {
		return compute.Result{}, fmt.Errorf("evaluate %s: %w", e.p.Name, err)
	}
	if err := e.walk(e.forward, compute.Hooks{}); err != nil {
		return compute.Result{}, err
	}
	return e.result, nil
}

// start checks the batch and makes it current.
func (e *executable) start(b *compute.Batch) error {
	if err := e.check(b); err != nil {
		return err
	}
	e.n, e.batch, e.result = b.N, b, compute.Result{}
	for block, t := range e.tables {
		if t != nil {
			e.need(block, b)
		}
	}
	return nil
}

// check verifies sizes and ids, so that kernels need not.
func (e *executable) check(b *compute.Batch) error {
	if b.N < 0 || b.N > e.capacity {
		return fmt.Errorf("%w: %d examples, compiled for up to %d", ErrInput, b.N, e.capacity)
	}
	if len(b.Inputs) != len(e.p.Inputs) {
		return fmt.Errorf("%w: %d inputs, the program has %d", ErrInput, len(b.Inputs), len(e.p.Inputs))
	}
	if err := e.measure(b); err != nil {
		return err
	}
	for i, in := range e.p.Inputs {
		size := in.Size() * e.steps[in.Axis]
		if have := values(in, &b.Inputs[i]); have != b.N*size {
			return fmt.Errorf("%w: input %q holds %d values, %d examples of shape %v and %d time steps have %d", ErrInput, in.Name, have, b.N, in.Shape, e.steps[in.Axis], b.N*size)
		}
		if in.Limit == 0 {
			continue
		}
		for j, v := range b.Inputs[i].I {
			if v < 0 || int(v) >= in.Limit {
				return fmt.Errorf("%w: input %q, example %d, position %d: value %d is outside [0,%d); the data and the model must share one vocabulary",
					ErrInput, in.Name, j/size, j%size, v, in.Limit)
			}
		}
	}
	for _, check := range e.checks {
		if err := check(b); err != nil {
			return err
		}
	}
	return nil
}

// measure sets the length of each time axis: what its first input in the batch
// says, or what follows from the axis that it is made of.
func (e *executable) measure(b *compute.Batch) error {
	clear(e.steps[1:])
	for i, in := range e.p.Inputs {
		if in.Axis == 0 || b.N == 0 || e.steps[in.Axis] > 0 {
			continue
		}
		axis, have := e.p.Axes[in.Axis-1], values(in, &b.Inputs[i])
		steps := have / (b.N * in.Size())
		if steps < 1 || steps > axis.Max {
			return fmt.Errorf("%w: input %q holds %d values, that is %d time steps of axis %q for %d examples; the program is made for 1 to %d: cut longer sequences or leave them out",
				ErrInput, in.Name, have, steps, axis.Name, b.N, axis.Max)
		}
		e.steps[in.Axis] = steps
	}
	for i, axis := range e.p.Axes {
		if axis.Of == 0 || b.N == 0 {
			continue
		}
		of := e.steps[axis.Of]
		if of+2*axis.Pad < axis.Window {
			return fmt.Errorf("%w: %d time steps of axis %q are too short for a window of %d", ErrInput, of, e.p.Axes[axis.Of-1].Name, axis.Window)
		}
		e.steps[i+1] = axis.Length(of)
	}
	return nil
}

// values returns how many values the batch holds for an input.
func values(in compute.Input, a *compute.Array) int {
	if in.Limit > 0 {
		return len(a.I)
	}
	return len(a.F)
}

// clear zeroes what kernels add to.
func (e *executable) clear() {
	for b, g := range e.grads {
		clear(g)
		if t := e.tables[b]; t != nil {
			t.train()
		}
	}
	for _, a := range e.auxSum {
		clear(a)
	}
}

// walk runs steps with their hooks. A batch of no examples runs the hooks alone.
func (e *executable) walk(steps []step, hooks compute.Hooks) error {
	for i := range steps {
		s := &steps[i]
		for _, b := range s.wait {
			if err := e.arrive(b, hooks.Wait); err != nil {
				return err
			}
		}
		if e.n > 0 {
			s.run()
		}
		if hooks.Ready != nil {
			for _, b := range s.ready {
				if err := hooks.Ready(b); err != nil {
					return fmt.Errorf("block %d (%s) ready: %w", b, e.p.Params[b].Name, err)
				}
			}
		}
	}
	return nil
}

// arrive waits for a block and checks that each row it needs is there.
func (e *executable) arrive(block int, wait func(int) error) error {
	name := e.p.Params[block].Name
	if wait != nil {
		if err := wait(block); err != nil {
			return fmt.Errorf("wait for block %d (%s): %w", block, name, err)
		}
	}
	if t := e.tables[block]; t != nil {
		if row, ok := t.missing(); ok {
			return fmt.Errorf("%w: row %d of block %d (%s) was never set; call Rows, then SetRow for each of them", ErrInput, row, block, name)
		}
	}
	return nil
}
