// Package optim holds the optimizers as fused kernels over flat pieces.
//
// A server applies an update to whatever piece of a block it owns, so an
// optimizer here is a function of flat arrays: parameters, state (momentum,
// mean squares) and the summed gradient at version s go in, parameters and state at version
// s+1 come out, in one pass over memory. Every element is computed from its own
// inputs alone, in float32, each operation rounded once: the bits do not depend
// on how a block is cut into pieces, on the machine, or on the vector width.
//
// The gradient is a sum over examples (or tokens) and comes with its integer
// weight; the one division of a step happens here.
package optim

import (
	"errors"
	"fmt"
	"math"
)

// The kinds of optimizer.
const (
	SGD     = "sgd"
	RMSProp = "rmsprop"
	Adam    = "adam"
)

// ErrConfig is the error that Validate wraps.
var ErrConfig = errors.New("invalid optimizer")

// Config describes an optimizer and its schedule. g below is the mean gradient
// after clipping and weight decay, η the scheduled learning rate.
//
//	sgd      w ← w − ηg, or with momentum μ: v ← μv + g, w ← w − ηv
//	rmsprop  n ← ρn + (1−ρ)g², w ← w − ηg/√(n + ε)   (Tieleman and Hinton 2012, as in MXNet)
//	adam     m ← β₁m + (1−β₁)g, v ← β₂v + (1−β₂)g², w ← w − ηm̂/(√v̂ + ε)
//	         with m̂ = m/(1−β₁ᵗ), v̂ = v/(1−β₂ᵗ)       (Kingma and Ba 2015, Algorithm 1)
//
// Note where ε stands: inside the root for rmsprop, as MXNet has it (other
// libraries put it outside, where 1e-8 damps far less), outside for adam.
type Config struct {
	Kind     string  `json:"kind"`
	LR       float64 `json:"lr"`
	Momentum float64 `json:"momentum,omitempty"` // sgd: μ
	Rho      float64 `json:"rho,omitempty"`      // rmsprop: ρ
	Beta1    float64 `json:"beta1,omitempty"`    // adam: β₁
	Beta2    float64 `json:"beta2,omitempty"`    // adam: β₂
	Epsilon  float64 `json:"epsilon,omitempty"`  // rmsprop, adam: ε
	// WeightDecay λ adds λw to the gradient (L2), after clipping.
	WeightDecay float64 `json:"weight_decay,omitempty"`
	// ClipNorm c > 0 limits the norm of the mean gradient over all learned blocks
	// together: g ← g·min(1, c/‖g‖₂) (Pascanu et al. 2013, Algorithm 1). One piece
	// does not know that norm: who applies an update gives it (Update.Excess).
	ClipNorm float64 `json:"clip_norm,omitempty"`
	// Clip > 0 limits each element of the mean gradient to ±Clip, after ClipNorm.
	Clip float64 `json:"clip,omitempty"`
	// As each of Steps (increasing, from 1) is reached, the learning rate is multiplied by Factor.
	Factor float64 `json:"factor,omitempty"`
	Steps  []int64 `json:"steps,omitempty"`
	// Warmup is the first step with the whole learning rate; before it, step s has s/Warmup of it.
	Warmup int64 `json:"warmup,omitempty"`
}

// Default returns the usual settings of a kind; an unknown kind comes back with
// nothing else set, and Validate refuses it.
func Default(kind string) Config {
	switch kind {
	case SGD:
		return Config{Kind: kind, LR: 0.1, Momentum: 0.9}
	case RMSProp:
		return Config{Kind: kind, LR: 0.001, Rho: 0.9, Epsilon: 1e-8}
	case Adam:
		return Config{Kind: kind, LR: 0.001, Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8}
	}
	return Config{Kind: kind}
}

// Validate returns an error that wraps ErrConfig and names the first bad setting.
func (c Config) Validate() error {
	if c.Kind != SGD && c.Kind != RMSProp && c.Kind != Adam {
		return fmt.Errorf("%w: kind %q is unknown; use %s, %s or %s", ErrConfig, c.Kind, SGD, RMSProp, Adam)
	}
	below1 := func(x float64) bool { return x >= 0 && x < 1 }
	natural := func(x float64) bool { return x >= 0 && !math.IsInf(x, 1) }
	positive := func(x float64) bool { return x > 0 && !math.IsInf(x, 1) }
	rms, adam := c.Kind == RMSProp, c.Kind == Adam
	for _, s := range []struct {
		name  string
		value float64
		used  bool
		ok    bool
		rule  string
	}{
		{"lr", c.LR, true, positive(c.LR), "must be positive and finite"},
		{"momentum", c.Momentum, c.Kind == SGD, below1(c.Momentum), "must lie in [0,1)"},
		{"rho", c.Rho, rms, below1(c.Rho), "must lie in [0,1)"},
		{"beta1", c.Beta1, adam, below1(c.Beta1), "must lie in [0,1)"},
		{"beta2", c.Beta2, adam, below1(c.Beta2), "must lie in [0,1)"},
		{"epsilon", c.Epsilon, rms || adam, float32(c.Epsilon) > 0 && positive(c.Epsilon), "must be positive, finite and above zero in float32"},
		{"weight_decay", c.WeightDecay, true, natural(c.WeightDecay), "must be finite and not negative"},
		{"clip_norm", c.ClipNorm, true, natural(c.ClipNorm) && (c.ClipNorm == 0 || c.ClipNorm >= minClipNorm), fmt.Sprintf("must be finite and 0 or at least %g", minClipNorm)},
		{"clip", c.Clip, true, natural(c.Clip), "must be finite and not negative"},
		{"factor", c.Factor, len(c.Steps) > 0, positive(c.Factor), "must be positive and finite"},
	} {
		if s.used && !s.ok {
			return fmt.Errorf("%w: %s is %v; it %s", ErrConfig, s.name, s.value, s.rule)
		}
		if !s.used && s.value != 0 {
			return fmt.Errorf("%w: %s is %v, but nothing uses it here; leave it out", ErrConfig, s.name, s.value)
		}
	}
	if c.Warmup < 0 {
		return fmt.Errorf("%w: warmup is %d; it must not be negative", ErrConfig, c.Warmup)
	}
	last := int64(0)
	for _, step := range c.Steps {
		if step <= last {
			return fmt.Errorf("%w: steps %v must be positive and increase", ErrConfig, c.Steps)
		}
		last = step
	}
	return nil
}

// Slots returns how many state arrays, each as long as the piece, the optimizer keeps.
func (c Config) Slots() int { return len(c.SlotNames()) }

// SlotNames names the state arrays, in their order, for checkpoints.
func (c Config) SlotNames() []string {
	switch {
	case c.Kind == RMSProp:
		return []string{"mean_square"}
	case c.Kind == Adam:
		return []string{"mean", "mean_square"}
	case c.Kind == SGD && c.Momentum != 0:
		return []string{"momentum"}
	}
	return nil
}

// Rate returns the scheduled learning rate of step (1-based).
func (c Config) Rate(step int64) float64 {
	lr := c.LR
	for _, s := range c.Steps {
		if step >= s {
			lr *= c.Factor
		}
	}
	if step < c.Warmup {
		lr *= float64(step) / float64(c.Warmup)
	}
	return lr
}

// DropAfter returns the config with a learning rate that is divided by ten after
// so many epochs each, of perEpoch steps.
func (c Config) DropAfter(epochs []int, perEpoch int64) Config {
	c.Factor, c.Steps = 0, nil
	for _, n := range epochs {
		c.Factor, c.Steps = 0.1, append(c.Steps, int64(n)*perEpoch+1)
	}
	return c
}
