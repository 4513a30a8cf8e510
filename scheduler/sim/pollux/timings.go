package pollux

import (
	"cmp"
	"fmt"
	"slices"

	"optimus/scheduler/trace"
)

// timings are the measured times of an iteration.
type timings struct {
	placed map[int]line // by the GPUs on each node as digits, every rotation of what was measured
	spread map[size]line
}

// size is a number of nodes and of GPUs.
type size struct{ nodes, gpus int }

// line is the times by the examples of a pass.
type line []point

type point struct {
	perGPU     int
	step, sync float64
}

// add takes in measurements.
func (t *timings) add(times []trace.PolluxTime) error {
	if t.placed == nil {
		t.placed, t.spread = map[int]line{}, map[size]line{}
	}
	for _, m := range times {
		p := point{m.PerGPU, m.Step, m.Sync}
		if m.Placement == nil {
			at := size{m.Nodes, m.GPUs}
			t.spread[at] = append(t.spread[at], p)
			continue
		}
		keys := map[int]bool{}
		for range m.Placement {
			m.Placement = append(m.Placement[1:], m.Placement[0])
			keys[digits(m.Placement)] = true
		}
		for key := range keys {
			t.placed[key] = append(t.placed[key], p)
		}
	}
	for key, l := range t.placed {
		if !l.sorted() {
			return fmt.Errorf("placement %d: local_bsz must be listed once each, or two placements are rotations of each other", key)
		}
	}
	for at, l := range t.spread {
		if !l.sorted() {
			return fmt.Errorf("%d GPUs on %d nodes: local_bsz must be listed once each", at.gpus, at.nodes)
		}
	}
	return nil
}

// sorted puts the points in order, and reports whether they differ.
func (l line) sorted() bool {
	slices.SortFunc(l, func(a, b point) int { return cmp.Compare(a.perGPU, b.perGPU) })
	return len(slices.CompactFunc(slices.Clone(l), func(a, b point) bool { return a.perGPU == b.perGPU })) == len(l)
}

func digits(placement []int) int {
	key := 0
	for _, n := range placement {
		key = 10*key + n
	}
	return key
}

// at returns the seconds of an iteration with one pass, and those of its exchange, with so many GPUs on each node. It
// answers false where nothing was measured.
func (t *timings) at(placement []int, perGPU int) (step, sync float64, ok bool) {
	l := t.placed[digits(placement)]
	if l == nil || len(placement) > GPUsPerNode {
		at := size{nodes: min(len(placement), MaxNodes)}
		for _, n := range placement {
			at.gpus += n
		}
		l = t.spread[at]
	}
	return l.at(perGPU)
}

// at interpolates linearly, and answers false outside of what was measured.
func (l line) at(perGPU int) (step, sync float64, ok bool) {
	i, exact := slices.BinarySearchFunc(l, perGPU, func(p point, n int) int { return cmp.Compare(p.perGPU, n) })
	if exact {
		return l[i].step, l[i].sync, true
	}
	if i == 0 || i == len(l) {
		return 0, 0, false
	}
	a, b := l[i-1], l[i]
	part, width := float64(perGPU-a.perGPU), float64(b.perGPU-a.perGPU)
	return a.step + (b.step-a.step)/width*part, a.sync + (b.sync-a.sync)/width*part, true
}
