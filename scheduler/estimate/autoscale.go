package estimate

import (
	"fmt"
	"math"
)

// ScaleOut is Pollux's rule for the nodes of a job that has a cloud to itself (OSDI 2021, §5.4.1). While its noise
// scale grows, a job uses more and more nodes well; the rule adds them when they pay, not at once. A job's scaling on
// n nodes is its goodput there divided by n times its goodput on one.
type ScaleOut struct {
	Above  float64 // U: the scaling from which nodes are added
	Target float64 // L: the scaling that is aimed at
}

// PaperScaleOut is the rule with the values of the paper.
var PaperScaleOut = ScaleOut{Above: 2. / 3, Target: 1. / 2}

// Nodes returns how many nodes the job should have: as many as now, or more, up to most. The argument goodput predicts
// it on a number of nodes, such as Goodput.Best with all GPUs of them.
func (s ScaleOut) Nodes(goodput func(nodes int) float64, now, most int) int {
	one := goodput(1)
	scaling := func(nodes int) float64 { return goodput(nodes) / (float64(nodes) * one) }
	if now < 1 || !(one > 0) || !(scaling(now) > s.Above) {
		return now
	}
	best, miss := now, math.Inf(1)
	for n := now + 1; n <= most; n++ {
		if d := math.Abs(scaling(n) - s.Target); d < miss {
			best, miss = n, d
		}
	}
	return best
}

// Autoscaler keeps the utility of a cluster of many jobs within a band by its number of nodes, the rule of the
// authors' simulator. The utility is the sum of the jobs' speedups over a single GPU, divided by the number of GPUs.
// It is a plain value, to be stored between rounds.
type Autoscaler struct {
	Low    float64   `json:"low"` // of the band
	High   float64   `json:"high"`
	Min    int       `json:"min"` // nodes
	Max    int       `json:"max"`
	Rounds int       `json:"rounds"`           // over which the utility is averaged; the authors use 15
	Recent []float64 `json:"recent,omitempty"` // the utilities of the last rounds since a change
}

// Step takes the utility of a round with so many nodes and returns the number for the next. It changes only after
// Rounds rounds whose mean is outside the band, and then to the number in that direction whose predicted utility is
// closest to the middle of the band, of two the larger. The argument predict is asked for about log₂(Max−Min)+2
// numbers of nodes, since it may run a whole round of the policy; it should not rise with the number.
func (a *Autoscaler) Step(nodes int, utility float64, predict func(nodes int) float64) (int, error) {
	switch {
	case !(a.Low < a.High):
		return nodes, fmt.Errorf("autoscaler: utility between %v and %v; give a band", a.Low, a.High)
	case a.Min < 1 || a.Max < a.Min:
		return nodes, fmt.Errorf("autoscaler: from %d to %d nodes; give at least 1 and no fewer at most", a.Min, a.Max)
	case a.Rounds < 1:
		return nodes, fmt.Errorf("autoscaler: mean of %d rounds; give at least 1", a.Rounds)
	case math.IsNaN(utility) || math.IsInf(utility, 0):
		return nodes, fmt.Errorf("autoscaler: utility of %d nodes is %v; leave the round out", nodes, utility)
	case nodes < a.Min || nodes > a.Max:
		a.Recent = nil
		return min(max(nodes, a.Min), a.Max), nil
	}
	a.Recent = append(a.Recent, utility)
	a.Recent = a.Recent[max(0, len(a.Recent)-a.Rounds):]
	if len(a.Recent) < a.Rounds {
		return nodes, nil
	}
	mean := 0.0
	for _, u := range a.Recent {
		mean += u / float64(len(a.Recent))
	}
	least, most := nodes, nodes
	switch {
	case mean < a.Low:
		least = a.Min
	case mean > a.High:
		most = a.Max
	}
	if least == most { // in the band, or at the end of the range
		return nodes, nil
	}
	a.Recent = nil
	return closest((a.Low+a.High)/2, least, most, predict), nil
}

// closest returns the number from least to most for which a falling function is closest to the target,
// of two the larger.
func closest(target float64, least, most int, of func(int) float64) int {
	atLeast, atMost := of(least), of(most)
	for most-least > 1 {
		mid := least + (most-least)/2
		if u := of(mid); u < target {
			most, atMost = mid, u
		} else {
			least, atLeast = mid, u
		}
	}
	if math.Abs(target-atLeast) < math.Abs(target-atMost) {
		return least
	}
	return most
}
