package order

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// consume returns the ids of an epoch as workers take them, where the job is
// rescaled before every step.
func consume(t *rapid.T, p Plan, epoch int, workers func() int) []int {
	var all []int
	per := p.StepsPerEpoch()
	for step := int64(epoch)*per + 1; step <= int64(epoch+1)*per; step++ {
		if got := p.Epoch(step); got != epoch {
			t.Fatalf("step %d is in epoch %d, want %d", step, got, epoch)
		}
		batch := p.IDs(step, nil)
		if len(batch) == 0 || len(batch) > p.Batch {
			t.Fatalf("step %d has %d examples", step, len(batch))
		}
		w, next := workers(), 0
		for rank := range w {
			lo, hi := Slice(len(batch), rank, w)
			if lo < hi && lo != next {
				t.Fatalf("step %d: worker %d begins at %d, want %d", step, rank, lo, next)
			}
			if lo < hi {
				all, next = append(all, batch[lo:hi]...), hi
			}
		}
	}
	return all
}

func wantOnce(t interface{ Fatalf(string, ...any) }, ids []int, n int) {
	got := slices.Sorted(slices.Values(ids))
	if len(got) != n {
		t.Fatalf("%d ids, want %d", len(got), n)
	}
	for i, id := range got {
		if id != i {
			t.Fatalf("place %d of the sorted ids holds %d: one is lost and one repeated", i, id)
		}
	}
}

func TestEveryEpochHasEveryIDOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := Plan{
			Seed:     rapid.Uint64().Draw(t, "seed"),
			Examples: rapid.OneOf(rapid.SampledFrom([]int{1, 2, 3, 4, 997}), rapid.IntRange(1, 3000)).Draw(t, "examples"),
		}
		p.Batch = rapid.IntRange(1, p.Examples+3).Draw(t, "batch")
		epoch := rapid.IntRange(0, 1<<20).Draw(t, "epoch")
		wantOnce(t, consume(t, p, epoch, func() int { return rapid.IntRange(1, 9).Draw(t, "workers") }), p.Examples)
	})
}

func TestMillion(t *testing.T) {
	for _, n := range []int{1_000_000, 1<<20 - 1, 1 << 20} {
		p := Plan{Seed: 5, Examples: n, Batch: 4096}
		ids := make([]int, 0, n)
		var batch []int
		for step := p.StepsPerEpoch() + 1; step <= 2*p.StepsPerEpoch(); step++ {
			batch = p.IDs(step, batch)
			ids = append(ids, batch...)
		}
		wantOnce(t, ids, n)
	}
}

func TestSlice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, w := rapid.IntRange(0, 200).Draw(t, "n"), rapid.IntRange(1, 40).Draw(t, "workers")
		total, least, most := 0, n, 0
		for rank := range w {
			lo, hi := Slice(n, rank, w)
			if lo < hi && lo != total || hi < lo {
				t.Fatalf("worker %d of %d has [%d, %d), want it to begin at %d", rank, w, lo, hi, total)
			}
			total, least, most = total+hi-lo, min(least, hi-lo), max(most, hi-lo)
		}
		if total != n || most-least > 1 {
			t.Fatalf("%d of %d examples, parts of %d to %d", total, n, least, most)
		}
	})
	for _, c := range [][3]int{{5, -1, 2}, {5, 2, 2}, {5, 0, 0}, {-3, 0, 1}, {5, 0, -1}} {
		if lo, hi := Slice(c[0], c[1], c[2]); lo != hi {
			t.Errorf("Slice(%v) = [%d, %d), want nothing", c, lo, hi)
		}
	}
}

func TestValidate(t *testing.T) {
	for _, p := range []Plan{{}, {Examples: -1, Batch: 1}, {Examples: 5}, {Examples: 5, Batch: -2}} {
		if err := p.Validate(); !errors.Is(err, ErrInvalid) {
			t.Errorf("%+v: %v", p, err)
		}
		if n, e, ids := p.StepsPerEpoch(), p.Epoch(3), p.IDs(3, nil); n != 0 || e != 0 || len(ids) != 0 {
			t.Errorf("%+v: %d steps, epoch %d, ids %v", p, n, e, ids)
		}
	}
	p := Plan{Examples: 5, Batch: math.MaxInt}
	if err := p.Validate(); err != nil || p.StepsPerEpoch() != 1 || len(p.IDs(1, nil)) != 5 {
		t.Errorf("a batch larger than the set: %v", err)
	}
	for _, step := range []int64{0, -1, math.MinInt64} {
		if ids := p.IDs(step, nil); len(ids) != 0 {
			t.Errorf("step %d: %v", step, ids)
		}
	}
	if ids := p.IDs(math.MaxInt64, nil); len(ids) != 5 {
		t.Errorf("last step: %v", ids)
	}
}

