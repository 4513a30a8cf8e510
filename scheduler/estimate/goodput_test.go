package estimate

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// bestOfAll is the definition of Goodput.Best: all candidates evaluated in order.
func bestOfAll(g Goodput, nodes, gpus int) (best float64, at Batch) {
	for _, c := range g.candidates(nil, gpus) {
		if v := g.At(nodes, gpus, c.batch); v > best*(1+1e-12) {
			best, at = v, c.batch
		}
	}
	return best, at
}

func drawGoodput(t *rapid.T) Goodput {
	seconds := func(name string) float64 { return math.Pow(10, rapid.Float64Range(-8, 1).Draw(t, name)) }
	g := Goodput{
		Throughput: Throughput{
			AlphaGrad: seconds("alpha grad"), BetaGrad: seconds("beta grad") / 100,
			AlphaNode: seconds("alpha node"), BetaNode: seconds("beta node") / 10,
			AlphaLocal: seconds("alpha local"), BetaLocal: seconds("beta local") / 10,
			Gamma: rapid.Float64Range(1, mostOverlap).Draw(t, "gamma"),
		},
		Sqr: rapid.Float64Range(0, 10).Draw(t, "sqr"),
		Var: rapid.Float64Range(0, 1000).Draw(t, "var"),
	}
	g.Limits.InitBatch = rapid.IntRange(1, 300).Draw(t, "M0")
	g.Limits.MaxBatch = g.Limits.InitBatch * rapid.IntRange(1, 100).Draw(t, "growth")
	g.Limits.MinPerGPU = rapid.IntRange(0, g.Limits.InitBatch).Draw(t, "least m")
	if rapid.Bool().Draw(t, "bounded") {
		g.Limits.MaxPerGPU = rapid.IntRange(max(1, g.Limits.MinPerGPU), 2*g.Limits.InitBatch).Draw(t, "most m")
	}
	g.Limits.Accumulate = rapid.Bool().Draw(t, "accumulate")
	return g
}

func TestBestIsTheBestOfAllCandidates(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := drawGoodput(t)
		if err := g.Check(); err != nil {
			t.Fatal(err)
		}
		gpus := rapid.IntRange(1, 64).Draw(t, "gpus")
		nodes := rapid.IntRange(1, gpus).Draw(t, "nodes")
		got, batch := g.Best(nodes, gpus)
		want, at := bestOfAll(g, nodes, gpus)
		if math.Abs(got-want) > 1e-11*want {
			t.Fatalf("%v at %v, best of all %v at %v", got, batch, want, at)
		}
		if got > 0 && math.Abs(got-g.At(nodes, gpus, batch)) > 1e-11*got {
			t.Fatalf("%v for %v, which has %v", got, batch, g.At(nodes, gpus, batch))
		}
	})
}

func BenchmarkBest(b *testing.B) {
	models := []Goodput{
		{Throughput{.1, .004, .2, .01, .05, .002, 1.5}, 1, 30, Limits{128, 4096, 32, 128, true}},
		{Throughput{.05, .0005, .3, .001, .04, .0001, 4}, 1, 300, Limits{32, 8192, 8, 512, true}},
		{Throughput{.3, .01, .3, .01, .05, .002, 1.001}, 1, 3, Limits{12, 384, 3, 12, true}},
	}
	b.ReportAllocs()
	var sum float64
	for i := 0; b.Loop(); i++ {
		gpus := 1 + i%64
		v, _ := models[i%3].Best((gpus+3)/4, gpus)
		sum += v
	}
	if sum == 0 {
		b.Fatal("nothing can run")
	}
}
