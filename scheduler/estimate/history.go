package estimate

import (
	"fmt"
	"math"
	"slices"
)

// LossPoint is the training loss of one step.
type LossPoint struct {
	Generation   int
	Step         int64
	Examples     int64 // consumed up to and including this step: the time axis
	Epoch        int
	Loss         float64 // mean over Weight
	Weight       float64 // the mean's denominator, in examples or tokens
	LearningRate float64
	M            int // global batch, examples
}

const (
	maxBins    = 256    // a long run is kept as at most this many averages
	sideSteps  = 31     // steps looked at on each side of a point to judge it,
	sideEpochs = 5      // but none further away than this (§3.1)
	minSide    = 5      // fewer steps than this on a side set no bound
	spreads    = 4      // standard deviations from a side's median to the bound
	madToSigma = 1.4826 // median absolute deviation to standard deviation
	rateDrop   = 0.7    // a step of the learning rate below this factor begins a new curve
)

// History is a job's loss so far in bounded memory: outliers replaced, long runs
// averaged into bins. It is a plain value that can be saved and restored; all
// positions are in epochs since the start of training.
type History struct {
	EpochExamples int64       // examples in one epoch
	From          float64     // where the present curve began: 0, or a drop of the learning rate
	Bins          []Bin       // in order of time
	StepsPerBin   int         // doubles as the run grows
	Tail          []LossPoint // the newest steps, raw: to judge a point takes its future
	Binned        int         // how many of Tail, from its start, are in Bins already
	Top           float64     // largest loss seen, as a median of five steps
	Outliers      int         // points replaced so far
	Last          LossPoint   // the newest point
}

// Bin is the mean of consecutive steps.
type Bin struct {
	At     float64 // mean position
	End    float64 // position of its newest step
	Loss   float64
	Weight float64 // sum over its steps
	Steps  int
}

// Add takes the next step's loss. A point that does not lie after the newest one
// comes from a job that went back to a checkpoint: it replaces what followed.
// After a drop of the learning rate that the batch does not explain, a new curve
// begins, as if the rest were a new job (§7).
func (h *History) Add(p LossPoint) error {
	switch {
	case h.EpochExamples <= 0:
		return fmt.Errorf("loss history: an epoch of %d examples; set EpochExamples to the data set's size", h.EpochExamples)
	case !(p.Loss >= 0) || math.IsInf(p.Loss, 0):
		return fmt.Errorf("loss history: step %d: loss is %v; leave the step out, the curve takes finite losses ≥ 0", p.Step, p.Loss)
	case !(p.Weight > 0) || math.IsInf(p.Weight, 0):
		return fmt.Errorf("loss history: step %d: weight is %v; give the number of examples or tokens that the loss is the mean over", p.Step, p.Weight)
	case p.Examples <= 0:
		return fmt.Errorf("loss history: step %d: %d examples consumed; the count includes the step's own", p.Step, p.Examples)
	}
	if p.Examples <= h.Last.Examples {
		h.rollBack(p)
	} else if h.rateDropped(p) {
		h.From = h.Done()
		h.Bins, h.Tail, h.Binned, h.StepsPerBin = nil, nil, 0, 0
	}
	h.Last = p
	h.Tail = append(h.Tail, p)
	h.raiseTop()
	if len(h.Tail)-h.Binned > sideSteps {
		bin, replaced := h.clean(h.Binned)
		h.add(bin)
		h.Binned++
		if replaced {
			h.Outliers++
		}
		if h.Binned > sideSteps {
			h.Tail = slices.Delete(h.Tail, 0, 1)
			h.Binned--
		}
	}
	return nil
}

// Done is the number of epochs trained so far.
func (h *History) Done() float64 { return h.position(h.Last) }

func (h *History) position(p LossPoint) float64 {
	return float64(p.Examples) / float64(h.EpochExamples)
}

// Points returns the present curve: the bins, then the newest steps judged by what
// is known of their future so far.
func (h *History) Points() []Bin {
	points := slices.Grow(slices.Clone(h.Bins), len(h.Tail)-h.Binned)
	for i := h.Binned; i < len(h.Tail); i++ {
		bin, _ := h.clean(i)
		points = append(points, bin)
	}
	return points
}

// rollBack forgets what lies at or after p. A bin that reaches over p goes whole.
func (h *History) rollBack(p LossPoint) {
	at := h.position(p)
	h.From = min(h.From, at)
	h.Bins = slices.DeleteFunc(h.Bins, func(b Bin) bool { return b.End >= at })
	h.Tail = slices.DeleteFunc(h.Tail, func(q LossPoint) bool { return q.Examples >= p.Examples })
	h.Binned = min(h.Binned, len(h.Tail))
}

