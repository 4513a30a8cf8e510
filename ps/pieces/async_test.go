package pieces

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"optimus/compute/optim"
	"optimus/internal/failure"
)

func asyncPush(generation int, step int64, worker int) Push {
	return Push{Generation: generation, Step: step, Sequence: step, From: Worker{worker, 1}, Piece: theWeight, Values: []float32{1}, Weight: 1}
}

// TestAsync: each push counts at once, readers get copies, retries do not count.
func TestAsync(t *testing.T) {
	for _, rows := range []bool{false, true} {
		cfg := lin1(ASP)
		cfg.Params[0].Rows = rows
		s := open(t, cfg, 2)
		before := pullNow(t, s, Request{Generation: 1, Piece: theWeight})
		push(t, s, asyncPush(1, 1, 0), Accepted)
		push(t, s, asyncPush(1, 2, 0), Accepted)
		push(t, s, asyncPush(1, 1, 0), Duplicate)
		push(t, s, asyncPush(1, 1, 1), Accepted)
		late := asyncPush(0, 3, 0)
		push(t, s, late, Refresh)
		late.Generation, late.Sequence = 1, 0
		push(t, s, late, Refused)
		idle := Push{Generation: 1, Step: 2, Sequence: 2, From: Worker{1, 1}, Piece: theWeight}
		push(t, s, idle, Accepted) // weight 0
		push(t, s, idle, Duplicate)
		a := pullNow(t, s, Request{Generation: 1, Piece: theWeight, Into: make([]float32, 0, 1)})
		if a.Version != 3 || a.Updates != 3 || before.Values[0] != 0 {
			t.Fatalf("%+v; the first copy has become %v", a, before.Values)
		}
		near(t, "w", float64(a.Values[0]), -0.3)
		if k := s.Counters(); k.Applied != 3 || k.Accepted != 4 || k.Duplicates != 2 || k.Refreshed != 1 || k.Refused != 1 {
			t.Fatalf("%+v", k)
		}
	}
}

// TestAsyncTransition: the table of sequences moves with the piece, shared and
// copied, and pushes set aside are applied in their order.
func TestAsyncTransition(t *testing.T) {
	cfg := vector(4, false)
	cfg.Mode = ASP
	s := open(t, cfg, 2)
	send := func(generation int, sequence int64, worker int, id ID, want Outcome) {
		t.Helper()
		push(t, s, Push{Generation: generation, Sequence: sequence, From: Worker{worker, 1}, Piece: id, Values: ones(id.Size), Weight: 1}, want)
	}
	whole, left, right := ID{0, 0, 4}, ID{0, 0, 2}, ID{0, 2, 2}
	send(1, 1, 0, whole, Accepted)
	install(t, s, Generation{Number: 2, Workers: workers(2), Pieces: []ID{whole}})
	check(t, s.FillLocal(2, 0))
	send(2, 2, 0, whole, Accepted)
	send(2, 3, 0, whole, Accepted)
	send(2, 2, 0, whole, Duplicate)
	check(t, s.Commit(2))
	send(2, 1, 0, whole, Duplicate)
	send(2, 3, 0, whole, Duplicate)
	if a := pullNow(t, s, Request{Generation: 2, Piece: whole}); a.Updates != 3 {
		t.Fatalf("%+v", a)
	}
	install(t, s, Generation{Number: 3, Workers: workers(1), Pieces: []ID{left, right}})
	check(t, s.FillLocal(3, 0))
	check(t, s.Commit(3))
	send(3, 3, 0, left, Duplicate)
	send(3, 4, 0, right, Accepted)
	install(t, s, Generation{Number: 4, Workers: workers(1), Pieces: []ID{whole}})
	check(t, s.FillLocal(4, 0)) // not drained: the worker that died in between counts by its later push
	check(t, s.Commit(4))
	send(4, 4, 0, whole, Duplicate)
	part, err := s.Extract(whole, -1)
	check(t, err)
	want := []Seen{{Worker: Worker{0, 1}, Sequence: 4}}
	if diff := cmp.Diff(want, part.Seen); diff != "" || part.Updates != 4 {
		t.Fatalf("%d updates; %s", part.Updates, diff)
	}
}

// TestAsyncSteadyMemory: taking over a piece leaves no reference that would make
// every update allocate.
func TestAsyncSteadyMemory(t *testing.T) {
	s := open(t, lin1(ASP), 1)
	resize(t, s, 2, 1, 0)
	step := int64(0)
	values := []float32{1}
	if n := testing.AllocsPerRun(100, func() {
		step++
		u := asyncPush(2, step, 0)
		u.Values = values
		if out, err := s.Push(u); out != Accepted {
			t.Fatal(out, err)
		}
	}); !raceEnabled && n > 1 { // the literal of asyncPush
		t.Fatalf("%v allocations per push", n)
	}
}

