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
