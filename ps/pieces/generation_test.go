package pieces

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"optimus/compute/optim"
	"optimus/internal/failure"
)

// vector returns a configuration of one block of n elements.
func vector(n int, rows bool) Config {
	return Config{Params: []optim.Param{{Name: "x", Shape: []int{n}, Rows: rows}}, Optimizer: optim.Config{Kind: optim.SGD, LR: 1, Momentum: 0.5}}
}

func ones(n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = 1
	}
	return x
}

func TestInstallRefusals(t *testing.T) {
	s := open(t, vector(8, false), 1)
	bad := map[string]Generation{
		"no workers":       {Number: 2, Pieces: []ID{{0, 0, 8}}},
		"worker twice":     {Number: 2, Workers: []Worker{{1, 1}, {1, 2}}},
		"overlap":          {Number: 2, Workers: workers(1), Pieces: []ID{{0, 0, 5}, {0, 4, 4}}},
		"piece twice":      {Number: 2, Workers: workers(1), Pieces: []ID{{0, 0, 4}, {0, 0, 4}}},
		"past the end":     {Number: 2, Workers: workers(1), Pieces: []ID{{0, 4, 5}}},
		"empty piece":      {Number: 2, Workers: workers(1), Pieces: []ID{{0, 4, 0}}},
		"negative offset":  {Number: 2, Workers: workers(1), Pieces: []ID{{0, -1, 4}}},
		"no such block":    {Number: 2, Workers: workers(1), Pieces: []ID{{1, 0, 1}}},
		"overflowing size": {Number: 2, Workers: workers(1), Pieces: []ID{{0, 4, 1<<63 - 1}}},
	}
	for name, g := range bad {
		t.Run(name, func(t *testing.T) { kindIs(t, s.Install(g), failure.InvalidArgument) })
	}
	good := Generation{Number: 1, Workers: workers(1), Pieces: []ID{{0, 0, 8}}}
	kindIs(t, s.Install(good), failure.Conflict) // not above the current number
	good.Number = 3
	check(t, s.Install(good))
	kindIs(t, s.Install(good), failure.Conflict) // already pending
	kindIs(t, s.Drop(2), failure.Conflict)
	kindIs(t, s.Commit(2), failure.Conflict)
	kindIs(t, s.Commit(3), failure.Conflict) // neither filled nor labelled
	check(t, s.SetVersion(3, 0))
	kindIs(t, s.SetVersion(3, 1), failure.Conflict)
	kindIs(t, s.Commit(3), failure.Conflict) // not filled
	check(t, s.Drop(3))
	s.Close()
	good.Number = 4
	kindIs(t, s.Install(good), failure.Conflict)
	push(t, s, Push{Generation: 1, Step: 1, Piece: ID{0, 0, 8}}, Refresh)
}

func TestFillRefusals(t *testing.T) {
	s, err := New(vector(8, false))
	check(t, err)
	part := Part{Block: 0, Offset: 0, Size: 4, Params: ones(4), Slots: [][]float32{ones(4)}, Updates: 3}
	kindIs(t, s.Fill(1, part), failure.Conflict)
	install(t, s, Generation{Number: 1, Workers: workers(1), Pieces: []ID{{0, 2, 6}}})
	for name, change := range map[string]func(*Part){
		"block":        func(p *Part) { p.Block = 5 },
		"range":        func(p *Part) { p.Offset = 6 },
		"params":       func(p *Part) { p.Params = ones(3) },
		"slots":        func(p *Part) { p.Slots = nil },
		"slot's size":  func(p *Part) { p.Slots = [][]float32{ones(3)} },
		"huge offset":  func(p *Part) { p.Offset = 1<<63 - 1 },
		"negative":     func(p *Part) { p.Size = -1 },
		"negative one": func(p *Part) { p.Offset = -1 },
	} {
		bad := part
		change(&bad)
		t.Run(name, func(t *testing.T) { kindIs(t, s.Fill(1, bad), failure.InvalidArgument) })
	}
	check(t, s.Fill(1, part))
	if diff := cmp.Diff([]ID{{0, 4, 4}}, s.Missing(1)); diff != "" {
		t.Fatal(diff)
	}
	part.Offset, part.Updates = 4, 4
	kindIs(t, s.Fill(1, part), failure.Conflict) // another count of updates
	part.Updates = 3
	check(t, s.Fill(1, part))
	check(t, s.Fill(1, part)) // a repeated message
	if m := s.Missing(1); len(m) > 0 {
		t.Fatalf("missing %v", m)
	}
	check(t, s.SetVersion(1, 10))
	check(t, s.Commit(1))
	if low, high := s.Versions(); low != 10 || high != 10 {
		t.Fatalf("versions %d to %d", low, high)
	}
	if a := pullNow(t, s, Request{Generation: 1, Step: 10, Piece: ID{0, 2, 6}}); a.Updates != 3 || !cmp.Equal(a.Values, ones(6)) {
		t.Fatalf("%+v", a)
	}
}

