package pollux

import (
	"slices"

	"optimus/scheduler/estimate"
	"optimus/scheduler/policy"
)

// agent is what an adaptive job has found out about itself (§4.1 of the paper): the times of the passes that it has
// run, a model fitted to them, and the gradient's last statistics. It measures without noise.
type agent struct {
	profile estimate.Profile
	fit     estimate.Throughput // zero until there is one
	sqr     float64
	noise   float64 // variance
}

// measured is what a job sees of its iterations.
type measured struct {
	nodes, gpus   int
	batch         estimate.Batch
	step, sync    float64
	sqr, variance float64
}

func (a *agent) clone() agent {
	b := *a
	b.profile.Sums = slices.Clone(a.profile.Sums)
	return b
}

// observe takes in an iteration. The model is fitted anew when it is the first with its GPUs, nodes and examples.
func (a *agent) observe(m measured) {
	a.sqr, a.noise = m.sqr, m.variance
	for _, s := range a.profile.Sums {
		if s.Nodes == m.nodes && s.GPUs == m.gpus && s.PerGPU == m.batch.PerGPU {
			return
		}
	}
	if a.profile.Add(m.nodes, m.gpus, m.batch, m.step-m.sync, m.step, m.sync) != nil {
		return // readers let no such time in
	}
	fit, _ := estimate.FitThroughput(a.profile.Records()) // of a descent that does not settle, the best seen
	if fit.Throughput.Check() == nil {
		a.fit = fit.Throughput
	}
}

// goodput returns what the job believes of its goodput. It chooses its batch by that, and tells it the scheduler.
func (a *agent) goodput(l estimate.Limits) policy.Goodput {
	if a.fit == (estimate.Throughput{}) {
		return estimate.Unmeasured{Limits: l}
	}
	return estimate.Goodput{Throughput: a.fit, Sqr: a.sqr, Var: a.noise, Limits: l}
}

// most returns the largest number of GPUs that the job may try: twice what it has run on.
func (a *agent) most() int { return max(1, 2*a.profile.MostGPUs()) }
