package order

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"pgregory.net/rapid"
)

// crew is a set of workers that take work from a ledger, and what they did.
type crew struct {
	t       *rapid.T
	l       *Ledger
	plan    Plan
	barrier bool
	holds   map[string]*held // by worker
	times   map[[2]int]int   // how often a position was applied
	named   int              // incarnations so far
	journal bool             // the ledger goes through JSON after each call
}

type held struct {
	chunk Chunk
	at    int
}

func (c *crew) check() {
	if err := c.l.s.validate(); err != nil {
		c.t.Fatal(err)
	}
	if !c.journal {
		return
	}
	b, err := json.Marshal(c.l)
	if err != nil {
		c.t.Fatal(err)
	}
	c.l = new(Ledger)
	if err := json.Unmarshal(b, c.l); err != nil {
		c.t.Fatalf("%s: %v", b, err)
	}
}

// lease takes work for a worker and says whether all work is done.
func (c *crew) lease(worker string) (done bool) {
	chunk, wait, done := c.l.Lease(worker)
	switch {
	case wait && done, wait && c.l.Held() == 0, done && c.l.Held() > 0:
		c.t.Fatalf("wait %v, done %v with %d leases out", wait, done, c.l.Held())
	case wait || done:
		return done
	}
	if c.barrier && chunk.Epoch > 0 {
		for i := range c.plan.Examples {
			if c.times[[2]int{chunk.Epoch - 1, i}] == 0 {
				c.t.Fatalf("%v is leased while position %d of the epoch before was not done", chunk, i)
			}
		}
	}
	c.holds[worker] = &held{chunk, chunk.Lo}
	return false
}

// work applies one batch, and reports it unless the worker dies first.
func (c *crew) work(worker string, report bool) {
	h := c.holds[worker]
	upTo := min(h.at+c.plan.Batch, h.chunk.Hi)
	for i := h.at; i < upTo; i++ {
		c.times[[2]int{h.chunk.Epoch, i}]++
	}
	h.at = upTo
	if !report {
		return
	}
	if err := c.l.Done(worker, h.chunk, upTo); err != nil {
		c.t.Fatal(err)
	}
	if upTo == h.chunk.Hi {
		delete(c.holds, worker)
	}
}

func (c *crew) die(worker string) {
	h := c.holds[worker]
	delete(c.holds, worker)
	c.l.Release(worker)
	if h == nil {
		return
	}
	if err := c.l.Done(worker, h.chunk, h.chunk.Hi); !errors.Is(err, ErrNotLeased) {
		c.t.Fatalf("a late report of the dead gave %v", err)
	}
}

func (c *crew) newcomer() string { c.named++; return fmt.Sprint("w/", c.named) }

// TestLedgerLosesNothing plays random leases, work, deaths before and after
// applying, and departures, then lets one worker finish.
func TestLedgerLosesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		plan := Plan{Examples: rapid.IntRange(1, 80).Draw(t, "examples"), Batch: rapid.IntRange(1, 9).Draw(t, "batch")}
		epochs := rapid.IntRange(1, 3).Draw(t, "epochs")
		l, err := NewLedger(plan, rapid.IntRange(1, 30).Draw(t, "chunk"), epochs)
		if err != nil {
			t.Fatal(err)
		}
		c := &crew{t: t, l: l, plan: plan, barrier: rapid.Bool().Draw(t, "barrier"), holds: map[string]*held{},
			times: map[[2]int]int{}, journal: rapid.Bool().Draw(t, "journal")}
		l.SetBarrier(c.barrier)
		mortal := rapid.Bool().Draw(t, "mortal")
		crewOf := []string{c.newcomer(), c.newcomer(), c.newcomer()}
		deaths := 0
		for range rapid.IntRange(0, 120).Draw(t, "moves") {
			i := rapid.IntRange(0, len(crewOf)-1).Draw(t, "who")
			worker, move := crewOf[i], rapid.IntRange(0, 9).Draw(t, "move")
			switch {
			case c.holds[worker] == nil:
				c.lease(worker)
			case move == 0 && mortal: // dies having applied what it did not report
				c.work(worker, false)
				c.die(worker)
				deaths++
				crewOf[i] = c.newcomer()
			case move == 1 && mortal: // dies idle
				c.die(worker)
				deaths++
				crewOf[i] = c.newcomer()
			case move == 2: // leaves in peace
				c.l.Return(worker)
				delete(c.holds, worker)
				crewOf[i] = c.newcomer()
			default:
				c.work(worker, true)
			}
			c.check()
		}
		for _, worker := range crewOf {
			for c.holds[worker] != nil {
				c.work(worker, true)
			}
		}
		last := c.newcomer()
		for !c.lease(last) {
			for c.holds[last] != nil {
				c.work(last, true)
			}
			c.check()
		}
		c.finish(epochs, deaths)
	})
}

// finish checks the final account.
func (c *crew) finish(epochs, deaths int) {
	var repeats int64
	for e := range epochs {
		for i := range c.plan.Examples {
			n := c.times[[2]int{e, i}]
			if n == 0 {
				c.t.Fatalf("position %d of epoch %d was lost", i, e)
			}
			repeats += int64(n - 1)
		}
	}
	if len(c.times) != epochs*c.plan.Examples {
		c.t.Fatalf("%d positions were done, want %d", len(c.times), epochs*c.plan.Examples)
	}
	if bound := c.l.Repeats(); repeats > bound || bound > int64(deaths*c.plan.Batch) {
		c.t.Fatalf("%d repeats, counted %d, %d deaths with batches of %d in flight", repeats, bound, deaths, c.plan.Batch)
	}
	if done, total := c.l.Progress(); done != total || c.l.Epoch() != epochs {
		c.t.Fatalf("progress %d of %d, epoch %d of %d", done, total, c.l.Epoch(), epochs)
	}
}

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
