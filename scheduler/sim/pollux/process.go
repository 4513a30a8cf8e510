package pollux

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"optimus/scheduler/estimate"
	"optimus/scheduler/place"
	"optimus/scheduler/policy"
	"optimus/scheduler/sim"
	"optimus/scheduler/trace"
)

// Kind is how a job may be run.
type Kind int

// The kinds, with the policies of the paper that they are for.
const (
	Rigid    Kind = iota // with the GPUs and the batch that the user asked for (Tiresias)
	Elastic              // with any number of GPUs and the batch that the user asked for (Optimus+Oracle)
	Adaptive             // with any number of GPUs and the batch of the largest goodput (Pollux)
)

// KindFor returns the kind of jobs that a policy of a name schedules.
func KindFor(policy string) Kind {
	switch {
	case policy == "tiresias":
		return Rigid
	case strings.HasPrefix(policy, "pollux"):
		return Adaptive
	}
	return Elastic
}

// Jobs makes the jobs of a workload, for a cluster of nodes like those of [Cluster].
func Jobs(models Models, workload []trace.PolluxJob, kind Kind) ([]sim.Job, error) {
	jobs := make([]sim.Job, len(workload))
	type config struct {
		app   *App
		batch int
	}
	oracles := map[config]oracle{}
	for i, w := range workload {
		a := models[w.Application]
		if a == nil {
			return nil, fmt.Errorf("pollux: job %q: there is no model of %q; it must be one of %q", w.Name, w.Application, models.Names())
		}
		jobs[i] = sim.Job{Name: w.Name, Submit: w.Submit}
		p := &process{app: a, kind: kind, batch: w.Batch, gpus: w.GPUs}
		if kind == Adaptive {
			p.batch, p.gpus = a.PinnedBatch, 0
		}
		if jobs[i].Impossible = p.problem(); jobs[i].Impossible != "" {
			continue
		}
		if kind != Adaptive {
			c := config{a, w.Batch}
			if oracles[c] == nil {
				oracles[c] = a.oracle(w.Batch)
			}
			p.oracle = oracles[c]
		}
		jobs[i].Process = p
	}
	return jobs, nil
}

// process is a job under way.
type process struct {
	app      *App
	kind     Kind
	batch    int // total, as the user asked for; 0 if the job chooses it
	gpus     int // as the user asked for, of a rigid job
	oracle   oracle
	epoch    int     // number of those done
	progress float64 // iterations at M₀
	agent    agent
}

// problem says why the job cannot run anywhere, or is "".
func (p *process) problem() string {
	smallest, largest := p.app.curves[0].batch, p.app.curves[len(p.app.curves)-1].batch
	switch {
	case p.batch != 0 && (p.batch < smallest || p.batch > largest):
		return fmt.Sprintf("batch_size %d of %s was not measured; it must be from %d to %d", p.batch, p.app.Name, smallest, largest)
	case p.kind == Rigid && p.gpus > MaxGPUs:
		return fmt.Sprintf("num_replicas %d of %s was not measured; it must be at most %d", p.gpus, p.app.Name, MaxGPUs)
	case p.kind == Rigid && p.gpus > p.batch/p.app.Limits.MinPerGPU:
		return fmt.Sprintf("batch_size %d of %s on num_replicas %d leaves a GPU fewer than the %d examples that it takes at least",
			p.batch, p.app.Name, p.gpus, p.app.Limits.MinPerGPU)
	}
	return ""
}

// Clone implements [sim.Process].
func (p *process) Clone() sim.Process {
	q := *p
	q.agent = p.agent.clone()
	return &q
}

// Advance implements [sim.Process]. It goes from epoch to epoch, since the gradient changes there.
func (p *process) Advance(a sim.Allocation, seconds float64) (ran float64, done bool) {
	placement := p.placement(a.Tasks)
	left := seconds
	for left > 0 {
		rate := p.rate(placement) * a.Pace()
		if rate == 0 {
			return seconds, false
		}
		end := p.app.ends[p.epoch+1]
		if p.progress+rate*left < end {
			p.progress += rate * left
			return seconds, false
		}
		left -= min(left, math.RoundToEven((end-p.progress)/rate))
		p.progress = end
		if p.epoch++; p.epoch == p.app.Epochs {
			return seconds - left, true
		}
	}
	return seconds, false
}

