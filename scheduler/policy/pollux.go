package policy

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"optimus/scheduler/place"
)

// Pollux shares the cluster by goodput (Qiao et al., OSDI 2021). A job's speedup is its best goodput on what it gets,
// relative to that on its fair share; the fitness of a round is the power mean of the speedups,
//
//	FITNESS_p = (1/J · Σ_j SPEEDUP_j^p)^(1/p)
//
// A job that is changed counts only for the part of its age that restarts have left of it, so it is left alone unless
// the change pays. The plan of largest fitness is searched for by a genetic algorithm whose children are improved by
// local search: a job's term depends only on its numbers of GPUs and nodes, and on whether it is changed, so a change
// of some jobs is judged in the time of those jobs.
//
// Jobs have no ps; a worker is a GPU. No job gets more than twice the GPUs that it ever had, for its goodput beyond is
// not known. At most one job that spans several nodes may be on a node, since two would disturb each other.
type Pollux struct {
	// P is the exponent of fairness, at most 1: 1 is the sum of the speedups, −1 the paper's default, 0 the geometric
	// mean, −∞ the least speedup.
	P float64
	// Delay is what a restart costs, in seconds; the paper's δ.
	Delay float64
	// MaxGPUs and MaxNodes bound one job; 0 is no bound.
	MaxGPUs, MaxNodes int
	// Overlap lets jobs that span several nodes share a node.
	Overlap bool
	// Seed chooses among the searches.
	Seed uint64
	// Quirks are what the authors' implementation does otherwise.
	Quirks Quirks
}

// Quirks are where the implementation of Pollux's authors differs from the paper or from what it means to do. The zero
// value has none of them.
type Quirks struct {
	// OneNode takes the goodput of the fair share as if one node held it, however large it is. Then jobs compete for
	// more than their real share when there are few.
	OneNode bool
	// StartPays treats a job that has nothing like one that is restarted, though it has nothing to lose: a job of
	// age 0 cannot gain from GPUs that are free.
	StartPays bool
	// Scaled multiplies speedups by nodes/GPUs, which matters beside the floor of 0.001 that each has.
	Scaled bool
	// JudgeEarly decides which jobs span several nodes before their GPUs are trimmed to what is free: a job loses
	// nodes to others that it would not have shared.
	JudgeEarly bool
	// EvictAll takes a node also from the jobs of a single node that come after the second spanning one. It has an
	// effect only with JudgeEarly.
	EvictAll bool
}

// Artifact returns the quirks of the authors' implementation, all of them.
func Artifact() Quirks {
	return Quirks{OneNode: true, StartPays: true, Scaled: true, JudgeEarly: true, EvictAll: true}
}

// Check implements [Planner]. A job whose goodput is not known scales perfectly until it is.
func (p Pollux) Check(j *Job) error {
	least := j.least()[place.Worker]
	switch {
	case !(p.P <= 1 && p.Delay >= 0):
		return fmt.Errorf("policy: the exponent of fairness is %v, a restart costs %v s; use at most 1, and at least 0", p.P, p.Delay)
	case !j.Ring:
		return fmt.Errorf("job %q has parameter servers; this policy is for jobs without, choose another", j.ID)
	case p.MaxGPUs > 0 && least > p.MaxGPUs:
		return fmt.Errorf("job %q needs at least %d GPUs, the policy gives at most %d to a job; lower the minimum", j.ID, least, p.MaxGPUs)
	case math.IsNaN(j.Service) || j.Restarts < 0:
		return fmt.Errorf("job %q has had %v GPU·s and %d restarts; these must be numbers of at least 0", j.ID, j.Service, j.Restarts)
	case j.Goodput == nil || goodput(j, 1, least) > 0 || goodput(j, least, least) > 0:
		return nil
	}
	return fmt.Errorf("job %q has no goodput on its least number of GPUs, %d: its limits leave no batch; widen them or raise the minimum", j.ID, least)
}

// goodput returns the best goodput, 0 where it is not known.
func goodput(j *Job, nodes, gpus int) float64 {
	if g, _ := j.Goodput.Best(nodes, gpus); g > 0 && !math.IsInf(g, 1) {
		return g
	}
	return 0
}

// Plan implements [Planner].
func (p Pollux) Plan(r *Round) []Plan {
	plans := make([]Plan, len(r.Jobs))
	if len(r.Jobs) == 0 {
		r.Memory.Pollux = nil
		return plans
	}
	round := p.newRound(r)
	population := round.search(r.Memory.Pollux.solutions(round))
	best := population[0]
	r.Memory.Pollux = round.note(population)
	speedups := round.speedups(best)
	fitness := round.fitness(speedups)
	for at := range round.jobs {
		c, row := &round.jobs[at], best.rows[at]
		plan := &plans[c.index]
		plan.Placement = row.placement()
		if len(row) > 0 && c.job.Goodput != nil {
			_, plan.Batch = c.job.Goodput.Best(len(row), row.gpus())
		}
		plan.Reason = round.reason(c, row) + fmt.Sprintf("; fitness %.3g", fitness)
	}
	return plans
}

// reason tells what a job gains or gives.
func (r *polluxRound) reason(c *contender, to row) string {
	from := c.base
	switch {
	case len(to) == 0 && len(from) == 0:
		return "waits: no fitter plan that gives it GPUs was found"
	case len(to) == 0:
		return fmt.Sprintf("gives %s to others, which gain more than its speedup of %.3g", from, r.speedup(c, len(from), from.gpus()))
	case len(from) == 0:
		return fmt.Sprintf("speedup %.3g with %s", r.speedup(c, len(to), to.gpus()), to)
	case slices.Equal(from, to):
		why := "no change is worth a restart"
		if c.fixed {
			why = "pinned"
		}
		return fmt.Sprintf("speedup %.3g with %s; %s", r.speedup(c, len(to), to.gpus()), to, why)
	}
	gpus, nodes := fmt.Sprint(to.gpus()), count(len(to), "node")
	if from.gpus() != to.gpus() {
		gpus = fmt.Sprintf("%d → %d", from.gpus(), to.gpus())
	}
	if len(from) != len(to) {
		nodes = fmt.Sprintf("%d → %s", len(from), nodes)
	}
	return fmt.Sprintf("speedup %.3g → %.3g with %s GPUs on %s", r.speedup(c, len(from), from.gpus()),
		r.speedup(c, len(to), to.gpus()), gpus, nodes)
}

// count returns for example "1 node" or "2 nodes".
func count(n int, of string) string {
	if n == 1 {
		return "1 " + of
	}
	return fmt.Sprintf("%d %ss", n, of)
}

// seat is what a job has on one node.
type seat struct{ node, gpus int }

// row is what a job has, by node. It is not changed but replaced.
type row []seat

func (r row) gpus() int {
	sum := 0
	for _, s := range r {
		sum += s.gpus
	}
	return sum
}

// String returns for example "4 GPUs on 1 node".
func (r row) String() string { return count(r.gpus(), "GPU") + " on " + count(len(r), "node") }

func (r row) placement() place.Placement {
	var p place.Placement
	for _, s := range r {
		p = append(p, place.Share{Node: s.node, Tasks: place.Counts{place.Worker: s.gpus}})
	}
	return p
}

// rowOf is the reverse of placement.
func rowOf(p place.Placement) row {
	var r row
	for _, sh := range p {
		if gpus := sh.Tasks[place.Worker]; gpus > 0 {
			r = append(r, seat{sh.Node, gpus})
		}
	}
	return r
}

func bySeat(a, b seat) int { return cmp.Compare(a.node, b.node) }
