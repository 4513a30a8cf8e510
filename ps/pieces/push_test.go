package pieces

import (
	"math"
	"slices"
	"testing"

	"optimus/compute/optim"
	"optimus/internal/failure"
)

func TestPushOutcomes(t *testing.T) {
	cfg := Config{Optimizer: optim.Config{Kind: optim.SGD, LR: 1}, Params: []optim.Param{
		{Name: "dense", Shape: []int{4}}, {Name: "rows", Shape: []int{4, 3}, Rows: true}}}
	dense, rows := ID{0, 0, 4}, ID{1, 2, 8} // of rows: the end of 0, all of 1 and 2, the beginning of 3
	four := []float32{1, 2, 3, 4}
	base := Push{Generation: 2, Step: 2, From: Worker{0, 1}, Piece: dense, Values: four, Weight: 1}
	with := func(change func(*Push)) Push { u := base; change(&u); return u }
	inRows := func(n int, r ...int32) func(*Push) {
		return func(u *Push) { u.Piece, u.Rows, u.Values = rows, r, make([]float32, n) }
	}
	cases := []struct {
		name string
		push Push
		want Outcome
		kind failure.Kind
	}{
		{"plain", base, Accepted, ""},
		{"applied step", with(func(u *Push) { u.Step = 1 }), Duplicate, ""},
		{"applied step of another generation", with(func(u *Push) { u.Step, u.Generation = 1, 1 }), Duplicate, ""},
		{"applied step of an unknown piece", with(func(u *Push) { u.Step, u.Generation, u.Piece.Size = 1, 1, 2 }), Duplicate, ""},
		{"applied step of a stranger", with(func(u *Push) { u.Step, u.From.ID = 1, 9 }), Duplicate, ""},
		{"older generation", with(func(u *Push) { u.Generation = 1 }), Refresh, ""},
		{"later generation", with(func(u *Push) { u.Generation = 3 }), Refresh, ""},
		{"other generation's piece", with(func(u *Push) { u.Generation, u.Piece.Size = 1, 2 }), Refresh, ""},
		{"unknown piece", with(func(u *Push) { u.Piece.Size = 2 }), Refused, failure.InvalidArgument},
		{"stranger", with(func(u *Push) { u.From.ID = 9 }), Refused, failure.LostMember},
		{"old incarnation", with(func(u *Push) { u.From.Incarnation = 0 }), Refused, failure.LostMember},
		{"negative weight", with(func(u *Push) { u.Weight = -1 }), Refused, failure.InvalidArgument},
		{"absurd weight", with(func(u *Push) { u.Weight = math.MaxInt64 }), Refused, failure.InvalidArgument},
		{"too few values", with(func(u *Push) { u.Values = four[:3] }), Refused, failure.InvalidArgument},
		{"no values", with(func(u *Push) { u.Values = nil }), Refused, failure.InvalidArgument},
		{"nothing to do", with(func(u *Push) { u.Values, u.Weight = nil, 0 }), Accepted, ""},
		{"rows of a dense block", with(func(u *Push) { u.Rows = []int32{0} }), Refused, failure.InvalidArgument},
		{"next step already", with(func(u *Push) { u.Step = 3 }), Accepted, ""},
		{"far ahead", with(func(u *Push) { u.Step = 100 }), Refused, failure.InvalidArgument},
		{"rows", with(inRows(1+3, 0, 1)), Accepted, ""},
		{"last row cut", with(inRows(3+1, 2, 3)), Accepted, ""},
		{"all rows as dense", with(inRows(8)), Accepted, ""},
		{"no row touched", with(inRows(0)), Accepted, ""},
		{"rows out of order", with(inRows(4, 1, 0)), Refused, failure.InvalidArgument},
		{"row twice", with(inRows(6, 1, 1)), Refused, failure.InvalidArgument},
		{"row past the piece", with(inRows(4, 1, 4)), Refused, failure.InvalidArgument},
		{"negative row", with(inRows(4, -1, 1)), Refused, failure.InvalidArgument},
		{"row values missing", with(inRows(5, 1, 2)), Refused, failure.InvalidArgument},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s, err := New(cfg)
			check(t, err)
			install(t, s, Generation{Number: 2, Workers: workers(2), Pieces: []ID{dense, rows}})
			check(t, s.Init(2, 0, 1))
			check(t, s.Commit(2))
			before, _ := s.Digest()
			got, err := s.Push(c.push)
			if got != c.want {
				t.Fatalf("%v (%v), want %v", got, err, c.want)
			}
			kindIs(t, err, c.kind)
			if after, _ := s.Digest(); after != before {
				t.Fatal("a single push of two changed the parameters")
			}
			if c.want == Accepted {
				push(t, s, c.push, Duplicate)
			}
		})
	}
}

