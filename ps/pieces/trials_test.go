package pieces

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"optimus/compute/optim"
	"optimus/internal/failure"
)

// TestBO01: blocks are told apart on any number of servers, and a block that is
// not registered is refused instead of landing on another one.
func TestBO01(t *testing.T) {
	cfg := Config{Optimizer: optim.Config{Kind: optim.SGD, LR: 1}, Params: []optim.Param{
		{Name: "a", Shape: []int{6}, Init: optim.Init{Kind: "constant", Scale: 1}},
		{Name: "b", Shape: []int{6}, Init: optim.Init{Kind: "constant", Scale: 2}},
	}}
	for servers := 1; servers <= 3; servers++ {
		for k := range servers {
			s, err := New(cfg)
			check(t, err)
			n := 6 / servers
			a, b := ID{0, k * n, n}, ID{1, k * n, n}
			install(t, s, Generation{Number: 1, Workers: workers(1), Pieces: []ID{a, b}})
			check(t, s.Init(1, 0, 0))
			check(t, s.Commit(1))
			ones := make([]float32, n)
			for i := range ones {
				ones[i] = 1
			}
			push(t, s, Push{Generation: 1, Step: 1, From: Worker{0, 1}, Piece: a, Values: ones, Weight: 1}, Accepted)
			push(t, s, Push{Generation: 1, Step: 1, From: Worker{0, 1}, Piece: b}, Accepted)
			for i := range n {
				near(t, "a", float64(pullNow(t, s, Request{Generation: 1, Step: 1, Piece: a}).Values[i]), 0)
				near(t, "b", float64(pullNow(t, s, Request{Generation: 1, Step: 1, Piece: b}).Values[i]), 2)
			}
		}
	}
	for _, wide := range []int{1<<32 + 2, 1 << 31, 1<<53 + 1, math.MinInt64} {
		s, err := New(cfg)
		check(t, err)
		for _, id := range []ID{{wide, 0, 6}, {0, wide, 6}, {0, 0, wide}} {
			err = s.Install(Generation{Number: 1, Workers: workers(1), Pieces: []ID{id}})
			kindIs(t, err, failure.InvalidArgument)
		}
	}
}

// TestBO03: the divisor is the weight of the step's own contributions.
func TestBO03(t *testing.T) {
	s := open(t, lin1(BSP), 2)
	push(t, s, lin1Push(1, 1, 0, 0, 2), Accepted)
	push(t, s, lin1Push(1, 1, 1, 0, 4), Accepted)
	w := weight(t, s, 1, 1)
	near(t, "w after 2 workers", w, 0.6)
	resize(t, s, 2, 3, 1)
	for i, y := range []float64{2, 4, 6} {
		push(t, s, lin1Push(2, 2, i, w, y), Accepted)
	}
	w = weight(t, s, 2, 2)
	near(t, "w after 3 workers", w, 1.28)
	resize(t, s, 3, 1, 2)
	push(t, s, lin1Push(3, 3, 0, w, 2), Accepted)
	near(t, "w after 1 worker", weight(t, s, 3, 3), 1.424)
}

// TestBO04: a retry is a duplicate in all modes. Across a restart of the server
// from its checkpoint, which begins a new generation, it is one of a step that the
// checkpoint holds (bsp), or of a generation that has ended (asp, ssp).
func TestBO04(t *testing.T) {
	for _, mode := range []Mode{BSP, ASP, SSP} {
		t.Run(mode.String(), func(t *testing.T) {
			s := open(t, lin1(mode), 1)
			u := lin1Push(1, 1, 0, 0, 3) // gradient −6
			push(t, s, u, Accepted)
			push(t, s, u, Duplicate)
			near(t, "w", weight(t, s, 1, 1), 0.6)
			if k := s.Counters(); k.Applied != 1 || k.Accepted != 1 || k.Duplicates != 1 {
				t.Fatalf("counters %+v, want 1 applied and 1 duplicate", k)
			}
			snap, err := s.Pin(1)
			check(t, err)
			again, err := New(lin1(mode))
			check(t, err)
			install(t, again, Generation{Number: 2, Workers: workers(1), Pieces: []ID{theWeight}})
			for _, part := range snap.Parts() {
				check(t, again.Fill(2, part))
			}
			snap.Release()
			check(t, again.SetVersion(2, 1))
			check(t, again.Commit(2))
			retry, at := Refresh, int64(0) // clocks begin anew
			if mode == BSP {
				retry, at = Duplicate, 1
			}
			push(t, again, u, retry)
			near(t, "w after restart", weight(t, again, 2, at), 0.6)
		})
	}
	t.Run("first vote of two", func(t *testing.T) {
		s := open(t, lin1(BSP), 2)
		u := lin1Push(1, 1, 0, 0, 2)
		push(t, s, u, Accepted)
		push(t, s, u, Duplicate)
		if _, high := s.Versions(); high != 0 {
			t.Fatal("the step did not wait for the second worker")
		}
		push(t, s, lin1Push(1, 1, 1, 0, 4), Accepted)
		near(t, "w", weight(t, s, 1, 1), 0.6)
	})
}

