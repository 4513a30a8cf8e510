package cpu

import (
	"errors"
	"fmt"

	"optimus/compute"
	"optimus/compute/cpu/plane"
	"optimus/compute/cpu/sgemm"
)

// ErrInput is wrapped by the errors about a batch: its size, its ids, its labels.
var ErrInput = errors.New("invalid batch")

// Option adjusts Compile.
type Option func(*executable)

// Threads sets how many cores a step may use; the default is 1, since the workers
// of a job share a machine's cores. It does not change the bits.
func Threads(n int) Option { return func(e *executable) { e.threads = n } }

// Compile makes p ready to run on batches of up to capacity examples. It fails if
// the capacity or the number of threads is not positive, or p holds an operation
// that this backend does not know.
func Compile(p *compute.Program, capacity int, options ...Option) (compute.Executable, error) {
	e := &executable{p: p, capacity: capacity, threads: 1}
	for _, o := range options {
		o(e)
	}
	if capacity < 1 || e.threads < 1 {
		return nil, fmt.Errorf("compile %s: capacity %d and threads %d must be at least 1", p.Name, capacity, e.threads)
	}
	if _, err := sgemm.Current(); err != nil {
		return nil, fmt.Errorf("compile %s: %w", p.Name, err)
	}
	if err := checkRows(p); err != nil {
		return nil, err
	}
	run, err := fuse(p)
	if err != nil {
		return nil, err
	}
	if err := e.allocate(run); err != nil {
		return nil, fmt.Errorf("compile %s: %w", p.Name, err)
	}
	e.kernels = map[compute.Op]*compiled{}
	if e.forward, err = e.bind(run.Forward); err != nil {
		return nil, err
	}
	if e.backward, err = e.bind(run.Backward); err != nil {
		return nil, err
	}
	e.scratch = make([][]float32, e.threads)
	for t := range e.scratch {
		e.scratch[t] = make([]float32, e.scratchSize)
	}
	e.pool = newPool(e.threads)
	return e, nil
}

// reads returns the block whose rows an operation reads and the input that tells
// which, so many per time step; without an input it is all. Both are None for other
// operations.
func reads(op compute.Op) (table, ids, count int) {
	switch op := op.(type) {
	case *compute.Lookup:
		return op.Table, op.Ids, op.T
	case *compute.Bag:
		return op.Table, op.Ids, op.Bags * op.Most
	case *compute.Greedy:
		return op.Table, compute.None, 0
	}
	return compute.None, compute.None, 0
}

// checkRows verifies that Rows blocks, of which only some rows are here, are read
// row by row, and others are not.
func checkRows(p *compute.Program) error {
	for _, s := range p.Forward {
		table, _, _ := reads(s.Op)
		for _, b := range s.Op.Uses().Blocks {
			if b != compute.None && p.Params[b].Rows != (b == table) {
				return fmt.Errorf("compile %s: %T uses block %s; Lookup, Bag and Greedy read Rows blocks, and only they do", p.Name, s.Op, p.Params[b].Name)
			}
		}
	}
	return nil
}

