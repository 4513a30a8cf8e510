package estimate

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestLimitsFixed(t *testing.T) {
	l := Limits{InitBatch: 128, MaxBatch: 1024, MinPerGPU: 16, MaxPerGPU: 100, Accumulate: true}
	for _, c := range []struct {
		total, gpus int
		want        Batch
		ok          bool
	}{
		{100, 1, Batch{100, 0}, true},
		{128, 1, Batch{64, 1}, true}, // more than a GPU holds
		{150, 1, Batch{75, 1}, true}, // above M₀ a single GPU needs two passes
		{150, 2, Batch{75, 0}, true},
		{1000, 7, Batch{72, 1}, true},  // 143 rounded up to 2·72
		{1024, 7, Batch{73, 1}, true},  // 2·74·7 would be above 1024
		{128, 16, Batch{8, 0}, false},  // less than a GPU's least
		{0, 1, Batch{}, false},         // no examples
		{128, 0, Batch{}, false},       // no GPU
		{5000, 1, Batch{20, 49}, true}, // cut to 1024
	} {
		if b, ok := l.Fixed(c.total, c.gpus); b != c.want || ok != c.ok {
			t.Errorf("%d on %d: %+v %v, want %+v %v", c.total, c.gpus, b, ok, c.want, c.ok)
		}
	}
}

func TestLimitsCheck(t *testing.T) {
	for _, l := range []Limits{
		{}, {InitBatch: -1}, {InitBatch: 8, MaxBatch: 4}, {InitBatch: 8, MinPerGPU: -1},
		{InitBatch: 8, MaxBatch: 64, MinPerGPU: 9, MaxPerGPU: 8}, {InitBatch: 8, MinPerGPU: 9},
	} {
		if l.Check() == nil {
			t.Errorf("%+v: no error", l)
		}
		if v, b := (Unmeasured{l}).Best(1, 1); v != 0 || b != (Batch{}) {
			t.Errorf("%+v runs: %v %+v", l, v, b)
		}
	}
	if err := (Limits{InitBatch: 8}).Check(); err != nil {
		t.Error(err)
	}
}

func TestUnmeasured(t *testing.T) {
	u := Unmeasured{Limits{InitBatch: 128, MaxBatch: 1024, MinPerGPU: 32, MaxPerGPU: 128, Accumulate: true}}
	for _, c := range []struct {
		nodes, gpus int
		want        float64
		batch       Batch
	}{
		{1, 1, 1, Batch{128, 0}},
		{1, 2, 2, Batch{64, 0}},
		{2, 8, 8, Batch{32, 0}}, // the least of each GPU rules
		{16, 64, 0, Batch{}},    // and is above 1024 here
		{3, 2, 0, Batch{}},      // more nodes than GPUs
	} {
		if v, b := u.Best(c.nodes, c.gpus); v != c.want || b != c.batch {
			t.Errorf("%d GPUs on %d nodes: %v %+v, want %v %+v", c.gpus, c.nodes, v, b, c.want, c.batch)
		}
	}
}

func TestBestKeepsToTheLimits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := drawGoodput(t)
		gpus := rapid.IntRange(1, 64).Draw(t, "gpus")
		v, b := g.Best(1, gpus)
		if v == 0 {
			if b != (Batch{}) {
				t.Fatalf("%+v that cannot run", b)
			}
			return
		}
		maxBatch, minPerGPU, maxPerGPU := g.Limits.bounds()
		round := gpus * (b.Accumulation + 1) // each share is rounded up
		switch total := b.Total(gpus); {
		case total < g.Limits.InitBatch || total >= maxBatch+round:
			t.Fatalf("%+v has %d examples on %d GPUs", b, total, gpus)
		case b.PerGPU < minPerGPU || b.PerGPU > maxPerGPU:
			t.Fatalf("%+v", b)
		case b.Accumulation > 0 && !g.Limits.Accumulate:
			t.Fatalf("%+v without accumulation", b)
		case gpus == 1 && total > g.Limits.InitBatch && g.Limits.Accumulate && b.Accumulation == 0:
			t.Fatalf("a single gradient of %d examples", total)
		}
		if c := g.Limits.Cap(b, gpus); c.Total(gpus) > maxBatch && c.PerGPU > 1 {
			t.Fatalf("cut to %+v, still %d examples", c, c.Total(gpus))
		}
	})
}

