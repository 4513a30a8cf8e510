package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"optimus/internal/failure"
	"optimus/scheduler/policy"
)

const planClusterOp = "plan-cluster"

// planClusterOptions are the flags of plan-cluster.
type planClusterOptions struct {
	scenarioOptions
	policy   string
	min, max int
	target   clusterTarget
}

// clusterTarget is what a cluster has to reach; 0 is no demand.
type clusterTarget struct{ mean, p99, makespan time.Duration }

func (t clusterTarget) none() bool { return t == clusterTarget{} }

// String returns for example "a mean JCT of 1h0m0s and a makespan of 10h0m0s".
func (t clusterTarget) String() string {
	var parts []string
	for _, d := range []struct {
		what string
		most time.Duration
	}{{"a mean JCT", t.mean}, {"a 99th percentile of the JCT", t.p99}, {"a makespan", t.makespan}} {
		if d.most > 0 {
			parts = append(parts, fmt.Sprintf("%s of %v", d.what, d.most))
		}
	}
	return strings.Join(parts, " and ")
}

func planClusterCommand(a *app) *cobra.Command {
	o := planClusterOptions{}
	c := &cobra.Command{
		Use:   planClusterOp,
		Short: "Find how many nodes a workload of jobs needs",
		Long: `Find how many nodes a workload of jobs needs, by simulating it on clusters of
different sizes (see optimus simulate).

With --mean-jct, --p99-jct or --makespan it looks for the smallest cluster that reaches
them: it doubles the nodes until they do, then bisects. Without, it shows what each
doubling gives.`,
		Example: "  optimus plan-cluster --workload workloads/workload-6.csv --policy tiresias --mean-jct 2h\n  optimus plan-cluster --generate poisson --jobs 60 --max-nodes 32",
		RunE: func(c *cobra.Command, _ []string) error {
			if err := o.check(c); err != nil {
				return err
			}
			p, err := choosePolicies(c, []string{o.policy})
			if err != nil {
				return err
			}
			if len(p) > 1 {
				return usageError(c, errors.New("--policy is all"), "give one policy")
			}
			return a.planCluster(c.Context(), o, p[0])
		},
	}
	f := c.Flags()
	o.bind(f)
	f.StringVar(&o.policy, "policy", "optimus", "policy that schedules the jobs")
	f.IntVar(&o.min, "min-nodes", 1, "smallest cluster to try")
	f.IntVar(&o.max, "max-nodes", 64, "largest cluster to try")
	f.DurationVar(&o.target.mean, "mean-jct", 0, "mean time from a job's submission to its end to be reached, such as 90m")
	f.DurationVar(&o.target.p99, "p99-jct", 0, "time within which 99 of 100 jobs are to end")
	f.DurationVar(&o.target.makespan, "makespan", 0, "time from the start within which all jobs are to end")
	return c
}

func (o *planClusterOptions) check(c *cobra.Command) error {
	if o.min < 1 || o.max > mostNodes || o.min > o.max {
		return usageError(c, fmt.Errorf("--min-nodes is %d and --max-nodes %d", o.min, o.max), fmt.Sprintf("allowed: 1 <= MIN <= MAX <= %d", mostNodes))
	}
	for name, d := range map[string]time.Duration{"mean-jct": o.target.mean, "p99-jct": o.target.p99, "makespan": o.target.makespan} {
		if d < 0 {
			return usageError(c, fmt.Errorf("--%s is %v", name, d), "allowed: a positive duration such as 90m")
		}
	}
	return o.scenarioOptions.check(c)
}

// clusterPlan is the JSON form of the result.
type clusterPlan struct {
	Workload string        `json:"workload"`
	Policy   string        `json:"policy"`
	Nodes    *int          `json:"nodes"` // the fewest that reach the target; null if none was asked for or none does
	Sizes    []clusterSize `json:"sizes"` // that were tried, by nodes
}

type clusterSize struct {
	Nodes       int     `json:"nodes"`
	MeanJCT     float64 `json:"mean_jct_s"`
	P99JCT      float64 `json:"p99_jct_s"`
	Makespan    float64 `json:"makespan_s"`
	Utilisation float64 `json:"utilisation"`
	Impossible  int     `json:"impossible"` // jobs that cannot run on so few
	Meets       *bool   `json:"meets,omitempty"`
}

