package estimate

import (
	"fmt"
	"math"
)

// Goodput is Pollux's measure of how fast a job learns (OSDI 2021, §3): its throughput times its statistical
// efficiency, in examples/s that count as much as examples at the batch M₀. It is a plain value.
type Goodput struct {
	Throughput Throughput `json:"throughput"`
	// Sqr and Var are NoiseScale.Sum: the squared norm of the true gradient, and the variance of that of M₀ examples.
	// Their ratio alone matters; Sqr = 0 makes all batches equally efficient.
	Sqr    float64 `json:"sqr"`
	Var    float64 `json:"var"`
	Limits Limits  `json:"limits"`
}

// NewGoodput joins a fitted throughput with the noise scale that a job has measured. Before any measurement, all
// batches count as equally efficient, which lets the job try larger ones.
func NewGoodput(t Throughput, n NoiseScale, l Limits) Goodput {
	g := Goodput{Throughput: t, Sqr: 0, Var: 1, Limits: l}
	if n.Weight > 0 {
		g.Sqr, g.Var = n.Sum()
	}
	return g
}

// Efficiency is the progress per example at a total batch M ≥ M₀ relative to that at M₀, (φ+M₀)/(φ+M) with
// φ = M₀·Var/Sqr, in (0, 1] (§3.1).
func (g Goodput) Efficiency(total int) float64 {
	fixed, slope := g.inefficiency()
	return 1 / (fixed + slope*float64(total))
}

// inefficiency returns the line over the total batch that 1/Efficiency is.
func (g Goodput) inefficiency() (fixed, slope float64) {
	all, m0 := g.Var+g.Sqr, float64(g.Limits.InitBatch)
	if all <= 0 { // neither signal nor noise: an iteration is worth the same with any batch
		return 0, 1 / m0
	}
	return g.Var / all, g.Sqr / (all * m0)
}

// At is the goodput of a given batch, in examples/s. It does not look at the limits.
func (g Goodput) At(nodes, gpus int, b Batch) float64 {
	return g.Throughput.ExamplesPerSecond(nodes, gpus, b) * g.Efficiency(b.Total(gpus))
}

// Check says what keeps g from being a model.
func (g Goodput) Check() error {
	if !(g.Sqr >= 0 && g.Var >= 0 && g.Sqr <= math.MaxFloat64 && g.Var <= math.MaxFloat64) {
		return fmt.Errorf("goodput: gradient statistics sqr %v, var %v; both are at least 0 and finite", g.Sqr, g.Var)
	}
	if err := g.Limits.Check(); err != nil {
		return err
	}
	return g.Throughput.Check()
}

// candidate is one batch of the search.
type candidate struct {
	batch Batch
	total float64 // M
	worth float64 // 1/efficiency: examples that count as one
	grad  float64 // s: T_grad
	last  float64 // s: of the last pass and the exchange; a bound from below until it is exact
	exact bool
}

// Best finds the batch with the largest goodput on so many GPUs on so many nodes (§4.1), among 50 total batches in
// geometric progression within the limits; of equal ones the smallest. The goodput is 0 where the job cannot run so,
// or where Check fails.
//
// Only a few of the candidates are evaluated. Over T_grad, the time (T_grad^γ + T_sync^γ)^(1/γ) is convex for
// γ ≥ 1, and T_sync is the same for all: the tangent at an evaluated candidate bounds the time of all others from
// below. The search evaluates the most promising one until that is exact already; so it finds what evaluating all of
// them would.
func (g Goodput) Best(nodes, gpus int) (float64, Batch) {
	if nodes < 1 || gpus < nodes || g.Check() != nil {
		return 0, Batch{}
	}
	var list [gridPoints]candidate
	found := g.candidates(list[:0], gpus)
	sync := g.Throughput.Sync(nodes, gpus)
	logSync := math.Log(sync)
	for i := range found {
		found[i].last = max(found[i].grad, sync) * rounding
	}
	for {
		best, at := 0.0, -1
		for i := range found {
			c := &found[i]
			if v := c.total / (c.worth * (float64(c.batch.Accumulation)*c.grad + c.last)); v > best {
				best, at = v, i
			}
		}
		if at < 0 {
			return 0, Batch{}
		}
		top := &found[at]
		if top.exact {
			return best, top.batch
		}
		log, share := g.Throughput.overlap(math.Log(top.grad), logSync)
		top.last, top.exact = math.Exp(log), true
		slope := share * top.last / top.grad
		for i := range found {
			if c := &found[i]; !c.exact {
				c.last = max(c.last, (top.last+slope*(c.grad-top.grad))*rounding)
			}
		}
	}
}

const (
	gridPoints = 50
	rounding   = 1 - 1e-12 // keeps a bound from below one when it is computed
)

// candidates appends the different batches of the grid that respect the limits, the smallest total first.
func (g Goodput) candidates(list []candidate, gpus int) []candidate {
	lo, hi := g.Limits.span(gpus)
	if lo > hi {
		return nil
	}
	var last Batch
	local, ratio := lo/float64(gpus), math.Exp(math.Log(hi/lo)/(gridPoints-1))
	fixed, slope := g.inefficiency()
	part := g.Limits.divider(gpus)
	for i := range gridPoints {
		if i == gridPoints-1 {
			local = hi / float64(gpus)
		}
		b, ok := part.divide(local)
		local *= ratio
		if !ok || b == last {
			continue
		}
		last = b
		total := float64(b.Total(gpus))
		list = append(list, candidate{
			batch: b,
			total: total,
			worth: fixed + slope*total,
			grad:  g.Throughput.Grad(float64(b.PerGPU)),
		})
	}
	return list
}
