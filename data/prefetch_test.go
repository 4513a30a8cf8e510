package data

import (
	"errors"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"
	"pgregory.net/rapid"
)

// numbers is a split whose example i of epoch e has the value 1000·e+i. Where there is
// a gate, example 1 waits for it.
type numbers struct {
	n, epoch int
	gate     chan struct{}
	fills    *atomic.Int64
}

func (s *numbers) Len() int { return s.n }

func (s *numbers) InEpoch(epoch int) Split { return &numbers{s.n, epoch, s.gate, s.fills} }

func (s *numbers) Fill(ids []int, b *Batch) error {
	s.fills.Add(1)
	if s.gate != nil && slices.Contains(ids, 1) {
		<-s.gate
	}
	b.resize(len(ids), 1)
	values := b.Inputs[0].ints(len(ids))
	for i, id := range ids {
		if err := checkID("read number", id, s.n); err != nil {
			return err
		}
		values[i] = int32(1000*s.epoch + id)
	}
	return nil
}

func numberSet(gate chan struct{}) (*Set, *atomic.Int64) {
	fills := &atomic.Int64{}
	return &Set{Train: &numbers{100, 0, gate, fills}, Valid: &numbers{50, 7, nil, fills}}, fills
}

// TestPrefetchIsInvisible: whatever is guessed, rightly or not, what is asked for comes,
// and memory stays bounded.
func TestPrefetchIsInvisible(t *testing.T) {
	defer goleak.VerifyNone(t)
	rapid.Check(t, func(t *rapid.T) {
		s, _ := numberSet(nil)
		depth := rapid.IntRange(0, 3).Draw(t, "depth")
		p := NewPrefetch(s, depth)
		defer p.Close()
		ids := rapid.SliceOfN(rapid.IntRange(0, 49), 0, 3)
		type request struct {
			epoch int
			ids   []int
		}
		var guessed []request
		for range rapid.IntRange(1, 30).Draw(t, "calls") {
			r := request{rapid.IntRange(Evaluation, 2).Draw(t, "epoch"), ids.Draw(t, "ids")}
			if rapid.Bool().Draw(t, "guess") {
				if p.Ahead(r.epoch, r.ids) {
					guessed = append(guessed, r)
				}
				continue
			}
			if len(guessed) > 0 && rapid.Bool().Draw(t, "right") {
				r, guessed = guessed[0], guessed[1:]
			}
			got, err := p.Batch(r.epoch, r.ids)
			if err != nil {
				t.Fatal(err)
			}
			var want Batch
			split := s.Valid
			if r.epoch != Evaluation {
				split = InEpoch(s.Train, r.epoch)
			}
			if err := split.Fill(r.ids, &want); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(want.Inputs[0].I, got.Inputs[0].I) || got.N != want.N {
				t.Fatalf("epoch %d, examples %v: %v, want %v", r.epoch, r.ids, got, want)
			}
			p.mu.Lock()
			if n := len(p.free) + len(p.guesses) + 1; n > depth+2+1 {
				t.Fatalf("memory of %d batches, depth %d", n, depth)
			}
			p.mu.Unlock()
		}
	})
}

// TestPrefetchWorksAhead: a guess is filled before it is asked for and not once more,
// no more than depth are, and in an evaluation they stay.
func TestPrefetchWorksAhead(t *testing.T) {
	defer goleak.VerifyNone(t)
	s, fills := numberSet(nil)
	p := NewPrefetch(s, 2)
	if !p.Ahead(1, []int{3}) || !p.Ahead(1, []int{4}) || p.Ahead(1, []int{5}) || !p.Ahead(1, []int{3}) {
		t.Error("not two guesses are taken")
	}
	p.group.Wait()
	if n := fills.Load(); n != 2 {
		t.Fatalf("%d fills ahead, want 2", n)
	}
	for _, r := range []struct{ epoch, id, want, fills int }{{Evaluation, 9, 7009, 3}, {1, 3, 1003, 3}, {1, 3, 1003, 3}, {1, 4, 1004, 3}, {1, 5, 1005, 4}} {
		b, err := p.Batch(r.epoch, []int{r.id})
		if err != nil || int(b.Inputs[0].I[0]) != r.want || int(fills.Load()) != r.fills {
			t.Errorf("epoch %d, example %d: %v, %v after %d fills; want %d after %d", r.epoch, r.id, b, err, fills.Load(), r.want, r.fills)
		}
	}
	p.Close()
	if p.Ahead(1, []int{6}) {
		t.Error("a closed one takes guesses")
	}
}

// TestPrefetchDropsWrongGuesses: a guess that is being filled does not hold up other
// examples, and its memory is used again when it is done.
func TestPrefetchDropsWrongGuesses(t *testing.T) {
	defer goleak.VerifyNone(t)
	gate := make(chan struct{})
	s, fills := numberSet(gate)
	p := NewPrefetch(s, 1)
	p.Ahead(0, []int{1})
	for fills.Load() == 0 { // until its fill has begun
		runtime.Gosched()
	}
	for _, id := range []int{7, 8} {
		b, err := p.Batch(0, []int{id})
		if err != nil || b.Inputs[0].I[0] != int32(id) {
			t.Fatalf("%v, %v", b, err)
		}
	}
	if len(p.free) != 0 || len(p.guesses) != 0 {
		t.Errorf("%d batches free and %d guesses, and one is being filled still", len(p.free), len(p.guesses))
	}
	close(gate)
	p.Close()
	if len(p.free) != 1 {
		t.Errorf("%d batches free, want the dropped one's", len(p.free))
	}
}

// TestPrefetchErrors: a guess's error comes when the guess is asked for, and not else.
func TestPrefetchErrors(t *testing.T) {
	defer goleak.VerifyNone(t)
	s, _ := numberSet(nil)
	p := NewPrefetch(s, 1)
	defer p.Close()
	p.Ahead(0, []int{100})
	if _, err := p.Batch(0, []int{99}); err != nil {
		t.Error(err)
	}
	for range 2 {
		p.Ahead(0, []int{100})
		var e *Error
		if _, err := p.Batch(0, []int{100}); !errors.As(err, &e) || e.Kind != BadID {
			t.Errorf("example 100: %v", err)
		}
	}
	if b, err := p.Batch(0, []int{1}); err != nil || b.Inputs[0].I[0] != 1 {
		t.Errorf("%v, %v", b, err)
	}
}