// TestBoundary follows a transition: version s is pulled from the old pieces
// while step s+1 is pushed to the new ones.
func TestBoundary(t *testing.T) {
	for _, rows := range []bool{false, true} {
		cfg := vector(8, rows)
		s := open(t, cfg, 2)
		whole, left, right := ID{0, 0, 8}, ID{0, 0, 4}, ID{0, 4, 4}
		send := func(generation int, step int64, worker int, id ID, want Outcome) {
			t.Helper()
			push(t, s, Push{Generation: generation, Step: step, From: Worker{worker, 1}, Piece: id, Values: ones(id.Size), Weight: 1}, want)
		}
		send(1, 1, 0, whole, Accepted)
		send(1, 1, 1, whole, Accepted)
		install(t, s, Generation{Number: 2, Workers: workers(1), Pieces: []ID{left, right}})
		kindIs(t, s.FillLocal(2, 2), failure.Conflict) // not there yet
		check(t, s.FillLocal(2, 1))
		if m := s.Missing(2); len(m) > 0 {
			t.Fatalf("missing %v", m)
		}
		var early *Answer
		s.Pull(Request{Generation: 2, Step: 2, Piece: left}, func(a Answer) { early = &a })
		send(2, 2, 0, left, Accepted)
		send(2, 2, 0, left, Duplicate)
		send(2, 1, 0, left, Duplicate)
		send(2, 2, 1, left, Refused) // not a member of generation 2
		send(2, 2, 0, whole, Refused)
		if early != nil {
			t.Fatal("a pull of the pending generation was answered before Commit")
		}
		old := Request{Generation: 1, Step: 1, Piece: whole}
		if a := pullNow(t, s, old); a.Outcome != Served {
			t.Fatalf("before Commit: %+v", a)
		}
		check(t, s.Commit(2))
		if early == nil || early.Outcome != Served || early.Version != 2 {
			t.Fatalf("after Commit: %+v", early)
		}
		if a := pullNow(t, s, old); a.Outcome != Refresh { // `left` applied step 2: everybody has pulled version 1
			t.Fatalf("after the first step: %+v", a)
		}
		send(1, 1, 0, whole, Duplicate)
		send(1, 2, 0, whole, Refresh)
		if a := pullNow(t, s, Request{Generation: 2, Step: 1, Piece: right}); a.Outcome != Served {
			t.Fatalf("%+v", a)
		}
		check(t, s.Rewind(1))
		send(2, 2, 0, left, Accepted)
		send(2, 2, 0, right, Accepted)
		for _, id := range []ID{left, right} { // 0 − 1 − (0.5 + 1)
			if a := pullNow(t, s, Request{Generation: 2, Step: 2, Piece: id}); a.Values[0] != -2.5 || a.Updates != 2 {
				t.Fatalf("rows %v: %+v", rows, a)
			}
		}
	}
}

// TestOldPiecesStayReadable: with nothing applied since Commit, the boundary's
// version is still there under the old generation, shared pieces too.
func TestOldPiecesStayReadable(t *testing.T) {
	for _, rows := range []bool{false, true} {
		s := open(t, vector(8, rows), 1)
		whole := ID{0, 0, 8}
		u := Push{Generation: 1, Step: 1, From: Worker{0, 1}, Piece: whole, Values: ones(8), Weight: 1}
		push(t, s, u, Accepted)
		resize(t, s, 2, 1, 1)
		old := Request{Generation: 1, Step: 1, Piece: whole}
		if a := pullNow(t, s, old); a.Outcome != Served || a.Values[7] != -1 {
			t.Fatalf("%+v", a)
		}
		for _, r := range []Request{{1, 0, whole, nil, nil}, {1, 2, whole, nil, nil}, {1, 1, ID{0, 0, 4}, nil, nil}} {
			if a := pullNow(t, s, r); a.Outcome != Refresh {
				t.Fatalf("%+v: %+v", r, a)
			}
		}
		held := pullNow(t, s, old)
		u.Generation, u.Step = 2, 2
		push(t, s, u, Accepted)
		if a := pullNow(t, s, old); a.Outcome != Refresh {
			t.Fatalf("%+v", a)
		}
		if held.Values[7] != -1 {
			t.Fatal("the boundary's version changed while it may still be read")
		}
		resize(t, s, 3, 1, 2)
		s.Retire()
		if a := pullNow(t, s, Request{2, 2, whole, nil, nil}); a.Outcome != Refresh {
			t.Fatalf("after Retire: %+v", a)
		}
	}
}

// TestRestoreOlder: a checkpoint of an older version replaces what is there.
func TestRestoreOlder(t *testing.T) {
	s := open(t, vector(2, false), 1)
	id := ID{0, 0, 2}
	send := func(generation int, step int64, want Outcome) {
		t.Helper()
		push(t, s, Push{Generation: generation, Step: step, From: Worker{0, 1}, Piece: id, Values: ones(2), Weight: 1}, want)
	}
	snap, err := s.Pin(0)
	check(t, err)
	for step := int64(1); step <= 5; step++ {
		send(1, step, Accepted)
	}
	install(t, s, Generation{Number: 2, Workers: workers(1), Pieces: []ID{id}})
	for _, part := range snap.Parts() {
		check(t, s.Fill(2, part))
	}
	snap.Release()
	check(t, s.SetVersion(2, 0))
	send(2, 1, Accepted) // may come before Commit, although version 5 is current
	check(t, s.Commit(2))
	send(1, 3, Refresh)
	if a := pullNow(t, s, Request{2, 1, id, nil, nil}); a.Outcome != Served || a.Values[0] != -1 || a.Updates != 1 {
		t.Fatalf("%+v", a)
	}
}
