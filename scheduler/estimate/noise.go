package estimate

import (
	"fmt"
	"math"
)

// NoiseScale follows the gradient noise scale of Pollux (Qiao et al., OSDI 2021,
// §3.1): how much of a gradient is signal and how much is noise that a larger batch
// averages away. It takes squared norms of gradients, one per parameter group, and
// keeps bias-corrected moving averages over samples. It is a plain value.
type NoiseScale struct {
	InitBatch int       // M₀, examples: the batch to which Var refers
	Sqr, Var  []float64 // moving sums by group: squared norm of the true gradient, variance
	Weight    float64   // sum of the weights in Sqr and Var; 0 before any estimate
	Single    bool      // the newest step had a single gradient: its noise is told by differences
	Progress  float64   // steps of batch M₀ that the training so far is worth
}

// GradientNorms are what one optimizer step says about the noise. The norms are of
// gradients divided by the preconditioner's inverse, if there is one.
type GradientNorms struct {
	Batch int // examples of the step, all workers and passes together
	// Count is the number of independent gradients, workers × accumulation passes. If
	// it is 1, Local and Total take the step's gradient and the previous one as two
	// samples; leave them nil where there is no previous one.
	Count int
	Local []float64 // by group: mean of the squared norms of the single gradients
	Total []float64 // by group: squared norm of their mean
}

const (
	noiseMemory = .999 // weight kept after M₀ examples
	leastVar    = 1e-6
)

// Scale is a batch as a multiple of M₀, and so the factor on the learning rate of the linear rule.
func (n *NoiseScale) Scale(batch int) float64 { return float64(batch) / float64(n.InitBatch) }

// Add takes one optimizer step. A step whose norms are not finite counts as progress
// but leaves the averages alone.
func (n *NoiseScale) Add(g GradientNorms) error {
	switch {
	case n.InitBatch < 1:
		return fmt.Errorf("noise scale: initial batch is %d; it is at least 1 example", n.InitBatch)
	case g.Batch < 1 || g.Count < 1:
		return fmt.Errorf("noise scale: a step of %d examples in %d gradients; both are at least 1", g.Batch, g.Count)
	case len(g.Local) != len(g.Total):
		return fmt.Errorf("noise scale: %d local and %d total norms; give one of each for every parameter group", len(g.Local), len(g.Total))
	case n.Weight > 0 && len(g.Local) > 0 && len(g.Local) != len(n.Sqr):
		return fmt.Errorf("noise scale: %d parameter groups, %d before; a model keeps its groups", len(g.Local), len(n.Sqr))
	}
	if len(g.Local) > 0 && finite(g.Local) && finite(g.Total) {
		n.estimate(g)
	}
	n.Single = n.Single || g.Count == 1
	n.Progress += n.Gain(g.Batch)
	return nil
}

func (n *NoiseScale) estimate(g GradientNorms) {
	count, scale := float64(g.Count), n.Scale(g.Batch)
	if g.Count == 1 { // two samples, of two steps
		count, scale = 2, 2*scale
	}
	// Differences of successive steps are biased, so the better estimator starts anew
	// after any single-gradient step, as in the authors' implementation.
	if n.Weight == 0 || n.Single && g.Count > 1 {
		n.Sqr, n.Var, n.Weight = make([]float64, len(g.Local)), make([]float64, len(g.Local)), 0
	}
	n.Single = false
	keep := math.Pow(noiseMemory, scale)
	for i, local := range g.Local {
		total := g.Total[i]
		n.Sqr[i] = keep*n.Sqr[i] + (1-keep)*(count*total-local)/(count-1)
		n.Var[i] = keep*n.Var[i] + (1-keep)*(local-total)*scale/(count-1)
	}
	n.Weight = keep*n.Weight + (1 - keep)
}

func finite(v []float64) bool {
	for _, x := range v {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return false
		}
	}
	return true
}

// Group returns the averages of one parameter group, 1 and almost 0 before there is
// any estimate.
func (n *NoiseScale) Group(i int) (sqr, variance float64) {
	if n.Weight == 0 {
		return 1, leastVar
	}
	return max(0, n.Sqr[i]/n.Weight), max(leastVar, n.Var[i]/n.Weight)
}

// Sum returns the averages of all groups together.
func (n *NoiseScale) Sum() (sqr, variance float64) {
	if n.Weight == 0 {
		return n.Group(0)
	}
	for i := range n.Sqr {
		s, v := n.Group(i)
		sqr, variance = sqr+s, variance+v
	}
	return sqr, variance
}

// Gain is how many steps of batch M₀ one step of the given batch is worth, from 1
// to the batch's scale.
func (n *NoiseScale) Gain(batch int) float64 {
	sqr, variance := n.Sum()
	return gain(sqr, variance, n.Scale(batch))
}

func gain(sqr, variance, scale float64) float64 {
	if below := variance/scale + sqr; below > 0 {
		return (variance + sqr) / below
	}
	return 1
}

// Efficiency is the statistical efficiency of a batch relative to M₀, in (0, 1].
func (n *NoiseScale) Efficiency(batch int) float64 { return n.Gain(batch) / n.Scale(batch) }

// AdaScale is the factor on the learning rate of one parameter group trained by SGD.
func (n *NoiseScale) AdaScale(group, batch int) float64 {
	sqr, variance := n.Group(group)
	return gain(sqr, variance, n.Scale(batch))
}

// AdamScale is the square root of AdaScale, for a group trained by Adam, whose step does not grow with the gradient.
func (n *NoiseScale) AdamScale(group, batch int) float64 { return math.Sqrt(n.AdaScale(group, batch)) }

// SquareRoot is the factor on the learning rate of the square-root rule, Pollux's for Adam.
func (n *NoiseScale) SquareRoot(batch int) float64 { return math.Sqrt(n.Scale(batch)) }

// LEGW is the square-root rule with a warm-up of the given number of epochs at
// M₀, which lasts longer in proportion to the batch.
func (n *NoiseScale) LEGW(batch int, warmupEpochs float64, dataset int) float64 {
	total := warmupEpochs * n.Scale(batch) * float64(dataset) / float64(n.InitBatch)
	factor := n.SquareRoot(batch)
	if total > 0 {
		factor *= min(1, n.Progress/total)
	}
	return factor
}
