package pieces

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"optimus/compute/optim"
	"optimus/internal/failure"
)

// TestBothVersions: after each step the version made and the one before can be
// pulled, by rows too, extracted and pinned; a pinned version never changes.
func TestBothVersions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := Config{Optimizer: optim.Default(optim.Adam), Params: []optim.Param{
			{Name: "dense", Shape: []int{6}, Init: optim.Init{Kind: "normal", Scale: 1}},
			{Name: "rows", Shape: []int{5, 3}, Rows: true, Init: optim.Init{Kind: "normal", Scale: 1}}}}
		c := newCluster(t, cfg, 1)
		history := make(map[int64]map[ID]Part) // by version
		remember := func() {
			history[c.version] = make(map[ID]Part)
			for k, s := range c.stores {
				for _, id := range c.owned[k] {
					part, err := s.Extract(id, c.version)
					c.must(err)
					history[c.version][id] = part
				}
			}
		}
		remember()
		type pinned struct {
			snap    *Snapshot
			version int64
		}
		var pins []pinned
		for range rapid.IntRange(1, 5).Draw(t, "steps") {
			g := drawGradients(t, cfg, len(c.workers))
			c.send(addressedPushes(cfg, 1, c.version+1, c.workers, c.owned, g))
			c.version++
			remember()
			for _, v := range []int64{c.version - 1, c.version} {
				c.pullAll(v, history[v])
				if rapid.Bool().Draw(t, "pin") {
					for _, s := range c.stores {
						snap, err := s.Pin(v)
						c.must(err)
						pins = append(pins, pinned{snap, v})
					}
				}
			}
			for _, p := range pins {
				for _, part := range p.snap.Parts() {
					if diff := cmp.Diff(history[p.version][part.id()], part); diff != "" {
						t.Fatalf("snapshot of version %d at version %d: %s", p.version, c.version, diff)
					}
				}
			}
			if len(pins) > 0 && rapid.Bool().Draw(t, "release") {
				pins[0].snap.Release()
				pins[0].snap.Release()
				pins = pins[1:]
			}
		}
	})
}

// pullAll pulls and extracts everything at a version and compares it.
func (c *cluster) pullAll(version int64, want map[ID]Part) {
	for k, s := range c.stores {
		for _, id := range c.owned[k] {
			part, err := s.Extract(id, version)
			c.must(err)
			if diff := cmp.Diff(want[id], part); diff != "" {
				c.t.Fatalf("extract %v at %d: %s", id, version, diff)
			}
			c.pullOne(s, Request{Generation: 1, Step: version, Piece: id}, want[id].Params)
			if p := c.cfg.Params[id.Block]; p.Rows {
				r := Request{Generation: 1, Step: version, Piece: id, Into: make([]float32, 1)}
				var values []float32
				for row := range p.Shape[0] {
					if lo, hi := RowSpan(p.RowSize(), id, row); lo < hi && rapid.Bool().Draw(c.t, "want row") {
						r.Rows = append(r.Rows, int32(row))
						values = append(values, want[id].Params[lo:hi]...)
					}
				}
				if len(r.Rows) > 0 {
					c.pullOne(s, r, values)
				}
			}
		}
	}
}

func (c *cluster) pullOne(s *Store, r Request, want []float32) {
	s.Pull(r, func(a Answer) {
		if a.Outcome != Served || a.Version != r.Step || !slices.Equal(a.Values, want) {
			c.t.Fatalf("pull %+v: %+v, want %v", r, a, want)
		}
	})
}

func TestPullOutcomes(t *testing.T) {
	cfg := lin1(BSP)
	cfg.Params = append(cfg.Params, optim.Param{Name: "rows", Shape: []int{4, 1}, Rows: true})
	s := open(t, cfg, 1)
	for step := int64(1); step <= 3; step++ {
		push(t, s, lin1Push(1, step, 0, 0, 1), Accepted)
		push(t, s, Push{Generation: 1, Step: step, From: Worker{0, 1}, Piece: ID{1, 0, 4}}, Accepted)
	}
	for name, c := range map[string]struct {
		r    Request
		want Outcome
	}{
		"newest":              {Request{1, 3, theWeight, nil, nil}, Served},
		"before":              {Request{1, 2, theWeight, nil, nil}, Served},
		"too old":             {Request{1, 1, theWeight, nil, nil}, Gone},
		"older generation":    {Request{0, 3, theWeight, nil, nil}, Refresh},
		"later generation":    {Request{2, 3, theWeight, nil, nil}, Refresh},
		"unknown piece":       {Request{1, 3, ID{0, 0, 2}, nil, nil}, Refused},
		"rows of dense":       {Request{1, 3, theWeight, []int32{0}, nil}, Refused},
		"rows out of order":   {Request{1, 3, ID{1, 0, 4}, []int32{2, 1}, nil}, Refused},
		"row past the table":  {Request{1, 3, ID{1, 0, 4}, []int32{4}, nil}, Refused},
		"rows":                {Request{1, 3, ID{1, 0, 4}, []int32{0, 3}, nil}, Served},
		"all rows of a table": {Request{1, 3, ID{1, 0, 4}, nil, nil}, Served},
	} {
		t.Run(name, func(t *testing.T) {
			a := pullNow(t, s, c.r)
			if a.Outcome != c.want || (a.Err != nil) != (c.want == Refused) {
				t.Fatalf("%+v, want %v", a, c.want)
			}
			if a.Err != nil {
				kindIs(t, a.Err, failure.InvalidArgument)
			}
		})
	}
}

