package cpu

import (
	"errors"
	"fmt"

	"optimus/compute"
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
	e.allocate()
	kernels := map[compute.Op]kernel{}
	var err error
	if e.forward, err = e.bind(p.Forward, kernels); err != nil {
		return nil, err
	}
	if e.backward, err = e.bind(p.Backward, kernels); err != nil {
		return nil, err
	}
	e.scratch = make([][]float32, e.threads)
	for t := range e.scratch {
		e.scratch[t] = make([]float32, e.scratchSize)
	}
	e.pool = newPool(e.threads)
	return e, nil
}

// checkRows verifies that Rows blocks, of which only some rows are here, are read by
// Lookup alone, and Lookup reads no other.
func checkRows(p *compute.Program) error {
	for _, s := range p.Forward {
		_, lookup := s.Op.(*compute.Lookup)
		for _, b := range s.Op.Uses().Blocks {
			if b != compute.None && p.Params[b].Rows != lookup {
				return fmt.Errorf("compile %s: %T uses block %s; Lookup reads Rows blocks, and only Lookup does", p.Name, s.Op, p.Params[b].Name)
			}
		}
	}
	return nil
}

// allocate makes the buffers, blocks, tables and auxiliary arrays.
func (e *executable) allocate() {
	e.steps = make([]int, len(e.p.Axes)+1)
	for a := range e.steps {
		e.steps[a] = e.p.Steps(compute.Axis(a))
	}
	var sizes []int
	for _, b := range e.p.Buffers {
		sizes = append(sizes, e.capacity*b.Size()*e.steps[b.Axis])
	}
	offsets, total := place(sizes, lives(e.p))
	arena := make([]float32, total)
	for b, at := range offsets {
		e.bufs = append(e.bufs, arena[at:at+sizes[b]:at+sizes[b]])
	}
	e.setters = setters(e.p)
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
	for _, a := range e.p.Aux {
		e.aux = append(e.aux, make([]float32, a.Size()))
		e.auxSum = append(e.auxSum, make([]float32, a.Size()))
	}
}

// idsPerExample returns for each block how many rows an example looks up.
func (e *executable) idsPerExample() []int {
	ids := make([]int, len(e.p.Params))
	e.lookups = make([][]*compute.Lookup, len(e.p.Params))
	for _, s := range e.p.Forward {
		if op, ok := s.Op.(*compute.Lookup); ok {
			ids[op.Table] += op.T * e.steps[e.p.Inputs[op.Ids].Axis]
			e.lookups[op.Table] = append(e.lookups[op.Table], op)
		}
	}
	return ids
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

func (e *executable) bind(steps []compute.Step, kernels map[compute.Op]kernel) ([]step, error) {
	var out []step
	for _, s := range steps {
		k, ok := kernels[s.Op]
		if !ok {
			if k = e.kernel(s.Op); k == nil {
				return nil, fmt.Errorf("compile %s: the processor backend has no operation %T", e.p.Name, s.Op)
			}
			kernels[s.Op] = k
		}
		run := k.forward
		switch s.Pass {
		case compute.InputGrad:
			run = k.inputGrad
		case compute.ParamGrad:
			run = k.paramGrad
		}
		out = append(out, step{run, s.Wait, s.Ready})
	}
	return out, nil
}

func (e *executable) kernel(op compute.Op) kernel {
	switch op := op.(type) {
	case *compute.Load:
		return newLoad(e, op)
	case *compute.Crop:
		return newCrop(e, op)
	case *compute.Lookup:
		return newLookup(e, op)
	case *compute.Dense:
		return newDense(e, op)
	case *compute.Conv1D:
		return newConv1D(e, op)
	case *compute.ConvMax:
		return newConvMax(e, op)
	case *compute.MaxTime:
		return newMaxTime(e, op)
	case *compute.ReLU:
		return newReLU(e, op)
	case *compute.Add:
		return newAdd(e, op)
	case *compute.Concat:
		return newConcat(e, op)
	case *compute.Conv2D:
		return newConv2D(e, op)
	case *compute.BatchNorm:
		return newBatchNorm(e, op)
	case *compute.Pool:
		return newPooling(e, op)
	case *compute.Frames:
		return newFrames(e, op)
	case *compute.Dropout:
		return newDropout(e, op)
	case *compute.SoftmaxLoss:
		return newSoftmax(e, op)
	}
	return nil
}

// reserve makes sure that each thread has n floats of scratch.
func (e *executable) reserve(n int) { e.scratchSize = max(e.scratchSize, n) }

// port is a kernel's view of one buffer.
type port struct {
	data  []float32
	size  int  // values per time step of an example
	steps *int // the batch's time steps; of a buffer without a time axis 1
	add   bool // earlier steps have written this gradient: add to it
}

// port resolves b; the zero port stands for None.
func (e *executable) port(b compute.Buf) port {
	if b == compute.None {
		return port{}
	}
	info := e.p.Buffers[b]
	return port{data: e.bufs[b], size: info.Size(), steps: &e.steps[info.Axis]}
}

// sink resolves the buffer of a gradient that op writes, for the first time or
// once more.
func (e *executable) sink(op compute.Op, b compute.Buf) port {
	p := e.port(b)
	if b != compute.None {
		if p.add = e.setters[b] != op; !p.add {
			e.setters[b] = nil // op adds if it writes b a second time
		}
	}
	return p
}

// len returns how many values an example of the batch has.
func (p port) len() int { return p.size * *p.steps }

// at returns the values of example i.
func (p port) at(i int) []float32 {
	n := p.len()
	return p.data[i*n : (i+1)*n : (i+1)*n]
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