// allocate makes the buffers of the program that is run, and the blocks, tables
// and auxiliary arrays.
func (e *executable) allocate(run *compute.Program) (err error) {
	e.steps = make([]int, len(e.p.Axes)+1)
	for a := range e.steps {
		e.steps[a] = e.p.Steps(compute.Axis(a))
	}
	if e.pictures, err = pictures(run); err != nil {
		return err
	}
	var sizes []int
	for b := range e.p.Buffers {
		info := e.p.Buffers[b]
		whole := port{size: info.Size(), steps: &e.steps[info.Axis], pic: e.pictures[b]}
		sizes = append(sizes, e.capacity*whole.len())
	}
	life := lives(run)
	of := merge(run, life, func(a, b compute.Buf) bool {
		return sizes[a] == sizes[b] && (e.pictures[a] == nil) == (e.pictures[b] == nil)
	})
	offsets, total := place(sizes, life)
	arena := make([]float32, total)
	for b := range sizes {
		at := offsets[of[b]]
		e.bufs = append(e.bufs, arena[at:at+sizes[b]:at+sizes[b]])
	}
	e.setters = setters(run)
	ids := e.idsPerExample()
	for b, param := range e.p.Params {
		var w, g []float32
		var t *table
		if param.Rows {
			t = newTable(param, e.capacity*ids[b])
		} else {
			w, g = make([]float32, param.Size()), make([]float32, param.Size())
		}
		e.params, e.grads, e.tables = append(e.params, w), append(e.grads, g), append(e.tables, t)
	}
	e.versions = make([]int, len(e.params))
	for _, a := range e.p.Aux {
		e.aux = append(e.aux, make([]float32, a.Size()))
		e.auxSum = append(e.auxSum, make([]float32, a.Size()))
	}
	return nil
}

// idsPerExample returns for each block how many rows an example looks up.
func (e *executable) idsPerExample() []int {
	counts := make([]int, len(e.p.Params))
	e.lookups = make([][]int, len(e.p.Params))
	for _, s := range e.p.Forward {
		table, ids, count := reads(s.Op)
		switch {
		case table == compute.None:
			continue
		case ids == compute.None:
			counts[table] += e.p.Params[table].Shape[0]
		default:
			counts[table] += count * e.steps[e.p.Inputs[ids].Axis]
		}
		e.lookups[table] = append(e.lookups[table], ids)
	}
	return counts
}

// step is a compiled compute.Step.
type step struct {
	run         func()
	wait, ready []int
}

// kernel is a compiled operation. A pass that the operation does not have does
// nothing.
type kernel interface {
	forward()
	inputGrad()
	paramGrad()
}

// compiled is an operation's kernel and the copies that it works on.
type compiled struct {
	kernel
	copies []*copies
}

func (e *executable) bind(steps []compute.Step) ([]step, error) {
	var out []step
	for _, s := range steps {
		k, ok := e.kernels[s.Op]
		if !ok {
			e.building, e.copies = s.Op, nil
			made, err := e.kernel(s.Op)
			if err == nil && made == nil {
				err = fmt.Errorf("the processor backend has no operation %T", s.Op)
			}
			if err != nil {
				return nil, fmt.Errorf("compile %s: %w", e.p.Name, err)
			}
			k = &compiled{made, e.copies}
			e.kernels[s.Op] = k
		}
		run := k.forward
		switch s.Pass {
		case compute.InputGrad:
			run = k.inputGrad
		case compute.ParamGrad:
			run = k.paramGrad
		}
		reads, writes := s.Op.Touch(s.Pass)
		out = append(out, step{around(run, k.copies, reads, writes), s.Wait, s.Ready})
	}
	return out, nil
}

func (e *executable) kernel(op compute.Op) (kernel, error) {
	switch op := op.(type) {
	case *compute.Load:
		return newLoad(e, op), nil
	case *compute.Crop:
		return newCrop(e, op), nil
	case *compute.Lookup:
		return newLookup(e, op), nil
	case *compute.Dense:
		return newDense(e, op), nil
	case *compute.Conv1D:
		return newConv1D(e, op), nil
	case *compute.ConvMax:
		return newConvMax(e, op), nil
	case *compute.MaxTime:
		return newMaxTime(e, op), nil
	case *compute.ReLU:
		return newReLU(e, op), nil
	case *compute.Add:
		return newAdd(e, op), nil
	case *compute.Concat:
		return newConcat(e, op), nil
	case *compute.Conv2D:
		return newConv2D(e, op)
	case *normed:
		return newNormed(e, op), nil
	case *betaGrad:
		return newBetaSums(e, op), nil
	case *compute.Pool:
		return newPooled(e, op)
	case *compute.Frames:
		return newFrames(e, op), nil
	case *compute.Dropout:
		return newDropout(e, op), nil
	case *compute.SoftmaxLoss:
		return newSoftmax(e, op), nil
	case *compute.Bag:
		return newBag(e, op), nil
	case *compute.SampledLoss:
		return newSampled(e, op), nil
	case *compute.Greedy:
		return newGreedy(e, op)
	case *compute.CTC:
		return newCTC(e, op)
	case *compute.LSTM:
		return newLSTM(e, op), nil
	case *compute.GRU:
		return newGRU(e, op), nil
	case *compute.AttentionDecoder:
		return newDecoder(e, op), nil
	case *compute.Tanh:
		return newTanh(e, op), nil
	case *compute.LastStep:
		return newLastStep(e, op), nil
	}
	return nil, nil
}