// placement returns the number of GPUs on each node in the order of the ring of nodes, which the measured times depend
// on: by node, but by falling number where the paper's baselines place jobs, which take the node with the most free
// GPUs first.
func (p *process) placement(tasks place.Placement) []int {
	out := make([]int, len(tasks))
	for i, s := range tasks {
		out[i] = s.Tasks[place.Worker]
	}
	if p.kind != Adaptive {
		slices.SortFunc(out, func(a, b int) int { return cmp.Compare(b, a) })
	}
	return out
}

// rate returns the progress in a second on a placement, 0 if that was not measured. The job's agent learns of it.
func (p *process) rate(placement []int) float64 {
	gpus := sum(placement)
	b, ok := p.choose(len(placement), gpus)
	if !ok {
		return 0
	}
	step, sync, ok := p.app.timings.at(placement, b.PerGPU)
	if !ok {
		return 0
	}
	total := float64(b.Total(gpus))
	sqr, variance := p.app.gradient(total, p.epoch)
	if p.kind == Adaptive {
		p.agent.observe(measured{nodes: len(placement), gpus: gpus, batch: b, step: step, sync: sync, sqr: sqr, variance: variance})
	}
	gain := 1.0
	if rest := variance/(total/float64(p.app.Limits.InitBatch)) + sqr; rest > 0 {
		gain = (variance + sqr) / rest
	}
	return gain / (step + float64(b.Accumulation)*(step-sync))
}

// choose returns the batch on so many GPUs, of an adaptive job the smallest possible until something was measured. It
// answers false where there is none.
func (p *process) choose(nodes, gpus int) (estimate.Batch, bool) {
	l := p.app.Limits
	if p.batch != 0 {
		return l.Fixed(p.batch, gpus)
	}
	goodput, b := p.agent.goodput(l).Best(nodes, gpus)
	return l.Cap(b, gpus), goodput > 0
}

func sum(placement []int) int {
	n := 0
	for _, g := range placement {
		n += g
	}
	return n
}

// Show implements [sim.Process]. The steps that are left are iterations of a fixed batch, counted from the start of
// the epoch, and of an adaptive job those at M₀.
func (p *process) Show(j *policy.Job) {
	j.Ring = true
	j.Demand[place.Worker] = place.Vector{1}
	end := p.app.ends[p.app.Epochs]
	j.Progress = p.progress / end
	j.Max[place.Worker] = p.app.maxGPUs(cmp.Or(p.batch, p.app.Limits.MaxBatch))
	switch p.kind {
	case Rigid:
		j.Min[place.Worker], j.Max[place.Worker] = p.gpus, p.gpus
		fallthrough
	case Elastic:
		j.Speed = p.oracle
		j.Remaining = 1
		if last := p.app.Epochs - 1; p.epoch < last {
			batch := float64(p.batch)
			j.Remaining = p.app.iterations(batch, last) - p.app.iterations(batch, p.epoch)
		}
	case Adaptive:
		j.Remaining = end - p.progress
		j.Goodput = p.agent.goodput(p.app.Limits)
		j.Max[place.Worker] = min(j.Max[place.Worker], p.agent.most())
	}
}

// maxGPUs returns on how many GPUs a batch can be divided.
func (a *App) maxGPUs(batch int) int { return max(1, min(a.MaxGPUs, batch/a.Limits.MinPerGPU)) }

// oracle is the speed with a fixed batch by number of GPUs, in steps/s; 0 where it was not measured.
type oracle []float64

// oracle measures the speeds beforehand, with the GPUs on as few nodes as possible. As in the paper's baseline a
// single GPU always divides its batch into two passes at least, even if the run would not.
func (a *App) oracle(batch int) oracle {
	out := make(oracle, a.maxGPUs(batch)+1)
	for gpus := 1; gpus < len(out); gpus++ {
		limits := a.Limits
		if gpus == 1 {
			limits.InitBatch = 1
		}
		b, ok := limits.Fixed(batch, gpus)
		if step, sync, measured := a.timings.at(packed(gpus), b.PerGPU); ok && measured {
			out[gpus] = 1 / (step + float64(b.Accumulation)*(step-sync))
		}
	}
	return out
}

// packed returns GPUs on as few nodes as possible.
func packed(gpus int) []int {
	var placement []int
	for ; gpus > 0; gpus -= GPUsPerNode {
		placement = append(placement, min(gpus, GPUsPerNode))
	}
	return placement
}

// StepsPerSecond implements [policy.Speed].
func (o oracle) StepsPerSecond(_, w int) float64 {
	if w < 0 || w >= len(o) {
		return 0
	}
	return o[w]
}
