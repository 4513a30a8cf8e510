package order

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func drawText(t *rapid.T) Plan {
	return Plan{Examples: rapid.IntRange(1, 200).Draw(t, "windows"), Batch: rapid.IntRange(1, 30).Draw(t, "lanes")}
}

// A lane reads on where it was, until its part of the text is over; the parts lie one
// behind the other.
func TestLanesAreContiguous(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawText(t)
		first := rapid.Int64Range(0, 5).Draw(t, "epoch")*p.StepsPerEpoch() + 1
		var read []int
		for lane := range p.Batch {
			over := false
			for k := range p.StepsPerEpoch() {
				if p.Begins(first+k) != (k == 0) {
					t.Fatalf("step %d of %+v: begins %v", first+k, p, k != 0)
				}
				w := p.Windows(first+k, lane, lane+1, nil)
				if len(w) == 0 {
					over = true
				} else if over || len(w) > 1 {
					t.Fatalf("step %d, lane %d of %+v reads %v, over %v", first+k, lane, p, w, over)
				}
				read = append(read, w...)
			}
		}
		for i, w := range read {
			if i != w {
				t.Fatalf("%+v: window %d is read behind %d others", p, w, i)
			}
		}
		if len(read) != p.Examples {
			t.Fatalf("%+v: %d windows are read", p, len(read))
		}
	})
}

// The windows of a step do not depend on how many workers share the lanes, only lanes at
// the end have none, and there are as many as the plan counts.
func TestLanesOfWorkers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawText(t)
		step := rapid.Int64Range(1, 50).Draw(t, "step")
		whole := p.Windows(step, 0, p.Batch, nil)
		if _, lo, hi := p.Positions(step); hi-lo != len(whole) {
			t.Fatalf("step %d of %+v has %d windows, the plan counts %d", step, p, len(whole), hi-lo)
		}
		workers := rapid.IntRange(1, 40).Draw(t, "workers")
		var parts, part []int
		for rank := range workers {
			lo, hi := Slice(p.Batch, rank, workers)
			if part = p.Windows(step, lo, hi, part); len(part) < hi-lo && len(parts)+len(part) < len(whole) {
				t.Fatalf("step %d of %+v: lanes [%d, %d) have a gap: %v", step, p, lo, hi, part)
			}
			parts = append(parts, part...)
		}
		if !slices.Equal(parts, whole) {
			t.Fatalf("%d workers read %v, one reads %v", workers, parts, whole)
		}
	})
}

func TestNoLanes(t *testing.T) {
	p := Plan{Examples: 8, Batch: 2}
	for _, c := range []struct {
		plan   Plan
		step   int64
		lo, hi int
	}{{Plan{}, 1, 0, 1}, {Plan{Examples: 1}, 1, 0, 1}, {p, 0, 0, 2}, {p, -1, 0, 2}, {p, 1, 2, 9}, {p, 1, -3, 0}, {p, 1, 1, 1}} {
		if got := c.plan.Windows(c.step, c.lo, c.hi, []int{7}); len(got) != 0 || c.plan.Begins(c.step) && c.step < 1 {
			t.Errorf("%+v reads %v", c, got)
		}
	}
	if (Plan{}).Begins(1) {
		t.Error("a plan of nothing begins")
	}
	if got := p.Windows(1, -5, 99, nil); !slices.Equal(got, []int{0, 4}) {
		t.Errorf("more lanes than there are read %v", got)
	}
}

// The worker of a language model reads the windows of its lanes, each behind the one of
// the step before.
func ExamplePlan_Windows() {
	p := Plan{Examples: 5, Batch: 2} // a text of five windows, in two lanes
	for step := int64(1); step <= p.StepsPerEpoch(); step++ {
		fmt.Println("step", step, "begins", p.Begins(step), "windows", p.Windows(step, 0, 2, nil))
	}
	// Output:
	// step 1 begins true windows [0 3]
	// step 2 begins false windows [1 4]
	// step 3 begins false windows [2]
}
