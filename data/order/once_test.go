package order

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// The tests of this file play whole jobs: workers that join, leave and die, servers
// whose loss takes the job back to its last checkpoint, stops and resumes, over
// some epochs. What counts is the surviving history, that is what the parameters
// contain: steps behind the checkpoint that a job goes back to are undone, and are
// done again.

// draws is a source of choices in 0..n-1.
type draws func(n int) int

// randomly draws from a seed.
func randomly(seed uint64) draws { return rand.New(rand.NewPCG(seed, 1)).IntN }

// shrinking draws from rapid, which looks for a short schedule that fails.
func shrinking(t *rapid.T) draws {
	return func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "draw") }
}

// size draws how many workers a job begins with, and how many examples it has.
func size(d draws, most int) (workers, examples int) {
	workers = 1 + d(12)
	switch d(16) {
	case 0:
		return workers, 1
	case 1, 2:
		return workers, max(1, workers-1)
	case 3, 4:
		primes := []int{2, 3, 7, 13, 97, 499, 997, 9973}
		return workers, min(primes[d(len(primes))], most)
	case 5:
		return workers, 1 + d(most)
	}
	return workers, 1 + d(min(300, most))
}

// epochsOf is how many passes a test makes over so many examples.
func epochsOf(d draws, examples int) int {
	if examples > 10_000 {
		return 1
	}
	return 1 + d(3)
}

// fate is what may befall a job before a step.
type fate int

const (
	rescale fate = iota
	save
	workerDies
	serverDies // and the job goes back to its last checkpoint
	resume     // a stop, and another run with other workers
	nothing
)

// trouble draws fates, so many at most that a job comes to its end.
type trouble struct {
	draws
	rare int // steps between two fates, on average
	left int
}

func newTrouble(d draws, steps int) *trouble { return &trouble{d, max(4, steps/20), 30} }

func (t *trouble) next() fate {
	if t.left == 0 || t.draws(t.rare) > 0 {
		return nothing
	}
	t.left--
	return fate(t.draws(int(nothing)))
}

// feed is what a synchronous job reads: a plan's batches, or a text's windows by lanes.
type feed struct {
	Plan // of the cursor
	part func(step int64, rank, workers int, dst []int) []int
}

// planned is the feed of a plan; all workers of a step compute the same batch.
func planned(p Plan) feed {
	var ids []int
	at := int64(0)
	return feed{p, func(step int64, rank, workers int, dst []int) []int {
		if step != at {
			ids, at = p.IDs(step, ids), step
		}
		lo, hi := Slice(len(ids), rank, workers)
		return append(dst, ids[lo:hi]...)
	}}
}

// streamed is the feed of a text's windows.
func streamed(p Plan) feed {
	var ids []int
	return feed{p, func(step int64, rank, workers int, dst []int) []int {
		lo, hi := Slice(p.Batch, rank, workers)
		ids = p.Windows(step, lo, hi, ids)
		return append(dst, ids...)
	}}
}

// again takes a cursor through its JSON.
func again(c Cursor) (back Cursor, err error) {
	b, err := json.Marshal(c)
	if err == nil {
		err = json.Unmarshal(b, &back)
	}
	return back, err
}

// synchronous plays a job in mode bsp and returns the examples of its surviving
// history, in order.
func synchronous(d draws, f feed, workers, epochs int) ([]int, error) {
	steps := int64(epochs) * f.StepsPerEpoch()
	at, err := StepCursor(f.Plan, 0)
	if err != nil {
		return nil, err
	}
	saved, kept := at, 0
	var history []int
	luck := newTrouble(d, int(steps))
	for at.Steps() < steps {
		step := at.Steps() + 1
		switch luck.next() {
		case rescale:
			workers = 1 + d(16)
		case save:
			if saved, err = again(at); err != nil {
				return nil, err
			}
			kept = len(history)
		case workerDies: // some have pushed; the servers abort the step
			done := len(history)
			for rank := range d(workers + 1) {
				history = f.part(step, rank, workers, history)
			}
			history, workers = history[:done], max(1, workers-1)
		case serverDies:
			at, history = saved, history[:kept]
			continue
		case resume:
			if at, err = again(at); err != nil {
				return nil, err
			}
			workers = 1 + d(16)
			continue
		}
		for rank := range workers {
			history = f.part(step, rank, workers, history)
		}
		if at, err = StepCursor(f.Plan, step); err != nil {
			return nil, err
		}
		if done := at.Done(); done != int64(len(history)) {
			return nil, fmt.Errorf("after step %d the cursor counts %d examples; %d were used", step, done, len(history))
		}
	}
	return history, nil
}