// TestBO05: no non-finite value is ever served, and the veto names its source.
func TestBO05(t *testing.T) {
	inf := float32(math.Inf(1))
	nan := float32(math.NaN())
	cases := []struct {
		name   string
		values [3]float32
		worker int // −1: only the sum is not finite
	}{
		{"NaN", [3]float32{1, nan, 1}, 1},
		{"+Inf", [3]float32{1, inf, 1}, 1},
		{"-Inf", [3]float32{1, -inf, 1}, 1},
		{"overflow of the sum", [3]float32{3e38, 3e38, 3e38}, -1},
	}
	for _, rows := range []bool{false, true} {
		for _, c := range cases {
			t.Run(c.name+map[bool]string{true: " in rows"}[rows], func(t *testing.T) {
				var vetoes []Veto
				cfg := lin1(BSP)
				cfg.Params = []optim.Param{{Name: "w", Shape: []int{1}, Rows: rows}, {Name: "v", Shape: []int{1}}}
				cfg.NonFinite = func(v Veto) { vetoes = append(vetoes, v) }
				s := open(t, cfg, 3)
				for i, v := range c.values {
					push(t, s, Push{Generation: 1, Step: 1, From: Worker{i, 1}, Piece: ID{1, 0, 1}, Values: []float32{1}, Weight: 1}, Accepted)
					push(t, s, Push{Generation: 1, Step: 1, From: Worker{i, 1}, Piece: theWeight, Values: []float32{v}, Weight: 1}, Accepted)
				}
				if diff := cmp.Diff([]Veto{{Step: 1, Worker: c.worker, Block: "w", Piece: theWeight}}, vetoes); diff != "" {
					t.Fatal(diff)
				}
				if low, high := s.Versions(); low != 0 || high != 1 {
					t.Fatalf("versions %d to %d, want the vetoed piece at 0 and the other at 1", low, high)
				}
				check(t, s.Relabel(0, 1))
				near(t, "w", weight(t, s, 1, 1), 0)
				near(t, "v", float64(pullNow(t, s, Request{Generation: 1, Step: 1, Piece: ID{1, 0, 1}}).Values[0]), 0)
				for i := range 3 {
					push(t, s, lin1Push(1, 1, i, 0, 3), Duplicate)
					push(t, s, lin1Push(1, 2, i, 0, 3), Accepted)
				}
				near(t, "w", weight(t, s, 1, 2), 0.6)
			})
		}
	}
}

// TestBO05Async: an asynchronous push that is not finite is refused as a whole
// and remembered.
func TestBO05Async(t *testing.T) {
	for _, mode := range []Mode{ASP, SSP} {
		var vetoes []Veto
		cfg := lin1(mode)
		cfg.Optimizer.Momentum = 0.9
		cfg.NonFinite = func(v Veto) { vetoes = append(vetoes, v) }
		s := open(t, cfg, 1)
		step := int64(0)
		send := func(v float64, want Outcome) {
			t.Helper()
			step++
			u := Push{Generation: 1, Step: step, Sequence: step, From: Worker{0, 1}, Piece: theWeight, Values: []float32{float32(v)}, Weight: 1}
			out, err := s.Push(u)
			if out != want {
				t.Fatalf("push of %v: %v (%v)", v, out, err)
			}
			if want == Refused {
				kindIs(t, err, failure.NonFinite)
			}
			push(t, s, u, Duplicate)
		}
		send(math.NaN(), Refused)
		send(math.Inf(1), Refused)
		send(math.Inf(-1), Refused)
		send(3e38, Accepted)
		send(3e38, Refused) // 0.9·3e38 + 3e38 overflows the momentum
		if len(vetoes) != 4 || vetoes[0].Worker != 0 || vetoes[0].Block != "w" {
			t.Fatalf("vetoes %+v", vetoes)
		}
		near(t, "w/1e37", weight(t, s, 1, step)/1e37, -3)
	}
}

