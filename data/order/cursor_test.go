package order

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"testing"
)

func TestCursor(t *testing.T) {
	p := Plan{Seed: 1, Examples: 10, Batch: 4}
	for steps, done := range []int64{0, 4, 8, 10, 14} {
		c, err := StepCursor(p, int64(steps))
		if err != nil || c.Done() != done || c.Steps() != int64(steps) || c.Ledger() != nil {
			t.Errorf("%d steps: %+v, %d done, %v", steps, c, c.Done(), err)
		}
	}
	c, _ := StepCursor(p, 3)
	if err := c.Fits(p); err != nil {
		t.Error(err)
	}
	for _, other := range []Plan{{Seed: 2, Examples: 10, Batch: 4}, {Seed: 1, Examples: 11, Batch: 4}, {Seed: 1, Examples: 10, Batch: 5}} {
		if err := c.Fits(other); !errors.Is(err, ErrOtherPlan) {
			t.Errorf("%+v: %v", other, err)
		}
	}
	for _, bad := range []struct {
		plan  Plan
		steps int64
	}{{Plan{}, 0}, {p, -1}, {p, math.MaxInt64}, {Plan{Examples: 1 << 40, Batch: 1 << 40}, 1 << 30}} {
		if _, err := StepCursor(bad.plan, bad.steps); !errors.Is(err, ErrInvalid) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
}

// The bytes are a format: checkpoints hold them.
func TestCursorJSON(t *testing.T) {
	const (
		plan   = `"plan":{"seed":1,"examples":10,"batch":4}`
		ledger = `{` + plan + `,"chunk_size":4,"epochs":2,"barrier":true,"epoch":0,"next":8,"leases":[{"worker":"worker 0/1","chunk":{"epoch":0,"lo":4,"hi":8},"up_to":5}],"done":5,"repeats":0}`
	)
	for text, done := range map[string]int64{`{` + plan + `,"steps":3}`: 10, `{` + plan + `,"steps":0}`: 0, ledger: 5} {
		var c Cursor
		if err := json.Unmarshal([]byte(text), &c); err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if b, err := json.Marshal(c); err != nil || string(b) != text || c.Done() != done {
			t.Errorf("%s became %s, %d done, %v", text, b, c.Done(), err)
		}
	}
	c := LedgerCursor(ledgerOf(t, ledger))
	if c.Steps() != 0 || c.Ledger().Held() != 1 || c.Fits(Plan{Seed: 1, Examples: 10, Batch: 4}) != nil {
		t.Errorf("%+v", c)
	}
	for _, text := range []string{
		`null`, `{}`, `[]`, `{` + plan + `}`, `{"steps":1}`, `{` + plan + `,"steps":-1}`, `{` + plan + `,"steps":1.5}`,
		`{` + plan + `,"steps":9223372036854775807}`, `{` + plan + `,"steps":1,"chunk_size":4}`, `{` + plan + `,"chunk_size":4,"next":1}`,
		`{"plan":{"seed":1,"examples":0,"batch":4},"steps":0}`,
	} {
		before, _ := StepCursor(Plan{Seed: 3, Examples: 1, Batch: 1}, 1)
		c := before
		if err := json.Unmarshal([]byte(text), &c); err == nil || c != before {
			t.Errorf("%s: %+v, %v", text, c, err)
		}
	}
}

func ledgerOf(t *testing.T, text string) *Ledger {
	t.Helper()
	l := new(Ledger)
	if err := json.Unmarshal([]byte(text), l); err != nil {
		t.Fatal(err)
	}
	return l
}

// FuzzCursorJSON: what is accepted can be gone on from, and is written as it was
// understood.
func FuzzCursorJSON(f *testing.F) {
	f.Add([]byte(`{"plan":{"seed":1,"examples":10,"batch":4},"steps":3}`))
	f.Add([]byte(`{"plan":{"seed":1,"examples":10,"batch":2},"chunk_size":4,"epochs":2,"next":4,"leases":[{"worker":"a","chunk":{"lo":0,"hi":4},"up_to":1}],"done":1}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		var c Cursor
		if json.Unmarshal(b, &c) != nil {
			return
		}
		text, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		back, err := again(c)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if b, err := json.Marshal(back); err != nil || string(b) != string(text) || back.Done() != c.Done() || c.Done() < 0 {
			t.Fatalf("%s became %s, %d of %d done, %v", text, b, back.Done(), c.Done(), err)
		}
		if l := c.Ledger(); l != nil {
			if _, total := l.Progress(); c.Done() > total {
				t.Fatalf("%d of %d done", c.Done(), total)
			}
			return
		}
		next, err := StepCursor(c.plan, c.Steps()+1)
		if _, lo, hi := c.plan.Positions(c.Steps() + 1); err == nil && next.Done() != c.Done()+int64(hi-lo) {
			t.Fatalf("%s: %d done, then %d with a step of %d", text, c.Done(), next.Done(), hi-lo)
		}
	})
}

// A checkpoint holds the cursor; a job that resumes from it checks that it goes on
// with the same order, and with how many workers does not matter.
func ExampleCursor() {
	p := Plan{Seed: 7, Examples: 1000, Batch: 8}
	at, err := StepCursor(p, 40)
	if err != nil {
		fmt.Println(err)
		return
	}
	saved, err := json.Marshal(at)
	fmt.Println(string(saved), err)

	var from Cursor
	if err := json.Unmarshal(saved, &from); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(from.Done(), "done, next is step", from.Steps()+1, from.Fits(p))
	fmt.Println(errors.Is(from.Fits(Plan{Seed: 8, Examples: 1000, Batch: 8}), ErrOtherPlan))
	// Output:
	// {"plan":{"seed":7,"examples":1000,"batch":8},"steps":40} <nil>
	// 320 done, next is step 41 <nil>
	// true
}