// rateDropped compares rate per example of the batch too, since a job whose batch
// shrinks lowers its rate without entering a new phase.
func (h *History) rateDropped(p LossPoint) bool {
	fell := p.LearningRate < rateDrop*h.Last.LearningRate
	if fell && h.Last.M > 0 && p.M > 0 {
		fell = p.LearningRate/float64(p.M) < rateDrop*h.Last.LearningRate/float64(h.Last.M)
	}
	return fell && p.LearningRate > 0
}

// raiseTop takes the median of the newest five steps into account: the plain
// maximum of noisy losses grows with their number, and one outlier would set it.
func (h *History) raiseTop() {
	var last [5]float64
	if len(h.Tail) < len(last) {
		return
	}
	for i, p := range h.Tail[len(h.Tail)-len(last):] {
		last[i] = p.Loss
	}
	h.Top = max(h.Top, median(last[:]))
}

// clean judges point i of the tail. As the loss falls, a good point lies below
// what came before and above what comes after (§3.1). The paper bounds it by the
// largest loss before and the smallest one after; a single outlier among those
// would open the bound, so here it is their median ± 4 robust standard
// deviations. An outlier is replaced by the mean of its good neighbours.
func (h *History) clean(i int) (Bin, bool) {
	p := h.Tail[i]
	lo, hi := h.bounds(i)
	bin := Bin{At: h.position(p), End: h.position(p), Loss: p.Loss, Weight: p.Weight, Steps: 1}
	if lo <= p.Loss && p.Loss <= hi {
		return bin, false
	}
	sum, n := 0.0, 0.0
	for _, j := range []int{i - 1, i + 1} {
		if j >= 0 && j < len(h.Tail) && lo <= h.Tail[j].Loss && h.Tail[j].Loss <= hi {
			sum, n = sum+h.Tail[j].Loss, n+1
		}
	}
	if n > 0 {
		bin.Loss = sum / n
	} else {
		bin.Loss = min(max(p.Loss, lo), hi)
	}
	return bin, true
}

func (h *History) bounds(i int) (lo, hi float64) {
	at, reach := h.Tail[i].Examples, sideEpochs*h.EpochExamples
	lo, hi = 0, math.Inf(1)
	var before, after [sideSteps]float64
	n := 0
	for j := i - 1; j >= 0 && n < sideSteps && at-h.Tail[j].Examples <= reach; j-- {
		before[n] = h.Tail[j].Loss
		n++
	}
	if n >= minSide {
		m, sigma := spread(before[:n])
		hi = m + spreads*sigma
	}
	n = 0
	for j := i + 1; j < len(h.Tail) && n < sideSteps && h.Tail[j].Examples-at <= reach; j++ {
		after[n] = h.Tail[j].Loss
		n++
	}
	if n >= minSide {
		m, sigma := spread(after[:n])
		lo = m - spreads*sigma
	}
	return lo, max(lo, hi)
}

// add puts one cleaned step into the bins; when they are full, pairs of them are
// merged and each holds twice as many steps from then on.
func (h *History) add(step Bin) {
	if len(h.Bins) == 0 {
		h.StepsPerBin = 1
	}
	if n := len(h.Bins); n > 0 && h.Bins[n-1].Steps < h.StepsPerBin {
		h.Bins[n-1] = merge(h.Bins[n-1], step)
		return
	}
	if len(h.Bins) == maxBins {
		for i := range maxBins / 2 {
			h.Bins[i] = merge(h.Bins[2*i], h.Bins[2*i+1])
		}
		h.Bins = h.Bins[:maxBins/2]
		h.StepsPerBin *= 2
	}
	h.Bins = append(h.Bins, step)
}

func merge(a, b Bin) Bin {
	w := a.Weight + b.Weight
	return Bin{
		At:     (a.At*a.Weight + b.At*b.Weight) / w,
		End:    b.End,
		Loss:   (a.Loss*a.Weight + b.Loss*b.Weight) / w,
		Weight: w,
		Steps:  a.Steps + b.Steps,
	}
}

// median sorts v.
func median(v []float64) float64 {
	slices.Sort(v)
	n := len(v)
	if n == 0 {
		return 0
	}
	return (v[(n-1)/2] + v[n/2]) / 2
}

// spread returns the median and a robust standard deviation; it overwrites v. The
// deviation has a floor, so that a noise-free curve has no outliers by rounding.
func spread(v []float64) (m, sigma float64) {
	m = median(v)
	for i := range v {
		v[i] = math.Abs(v[i] - m)
	}
	return m, max(madToSigma*median(v), 1e-3*math.Abs(m))
}
