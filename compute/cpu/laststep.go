package cpu

import (
	"optimus/compute"
	"optimus/compute/cpu/vec"
)

// tanh is the hyperbolic tangent.
type tanh struct {
	none
	ports
	e        *executable
	fwd, bwd func(task, thread int)
}

func newTanh(e *executable, op *compute.Tanh) kernel {
	k := &tanh{e: e, ports: e.ports(op, op.IO)}
	k.fwd = func(i, _ int) { vec.Tanh(k.y.at(i), k.x.at(i)) }
	k.bwd = func(i, thread int) {
		dx, sent := k.dx.at(i), k.dx.at(i)
		if k.dx.add {
			sent = e.scratch[thread][:len(dx)]
		}
		vec.TanhGrad(sent, k.dy.at(i), k.y.at(i))
		if k.dx.add {
			add(dx, sent)
		}
	}
	e.reserve(len(k.dx.data) / e.capacity)
	return k
}

func (k *tanh) forward()   { k.e.pool.run(k.e.n, k.fwd) }
func (k *tanh) inputGrad() { k.e.pool.run(k.e.n, k.bwd) }

// lastStep takes the last time step of each example.
type lastStep struct {
	none
	ports
	e        *executable
	lengths  *lengths
	fwd, bwd func(task, thread int)
}

func newLastStep(e *executable, op *compute.LastStep) kernel {
	k := &lastStep{e: e, ports: e.ports(op, op.IO), lengths: e.lengths(op.Lengths, e.p.Buffers[op.X].Axis)}
	k.fwd = func(i, _ int) {
		y := k.y.at(i)
		clear(y)
		if n := k.lengths.at(i, *k.x.steps); n > 0 {
			copy(y, k.x.at(i)[(n-1)*len(y):])
		}
	}
	k.bwd = func(i, _ int) {
		dx, dy := k.dx.fresh(i), k.dy.at(i)
		if n := k.lengths.at(i, *k.x.steps); n > 0 {
			add(dx[(n-1)*len(dy):n*len(dy)], dy)
		}
	}
	return k
}

func (k *lastStep) forward() {
	k.lengths.update()
	k.e.pool.run(k.e.n, k.fwd)
}
func (k *lastStep) inputGrad() { k.e.pool.run(k.e.n, k.bwd) }
