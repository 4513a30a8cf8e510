package main

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"optimus/internal/failure"
	"optimus/scheduler/place"
	"optimus/scheduler/sim"
)

// mostNodes bounds the clusters that are simulated.
const mostNodes = 65536

// scenarioOptions are the flags that simulate and plan-cluster share: which jobs, on
// what, disturbed how.
type scenarioOptions struct {
	workload, profiles string
	generate, mode     string
	speeds, gpu        string
	jobs, gpus         int
	node               []int // cores and GB

	interval, restart, checkpoint time.Duration
	reactive                      bool
	seed                          uint64
	speedError, remainingError    float64
	interference                  float64
	fail, slow                    []string

	set *pflag.FlagSet // to tell which were given
}

func (o *scenarioOptions) bind(f *pflag.FlagSet) {
	o.set = f
	f.StringVar(&o.workload, "workload", "", "file of jobs to run")
	f.StringVar(&o.profiles, "profiles", "", "folder of the measurements of a workload's applications (default: the folder above the workload's)")
	f.StringVar(&o.generate, "generate", "", "instead of a file: the nine jobs of the Optimus paper, submitted uniform, poisson or google")
	f.IntVar(&o.jobs, "jobs", 0, "jobs to generate, or to take of a file from its beginning (default: 60, or all)")
	f.StringVar(&o.speeds, "speeds", "", "measured speeds: a table for generated jobs, a JSON file of throughputs for traces of Gavel")
	f.StringVar(&o.gpu, "gpu", "v100", "type of the GPUs, for traces of Gavel")
	f.IntSliceVar(&o.node, "node", []int{16, 80}, "cores and GB of a node, for generated jobs (default: the nodes of the paper's testbed)")
	f.StringVar(&o.mode, "mode", "mixed", "training of generated jobs: sync, async or mixed")
	f.IntVar(&o.gpus, "gpus-per-node", 4, "GPUs of a node, for workloads of a file")
	f.DurationVar(&o.interval, "interval", 0, "time between two rounds of scheduling (default: 1m for a file, 10m for generated jobs)")
	f.DurationVar(&o.restart, "restart-cost", 30*time.Second, "time that a job gets nothing done after a change of its allocation")
	f.BoolVar(&o.reactive, "reactive", false, "schedule also when a job comes or ends, and when a node fails or comes back")
	f.Uint64Var(&o.seed, "seed", 1, "seed of everything random")
	f.Float64Var(&o.speedError, "speed-error", 0, "relative error of the speeds that the policy is told, falling with a job's progress")
	f.Float64Var(&o.remainingError, "convergence-error", 0, "the same of the work that a job has left")
	f.Float64Var(&o.interference, "interference", 0, "part of its speed that a job on several nodes loses where another such job is")
	f.StringArrayVar(&o.fail, "fail", nil, "a node's number from 0, when it fails and when it comes back, such as 3:1h:2h or 3:1h; may be repeated")
	f.StringArrayVar(&o.slow, "slow", nil, "a node's number, from when to when it is slow and how many times slower, such as 3:1h:2h:1.5; may be repeated")
	f.DurationVar(&o.checkpoint, "checkpoint-every", 0, "running time between two checkpoints of a job, where nodes fail (default: only at changes of its allocation)")
}

func (o *scenarioOptions) check(c *cobra.Command) error {
	switch {
	case o.workload == "" && o.generate == "":
		return usageError(c, errors.New("missing --workload FILE"), "or --generate uniform, poisson or google")
	case o.workload != "" && o.generate != "":
		return usageError(c, errors.New("--workload and --generate are both given"), "give one of them")
	case c.Flags().Changed("jobs") && (o.jobs < 1 || o.jobs > 100000):
		return usageError(c, fmt.Errorf("--jobs is %d", o.jobs), "allowed: 1 to 100000")
	case o.gpus < 1 || o.gpus > 1024:
		return usageError(c, fmt.Errorf("--gpus-per-node is %d", o.gpus), "allowed: 1 to 1024")
	case len(o.node) != 2 || slices.Min(o.node) < 1 || slices.Max(o.node) > 1<<20:
		return usageError(c, fmt.Errorf("--node is %v", o.node), "allowed: CORES,GB such as 16,80")
	case o.generate != "" && o.speeds == "":
		return usageError(c, errors.New("missing --speeds FILE, which --generate needs"), "docs/formats/speed.md says what it holds")
	case o.set.Changed("interval") && o.interval <= 0:
		return usageError(c, fmt.Errorf("--interval is %v", o.interval), "allowed: a positive duration such as 90s")
	case o.restart < 0:
		return usageError(c, fmt.Errorf("--restart-cost is %v", o.restart), "allowed: 0 or a duration such as 30s")
	case o.checkpoint < 0:
		return usageError(c, fmt.Errorf("--checkpoint-every is %v", o.checkpoint), "allowed: 0 or a duration such as 10m")
	case o.mode != "sync" && o.mode != "async" && o.mode != "mixed":
		return usageError(c, fmt.Errorf("--mode is %q", o.mode), "allowed: sync, async, mixed")
	}
	for _, name := range []string{"mode", "node"} {
		if o.generate == "" && c.Flags().Changed(name) {
			return usageError(c, fmt.Errorf("--%s is for generated jobs", name), "give it with --generate, or leave it out")
		}
	}
	for _, name := range []string{"profiles", "gpus-per-node", "gpu"} {
		if o.generate != "" && c.Flags().Changed(name) {
			return usageError(c, fmt.Errorf("--%s is for workloads of a file", name), "give it with --workload, or leave it out")
		}
	}
	for name, e := range map[string]float64{"speed-error": o.speedError, "convergence-error": o.remainingError, "interference": o.interference} {
		if !(e >= 0 && e < 1) {
			return usageError(c, fmt.Errorf("--%s is %v", name, e), "allowed: at least 0 and below 1")
		}
	}
	return nil
}

