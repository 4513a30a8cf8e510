package cpu

import (
	"optimus/compute"
	"optimus/compute/cpu/conv"
	"optimus/compute/cpu/plane"
)

// picture says that a buffer holds pictures in planes of 16 channels (package
// plane) instead of row by row. The halo of a plane is zero whenever it may be
// read: memory is shared, so who writes a picture clears it first.
type picture struct {
	channels int
	plane.Shape
	timed bool // H is the length of a time axis
}

// pictures decides which buffers hold pictures in planes: those that convolutions
// and pooling read or write, and what is computed from them element by element,
// unless an operation that knows only rows makes one of them. nil stands for rows.
func pictures(p *compute.Program) ([]*picture, error) {
	n := len(p.Buffers)
	kind, equal := newGroups(n), newGroups(n) // planes or rows alike; the same halo too
	wanted, barred, halo := make([]bool, n), make([]bool, n), make([]conv.Halo, n)
	for b, info := range p.Buffers {
		barred[b] = len(info.Shape) != 3
	}
	want := func(h conv.Halo, list ...compute.Buf) {
		kind.join(list...)
		equal.join(list...)
		for _, b := range list {
			if b != compute.None {
				wanted[b] = true
				halo[b] = conv.Halo{H: max(halo[b].H, h.H), W: max(halo[b].W, h.W)}
			}
		}
	}
	for _, s := range p.Forward {
		switch op := s.Op.(type) {
		case *compute.Conv2D:
			c, err := conv.New(shapeOf(op, op.In.H), conv.Config{})
			if err != nil {
				return nil, err
			}
			want(c.DX().Halo, op.X, op.DX)
			want(c.Y().Halo, op.Y, op.DY)
		case *compute.Pool:
			want(conv.Halo{}, op.X, op.DX)
			want(conv.Halo{}, op.Y, op.DY)
		case *normed:
			kind.join(op.X, op.DX, op.Y, op.DY, op.Residual, op.DResidual)
		case *compute.ReLU:
			kind.join(op.X, op.DX, op.Y, op.DY)
			equal.join(op.X, op.DX, op.Y, op.DY)
		case *compute.Add:
			all := append([]compute.Buf{op.Y, op.DY}, append(op.X, op.DX...)...)
			kind.join(all...)
			equal.join(all...)
		case *compute.Concat:
			kind.join(op.Y, op.DY)
			for i := range op.X {
				kind.join(op.X[i], op.DX[i])
			}
		case *compute.Frames:
			kind.join(op.X, op.DX)
		default:
			_, writes := op.Touch(compute.Forward)
			for _, b := range writes {
				if b != compute.None {
					barred[b] = true
				}
			}
		}
	}
	list := make([]*picture, n)
	for b := range p.Buffers {
		members := kind.of(b)
		if !anyOf(wanted, members) || anyOf(barred, members) {
			continue
		}
		m := pictureOf(p, compute.Buf(b))
		for _, o := range equal.of(b) {
			m.HaloH, m.HaloW = max(m.HaloH, halo[o].H), max(m.HaloW, halo[o].W)
		}
		list[b] = m
	}
	return list, nil
}

// pictureOf returns how a buffer [C,H,W] lies in planes without a halo.
func pictureOf(p *compute.Program, b compute.Buf) *picture {
	info := p.Buffers[b]
	m := &picture{channels: info.Shape[0], Shape: plane.Shape{H: info.Shape[1], W: info.Shape[2]}, timed: info.Axis != 0}
	if m.timed {
		m.H = p.Steps(info.Axis)
	}
	return m
}

func anyOf(list []bool, at []int) bool {
	for _, i := range at {
		if list[i] {
			return true
		}
	}
	return false
}

// groups are disjoint sets of the numbers below n.
type groups struct{ members [][]int }

func newGroups(n int) *groups {
	s := &groups{make([][]int, n)}
	for i := range n {
		s.members[i] = []int{i}
	}
	return s
}

func (s *groups) of(i int) []int { return s.members[i] }

// join makes one set of those that the buffers are in.
func (s *groups) join(list ...compute.Buf) {
	first := compute.Buf(compute.None)
	for _, b := range list {
		switch {
		case b == compute.None:
		case first == compute.None:
			first = b
		default:
			s.merge(int(first), int(b))
		}
	}
}

func (s *groups) merge(a, b int) {
	if &s.members[a][0] == &s.members[b][0] {
		return
	}
	all := append(append([]int(nil), s.members[a]...), s.members[b]...)
	for _, i := range all {
		s.members[i] = all
	}
}

// shape returns the size of the planes of the batch at hand.
func (p port) shape() plane.Shape {
	s := p.pic.Shape
	if p.pic.timed {
		s.H = *p.steps
	}
	return s
}

// plane returns a block of channels of example i; of an absent buffer the absent plane.
func (p port) plane(i, block int) plane.Plane {
	if p.data == nil {
		return plane.Plane{}
	}
	s := p.shape()
	n := s.Len()
	return plane.Of(s, p.at(i)[block*n:(block+1)*n])
}

