package order

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// A lane reads on where it was, until its part of the text is over.
func TestStreamIsContiguous(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := Stream{Tokens: rapid.IntRange(2, 200).Draw(t, "tokens"), Window: rapid.IntRange(1, 12).Draw(t, "window"),
			Lanes: rapid.IntRange(1, 20).Draw(t, "lanes")}
		if err := s.Validate(); err != nil {
			t.Fatal(err)
		}
		first := rapid.Int64Range(0, 5).Draw(t, "epoch")*s.StepsPerEpoch() + 1
		read := 0 // the lanes' parts lie one behind the other
		for lane := range s.Lanes {
			over := false
			for k := range s.StepsPerEpoch() {
				epoch, window, ok := s.At(first+k, lane)
				if int64(epoch) != (first-1)/s.StepsPerEpoch() || s.Begins(first+k) != (k == 0) {
					t.Fatalf("step %d: epoch %d, begins %v", first+k, epoch, s.Begins(first+k))
				}
				if !ok {
					over = true
					continue
				}
				if lo, hi := s.Words(window); over || lo != read || hi <= lo {
					t.Fatalf("lane %d reads words [%d, %d) after %d", lane, lo, hi, read)
				} else {
					read = hi
				}
			}
		}
		if read != s.Tokens-1 {
			t.Fatalf("%d words are read, want all but the last of %d", read, s.Tokens)
		}
	})
}

// The windows of a step do not depend on how many workers share the lanes, and
// only lanes at the end have none.
func TestStreamSlices(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := Stream{Tokens: rapid.IntRange(2, 100).Draw(t, "tokens"), Window: 3, Lanes: rapid.IntRange(1, 20).Draw(t, "lanes")}
		step := rapid.Int64Range(1, 50).Draw(t, "step")
		whole := s.IDs(step, 0, s.Lanes, nil)
		for lane := range s.Lanes {
			if _, window, ok := s.At(step, lane); ok != (lane < len(whole)) || ok && window != whole[lane] {
				t.Fatalf("lane %d has window %d, %v; the step has %v", lane, window, ok, whole)
			}
		}
		workers := rapid.IntRange(1, 30).Draw(t, "workers")
		var parts, part []int
		for rank := range workers {
			lo, hi := Slice(s.Lanes, rank, workers)
			part = s.IDs(step, lo, hi, part)
			parts = append(parts, part...)
		}
		if !slices.Equal(parts, whole) {
			t.Fatalf("%d workers read %v, one reads %v", workers, parts, whole)
		}
		as := Plan{Examples: s.Windows(), Batch: s.Lanes}
		if _, lo, hi := as.Positions(step); hi-lo != len(whole) || as.StepsPerEpoch() != s.StepsPerEpoch() {
			t.Fatalf("step %d has %d windows, a plan would count %d", step, len(whole), hi-lo)
		}
	})
}

func TestStreamRefuses(t *testing.T) {
	for _, s := range []Stream{{}, {Tokens: 1, Window: 1, Lanes: 1}, {Tokens: 9, Lanes: 1}, {Tokens: 9, Window: 2}, {Tokens: -9, Window: -1, Lanes: -2}} {
		if err := s.Validate(); !errors.Is(err, ErrInvalid) {
			t.Errorf("%+v: %v", s, err)
		}
		_, _, ok := s.At(1, 0)
		if lo, hi := s.Words(0); ok || lo != hi || s.Windows() != 0 || s.StepsPerEpoch() != 0 || s.Begins(1) || len(s.IDs(1, 0, 1, nil)) != 0 {
			t.Errorf("%+v reads something", s)
		}
	}
	s := Stream{Tokens: 9, Window: 2, Lanes: 2}
	for _, c := range []struct {
		step int64
		lane int
	}{{0, 0}, {-1, 0}, {1, -1}, {1, 2}} {
		if _, window, ok := s.At(c.step, c.lane); ok {
			t.Errorf("step %d, lane %d reads window %d", c.step, c.lane, window)
		}
	}
	if got := s.IDs(1, -5, 99, nil); !slices.Equal(got, []int{0, 2}) {
		t.Errorf("more lanes than there are read %v", got)
	}
}

// The worker of a language model reads the windows of its lanes, each behind the
// one of the step before.
func ExampleStream() {
	s := Stream{Tokens: 18, Window: 4, Lanes: 2} // windows of 4, 4, 4, 4 and 1 words
	for step := int64(1); step <= s.StepsPerEpoch(); step++ {
		for lane := range s.Lanes {
			if _, window, ok := s.At(step, lane); ok {
				lo, hi := s.Words(window)
				fmt.Printf("step %d lane %d: words %d to %d\n", step, lane, lo, hi-1)
			}
		}
	}
	// Output:
	// step 1 lane 0: words 0 to 3
	// step 1 lane 1: words 12 to 15
	// step 2 lane 0: words 4 to 7
	// step 2 lane 1: words 16 to 16
	// step 3 lane 0: words 8 to 11
}