// scenario is a workload on a cluster, with what disturbs it.
type scenario struct {
	*workload
	config sim.Config // but for the policy
}

// load returns a workload on so many nodes, or on those that it was made for if that is 0.
func (o *scenarioOptions) load(op string, w *workload, nodes int) (*scenario, error) {
	s := &scenario{workload: w, config: sim.Config{
		Nodes: o.cluster(w, nodes), Interval: w.interval, Restart: o.restart.Seconds(), Reactive: o.reactive, Charged: w.charged,
		Checkpoint: o.checkpoint.Seconds(), SpeedError: o.speedError, RemainingError: o.remainingError, Interference: o.interference, Seed: o.seed,
	}}
	c := &s.config
	if o.interval > 0 {
		c.Interval = o.interval.Seconds()
	}
	for _, text := range o.fail {
		f, err := parseFailure(text, c.Nodes)
		if err != nil {
			return nil, failure.E(op, "--fail "+text, failure.InvalidArgument, err, "write NODE:FROM or NODE:FROM:TO, such as 3:1h:2h")
		}
		c.Failures = append(c.Failures, f)
	}
	for _, text := range o.slow {
		slow, err := parseStraggler(text, c.Nodes)
		if err != nil {
			return nil, failure.E(op, "--slow "+text, failure.InvalidArgument, err, "write NODE:FROM:TO:TIMES, such as 3:1h:2h:1.5")
		}
		c.Stragglers = append(c.Stragglers, slow)
	}
	return s, nil
}

// shaped reports whether nodes of a certain shape were asked for.
func (o *scenarioOptions) shaped() bool {
	return o.set.Changed("node") || o.set.Changed("gpus-per-node")
}

// capacity is the cluster's amount of the charged resource.
func (s *scenario) capacity() float64 {
	sum := 0.0
	for _, n := range s.config.Nodes {
		sum += float64(n.Capacity[s.config.Charged])
	}
	return sum
}

// parseFailure reads NODE:FROM[:TO].
func parseFailure(text string, nodes []place.Node) (sim.Failure, error) {
	parts := strings.Split(text, ":")
	if len(parts) != 2 && len(parts) != 3 {
		return sim.Failure{}, fmt.Errorf("it has %d parts", len(parts))
	}
	node, err := nodeAt(parts[0], nodes)
	if err != nil {
		return sim.Failure{}, err
	}
	times, err := parseTimes(parts[1:])
	if err != nil {
		return sim.Failure{}, err
	}
	f := sim.Failure{Node: node, At: times[0]}
	if len(times) == 2 {
		f.Back = times[1]
	}
	return f, nil
}

// parseStraggler reads NODE:FROM:TO:TIMES.
func parseStraggler(text string, nodes []place.Node) (sim.Straggler, error) {
	parts := strings.Split(text, ":")
	if len(parts) != 4 {
		return sim.Straggler{}, fmt.Errorf("it has %d parts", len(parts))
	}
	node, err := nodeAt(parts[0], nodes)
	if err != nil {
		return sim.Straggler{}, err
	}
	times, err := parseTimes(parts[1:3])
	if err != nil {
		return sim.Straggler{}, err
	}
	factor, err := strconv.ParseFloat(parts[3], 64)
	if err != nil || !(factor >= 1) || math.IsInf(factor, 1) {
		return sim.Straggler{}, fmt.Errorf("%q is not a number from 1", parts[3])
	}
	return sim.Straggler{Node: node, At: times[0], Until: times[1], Factor: factor}, nil
}

// parseTimes reads durations that increase.
func parseTimes(texts []string) ([]float64, error) {
	var out []float64
	for _, text := range texts {
		d, err := time.ParseDuration(text)
		if err != nil || d < 0 {
			return nil, fmt.Errorf("%q is not a duration such as 90s or 2h", text)
		}
		if n := len(out); n > 0 && d.Seconds() <= out[n-1] {
			return nil, fmt.Errorf("%s is not after %s", text, texts[n-1])
		}
		out = append(out, d.Seconds())
	}
	return out, nil
}

func nodeAt(text string, nodes []place.Node) (string, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n >= len(nodes) {
		return "", fmt.Errorf("there is no node %q; nodes are 0 to %d", text, len(nodes)-1)
	}
	return nodes[n].ID, nil
}