// reserve makes sure that each thread has n floats of scratch.
func (e *executable) reserve(n int) { e.scratchSize = max(e.scratchSize, n) }

// port is a kernel's view of one buffer.
type port struct {
	data  []float32
	size  int      // values per time step of an example
	steps *int     // the batch's time steps; of a buffer without a time axis 1
	add   bool     // earlier steps have written this gradient: add to it
	pic   *picture // nil if it is held in rows
}

// port resolves b; the zero port stands for None.
func (e *executable) port(b compute.Buf) port {
	if b == compute.None {
		return port{}
	}
	return e.known(b, e.whole(b))
}

func (e *executable) whole(b compute.Buf) port {
	info := e.p.Buffers[b]
	return port{data: e.bufs[b], size: info.Size(), steps: &e.steps[info.Axis], pic: e.pictures[b]}
}

// known returns p, or if the operation that is being built does not know how it is
// held a copy.
func (e *executable) known(b compute.Buf, p port) port {
	if way := knows(e.p, e.building); way == either || (way == rowsOnly) == (p.pic == nil) {
		return p
	}
	for _, c := range e.copies {
		if c.buf == b {
			return c.own
		}
	}
	c := newCopies(e, b, p)
	e.copies = append(e.copies, c)
	return c.own
}

// sink resolves the buffer of a gradient that op writes, for the first time or
// once more.
func (e *executable) sink(op compute.Op, b compute.Buf) port {
	if b == compute.None {
		return port{}
	}
	p := e.whole(b)
	if p.add = e.setters[b] != op; !p.add {
		e.setters[b] = nil // op adds if it writes b a second time
	}
	return e.known(b, p)
}

// len returns how many elements an example of the batch takes.
func (p port) len() int {
	if p.pic != nil {
		return plane.Blocks(p.pic.channels) * p.shape().Len()
	}
	return p.size * *p.steps
}

// at returns the values of example i.
func (p port) at(i int) []float32 {
	n := p.len()
	return p.data[i*n : (i+1)*n : (i+1)*n]
}

// same reports whether two buffers lie in one place.
func (p port) same(o port) bool {
	return len(p.data) > 0 && len(o.data) > 0 && &p.data[0] == &o.data[0]
}

// fresh returns the values of example i for a writer that adds: cleared, unless
// earlier steps have written them.
func (p port) fresh(i int) []float32 {
	v := p.at(i)
	if !p.add {
		clear(v)
	}
	return v
}

// put writes v to dst, or adds it where the gradient is shared.
func (p port) put(dst []float32, j int, v float32) {
	if p.add {
		v += dst[j]
	}
	dst[j] = v
}

// ports are the usual four.
type ports struct{ x, dx, y, dy port }

func (e *executable) ports(op compute.Op, io compute.IO) ports {
	return ports{e.port(io.X), e.sink(op, io.DX), e.port(io.Y), e.port(io.DY)}
}

// block returns the values and the gradient of a dense block; nil for None.
func (e *executable) block(b int) (value, grad []float32) {
	if b == compute.None {
		return nil, nil
	}
	return e.params[b], e.grads[b]
}

// none is embedded by kernels for the passes that they do not have.
type none struct{}

func (none) inputGrad() {}
func (none) paramGrad() {}
