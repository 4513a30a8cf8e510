package estimate

import (
	"fmt"
	"math"
)

// ThroughputFit is a fitted throughput model. To keep it, keep the records: fitting is cheap.
type ThroughputFit struct {
	Throughput Throughput
	Loss       float64          // the objective of Pollux's implementation at Throughput
	Assumed    []string         // parameters that the records say nothing of, which hold optimistic priors
	Rejected   []RejectedRecord // records that were left out, and why
	Used       int              // records that the fit rests on
	Steps      int              // of the descent
}

// FitThroughput fits the seven parameters to records, each of which counts the same (Pollux, §4.1): it minimises the
// mean relative errors of both times, with a slight preference for little overlap and good scaling. Parameters of
// which the records say nothing hold optimistic priors, so that a job tries what it has not tried: an exchange takes
// no time, and one between nodes 10 % more than one within a node.
//
// Records that are no measurements are left out and listed; without any other, that is an error. [ErrIterations] says
// that the descent had not settled at its limit: the fit that comes with it is the best seen, and its Loss tells how
// good it is.
func FitThroughput(records []Record) (ThroughputFit, error) {
	var fit ThroughputFit
	var good []Record
	for i, r := range records {
		if fault := r.fault(); fault != "" {
			fit.Rejected = append(fit.Rejected, RejectedRecord{i, r, fault})
			continue
		}
		good = append(good, r)
	}
	fit.Used = len(good)
	if len(good) == 0 {
		return fit, fmt.Errorf("throughput fit: %d records, of which none is a measurement; measure a configuration first", len(records))
	}
	l := newTiming(good)
	b := priors(good)
	l.tied = frozen(b, alphaNode)
	for i := range paramCount {
		if frozen(b, i) {
			fit.Assumed = append(fit.Assumed, paramNames[i])
		}
	}

	var starts []params
	for _, overlap := range []float64{1.001, 2, 5} {
		starts = append(starts, start(good, overlap))
	}
	p, steps, settled := l.minimise(starts, &b)
	if l.tied {
		p[alphaNode], p[betaNode] = farther*p[alphaLocal], farther*p[betaLocal]
	}
	fit.Throughput, fit.Loss, fit.Steps = p.throughput(), l.loss(p), steps
	if !settled {
		return fit, fmt.Errorf("throughput fit: %d records, %d steps: %w", len(good), fit.Steps, ErrIterations)
	}
	return fit, nil
}

func frozen(b bounds, i int) bool { return b.lo[i] == b.hi[i] }

// priors are the bounds of the parameters. Those that the records say nothing of are frozen.
func priors(records []Record) bounds {
	var b bounds
	for i := range gamma {
		b.lo[i], b.hi[i] = tiny, math.Inf(1)
	}
	b.lo[gamma], b.hi[gamma] = 1, mostOverlap
	freeze := func(i int, v float64) { b.lo[i], b.hi[i] = v, v }
	var passes float64
	var batches, across, within, many bool
	for _, r := range records {
		passes += r.Grad
		batches = batches || r.PerGPU != records[0].PerGPU
		across = across || r.Nodes > 1
		within = within || r.Nodes == 1 && r.GPUs > 1
		many = many || r.GPUs > 2
	}
	if !batches { // half of a pass is taken as independent of the batch
		freeze(alphaGrad, passes/float64(len(records))/2)
	}
	if !across {
		freeze(alphaNode, tiny)
	}
	if !within {
		freeze(alphaLocal, tiny)
	}
	if !across || !many {
		freeze(betaNode, tiny)
	}
	if !within || !many {
		freeze(betaLocal, tiny)
	}
	return b
}

// start guesses the parameters for a degree of overlap: half of each mean time is independent of the batch, or of the
// number of GPUs.
func start(records []Record, overlap float64) params {
	p := params{tiny, tiny, tiny, tiny, tiny, tiny, overlap}
	var pass, examples mean
	var sync, beyond [paramCount]mean // by the index of α
	for _, r := range records {
		pass.add(r.Grad)
		examples.add(float64(r.PerGPU))
		a := alphaLocal
		if r.Nodes > 1 {
			a = alphaNode
		}
		if r.GPUs > 1 {
			rest := 1 - math.Pow(r.Grad/r.Last, overlap)
			sync[a].add(r.Last * max(.05, math.Pow(max(0, rest), 1/overlap)))
			beyond[a].add(beyondTwo(r.GPUs))
		}
	}
	p[alphaGrad], p[betaGrad] = pass.value()/2, pass.value()/examples.value()/2
	for _, a := range []int{alphaNode, alphaLocal} {
		if sync[a].n > 0 {
			p[a], p[a+1] = sync[a].value()/2, sync[a].value()/max(1, beyond[a].value())/2
		}
	}
	return p
}

type mean struct{ sum, n float64 }

func (m *mean) add(v float64)  { m.sum, m.n = m.sum+v, m.n+1 }
func (m *mean) value() float64 { return m.sum / m.n }