// TestParkedPulls: a pull waits for its version and is answered once, whatever
// ends the waiting.
func TestParkedPulls(t *testing.T) {
	type ending struct {
		name string
		end  func(*testing.T, *Store)
		want []Outcome
	}
	for _, e := range []ending{
		{"version", func(t *testing.T, s *Store) { push(t, s, lin1Push(1, 1, 0, 0, 1), Accepted) }, []Outcome{Served}},
		{"rewind", func(t *testing.T, s *Store) { check(t, s.Rewind(0)) }, []Outcome{Refresh}},
		{"commit", func(t *testing.T, s *Store) { resize(t, s, 2, 1, 0) }, []Outcome{Refresh}},
		{"close", func(t *testing.T, s *Store) { s.Close() }, []Outcome{Refresh}},
	} {
		t.Run(e.name, func(t *testing.T) {
			s := open(t, lin1(BSP), 1)
			var got []Outcome
			r := Request{Generation: 1, Step: 1, Piece: theWeight}
			token := s.Pull(r, func(a Answer) { got = append(got, a.Outcome) })
			cancelled := s.Pull(r, func(Answer) { t.Error("a cancelled pull was answered") })
			if len(got) > 0 || !s.Cancel(cancelled) || s.Cancel(cancelled) {
				t.Fatalf("answered %v at once, or cancelled twice", got)
			}
			e.end(t, s)
			if diff := cmp.Diff(e.want, got); diff != "" {
				t.Fatal(diff)
			}
			if s.Cancel(token) || s.Cancel(Token{}) {
				t.Fatal("an answered pull was cancelled")
			}
		})
	}
}

// TestCallbacksMayUseTheStore: no lock is held while a callback runs.
func TestCallbacksMayUseTheStore(t *testing.T) {
	s := open(t, lin1(BSP), 1)
	var chain []int64
	var next func(a Answer)
	next = func(a Answer) {
		chain = append(chain, a.Version)
		if a.Version < 3 {
			push(t, s, lin1Push(1, a.Version+1, 0, 0, 1), Accepted)
			s.Pull(Request{Generation: 1, Step: a.Version + 1, Piece: theWeight}, next)
		}
	}
	s.Watch(2, func() {
		snap, err := s.Pin(2)
		check(t, err)
		defer snap.Release()
		check(t, s.Install(Generation{Number: 2, Workers: workers(1), Pieces: []ID{theWeight}}))
		check(t, s.Drop(2))
	})
	s.Pull(Request{Generation: 1, Step: 0, Piece: theWeight}, next)
	if diff := cmp.Diff([]int64{0, 1, 2, 3}, chain); diff != "" {
		t.Fatal(diff)
	}
}

func TestWatch(t *testing.T) {
	cfg := lin1(BSP)
	cfg.Params = append(cfg.Params, optim.Param{Name: "v", Shape: []int{1}})
	s := open(t, cfg, 1)
	var fired []string
	s.Watch(0, func() { fired = append(fired, "at once") })
	s.Watch(1, func() { fired = append(fired, "first") })
	cancel := s.Watch(1, func() { fired = append(fired, "cancelled") })
	cancel()
	push(t, s, lin1Push(1, 1, 0, 0, 1), Accepted)
	if len(fired) != 1 {
		t.Fatalf("fired %v before all pieces were there", fired)
	}
	u := lin1Push(1, 1, 0, 0, 1)
	u.Piece = ID{1, 0, 1}
	push(t, s, u, Accepted)
	if diff := cmp.Diff([]string{"at once", "first"}, fired); diff != "" {
		t.Fatal(diff)
	}
}