func TestGoodputRefusesWhatIsNoModel(t *testing.T) {
	good := Goodput{Throughput{.1, .004, .2, .01, .05, .002, 1.5}, 1, 30, Limits{128, 4096, 32, 128, true}}
	if err := good.Check(); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*Goodput){
		"sqr":      func(g *Goodput) { g.Sqr = math.NaN() },
		"var":      func(g *Goodput) { g.Var = -1 },
		"alpha":    func(g *Goodput) { g.Throughput.AlphaGrad = math.Inf(1) },
		"beta":     func(g *Goodput) { g.Throughput.BetaLocal = -1 },
		"no time":  func(g *Goodput) { g.Throughput.AlphaNode, g.Throughput.BetaNode = 0, 0 },
		"gamma":    func(g *Goodput) { g.Throughput.Gamma = .5 },
		"gamma 11": func(g *Goodput) { g.Throughput.Gamma = 11 },
		"limits":   func(g *Goodput) { g.Limits.InitBatch = 0 },
	} {
		g := good
		change(&g)
		if g.Check() == nil {
			t.Errorf("%s: no error", name)
		}
		if v, b := g.Best(1, 1); v != 0 || b != (Batch{}) {
			t.Errorf("%s: %v %+v", name, v, b)
		}
	}
	for _, c := range [][2]int{{0, 1}, {1, 0}, {2, 1}, {-1, -1}} {
		if v, _ := good.Best(c[0], c[1]); v != 0 {
			t.Errorf("%v: %v", c, v)
		}
	}
	raw, err := json.Marshal(good)
	if err != nil {
		t.Fatal(err)
	}
	var restored Goodput
	if err := json.Unmarshal(raw, &restored); err != nil || restored != good {
		t.Errorf("%v: %s", err, cmp.Diff(good, restored))
	}
}

func TestNewGoodputIsOptimisticWithoutGradients(t *testing.T) {
	l := Limits{InitBatch: 8, MaxBatch: 64}
	throughput := Throughput{.1, .004, .2, .01, .05, .002, 1.5}
	n := NoiseScale{InitBatch: 8}
	if g := NewGoodput(throughput, n, l); g.Efficiency(64) != 1 {
		t.Errorf("efficiency %v", g.Efficiency(64))
	}
	if err := n.Add(GradientNorms{Batch: 16, Count: 2, Local: []float64{2}, Total: []float64{1.5}}); err != nil {
		t.Fatal(err)
	}
	g := NewGoodput(throughput, n, l)
	if got, want := g.Efficiency(64), n.Efficiency(64); math.Abs(got-want) > 1e-12 || want >= 1 {
		t.Errorf("efficiency %v, want %v", got, want)
	}
}

func TestProfile(t *testing.T) {
	var p Profile
	add := func(nodes, gpus int, b Batch, grad, last, sync float64) {
		t.Helper()
		if err := p.Add(nodes, gpus, b, grad, last, sync); err != nil {
			t.Fatal(err)
		}
	}
	add(1, 2, Batch{32, 0}, math.NaN(), 1.5, .5)
	add(2, 2, Batch{32, 0}, 0, 3, 2)
	add(1, 2, Batch{32, 2}, 1.25, 1.25, .5)
	want := []Record{{1, 2, 32, (1 + 1.25 + 1.25 + .75) / 4, 1.375}, {2, 2, 32, 1, 3}}
	if diff := cmp.Diff(want, p.Records()); diff != "" {
		t.Error(diff)
	}
	if p.MostGPUs() != 2 || (&Profile{}).MostGPUs() != 0 {
		t.Errorf("most GPUs %d", p.MostGPUs())
	}
	for i, err := range []error{
		p.Add(2, 1, Batch{32, 0}, 0, 1, .5),
		p.Add(1, 2, Batch{0, 0}, 0, 1, .5),
		p.Add(1, 2, Batch{32, -1}, 1, 1, .5),
		p.Add(1, 2, Batch{32, 1}, math.Inf(1), 1, .5),
		p.Add(1, 2, Batch{32, 0}, 0, 1, 1),
		p.Add(1, 2, Batch{32, 0}, 0, math.NaN(), 0),
		p.Add(1, 2, Batch{32, 0}, 0, 1, math.NaN()),
		p.Add(1, 2, Batch{32, 0}, 0, 1, -1),
	} {
		if err == nil {
			t.Errorf("case %d: no error", i)
		}
	}
	if diff := cmp.Diff(want, p.Records()); diff != "" {
		t.Errorf("after errors: %s", diff)
	}
}
