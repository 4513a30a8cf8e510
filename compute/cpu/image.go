package cpu

import (
	"optimus/compute"
	"optimus/internal/rng"
)

// crop takes pieces of pictures, in training random ones.
type crop struct {
	none
	e   *executable
	op  *compute.Crop
	y   port
	fwd func(task, thread int)
}

func newCrop(e *executable, op *compute.Crop) kernel {
	k := &crop{e: e, op: op, y: e.port(op.Y)}
	k.fwd = k.sample
	return k
}

func (k *crop) forward() { k.e.pool.run(k.e.n, k.fwd) }

func (k *crop) sample(i, _ int) {
	from, to := k.op.From, k.op.To
	x, y := k.e.batch.Inputs[k.op.In].F[i*from.Size():(i+1)*from.Size()], k.y.at(i)
	dy, dx, mirror := (from.H-to.H)/2, (from.W-to.W)/2, false
	if k.e.train {
		dy, dx, mirror = k.draw(k.e.stream(i, k.op.Layer))
	}
	clear(y)
	for c := range to.C {
		for r := max(0, -dy); r < min(to.H, from.H-dy); r++ {
			src, dst := x[(c*from.H+r+dy)*from.W:][:from.W], y[(c*to.H+r)*to.W:][:to.W]
			lo, hi := max(0, -dx), min(to.W, from.W-dx)
			if !mirror {
				copy(dst[lo:hi], src[lo+dx:hi+dx])
				continue
			}
			for j := lo; j < hi; j++ {
				dst[to.W-1-j] = src[j+dx]
			}
		}
	}
}

// draw decides where the piece of an example begins and whether it is mirrored.
func (k *crop) draw(s rng.Key) (dy, dx int, mirror bool) {
	place := func(i uint64, from, to int) int { return s.Intn(i, from+2*k.op.Pad-to+1) - k.op.Pad }
	return place(0, k.op.From.H, k.op.To.H), place(1, k.op.From.W, k.op.To.W), k.op.Mirror && s.Intn(2, 2) == 1
}

// frame is an op.Image of the batch at hand: with a time axis it is as high as the
// batch is long.
func frame(m compute.Image, p port) compute.Image {
	if p.size != m.Size() {
		m.H = *p.steps
	}
	return m
}

// frames turns [C,T,W] into [T,C,W].
type frames struct {
	none
	ports
	e        *executable
	op       *compute.Frames
	fwd, bwd func(task, thread int)
}

func newFrames(e *executable, op *compute.Frames) kernel {
	k := &frames{e: e, op: op, ports: e.ports(op, op.IO)}
	k.fwd, k.bwd = k.sample, k.sampleGrad
	return k
}

func (k *frames) sample(i, _ int) {
	y, steps := k.y.at(i), *k.x.steps
	for t := range steps {
		for c := range k.op.C {
			line, step := k.x.line(i, c, t, steps, k.op.W)
			for j := range k.op.W {
				y[j] = line[j*step]
			}
			y = y[k.op.W:]
		}
	}
}

func (k *frames) sampleGrad(i, _ int) {
	dy, steps := k.dy.at(i), *k.x.steps
	k.dx.fresh(i)
	for t := range steps {
		for c := range k.op.C {
			line, step := k.dx.line(i, c, t, steps, k.op.W)
			for j := range k.op.W {
				line[j*step] += dy[j]
			}
			dy = dy[k.op.W:]
		}
	}
}

func (k *frames) forward()   { k.e.pool.run(k.e.n, k.fwd) }
func (k *frames) inputGrad() { k.e.pool.run(k.e.n, k.bwd) }