// TestWeightZero: a step to which nobody had anything to add is no update.
func TestWeightZero(t *testing.T) {
	cfg := lin1(BSP)
	cfg.Optimizer = optim.Default(optim.Adam)
	s := open(t, cfg, 2)
	for i := range 2 {
		push(t, s, Push{Generation: 1, Step: 1, From: Worker{i, 1}, Piece: theWeight}, Accepted)
	}
	a := pullNow(t, s, Request{Generation: 1, Step: 1, Piece: theWeight})
	if a.Outcome != Served || a.Values[0] != 0 || a.Updates != 0 || a.Version != 1 {
		t.Fatalf("%+v", a)
	}
	push(t, s, lin1Push(1, 2, 0, 0, 1), Accepted)
	push(t, s, Push{Generation: 1, Step: 2, From: Worker{1, 1}, Piece: theWeight}, Accepted)
	if a := pullNow(t, s, Request{Generation: 1, Step: 2, Piece: theWeight}); a.Updates != 1 {
		t.Fatalf("%+v", a)
	}
	check(t, s.Rewind(1))
	if a := pullNow(t, s, Request{Generation: 1, Step: 1, Piece: theWeight}); a.Values[0] != 0 || a.Updates != 0 {
		t.Fatalf("%+v", a)
	}
}

// TestLateAuxiliary: nobody waits for auxiliary arrays, so a worker may push the
// next step before all have pushed the last; the step may even be vetoed then.
func TestLateAuxiliary(t *testing.T) {
	cfg := lin1(BSP)
	cfg.Aux = []optim.Param{{Name: "mean", Shape: []int{1}}}
	cfg.AuxMomentum = 0.5
	aux := ID{1, 0, 1}
	vetoed := 0
	cfg.NonFinite = func(Veto) { vetoed++ }
	s := open(t, cfg, 2)
	send := func(step int64, worker int, id ID, v float64) {
		t.Helper()
		push(t, s, Push{Generation: 1, Step: step, From: Worker{worker, 1}, Piece: id, Values: []float32{float32(v)}, Weight: 1}, Accepted)
	}
	send(1, 0, theWeight, 1)
	send(1, 0, aux, 4)
	send(1, 1, theWeight, 1)
	send(2, 0, aux, 4) // worker 1's push of step 1 is still under way
	send(2, 0, theWeight, math.NaN())
	if low, high := s.Versions(); low != 0 || high != 1 || vetoed != 1 {
		t.Fatalf("versions %d to %d, %d vetoes", low, high, vetoed)
	}
	reached := false
	s.Watch(2, func() { reached = true })
	check(t, s.Relabel(1, 2))
	send(1, 1, aux, 8)
	if low, high := s.Versions(); low != 2 || high != 2 || !reached {
		t.Fatalf("versions %d to %d, watch fired: %v; want all at 2", low, high, reached)
	}
	near(t, "mean", float64(pullNow(t, s, Request{Generation: 1, Step: 2, Piece: aux}).Values[0]), 3)
	near(t, "w", weight(t, s, 1, 2), -0.1)
	for i := range 2 {
		send(3, i, theWeight, 1)
		send(3, i, aux, 1)
	}
	near(t, "mean", float64(pullNow(t, s, Request{Generation: 1, Step: 3, Piece: aux}).Values[0]), 2)
}

