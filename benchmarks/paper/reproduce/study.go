package reproduce

import (
	"context"
	"fmt"
	"runtime"
	"sync"

	"optimus/scheduler/place"
	"optimus/scheduler/policy"
	"optimus/scheduler/sim"
	"optimus/scheduler/sim/optimus"
)

// The Optimus paper decides every 10 minutes. A restart's cost is not printed, but that all scaling together takes 2.54 %
// of the makespan, which is 15 s of each interval.
const (
	optimusInterval = 600
	optimusRestart  = 15
)

// outcome is what a policy makes of the workloads, by seed.
type outcome struct {
	jct, makespan []float64
	tasks, most   []float64 // running: mean over the makespan, and most at a time
}

// study simulates the paper's workloads.
type study struct {
	truths *optimus.Truths
	seeds  int
}

// setting is one policy on one kind of workload.
type setting struct {
	policy policy.Policy
	load   optimus.Workload
	change func(*sim.Config) // nil for none
}

// run simulates all seeds of all settings.
func (s *study) run(ctx context.Context, settings ...setting) ([]outcome, error) {
	out := make([]outcome, len(settings))
	for i := range out {
		out[i] = outcome{make([]float64, s.seeds), make([]float64, s.seeds), make([]float64, s.seeds), make([]float64, s.seeds)}
	}
	err := parallel(ctx, len(settings)*s.seeds, func(n int) error {
		i, seed := n/s.seeds, n%s.seeds
		return s.one(settings[i], seed, &out[i])
	})
	return out, err
}

// parallel does n pieces of work on all cores and returns the first error, after which it begins no other.
func parallel(ctx context.Context, n int, work func(i int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wait sync.WaitGroup
	slots := make(chan struct{}, runtime.GOMAXPROCS(0))
	for i := range n {
		slots <- struct{}{}
		if ctx.Err() != nil {
			break
		}
		wait.Go(func() {
			defer func() { <-slots }()
			if err := work(i); err != nil {
				cancel(err)
			}
		})
	}
	wait.Wait()
	return context.Cause(ctx)
}

func (s *study) one(c setting, seed int, out *outcome) error {
	c.load.Seed = uint64(seed)
	cfg := sim.Config{Policy: c.policy, Nodes: optimus.Cluster(), Interval: optimusInterval, Restart: optimusRestart, Seed: uint64(seed)}
	if c.change != nil {
		c.change(&cfg)
	}
	r, err := sim.Run(cfg, s.truths.Workload(c.load))
	if err != nil {
		return fmt.Errorf("%s, seed %d: %w", c.policy.Name, seed, err)
	}
	for _, j := range r.Jobs {
		if j.Impossible != "" {
			return fmt.Errorf("%s, seed %d: job %s cannot run: %s", c.policy.Name, seed, j.Name, j.Impossible)
		}
	}
	first := r.Jobs[0].Submit // makespan counts from the first arrival
	out.jct[seed], out.makespan[seed] = r.MeanJCT, r.Makespan-first
	mean, most := running(r)
	out.tasks[seed], out.most[seed] = mean/(r.Makespan-first), most
	return nil
}

// running returns task-seconds, and the most tasks that ran at a time.
func running(r *sim.Result) (total, most float64) {
	for _, s := range r.Timeline {
		total += (s.End - s.Start) * float64(s.Tasks.Total())
		now := 0
		for _, o := range r.Timeline {
			if o.Start <= s.Start && s.Start < o.End {
				now += o.Tasks.Total()
			}
		}
		most = max(most, float64(now))
	}
	return total, most
}

// named returns policies by name.
func named(names ...string) ([]policy.Policy, error) {
	var out []policy.Policy
	for _, n := range names {
		p, err := policy.ByName(n)
		if err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	return out, nil
}

// mixed returns a policy with the allocator of one and the placement of another, both placed with the same care.
func mixed(name string, a policy.Allocator, p place.Strategy) policy.Policy {
	return policy.Policy{Name: name, Planner: policy.TwoStage{Allocator: a, Place: p, SmallestFirst: true, Keep: true, Shrink: true}}
}

// ratios divides seed by seed.
func ratios(a, b []float64) []float64 {
	out := make([]float64, len(a))
	for i := range a {
		out[i] = a[i] / b[i]
	}
	return out
}