// once checks that each epoch of a history has each of n examples exactly once.
func once(history []int, n, epochs int) error {
	if len(history) != n*epochs {
		return fmt.Errorf("%d examples were used in %d epochs of %d", len(history), epochs, n)
	}
	last := make([]int, n)
	for i, id := range history {
		if id < 0 || id >= n {
			return fmt.Errorf("example %d was used; there are %d", id, n)
		}
		epoch := i/n + 1
		if last[id] == epoch {
			return fmt.Errorf("epoch %d uses example %d again", epoch-1, id)
		}
		last[id] = epoch
	}
	return nil
}

// onceSynchronous plays one job that shuffles.
func onceSynchronous(d draws, most int) error {
	workers, n := size(d, most)
	return onceShuffled(d, workers, Plan{Seed: uint64(d(1 << 30)), Examples: n, Batch: 1 + d(n+3)})
}

func onceShuffled(d draws, workers int, p Plan) error {
	epochs := epochsOf(d, p.Examples)
	history, err := synchronous(d, planned(p), workers, epochs)
	if err == nil {
		err = once(history, p.Examples, epochs)
	}
	for epoch := 0; err == nil && epoch < epochs && p.Examples < 400; epoch++ {
		if !slices.Equal(history[epoch*p.Examples:(epoch+1)*p.Examples], p.Range(epoch, 0, p.Examples, nil)) {
			err = fmt.Errorf("the order of epoch %d is not the unbroken one", epoch)
		}
	}
	if err != nil {
		return fmt.Errorf("%+v, %d workers: %w", p, workers, err)
	}
	return nil
}

// onceStreamed plays one job that reads a running text.
func onceStreamed(d draws, most int) error {
	workers, windows := size(d, most)
	return onceLanes(d, workers, Plan{Examples: windows, Batch: 1 + d(min(windows, 100)+3)})
}

func onceLanes(d draws, workers int, p Plan) error {
	epochs := epochsOf(d, p.Examples)
	history, err := synchronous(d, streamed(p), workers, epochs)
	if err == nil {
		err = once(history, p.Examples, epochs)
	}
	if err != nil {
		return fmt.Errorf("%+v in lanes, %d workers: %w", p, workers, err)
	}
	return nil
}

// many plays schedules by their seeds.
func many(t *testing.T, schedules int, play func(draws) error) {
	t.Helper()
	t.Parallel()
	if testing.Short() {
		schedules /= 10
	}
	for seed := range uint64(schedules) {
		if err := play(randomly(seed)); err != nil {
			t.Fatalf("schedule %d: %v", seed, err)
		}
	}
}

func TestOnceSynchronous(t *testing.T) {
	many(t, 5_000, func(d draws) error { return onceSynchronous(d, 10_000) })
}

func TestOnceStream(t *testing.T) {
	many(t, 2_000, func(d draws) error { return onceStreamed(d, 10_000) })
}

func TestOnceAsynchronous(t *testing.T) {
	many(t, 3_000, func(d draws) error { return onceAsynchronous(d, 10_000) })
}

func TestOnceMillion(t *testing.T) {
	const n = 1_000_000
	many(t, 20, func(d draws) error {
		p := Plan{Seed: uint64(d(1 << 30)), Examples: n, Batch: 100 + d(5000)}
		switch d(3) {
		case 0:
			return onceLanes(d, 1+d(12), p)
		case 1:
			return onceLeased(d, 1+d(12), p)
		}
		return onceShuffled(d, 1+d(12), p)
	})
}

// The same with schedules that rapid can shrink to the shortest that fails.
func TestOnceShrinks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		for _, play := range []func(draws, int) error{onceSynchronous, onceStreamed, onceAsynchronous} {
			if err := play(shrinking(t), 60); err != nil {
				t.Fatal(err)
			}
		}
	})
}