// target is plane for a writer: the halo is cleared, and all of it if the writer
// adds and is the first.
func (p port) target(i, block int, adds bool) plane.Plane {
	m := p.plane(i, block)
	switch {
	case m.Data == nil || p.add:
	case adds:
		clear(m.Data)
	default:
		border(m)
	}
	return m
}

// border clears the halo of a plane.
func border(p plane.Plane) {
	if p.HaloH == 0 && p.HaloW == 0 {
		return
	}
	row, edge := p.Stride(), p.HaloW*plane.Lanes
	clear(p.Data[:p.HaloH*row])
	clear(p.Data[(p.HaloH+p.H)*row:])
	for y := p.HaloH; y < p.HaloH+p.H; y++ {
		clear(p.Data[y*row : y*row+edge])
		clear(p.Data[(y+1)*row-edge : (y+1)*row])
	}
}

// layout is the picture in the words of package conv.
func (p port) layout() conv.Layout {
	s := p.shape()
	return conv.Layout{C: p.pic.channels, H: s.H, W: s.W, Halo: conv.Halo{H: s.HaloH, W: s.HaloW}}
}

// toRows copies example i to rows [C,H,W], fromRows rows to it.
func (p port) toRows(i int, rows []float32) {
	if p.pic == nil {
		copy(rows, p.at(i))
		return
	}
	p.layout().Get(rows, p.at(i))
}

func (p port) fromRows(i int, rows []float32) {
	if p.pic == nil {
		copy(p.at(i), rows)
		return
	}
	for b := range plane.Blocks(p.pic.channels) {
		border(p.plane(i, b))
	}
	p.layout().Put(p.at(i), rows)
}

// line returns row y of channel c of an example [C,H,W] and how far its pixels lie
// apart, whichever way the buffer holds it.
func (p port) line(i, c, y, h, w int) ([]float32, int) {
	if p.pic == nil {
		return p.at(i)[(c*h+y)*w : (c*h+y+1)*w], 1
	}
	return p.plane(i, c/plane.Lanes).Row(y)[c%plane.Lanes:], plane.Lanes
}

// holds says how an operation knows pictures.
type holds int

const (
	either holds = iota
	planesOnly
	rowsOnly
)

func knows(p *compute.Program, op compute.Op) holds {
	switch op := op.(type) {
	case *compute.Conv2D, *normed, *compute.ReLU, *compute.Add, *compute.Frames:
		return either
	case *compute.Concat:
		if len(p.Buffers[op.Y].Shape) == 3 {
			return either
		}
	case *compute.Pool, *betaGrad:
		return planesOnly
	}
	return rowsOnly
}

// copies are what an operation works on instead of a buffer that is held in a way
// it does not know.
type copies struct {
	e          *executable
	buf        compute.Buf
	own, whole port // whole is the buffer; of a gradient, with its add
	task, back func(i, thread int)
}

func newCopies(e *executable, b compute.Buf, whole port) *copies {
	c := &copies{e: e, buf: b, whole: whole, own: whole}
	most := whole.size * e.p.Steps(e.p.Buffers[b].Axis)
	c.own.add, c.own.pic = false, nil
	if whole.pic == nil {
		c.own.pic = pictureOf(e.p, b)
	}
	c.own.data = make([]float32, e.capacity*c.own.len())
	e.reserve(2 * most)
	c.task = func(i, thread int) {
		rows := e.scratch[thread][:c.flat()]
		c.whole.toRows(i, rows)
		c.own.fromRows(i, rows)
	}
	c.back = func(i, thread int) {
		n := c.flat()
		rows, old := e.scratch[thread][:n], e.scratch[thread][n:2*n]
		c.own.toRows(i, rows)
		if c.whole.add {
			c.whole.toRows(i, old)
			add(rows, old)
		}
		c.whole.fromRows(i, rows)
	}
	return c
}

// flat returns how many values an example of the batch has.
func (c *copies) flat() int { return c.whole.size * *c.whole.steps }

func (c *copies) load()  { c.e.pool.run(c.e.n, c.task) }
func (c *copies) store() { c.e.pool.run(c.e.n, c.back) }

// around returns run with the copies of an operation's buffers brought before and
// taken back after it.
func around(run func(), list []*copies, reads, writes []compute.Buf) func() {
	if len(list) == 0 {
		return run
	}
	return func() {
		for _, c := range list {
			if has(reads, c.buf) {
				c.load()
			}
		}
		run()
		for _, c := range list {
			if has(writes, c.buf) {
				c.store()
			}
		}
	}
}

func has(list []compute.Buf, b compute.Buf) bool {
	for _, o := range list {
		if o == b {
			return true
		}
	}
	return false
}

// shapeOf returns the convolution of pictures of h rows.
func shapeOf(op *compute.Conv2D, h int) conv.Shape {
	return conv.Shape{C: op.In.C, H: h, W: op.In.W, O: op.Out.C, KH: op.KH, KW: op.KW,
		StrideH: op.StrideH, StrideW: op.StrideW, PadH: op.PadH, PadW: op.PadW, Groups: op.Groups}
}
