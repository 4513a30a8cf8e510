package pieces

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"optimus/compute/optim"
)

// TestSameBitsHoweverServed: any order of arrival, retries, cuts over one to four
// servers, steps taken back half way, steps skipped after a veto, transitions
// to other counts of servers and workers, committed or dropped: parameters and
// optimizer state are those of a plain sequential trainer, bit for bit.
func TestSameBitsHoweverServed(t *testing.T) {
	momentum := optim.Default(optim.SGD)
	momentum.WeightDecay = 0.01
	clipped := optim.Default(optim.Adam)
	clipped.ClipNorm = 40
	for name, o := range map[string]optim.Config{
		"sgd":      {Kind: optim.SGD, LR: 0.1},
		"momentum": momentum,
		"rmsprop":  optim.Default(optim.RMSProp),
		"adam":     optim.Default(optim.Adam),
		"clip":     {Kind: optim.SGD, LR: 0.1, ClipNorm: 1},
		"clipped":  clipped,
	} {
		t.Run(name, func(t *testing.T) { rapid.Check(t, func(t *rapid.T) { trainAtRandom(t, o) }) })
	}
}

func trainAtRandom(t *rapid.T, o optim.Config) {
	normal := optim.Init{Kind: "normal", Scale: 1}
	cfg := Config{Optimizer: o, AuxMomentum: 0.9, Carried: true,
		Params: []optim.Param{
			{Name: "dense", Shape: []int{3, 3}, Init: normal},
			{Name: "rows", Shape: []int{5, 2}, Rows: true, Init: normal},
			{Name: "bias", Shape: []int{3}, NoDecay: true}},
		Aux: []optim.Param{{Name: "mean", Shape: []int{4}}, {Name: "state", Shape: []int{3, 2}}}}
	var vetoes int
	cfg.NonFinite = func(Veto) { vetoes++ }
	r, c := newReference(cfg, 7), newCluster(t, cfg, 7)
	draw := func(w int) [][]gradient { return drawGradients(t, cfg, w) }
	for range rapid.IntRange(1, 5).Draw(t, "steps") {
		var list []addressed
		var g [][]gradient
		if rapid.IntRange(0, 2).Draw(t, "transition") == 0 {
			list, g = c.transition(draw)
		}
		early := g != nil // part of the step is there already
		if g == nil {
			g = draw(len(c.workers))
			list = addressedPushes(cfg, c.generation, c.version+1, c.workers, c.owned, g)
		}
		whole := addressedPushes(cfg, c.generation, c.version+1, c.workers, c.owned, g)
		switch {
		case rapid.IntRange(0, 3).Draw(t, "take back") == 0:
			c.send(list[:rapid.IntRange(0, len(list)).Draw(t, "taken back after")])
			c.rewind() // votes may still be under way
			c.compare(r)
			list, early = whole, false
		case !early && rapid.IntRange(0, 5).Draw(t, "poison") == 0:
			before := vetoes
			if c.poison(list) && vetoes != before+1 {
				t.Fatalf("%d vetoes of one push", vetoes-before)
			}
			c.settle()
			for _, s := range c.stores {
				c.must(s.Relabel(c.version, c.version+1))
			}
			c.version++
			c.compare(r)
			continue
		}
		c.send(list)
		c.settle()
		c.version++
		r.step(t, c.version, g)
		c.compare(r)
	}
}

// poison sends a step with one value that is not finite. It returns false if the
// step has no values.
func (c *cluster) poison(list []addressed) bool {
	bad := []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1))}
	poisoned := false
	for i := range list {
		u := &list[i].push
		if n := len(u.Values); n > 0 && !poisoned {
			u.Values = append([]float32(nil), u.Values...)
			u.Values[rapid.IntRange(0, n-1).Draw(c.t, "where")] = rapid.SampledFrom(bad).Draw(c.t, "bad")
			poisoned = true
		}
	}
	c.send(list)
	return poisoned
}

// TestLongPieces: pieces longer than the unit of work have the same bits too, and
// a sum that overflows in a late unit leaves the version as it was.
func TestLongPieces(t *testing.T) {
	const n, cutAt = 3*chunk + 17, chunk + 5
	for _, rows := range []bool{false, true} {
		cfg := Config{Optimizer: optim.Default(optim.Adam), Params: []optim.Param{{Name: "x", Shape: []int{n}, Rows: rows, Init: optim.Init{Kind: "uniform", Scale: 1}}}}
		r := newReference(cfg, 3)
		ids := []ID{{0, 0, cutAt}, {0, cutAt, n - cutAt}}
		s, err := New(cfg)
		check(t, err)
		install(t, s, Generation{Number: 1, Workers: workers(3), Pieces: ids})
		check(t, s.Init(1, 3, 0))
		check(t, s.Commit(1))
		send := func(step int64, value func(worker, i int) float32) [][]gradient {
			g := make([][]gradient, 3)
			for w := range g {
				of := gradient{values: make([]float32, n), weight: int64(w)}
				for i := range of.values {
					of.values[i] = value(w, i)
				}
				g[w] = []gradient{of}
			}
			for _, a := range addressedPushes(cfg, 1, step, workers(3), [][]ID{ids}, g) {
				push(t, s, a.push, Accepted)
			}
			return g
		}
		ordinary := func(w, i int) float32 { return float32(math.Sin(float64(i * (w + 1)))) }
		compare := func() {
			t.Helper()
			p, q := s.Digest()
			if x, y := r.digest(); p != x || q != y {
				t.Fatalf("rows %v: digests %x %x, want %x %x", rows, p, q, x, y)
			}
		}
		r.step(t, 1, send(1, ordinary))
		compare()
		send(2, func(w, i int) float32 {
			if i == n-1 {
				return math.MaxFloat32
			}
			return ordinary(w, i)
		})
		if k := s.Counters(); k.Vetoes != 1 {
			t.Fatalf("%+v", k)
		}
		check(t, s.Rewind(1))
		compare()
		r.step(t, 2, send(2, ordinary))
		compare()
		check(t, s.Rewind(1))
		send(2, ordinary)
		compare()
	}
}