// BO-23: a worker with one batch more than the others must not exist.
func TestBO23_UnevenBatchCounts(t *testing.T) {
	for _, c := range []struct{ examples, batch, workers, epochs int }{{10, 2, 2, 4}, {6007, 256, 3, 2}} {
		p := Plan{Seed: 1, Examples: c.examples, Batch: c.batch}
		for epoch := range c.epochs {
			var all []int
			for step := int64(epoch)*p.StepsPerEpoch() + 1; p.Epoch(step) == epoch; step++ {
				w := c.workers
				if p.Epoch(step+2) > epoch {
					w++ // one joins two batches before the end
				}
				batch := p.IDs(step, nil)
				for rank := range w {
					lo, hi := Slice(len(batch), rank, w)
					all = append(all, batch[lo:hi]...)
				}
			}
			wantOnce(t, all, c.examples)
		}
	}
}

func TestBO24_FewerSamplesThanWorkers(t *testing.T) {
	for _, c := range []struct{ examples, batch, workers, idle int }{{4, 4, 9, 5}, {1, 1, 4, 3}, {4, 64, 9, 5}, {1, 50, 4, 3}} {
		p := Plan{Examples: c.examples, Batch: c.batch}
		var all []int
		idle := 0
		for rank := range c.workers {
			batch := p.IDs(1, nil)
			lo, hi := Slice(len(batch), rank, c.workers)
			if lo == hi {
				idle++
			}
			all = append(all, batch[lo:hi]...)
		}
		wantOnce(t, all, c.examples)
		if idle != c.idle || p.StepsPerEpoch() != 1 {
			t.Errorf("%+v: %d idle, %d steps an epoch", c, idle, p.StepsPerEpoch())
		}
	}
	if err := (Plan{Examples: 0, Batch: 2}).Validate(); !errors.Is(err, ErrInvalid) {
		t.Errorf("0 examples: %v", err)
	}
}

// BO-25: the order of a job that stops at step 40 and goes on with other
// workers is the unbroken one, and no two epochs have the same.
func TestBO25_Resume(t *testing.T) {
	p := Plan{Seed: 7, Examples: 1000, Batch: 8}
	run := func(from, to int64, workers int) (ids []int) {
		for step := from; step <= to; step++ {
			batch := p.IDs(step, nil)
			for rank := range workers {
				lo, hi := Slice(len(batch), rank, workers)
				ids = append(ids, batch[lo:hi]...)
			}
		}
		return ids
	}
	unbroken := run(1, 3*p.StepsPerEpoch(), 4)
	for _, w := range []int{4, 3, 7} {
		if got := append(run(1, 40, 4), run(41, 3*p.StepsPerEpoch(), w)...); !slices.Equal(got, unbroken) {
			t.Errorf("going on with %d workers changes the order", w)
		}
	}
	for e := range 3 {
		wantOnce(t, unbroken[e*1000:(e+1)*1000], 1000)
		for other := range e {
			if slices.Equal(unbroken[e*1000:(e+1)*1000], unbroken[other*1000:(other+1)*1000]) {
				t.Errorf("epochs %d and %d have one order", e, other)
			}
		}
	}
	other := Plan{Seed: 8, Examples: 1000, Batch: 8}
	if slices.Equal(other.IDs(1, nil), p.IDs(1, nil)) {
		t.Error("the seed does not matter")
	}
}

// The order itself is a format: a checkpoint holds a step number alone, and the
// program that resumes from it must go on with the same examples.
func TestOrderNeverChanges(t *testing.T) {
	p := Plan{Seed: 7, Examples: 1000, Batch: 8}
	for _, c := range []struct {
		plan Plan
		step int64
		want []int
	}{
		{p, 1, []int{274, 345, 799, 705, 876, 307, 741, 173}},
		{p, 126, []int{75, 459, 403, 746, 146, 490, 132, 999}},
		{Plan{Seed: 7, Examples: 10, Batch: 10}, 2, []int{0, 8, 3, 5, 7, 2, 6, 4, 1, 9}},
	} {
		if got := c.plan.IDs(c.step, nil); !slices.Equal(got, c.want) {
			t.Errorf("%+v step %d: %v, want %v", c.plan, c.step, got, c.want)
		}
	}
}

func ExamplePlan() {
	p := Plan{Seed: 1, Examples: 10, Batch: 4}
	for step := int64(1); step <= p.StepsPerEpoch(); step++ {
		ids := p.IDs(step, nil)
		lo, hi := Slice(len(ids), 0, 3)
		fmt.Println("step", step, "epoch", p.Epoch(step), "examples", len(ids), "for worker 0 of 3:", hi-lo)
	}
	// Output:
	// step 1 epoch 0 examples 4 for worker 0 of 3: 2
	// step 2 epoch 0 examples 4 for worker 0 of 3: 2
	// step 3 epoch 0 examples 2 for worker 0 of 3: 1
}
