package cpu

import (
	"cmp"
	"slices"

	"optimus/compute"
)

// life is the steps, forward ones first, from which and up to which a buffer holds
// something that is read.
type life struct{ first, last int }

func (l life) meets(o life) bool { return l.first <= o.last && o.first <= l.last }

// lives returns the life of each buffer of a training step. Evaluation makes the
// same forward steps, so what is right for training is right for it.
func lives(p *compute.Program) []life {
	list := make([]life, len(p.Buffers))
	for b := range list {
		list[b] = life{0, -1}
	}
	for i, s := range slices.Concat(p.Forward, p.Backward) {
		reads, writes := s.Op.Touch(s.Pass)
		for _, b := range slices.Concat(reads, writes) {
			switch {
			case b == compute.None:
			case list[b].last < 0:
				list[b] = life{i, i}
			default:
				list[b].last = i
			}
		}
	}
	return list
}

// align is the number of elements in a cache line: each buffer begins one.
const align = 16

// place gives each buffer a place in one stretch of memory, such that buffers
// which live at the same time do not overlap, and returns its length. Buffers are
// placed by size, the largest first, each as low as it can lie.
func place(sizes []int, lives []life) (offsets []int, total int) {
	offsets = make([]int, len(sizes))
	order := make([]int, 0, len(sizes))
	for b := range sizes {
		if lives[b].last >= 0 {
			order = append(order, b)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(sizes[b], sizes[a]) })
	var placed []int // by offset
	for _, b := range order {
		size, at := roundUp(sizes[b]), 0
		for _, o := range placed {
			if !lives[b].meets(lives[o]) {
				continue
			}
			if at+size <= offsets[o] {
				break
			}
			at = max(at, offsets[o]+roundUp(sizes[o]))
		}
		offsets[b], total = at, max(total, at+size)
		i, _ := slices.BinarySearchFunc(placed, at, func(o, at int) int { return cmp.Compare(offsets[o], at) })
		placed = slices.Insert(placed, i, b)
	}
	return offsets, total
}

// merge gives buffers one place where an operation may write over what it reads last,
// or leave a gradient where it is: the life of the place is that of all of them. It
// returns for each buffer which one's place it has, mostly its own.
func merge(p *compute.Program, lives []life, alike func(a, b compute.Buf) bool) []int {
	steps, each := slices.Concat(p.Forward, p.Backward), slices.Clone(lives)
	of, members := make([]int, len(lives)), make([][]compute.Buf, len(lives))
	for b := range of {
		of[b], members[b] = b, []compute.Buf{compute.Buf(b)}
	}
	// written reports whether a step behind i writes a while b lives.
	written := func(i int, a, b compute.Buf) bool {
		return slices.ContainsFunc(steps[i+1:each[b].last+1], func(s compute.Step) bool {
			_, writes := s.Op.Touch(s.Pass)
			return slices.Contains(writes, a)
		})
	}
	for i, s := range steps {
		for _, o := range overwrites(s) {
			from, to := o[0], o[1]
			if from == compute.None || to == compute.None || each[to].first != i || of[to] != int(to) || !alike(from, to) {
				continue
			}
			root := of[from]
			if slices.ContainsFunc(members[root], func(m compute.Buf) bool {
				same := each[m].first == i && !written(i, m, to) && !written(i, to, m) // both hold a copy
				return each[m].last > i && !same
			}) {
				continue
			}
			of[to], members[root] = root, append(members[root], to)
			lives[root].last, lives[to] = max(lives[root].last, each[to].last), life{0, -1}
		}
	}
	return of
}

// overwrites returns pairs of buffers of which a step reads the one, element by element,
// and writes the other, where its kernel allows that they are the same.
func overwrites(s compute.Step) (pairs [][2]compute.Buf) {
	io := func(io compute.IO) [][2]compute.Buf {
		if s.Pass == compute.InputGrad {
			return [][2]compute.Buf{{io.DY, io.DX}}
		}
		return [][2]compute.Buf{{io.X, io.Y}}
	}
	switch op := s.Op.(type) {
	case *compute.SoftmaxLoss:
		return [][2]compute.Buf{{op.X, op.DX}}
	case *compute.ReLU:
		return io(op.IO)
	case *compute.Tanh:
		return io(op.IO)
	case *compute.Dropout:
		return io(op.IO)
	case *compute.Add:
		for i, x := range op.X {
			switch {
			case slices.Index(op.X, x) != i || slices.Contains(op.X[i+1:], x): // counts twice
			case s.Pass == compute.InputGrad:
				pairs = append(pairs, [2]compute.Buf{op.DY, op.DX[i]})
			default:
				pairs = append(pairs, [2]compute.Buf{x, op.Y})
			}
		}
	}
	return pairs
}

func roundUp(n int) int { return (n + align - 1) / align * align }

// setters returns for each buffer the operation that writes it first.
func setters(p *compute.Program) []compute.Op {
	list := make([]compute.Op, len(p.Buffers))
	for _, s := range slices.Concat(p.Forward, p.Backward) {
		_, writes := s.Op.Touch(s.Pass)
		for _, b := range writes {
			if b != compute.None && list[b] == nil {
				list[b] = s.Op
			}
		}
	}
	return list
}
