package seq

import (
	"errors"
	"fmt"
	"math"

	"optimus/compute/cpu/vec"
)

// CTC computes the loss of connectionist temporal classification (Graves et al., 2006) and its gradient:
//
//	loss = -log p(labels | x)
//
// where p sums over all paths, one class for each time step, that become the labels when repeats are merged and
// then blanks are dropped. It works with logarithms in float64, so long sequences neither underflow nor lose digits.
//
// With the labels spread out between blanks as z (2U+1 symbols), α[t,s] is the log probability of all beginnings of
// paths up to step t that end in symbol s, and β[t,s] that of all endings after it; then
//
//	p = Σₛ exp(α[t,s]+β[t,s])   ∂loss/∂x[t,k] = softmax(x[t])[k] - Σ_{s: zₛ=k} exp(α[t,s]+β[t,s]) / p
//
// at every step t. A CTC holds the memory for one utterance at a time: each core has its own.
type CTC struct {
	steps, labels  int // the longest
	classes, blank int

	logp       []float64 // [T, classes] log softmax
	alpha      []float64 // [T, 2U+1]
	beta, next []float64 // β of a step, and of the one after it times its probabilities
	share      []float64 // of each class in a step: Σ exp(α+β) / p
	symbols    []int32   // z
}

// NewCTC plans for utterances of up to steps time steps and labels labels over a number of classes, of which blank is
// one.
func NewCTC(steps, labels, classes, blank int) (*CTC, error) {
	switch {
	case steps <= 0 || labels < 0 || classes <= 0:
		return nil, fmt.Errorf("plan CTC: %d steps, %d labels, %d classes; steps and classes must be positive", steps, labels, classes)
	case blank < 0 || blank >= classes:
		return nil, fmt.Errorf("plan CTC: blank %d of %d classes; it must be one of 0 … %d", blank, classes, classes-1)
	}
	s := 2*labels + 1
	return &CTC{
		steps: steps, labels: labels, classes: classes, blank: blank,
		logp: make([]float64, steps*classes), alpha: make([]float64, steps*s),
		beta: make([]float64, s), next: make([]float64, s), share: make([]float64, classes), symbols: make([]int32, s),
	}, nil
}

// ErrInfeasible says that no path makes the labels; errors.Is finds it in an *InfeasibleError.
var ErrInfeasible = errors.New("no path makes the labels")

// InfeasibleError is what Loss returns with an infinite loss: the labels need more time steps than there are, one
// for each and one for a blank between equal neighbours, or the logits leave every path with the probability 0.
type InfeasibleError struct{ Steps, Needed int }

func (e *InfeasibleError) Error() string {
	if e.Needed > e.Steps {
		return fmt.Sprintf("CTC: the labels need %d time steps, the utterance has %d; leave it out or shorten its labels", e.Needed, e.Steps)
	}
	return fmt.Sprintf("CTC: the logits of %d time steps give every path of the labels the probability 0; look for infinities in them", e.Steps)
}

func (e *InfeasibleError) Unwrap() error { return ErrInfeasible }

// Loss returns the loss of an utterance and writes the gradient of its logits x, both [T, classes] for a whole T;
// grad may be x, or nil where only the loss is wanted. Labels lie in the classes, without the blank; there
// may be none.
//
// If no path makes the labels, the loss is +Inf, the gradient all zero, so that the utterance does no harm to its
// batch, and the error an *InfeasibleError. With other errors the gradient is untouched. NaNs in the logits
// give a NaN.
func (c *CTC) Loss(grad, x []float32, labels []int32) (float64, error) {
	steps := len(x) / c.classes
	needed, err := c.check(grad, x, labels)
	if err != nil {
		return 0, err
	}
	loss := math.Inf(1)
	if needed <= steps {
		c.logSoftmax(x)
		loss = c.forward(steps, labels)
	}
	if math.IsInf(loss, 1) {
		clear(grad)
		return loss, &InfeasibleError{steps, needed}
	}
	if grad != nil {
		c.backward(grad, steps, loss)
	}
	return loss, nil
}

// check returns how many steps the labels need at least.
func (c *CTC) check(grad, x []float32, labels []int32) (needed int, err error) {
	switch {
	case len(x)%c.classes != 0:
		return 0, fmt.Errorf("CTC: %d logits are no whole number of time steps of %d classes", len(x), c.classes)
	case grad != nil && len(grad) != len(x):
		return 0, fmt.Errorf("CTC: the gradient has %d elements for %d logits; they must be equally long", len(grad), len(x))
	case len(x)/c.classes > c.steps:
		return 0, fmt.Errorf("CTC: an utterance of %d time steps; the plan is for %d at most", len(x)/c.classes, c.steps)
	case len(labels) > c.labels:
		return 0, fmt.Errorf("CTC: %d labels; the plan is for %d at most", len(labels), c.labels)
	}
	needed = len(labels)
	for i, l := range labels {
		if l < 0 || int(l) >= c.classes || int(l) == c.blank {
			return 0, fmt.Errorf("CTC: label %d is %d; labels are 0 … %d without the blank, %d", i, l, c.classes-1, c.blank)
		}
		if i > 0 && l == labels[i-1] {
			needed++
		}
	}
	return needed, nil
}