// TestStalenessBound: whatever the order of events, no pull is served to a worker
// more than s steps ahead of the slowest, and the bound is reached.
func TestStalenessBound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bound := rapid.IntRange(0, 3).Draw(t, "s")
		n := rapid.IntRange(1, 4).Draw(t, "w")
		cfg := lin1(SSP)
		cfg.Staleness = bound
		s, err := New(cfg)
		check(t, err)
		check(t, s.Install(Generation{Number: 1, Workers: workers(n), Pieces: []ID{theWeight}}))
		check(t, s.Init(1, 0, 0))
		check(t, s.Commit(1))
		clock := make([]int64, n)
		ready, left := make([]bool, n), make([]bool, n)
		slowest := func() int64 {
			lowest := int64(1 << 40)
			for i, c := range clock {
				if !left[i] {
					lowest = min(lowest, c)
				}
			}
			return lowest
		}
		var most int64
		pull := func(w int) {
			at := clock[w]
			s.Pull(Request{Generation: 1, Step: at, Piece: theWeight}, func(a Answer) {
				if a.Outcome != Served || at-slowest() > int64(bound) {
					t.Fatalf("worker %d at clock %d was served (%v) while the slowest is at %d", w, at, a.Outcome, slowest())
				}
				most = max(most, at-slowest())
				ready[w] = true
			})
			if ahead := at - slowest(); ready[w] != (ahead <= int64(bound)) {
				t.Fatalf("%d steps ahead at bound %d, served: %v", ahead, bound, ready[w])
			}
		}
		for w := range n {
			pull(w)
		}
		for range rapid.IntRange(0, 60).Draw(t, "events") {
			w := rapid.IntRange(0, n-1).Draw(t, "worker")
			switch {
			case left[w]:
			case rapid.IntRange(0, 20).Draw(t, "leave") == 0:
				left[w] = true
				s.RetireWorker(Worker{w, 1})
			case ready[w]:
				ready[w] = false
				clock[w]++
				if out, err := s.Push(asyncPush(1, clock[w], w)); out != Accepted {
					t.Fatalf("%v %v", out, err)
				}
				pull(w)
			}
		}
		if got := s.MaxStaleness(); got != most || got > int64(bound) {
			t.Fatalf("largest staleness %d, seen %d, bound %d", got, most, bound)
		}
		for w := range n {
			if got, ok := s.Clock(Worker{w, 1}); ok == left[w] || ok && got != clock[w] {
				t.Fatalf("clock of worker %d is %d (%v), want %d (left: %v)", w, got, ok, clock[w], left[w])
			}
		}
	})
}

// TestNewWorkerStartsAtTheSlowest: a newcomer neither waits for nor is waited for
// beyond the slowest old member.
func TestNewWorkerStartsAtTheSlowest(t *testing.T) {
	cfg := lin1(SSP)
	cfg.Staleness = 1
	s := open(t, cfg, 2)
	for step := int64(1); step <= 5; step++ {
		push(t, s, asyncPush(1, step, 0), Accepted)
	}
	push(t, s, asyncPush(1, 1, 1), Accepted)
	push(t, s, asyncPush(1, 2, 1), Accepted)
	waiting := 0
	s.Pull(Request{Generation: 1, Step: 5, Piece: theWeight}, func(a Answer) {
		if a.Outcome == Refresh {
			waiting++
		}
	})
	resize(t, s, 2, 3, 0)
	if waiting != 1 {
		t.Fatal("the parked pull was not told to refresh")
	}
	if c, ok := s.Clock(Worker{2, 1}); !ok || c != 2 {
		t.Fatalf("newcomer's clock %d, want 2", c)
	}
	install(t, s, Generation{Number: 3, Workers: []Worker{{0, 1}, {1, 2}}, Pieces: []ID{theWeight}})
	check(t, s.FillLocal(3, 0))
	check(t, s.Commit(3))
	if c, ok := s.Clock(Worker{1, 2}); !ok || c != 5 {
		t.Fatalf("replacement's clock %d, want that of the only old member, 5", c)
	}
	if _, ok := s.Clock(Worker{2, 1}); ok {
		t.Fatal("worker 2 has left")
	}
	if a := pullNow(t, s, Request{Generation: 3, Step: 6, Piece: theWeight}); a.Outcome != Served {
		t.Fatalf("%+v", a)
	}
}

// TestAsyncPinAndDigest: a pin holds in asp too.
func TestAsyncPinAndDigest(t *testing.T) {
	cfg := lin1(ASP)
	cfg.Optimizer = optim.Default(optim.Adam)
	s := open(t, cfg, 1)
	push(t, s, asyncPush(1, 1, 0), Accepted)
	snap, err := s.Pin(0)
	check(t, err)
	params, state := s.Digest()
	for step := int64(2); step < 5; step++ {
		push(t, s, asyncPush(1, step, 0), Accepted)
	}
	if p, q := snap.Parts()[0].Digest(); p != params || q != state {
		t.Fatal("the pinned arrays changed")
	}
	if p, q := s.Digest(); p == params || q == state {
		t.Fatal("three updates changed nothing")
	}
	snap.Release()
	kindIs(t, s.Relabel(1, 2), failure.Conflict)
}

// TestRestoredClocks: after a restart all workers are new incarnations and go on
// from the slowest saved clock.
func TestRestoredClocks(t *testing.T) {
	cfg := lin1(SSP)
	s, err := New(cfg)
	check(t, err)
	fresh := []Worker{{0, 2}, {1, 2}}
	install(t, s, Generation{Number: 1, Workers: fresh, Pieces: []ID{theWeight}})
	check(t, s.Fill(1, Part{Size: 1, Params: []float32{1}, Updates: 12,
		Seen: []Seen{{Worker{0, 1}, 7, 7}, {Worker{1, 1}, 5, 5}}}))
	check(t, s.Commit(1))
	for _, w := range fresh {
		if c, ok := s.Clock(w); !ok || c != 5 {
			t.Fatalf("clock of %v is %d", w, c)
		}
	}
	if a := pullNow(t, s, Request{Generation: 1, Step: 5, Piece: theWeight}); a.Version != 12 || a.Values[0] != 1 {
		t.Fatalf("%+v", a)
	}
}