// meets reports whether a size reaches the target; one on which some job cannot run
// does not.
func (t clusterTarget) meets(s clusterSize) bool {
	within := func(most time.Duration, seconds float64) bool { return most == 0 || seconds <= most.Seconds() }
	return s.Impossible == 0 && within(t.mean, s.MeanJCT) && within(t.p99, s.P99JCT) && within(t.makespan, s.Makespan)
}

func (a *app) planCluster(ctx context.Context, o planClusterOptions, p policy.Policy) error {
	w, err := o.readWorkload(planClusterOp)
	if err != nil {
		return err
	}
	plan := clusterPlan{Policy: p.Name, Workload: w.name}
	var largest simulated
	try := func(nodes int) (bool, error) {
		s, err := o.load(planClusterOp, w, nodes)
		if err != nil {
			return false, err
		}
		r, err := s.run(ctx, p, false)
		if err != nil {
			return false, failure.E(planClusterOp, fmt.Sprintf("%d nodes", nodes), "", err, "")
		}
		if nodes == o.max {
			largest = r
		}
		size := clusterSize{nodes, r.MeanJCT, r.P99JCT, r.Makespan, r.Utilisation, r.Impossible, nil}
		meets := o.target.meets(size)
		if !o.target.none() {
			size.Meets = &meets
		}
		plan.Sizes = append(plan.Sizes, size)
		return meets && !o.target.none(), nil
	}
	fewest, err := fewestNodes(o.min, o.max, try)
	if err != nil {
		return err
	}
	slices.SortFunc(plan.Sizes, func(a, b clusterSize) int { return cmp.Compare(a.Nodes, b.Nodes) })
	if fewest > 0 {
		plan.Nodes = &fewest
	}
	if err := a.print(plan, plan.table()); err != nil {
		return err
	}
	if fewest == 0 && !o.target.none() {
		return o.missed(largest)
	}
	return nil
}

// missed says why not even the largest cluster reaches the target.
func (o *planClusterOptions) missed(largest simulated) error {
	why := fmt.Sprintf("no cluster of up to %d nodes reaches %v", o.max, o.target)
	for _, j := range largest.Jobs {
		if j.Impossible != "" {
			err := fmt.Errorf("%s: on %d nodes %d of %d jobs is impossible: %s: %s", why, o.max, largest.Impossible, len(largest.Jobs), j.Name, j.Impossible)
			return failure.E(planClusterOp, "", failure.NotFound, err, "give more with --max-nodes, or leave such jobs out")
		}
	}
	return failure.E(planClusterOp, "", failure.NotFound, errors.New(why), "give more with --max-nodes, or ask for less")
}

// fewestNodes returns the smallest number of nodes from low to high that does, or 0: it
// doubles until one does, then bisects. More nodes need not be better at each step; what
// is found does, and one node less does not.
func fewestNodes(low, high int, does func(int) (bool, error)) (int, error) {
	below, size := low-1, low
	for {
		ok, err := does(size)
		if err != nil {
			return 0, err
		}
		if ok {
			break
		}
		if size == high {
			return 0, nil
		}
		below, size = size, min(2*size, high)
	}
	for size-below > 1 {
		middle := (below + size) / 2
		ok, err := does(middle)
		if err != nil {
			return 0, err
		}
		if ok {
			size = middle
		} else {
			below = middle
		}
	}
	return size, nil
}

func (p clusterPlan) table() table {
	t := table{columns: []string{"NODES", "MEAN JCT", "P99 JCT", "MAKESPAN", "USED", "IMPOSSIBLE", "REACHED"}}
	for _, s := range p.Sizes {
		reached := "-"
		switch {
		case p.Nodes != nil && *p.Nodes == s.Nodes:
			reached = "yes, the fewest"
		case s.Meets != nil && *s.Meets:
			reached = "yes"
		case s.Meets != nil:
			reached = "no"
		}
		t.rows = append(t.rows, []string{fmt.Sprint(s.Nodes), seconds(s.MeanJCT), seconds(s.P99JCT), seconds(s.Makespan), humanPercent(s.Utilisation), fmt.Sprint(s.Impossible), reached})
	}
	return t
}
