package estimate

import (
	"fmt"
	"math"
)

// Throughput is Pollux's model of the time of a training iteration (OSDI 2021, §3.2): seven parameters, the θ_sys of
// the paper. N is a job's number of nodes, K its number of GPUs, m the examples of one GPU's pass and s the passes
// before the one that ends with the exchange of gradients.
type Throughput struct {
	AlphaGrad  float64 `json:"alpha_grad"`  // s: a pass over no examples
	BetaGrad   float64 `json:"beta_grad"`   // s/example
	AlphaNode  float64 `json:"alpha_node"`  // s: exchange between two GPUs on different nodes
	BetaNode   float64 `json:"beta_node"`   // s for each GPU beyond two
	AlphaLocal float64 `json:"alpha_local"` // s: exchange between two GPUs of one node
	BetaLocal  float64 `json:"beta_local"`  // s for each GPU beyond two
	Gamma      float64 `json:"gamma"`       // overlap of pass and exchange: 1 none, +∞ complete
}

// The authors' implementation never lets a time be 0: its logarithm is fitted.
const (
	tiny        = 1e-8             // bound of every α and β, and of K−2
	noSync      = tiny + tiny*tiny // s: T_sync of a single GPU, 0 in the paper
	mostOverlap = 10               // bound of γ
)

// Grad is T_grad, the seconds of one forward and backward pass over m examples.
func (t Throughput) Grad(m float64) float64 { return t.AlphaGrad + t.BetaGrad*m }

// Sync is T_sync, the seconds of an exchange of gradients. Its slope counts GPUs, its parameters are those of the
// slowest link in use.
func (t Throughput) Sync(nodes, gpus int) float64 {
	switch {
	case gpus <= 1:
		return noSync
	case nodes > 1:
		return t.AlphaNode + t.BetaNode*beyondTwo(gpus)
	default:
		return t.AlphaLocal + t.BetaLocal*beyondTwo(gpus)
	}
}

func beyondTwo(gpus int) float64 { return max(float64(gpus-2), tiny) }

// Iter is T_iter, the seconds between two updates of the model: s passes, then one that partly overlaps with its
// exchange.
func (t Throughput) Iter(nodes, gpus int, b Batch) float64 {
	grad := t.Grad(float64(b.PerGPU))
	last, _ := t.overlap(math.Log(grad), math.Log(t.Sync(nodes, gpus)))
	return float64(b.Accumulation)*grad + math.Exp(last)
}

// overlap returns log (T_grad^γ + T_sync^γ)^(1/γ) from the logarithms of the two, and the share of T_grad^γ in the
// sum. It works with the ratio of the two, so that no power over- or underflows.
func (t Throughput) overlap(grad, sync float64) (log, share float64) {
	d := t.Gamma * (grad - sync)
	e := math.Exp(-math.Abs(d))
	log = max(grad, sync) + math.Log1p(e)/t.Gamma
	if d >= 0 {
		return log, 1 / (1 + e)
	}
	return log, e / (1 + e)
}

// ExamplesPerSecond is the throughput, K·m·(s+1)/T_iter.
func (t Throughput) ExamplesPerSecond(nodes, gpus int, b Batch) float64 {
	return float64(b.Total(gpus)) / t.Iter(nodes, gpus, b)
}

// Check says what keeps the parameters from being a model: an α or β that is negative or not finite, a pass or an
// exchange without duration, a γ outside [1, 10].
func (t Throughput) Check() error {
	for i, v := range t.params() {
		if i < gamma && !(v >= 0 && v <= math.MaxFloat64) {
			return fmt.Errorf("throughput model: %s is %v; it is at least 0 and finite", paramNames[i], v)
		}
	}
	if t.AlphaGrad+t.BetaGrad == 0 || t.AlphaNode+t.BetaNode == 0 || t.AlphaLocal+t.BetaLocal == 0 {
		return fmt.Errorf("throughput model: a pass or an exchange takes no time: %+v; give each an α or a β above 0", t)
	}
	if !(t.Gamma >= 1 && t.Gamma <= mostOverlap) {
		return fmt.Errorf("throughput model: γ is %v; it is from 1 to %d", t.Gamma, mostOverlap)
	}
	return nil
}

// The order of the parameters where they are a vector.
const (
	alphaGrad = iota
	betaGrad
	alphaNode
	betaNode
	alphaLocal
	betaLocal
	gamma
	paramCount
)

var paramNames = [paramCount]string{"α_grad", "β_grad", "α_node", "β_node", "α_local", "β_local", "γ"}

type params [paramCount]float64

func (t Throughput) params() params {
	return params{t.AlphaGrad, t.BetaGrad, t.AlphaNode, t.BetaNode, t.AlphaLocal, t.BetaLocal, t.Gamma}
}

func (p params) plus(d params) params {
	for i := range p {
		p[i] += d[i]
	}
	return p
}

func (p params) throughput() Throughput {
	return Throughput{p[0], p[1], p[2], p[3], p[4], p[5], p[6]}
}
