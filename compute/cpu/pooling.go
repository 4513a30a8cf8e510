package cpu

import (
	"optimus/compute"
	"optimus/compute/cpu/plane"
	"optimus/compute/cpu/pooling"
)

// pooled takes the maximum or the mean of windows (package pooling).
type pooled struct {
	none
	ports
	e        *executable
	op       *compute.Pool
	plan     *pooling.Plan
	rows     int // of the input that it is for
	blocks   int
	fwd, bwd func(task, thread int)
}

func newPooled(e *executable, op *compute.Pool) (kernel, error) {
	k := &pooled{e: e, op: op, ports: e.ports(op, op.IO), blocks: plane.Blocks(op.In.C)}
	k.fwd, k.bwd = k.forwardPlane, k.gradPlane
	return k, k.choose(op.In.H)
}

// choose makes the plan for inputs of h rows current.
func (k *pooled) choose(h int) (err error) {
	if k.rows == h {
		return nil
	}
	o := k.op
	w := pooling.Window{H: pooling.Axis{Kernel: o.KH, Stride: o.StrideH, Pad: o.PadH}, W: pooling.Axis{Kernel: o.KW, Stride: o.StrideW, Pad: o.PadW}, CountPad: !o.Inside}
	rows, columns := o.Over(o.In.H, o.In.W)
	w.Full = rows != o.Out.H || columns != o.Out.W
	k.rows = h
	k.plan, err = pooling.New(w, h, o.In.W)
	return err
}

func (k *pooled) forward() {
	if err := k.choose(frame(k.op.In, k.x).H); err != nil {
		panic(err) // Compile planned the longest; shorter ones are bounded by the time axis
	}
	k.e.pool.run(k.e.n*k.blocks, k.fwd)
}

func (k *pooled) inputGrad() { k.e.pool.run(k.e.n*k.blocks, k.bwd) }

func (k *pooled) forwardPlane(task, _ int) {
	i, b := task/k.blocks, task%k.blocks
	x, y := k.x.plane(i, b), k.y.target(i, b, false)
	if k.op.Avg {
		k.plan.Mean(y, x)
	} else {
		k.plan.Max(y, x)
	}
}

func (k *pooled) gradPlane(task, _ int) {
	i, b := task/k.blocks, task%k.blocks
	dx, dy := k.dx.target(i, b, true), k.dy.plane(i, b)
	if k.op.Avg {
		k.plan.MeanGrad(dx, dy)
	} else {
		k.plan.MaxGrad(dx, dy, k.y.plane(i, b), k.x.plane(i, b))
	}
}
