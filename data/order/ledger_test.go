package order

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"
)

// BO-26: work in the hands of a worker that dies goes to another, first.
func TestBO26_ShardInProgress(t *testing.T) {
	l, err := NewLedger(Plan{Examples: 5000, Batch: 10}, 50, 2)
	if err != nil {
		t.Fatal(err)
	}
	a, _, _ := l.Lease("a/1")
	b, _, _ := l.Lease("b/1")
	if err := l.Done("a/1", a, 20); err != nil {
		t.Fatal(err)
	}
	if n := l.Release("a/1"); n != 30 {
		t.Errorf("%d positions came back, want 30", n)
	}
	if c, _, _ := l.Lease("b/1"); c != (Chunk{0, 20, 50}) {
		t.Errorf("then %v was leased, want the rest of %v", c, a)
	}
	if c, _, _ := l.Lease("a/2"); c != (Chunk{0, 100, 150}) || b != (Chunk{0, 50, 100}) {
		t.Errorf("then %v was leased", c)
	}
	if err := l.Done("a/1", a, 30); !errors.Is(err, ErrNotLeased) {
		t.Errorf("the dead worker's report gave %v", err)
	}
	if err := l.Done("b/1", b, 101); !errors.Is(err, ErrInvalid) {
		t.Errorf("a report beyond the chunk gave %v", err)
	}
	if l.Repeats() != 10 || l.Held() != 3 {
		t.Errorf("%d repeats, %d leases", l.Repeats(), l.Held())
	}
}

func TestLedgerBarrier(t *testing.T) {
	for _, barrier := range []bool{true, false} {
		l, err := NewLedger(Plan{Examples: 5, Batch: 5}, 3, 2)
		if err != nil {
			t.Fatal(err)
		}
		l.SetBarrier(barrier)
		l.Lease("a")
		l.Lease("b")
		c, wait, done := l.Lease("b")
		if wait != barrier || done || !barrier && c != (Chunk{1, 0, 3}) {
			t.Errorf("barrier %v: then %v, wait %v, done %v", barrier, c, wait, done)
		}
	}
}

func TestLedgerRefuses(t *testing.T) {
	for _, c := range []struct{ examples, batch, chunk, epochs int }{{0, 1, 1, 1}, {1, 0, 1, 1}, {1, 1, 0, 1}, {1, 1, 1, -1}, {1 << 62, 1, 1, 4}} {
		if _, err := NewLedger(Plan{Examples: c.examples, Batch: c.batch}, c.chunk, c.epochs); !errors.Is(err, ErrInvalid) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	const frame = `{"plan":{"seed":1,"examples":10,"batch":2},"chunk_size":4,"epochs":2,"barrier":true,"epoch":0,"next":8,%s}`
	for name, c := range map[string]struct {
		rest string
		ok   bool
	}{
		"balanced":   {`"done":4,"leases":[{"worker":"a","chunk":{"lo":4,"hi":8},"up_to":4}]`, true},
		"lost":       {`"done":3,"leases":[{"worker":"a","chunk":{"lo":4,"hi":8},"up_to":4}]`, false},
		"twice":      {`"done":0,"leases":[{"chunk":{"lo":4,"hi":8},"up_to":4}],"returned":[{"lo":4,"hi":8}]`, false},
		"beyond":     {`"done":6,"returned":[{"lo":8,"hi":10}]`, false},
		"backwards":  {`"done":8,"leases":[{"chunk":{"lo":4,"hi":8},"up_to":2}]`, false},
		"no numbers": {`"done":"x"`, false},
		"overflow":   {`"done":4,"returned":[{"epoch":9223372036854775807,"lo":4,"hi":8}]`, false},
		"past":       {`"done":8,"returned":[{"epoch":1,"lo":0,"hi":1}]`, false},
		"owed":       {`"done":8,"repeats":-1`, false},
	} {
		l := new(Ledger)
		if err := json.Unmarshal(fmt.Appendf(nil, frame, c.rest), l); (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzLedgerJSON(f *testing.F) {
	f.Add([]byte(`{"plan":{"seed":1,"examples":10,"batch":2},"chunk_size":4,"epochs":2,"next":4,"done":4}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		l := new(Ledger)
		if json.Unmarshal(b, l) != nil {
			return
		}
		for range 20 {
			c, _, done := l.Lease("w")
			if done {
				break
			}
			if c.Len() > 0 && l.Done("w", c, c.Hi) != nil {
				t.Fatal("a chunk just leased cannot be reported")
			}
			if err := l.s.validate(); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func ExampleLedger() {
	l, err := NewLedger(Plan{Examples: 5, Batch: 2}, 3, 1)
	if err != nil {
		fmt.Println(err)
		return
	}
	first, _, _ := l.Lease("a/1")
	l.Done("a/1", first, first.Lo+2)
	l.Release("a/1") // it died
	for {
		c, _, done := l.Lease("b/1")
		if done {
			break
		}
		fmt.Println(c)
		l.Done("b/1", c, c.Hi)
	}
	// Output:
	// {0 2 3}
	// {0 3 5}
}

func TestSetEpochs(t *testing.T) {
	l, err := NewLedger(Plan{Seed: 1, Examples: 4, Batch: 2}, 4, 3)
	if err != nil {
		t.Fatal(err)
	}
	l.Lease("a")
	if err := l.SetEpochs(0); !errors.Is(err, ErrInvalid) {
		t.Errorf("0 passes after the first has begun: %v", err)
	}
	if err := l.SetEpochs(1); err != nil {
		t.Fatal(err)
	}
	if err := l.Done("a", Chunk{0, 0, 4}, 4); err != nil {
		t.Fatal(err)
	}
	if _, _, done := l.Lease("a"); !done {
		t.Error("a second pass was leased, one is wanted")
	}
}
