package telemetry

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// History returns the steps that shaped the parameters, in order of their
// number: a step survives unless a later generation began at a version before
// it, and a skipped step stays as a step that used no examples (its
// BatchExamples, Weight and IDs are empty).
//
// It is an error if generation numbers do not grow, or if two records of one
// step survive: the step was then applied twice.
func History(records []Record) ([]Step, error) {
	starts, err := generations(records)
	if err != nil {
		return nil, err
	}
	var steps []Step
	type key struct {
		generation int
		step       int64
	}
	skipped := map[key]bool{}
	for _, r := range records {
		switch r := r.(type) {
		case Step:
			if r.Step <= bound(starts, r.Generation) {
				steps = append(steps, r)
			}
		case Skipped:
			skipped[key{r.Generation, r.Step}] = true
		}
	}
	slices.SortStableFunc(steps, func(a, b Step) int { return cmp.Compare(a.Step, b.Step) })
	for i := range steps {
		s := &steps[i]
		if i > 0 && steps[i-1].Step == s.Step {
			return nil, fmt.Errorf("telemetry: step %d was applied twice, in generations %d and %d",
				s.Step, steps[i-1].Generation, s.Generation)
		}
		if skipped[key{s.Generation, s.Step}] {
			s.BatchExamples, s.Weight, s.IDs = 0, 0, nil
		}
	}
	return steps, nil
}

// generations returns the starts in order. Each one's Step is lowered to the
// smallest of its own and all later ones, so that the start after a step's
// generation alone tells whether the step survived.
func generations(records []Record) ([]GenerationStart, error) {
	var starts []GenerationStart
	for _, r := range records {
		g, ok := r.(GenerationStart)
		if !ok {
			continue
		}
		if n := len(starts); n > 0 && g.Number <= starts[n-1].Number {
			return nil, fmt.Errorf("telemetry: generation %d starts after generation %d; numbers must grow over a job's life",
				g.Number, starts[n-1].Number)
		}
		starts = append(starts, g)
	}
	for i := len(starts) - 2; i >= 0; i-- {
		starts[i].Step = min(starts[i].Step, starts[i+1].Step)
	}
	return starts, nil
}

// bound is the last step of a generation that later generations left alive.
func bound(starts []GenerationStart, generation int) int64 {
	i, _ := slices.BinarySearchFunc(starts, generation+1, func(g GenerationStart, number int) int {
		return g.Number - number
	})
	if i == len(starts) {
		return math.MaxInt64
	}
	return starts[i].Step
}

// Coverage checks that steps, as [History] returns them, used each of the
// examples 0…n−1 exactly once in an epoch. The error names the first example
// that was not, and how often and in which steps it was used.
func Coverage(steps []Step, epoch, n int) error {
	used := make([][]int64, n)
	for _, s := range steps {
		if s.Epoch != epoch {
			continue
		}
		if len(s.IDs) != s.BatchExamples {
			return fmt.Errorf("telemetry: step %d used %d examples and lists %d; record with Config.IDs to check coverage",
				s.Step, s.BatchExamples, len(s.IDs))
		}
		for _, id := range s.IDs {
			if id < 0 || id >= n {
				return fmt.Errorf("telemetry: step %d used example %d; the set has %d", s.Step, id, n)
			}
			used[id] = append(used[id], s.Step)
		}
	}
	for id, in := range used {
		if len(in) != 1 {
			return fmt.Errorf("telemetry: epoch %d used example %d %d times (steps %v), not once", epoch, id, len(in), in)
		}
	}
	return nil
}