// logSoftmax fills logp.
func (c *CTC) logSoftmax(x []float32) {
	for at := 0; at < len(x); at += c.classes {
		row, out := x[at:at+c.classes], c.logp[at:]
		top, sum := math.Inf(-1), 0.0
		for _, v := range row {
			top = max(top, float64(v))
		}
		for _, v := range row {
			sum += math.Exp(float64(v) - top)
		}
		log := math.Log(sum)
		for k, v := range row {
			out[k] = float64(v) - top - log
		}
	}
}

// forward fills z and α and returns the loss.
func (c *CTC) forward(steps int, labels []int32) float64 {
	n := 2*len(labels) + 1
	c.symbols = c.symbols[:n]
	for s := range c.symbols {
		c.symbols[s] = int32(c.blank)
		if s%2 == 1 {
			c.symbols[s] = labels[s/2]
		}
	}
	if steps == 0 {
		return 0 // and so no labels, which the empty path makes
	}
	for t := range steps {
		a, logp := c.alpha[t*n:(t+1)*n], c.logp[t*c.classes:]
		lo, hi := c.band(t, steps)
		for s := range a {
			switch {
			case s < lo || s >= hi:
				a[s] = math.Inf(-1)
			case t == 0:
				a[s] = logp[c.symbols[s]]
			default:
				a[s] = logp[c.symbols[s]] + c.before(c.alpha[(t-1)*n:t*n], s)
			}
		}
	}
	last := c.alpha[(steps-1)*n : steps*n]
	p := last[n-1]
	if n > 1 {
		p = logSum(p, last[n-2], math.Inf(-1))
	}
	return -p
}

// band returns the symbols [lo,hi) that a path can have at step t: it begins with one of the first two and
// ends with one of the last two.
func (c *CTC) band(t, steps int) (lo, hi int) {
	n := len(c.symbols)
	return max(0, n-2*(steps-t)), min(n, 2*(t+1))
}

// before is the log probability of the symbols from which symbol s is reached in a step.
func (c *CTC) before(a []float64, s int) float64 {
	one, two := math.Inf(-1), math.Inf(-1)
	if s > 0 {
		one = a[s-1]
	}
	if c.jumps(s) {
		two = a[s-2]
	}
	return logSum(a[s], one, two)
}

// jumps reports whether a path may come to symbol s from the one before the last: over a blank
// between different labels.
func (c *CTC) jumps(s int) bool { return s%2 == 1 && s > 1 && c.symbols[s] != c.symbols[s-2] }

// backward computes β from the last step to the first and the gradient with it.
func (c *CTC) backward(grad []float32, steps int, loss float64) {
	n := len(c.symbols)
	beta, next := c.beta[:n], c.next[:n]
	for t := steps - 1; t >= 0; t-- {
		lo, hi := c.band(t, steps)
		for s := range beta {
			switch {
			case s < lo || s >= hi:
				beta[s] = math.Inf(-1)
			case t == steps-1:
				beta[s] = 0
			default:
				beta[s] = c.after(next, s)
			}
		}
		logp, alpha, out := c.logp[t*c.classes:(t+1)*c.classes], c.alpha[t*n:(t+1)*n], grad[t*c.classes:]
		clear(c.share)
		for s := lo; s < hi; s++ {
			c.share[c.symbols[s]] += math.Exp(alpha[s] + beta[s] + loss)
			next[s] = beta[s] + logp[c.symbols[s]]
		}
		for k, v := range logp {
			out[k] = float32(math.Exp(v) - c.share[k])
		}
		for s := range next[:lo] {
			next[s] = math.Inf(-1)
		}
		for s := hi; s < n; s++ {
			next[s] = math.Inf(-1)
		}
	}
}

// after is the log probability of the symbols that are reached from symbol s in a step.
func (c *CTC) after(next []float64, s int) float64 {
	one, two := math.Inf(-1), math.Inf(-1)
	if s+1 < len(next) {
		one = next[s+1]
	}
	if s+2 < len(next) && c.jumps(s+2) {
		two = next[s+2]
	}
	return logSum(next[s], one, two)
}

// logSum returns log(exp(a)+exp(b)+exp(c)).
func logSum(a, b, c float64) float64 {
	// The greatest comes first: its term is 1.
	if b > a {
		a, b = b, a
	}
	if c > a {
		a, c = c, a
	}
	if math.IsInf(a, -1) {
		return a + b + c // -Inf, or NaN
	}
	return a + math.Log(1+math.Exp(b-a)+math.Exp(c-a))
}

// BestPath appends to dst the labels of the path that has the most probable class at every step of the logits x:
// greedy decoding, with the blank of the loss.
func (c *CTC) BestPath(dst []int32, x []float32) []int32 {
	last := c.blank
	for ; len(x) >= c.classes; x = x[c.classes:] {
		_, best := vec.Max(x[:c.classes])
		if best != last && best != c.blank {
			dst = append(dst, int32(best))
		}
		last = best
	}
	return dst
}