func TestRewindErrors(t *testing.T) {
	s, err := New(lin1(BSP))
	check(t, err)
	kindIs(t, s.Rewind(0), failure.Conflict)
	s = open(t, lin1(BSP), 1)
	push(t, s, lin1Push(1, 1, 0, 0, 1), Accepted)
	push(t, s, lin1Push(1, 2, 0, 0, 1), Accepted)
	kindIs(t, s.Rewind(0), failure.Conflict)
	kindIs(t, s.Relabel(2, 2), failure.Conflict)
	check(t, s.Rewind(1))
	check(t, s.Rewind(1))
	kindIs(t, s.Rewind(0), failure.Conflict)
	kindIs(t, open(t, lin1(ASP), 1).Rewind(0), failure.Conflict)
	check(t, s.Relabel(1, 2))
	check(t, s.Relabel(1, 2))
	if low, high := s.Versions(); low != 2 || high != 2 {
		t.Fatalf("versions %d to %d after two relabels", low, high)
	}
}

// TestCarriedState: each lane's state comes from whoever had the lane, replaces the one
// before whatever the weights are, and is taken back with its step.
func TestCarriedState(t *testing.T) {
	cfg := lin1(BSP)
	cfg.Aux, cfg.AuxMomentum, cfg.Carried = []optim.Param{{Name: "mean", Shape: []int{1}}, {Name: "state", Shape: []int{3, 2}}}, 0.5, true
	s := open(t, cfg, 3)
	state := ID{2, 0, 6}
	step := func(n int64, first, second []float32) {
		t.Helper()
		for worker, v := range [][]float32{first, second, nil} { // the third has no lane
			weight := int64(0)
			if v != nil {
				weight = int64(3 - worker)
			}
			for _, id := range []ID{theWeight, {1, 0, 1}, state} {
				values := []float32{1}
				if id == state {
					values = v
				} else if v == nil {
					values = nil
				}
				push(t, s, Push{Generation: 1, Step: n, From: Worker{worker, 1}, Piece: id, Values: values, Weight: weight}, Accepted)
			}
		}
	}
	holds := func(version int64, want ...float32) {
		t.Helper()
		if a := pullNow(t, s, Request{Generation: 1, Step: version, Piece: state}); !slices.Equal(a.Values, want) {
			t.Errorf("version %d holds %v, want %v", version, a.Values, want)
		}
	}
	holds(0, 0, 0, 0, 0, 0, 0)
	step(1, []float32{1, 2, 3, 4, 0, 0}, []float32{0, 0, 0, 0, 5, 6})
	holds(1, 1, 2, 3, 4, 5, 6)
	step(2, []float32{7, 8, 0, 0, 0, 0}, []float32{0, 0, 9, 10, 0, 0}) // no window for the last lane
	holds(2, 7, 8, 9, 10, 0, 0)
	check(t, s.Rewind(1))
	holds(1, 1, 2, 3, 4, 5, 6)
}

func TestNewRefusesBadConfigurations(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"mode":         func(c *Config) { c.Mode = 7 },
		"staleness":    func(c *Config) { c.Staleness = -1 },
		"aux momentum": func(c *Config) { c.AuxMomentum = 1 },
		"aux rows":     func(c *Config) { c.Aux = []optim.Param{{Name: "a", Shape: []int{2, 2}, Rows: true}} },
		"no state":     func(c *Config) { c.Carried = true },
		"late state":   func(c *Config) { c.Mode, c.Carried, c.Aux = ASP, true, []optim.Param{{Name: "a", Shape: []int{2}}} },
		"row numbers":  func(c *Config) { c.Params[0] = optim.Param{Name: "a", Shape: []int{1 << 31, 1}, Rows: true} },
		"optimizer":    func(c *Config) { c.Optimizer.Kind = "magic" },
		"shape":        func(c *Config) { c.Params[0].Shape = []int{-1} },
	} {
		t.Run(name, func(t *testing.T) {
			cfg := lin1(BSP)
			change(&cfg)
			_, err := New(cfg)
			kindIs(t, err, failure.InvalidArgument)
		})
	}
}
