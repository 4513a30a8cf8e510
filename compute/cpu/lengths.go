package cpu

import (
	"fmt"

	"optimus/compute"
)

// lengths are the time steps of each example of the batch on one axis.
type lengths struct {
	e     *executable
	input int
	made  []compute.TimeAxis // from what the input counts to the axis
	n     []int32
}

// lengths follows an input to an axis; it is nil where there is none, and all
// examples are as long as the batch.
func (e *executable) lengths(input int, axis compute.Axis) *lengths {
	if input == compute.None {
		return nil
	}
	l := &lengths{e: e, input: input, n: make([]int32, e.capacity)}
	for ; e.p.Axes[axis-1].Of != 0; axis = e.p.Axes[axis-1].Of {
		l.made = append([]compute.TimeAxis{e.p.Axes[axis-1]}, l.made...)
	}
	e.checks = append(e.checks, func(b *compute.Batch) error {
		for i, n := range b.Inputs[input].I {
			if int(n) > e.steps[axis] {
				return fmt.Errorf("%w: input %q, example %d: %d time steps of axis %q, the batch has %d; pad it to its longest example",
					ErrInput, e.p.Inputs[input].Name, i, n, e.p.Axes[axis-1].Name, e.steps[axis])
			}
		}
		return nil
	})
	return l
}

// update reads the lengths of the batch.
func (l *lengths) update() {
	if l == nil {
		return
	}
	for i, n := range l.e.batch.Inputs[l.input].I {
		l.n[i] = int32(l.follow(int(n)))
	}
}

// follow returns what is left of n steps on the axis.
func (l *lengths) follow(n int) int {
	for _, axis := range l.made {
		if n+2*axis.Pad < axis.Window {
			return 0
		}
		n = axis.Length(n)
	}
	return n
}

// span returns the lengths of examples lo, …, hi-1; nil for none.
func (l *lengths) span(lo, hi int) []int32 {
	if l == nil {
		return nil
	}
	return l.n[lo:hi]
}

// at returns the length of example i in a batch of so many steps.
func (l *lengths) at(i, steps int) int {
	if l == nil {
		return steps
	}
	return int(l.n[i])
}