// TestBO13: a worker that was replaced can do nothing, under its old generation
// or under the new one, and the result is that of a run without it.
func TestBO13(t *testing.T) {
	s, alone := open(t, lin1(BSP), 2), open(t, lin1(BSP), 2)
	for _, x := range []*Store{s, alone} {
		push(t, x, lin1Push(1, 1, 0, 0, 2), Accepted)
		push(t, x, lin1Push(1, 1, 1, 0, 4), Accepted)
		members := []Worker{{0, 1}, {1, 2}}
		install(t, x, Generation{Number: 2, Workers: members, Pieces: []ID{theWeight}})
		check(t, x.FillLocal(2, 1))
		check(t, x.Commit(2))
	}
	old := lin1Push(1, 2, 1, 0, 100)
	push(t, s, lin1Push(1, 1, 1, 0, 4), Duplicate)
	push(t, s, old, Refresh)
	old.Generation = 2
	out, err := s.Push(old)
	if out != Refused || !strings.Contains(err.Error(), "replaced") {
		t.Fatalf("old incarnation: %v (%v)", out, err)
	}
	kindIs(t, err, failure.LostMember)
	if a := pullNow(t, s, Request{Generation: 1, Step: 2, Piece: theWeight}); a.Outcome != Refresh {
		t.Fatalf("pull of the old generation: %v", a.Outcome)
	}
	for _, x := range []*Store{s, alone} {
		fresh := lin1Push(2, 2, 1, 0.6, 4)
		fresh.From.Incarnation = 2
		push(t, x, fresh, Accepted)
		push(t, x, lin1Push(2, 2, 0, 0.6, 2), Accepted)
	}
	if a, b := weight(t, s, 2, 2), weight(t, alone, 2, 2); a != b {
		t.Fatalf("w = %v with the old worker, %v without", a, b)
	}
}

// TestBO27: contributions count by their examples, not one per worker.
func TestBO27(t *testing.T) {
	s := open(t, lin1(BSP), 2)
	push(t, s, lin1Push(1, 1, 0, 0, 1, 1), Accepted)
	push(t, s, lin1Push(1, 1, 1, 0, 4), Accepted)
	near(t, "w", weight(t, s, 1, 1), 0.4)
}

// TestUpdateOverflows: finite contributions whose update would not be finite, in
// the parameters or only in the optimizer's state, are vetoed too.
func TestUpdateOverflows(t *testing.T) {
	for name, o := range map[string]optim.Config{
		"parameters":   {Kind: optim.SGD, LR: 1e10},
		"mean squares": optim.Default(optim.RMSProp), // w − ηg/√∞ = w
		"second mean":  optim.Default(optim.Adam),
	} {
		for _, rows := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				var vetoes []Veto
				cfg := Config{Params: []optim.Param{{Name: "w", Shape: []int{1}, Rows: rows}}, Optimizer: o,
					NonFinite: func(v Veto) { vetoes = append(vetoes, v) }}
				s := open(t, cfg, 1)
				params, state := s.Digest()
				u := lin1Push(1, 1, 0, 0, 1)
				u.Values = []float32{3e38}
				push(t, s, u, Accepted)
				if len(vetoes) != 1 || vetoes[0].Worker != -1 {
					t.Fatalf("vetoes %+v", vetoes)
				}
				if p, q := s.Digest(); p != params || q != state {
					t.Fatal("the vetoed step changed something")
				}
				check(t, s.Relabel(0, 1))
				push(t, s, lin1Push(1, 2, 0, 0, 1), Accepted)
				if low, _ := s.Versions(); low != 2 {
					t.Fatalf("version %d after the skipped step and a good one", low)
				}
			})
		}
	}
}
