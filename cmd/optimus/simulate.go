package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"optimus/internal/failure"
	"optimus/internal/suggest"
	"optimus/scheduler/place"
	"optimus/scheduler/policy"
	"optimus/scheduler/sim"
	"optimus/spec"
)

// simulateOptions are the flags of simulate.
type simulateOptions struct {
	scenarioOptions
	policies     []string
	nodes        int
	trace, plots string
	noTiming     bool
}

func simulateCommand(a *app) *cobra.Command {
	o := simulateOptions{}
	c := &cobra.Command{
		Use:   "simulate",
		Short: "Run a whole workload of jobs through scheduling policies, in no time",
		Long: `Run a whole workload of jobs through scheduling policies, in no time.

The policies are those that schedule real jobs. What the simulated jobs do comes from
measured tables: those of a workload's profiles, or with --generate those of the nine
jobs of the Optimus paper. The same arguments give the same result.`,
		Example: "  optimus simulate --workload workloads/workload-6.csv --policy pollux,tiresias,optimus+oracle\n  optimus simulate --generate poisson --jobs 60 --policy optimus,drf,tetris --plots figures",
		RunE: func(c *cobra.Command, _ []string) error {
			if err := o.check(c); err != nil {
				return err
			}
			policies, err := choosePolicies(c, o.policies)
			if err != nil {
				return err
			}
			return a.simulate(c.Context(), o, policies)
		},
	}
	f := c.Flags()
	o.bind(f)
	f.StringSliceVar(&o.policies, "policy", []string{"optimus"}, "policies, such as optimus,drf, or all")
	f.IntVar(&o.nodes, "nodes", 0, "nodes of the cluster (default: those that the workload was made for)")
	f.StringVar(&o.trace, "trace", "", "file to write the timeline of allocations to, for ui.perfetto.dev or chrome://tracing")
	f.StringVar(&o.plots, "plots", "", "folder to write charts to, as PNG and SVG")
	f.BoolVar(&o.noTiming, "no-timing", false, "leave out how long decisions and the simulation took, so that equal runs print equal bytes")
	return c
}

func (o *simulateOptions) check(c *cobra.Command) error {
	if c.Flags().Changed("nodes") && (o.nodes < 1 || o.nodes > mostNodes) {
		return usageError(c, fmt.Errorf("--nodes is %d", o.nodes), fmt.Sprintf("allowed: 1 to %d", mostNodes))
	}
	return o.scenarioOptions.check(c)
}

// allPolicies stands for every policy that can schedule some job of the workload.
const allPolicies = "all"

// choosePolicies returns the policies of the names.
func choosePolicies(c *cobra.Command, names []string) ([]policy.Policy, error) {
	if slices.Equal(names, []string{allPolicies}) {
		return policy.Policies(), nil
	}
	var known []string
	for _, p := range policy.Policies() {
		known = append(known, p.Name)
	}
	var out []policy.Policy
	for i, name := range names {
		p, err := policy.ByName(name)
		if err != nil {
			return nil, usageError(c, fmt.Errorf("unknown policy %q", name), suggest.Meant(name, append(known, allPolicies)))
		}
		if slices.Contains(names[:i], name) {
			return nil, usageError(c, fmt.Errorf("--policy names %q twice", name), "")
		}
		out = append(out, p)
	}
	if len(out) == 0 {
		return nil, usageError(c, errors.New("--policy is empty"), "")
	}
	return out, nil
}

// simulated is the JSON form of one policy's simulation.
type simulated struct {
	Policy      string         `json:"policy"`
	Workload    string         `json:"workload"`
	Nodes       int            `json:"nodes"`
	MeanJCT     float64        `json:"mean_jct_s"`
	P99JCT      float64        `json:"p99_jct_s"`
	Makespan    float64        `json:"makespan_s"`
	Utilisation float64        `json:"utilisation"`
	Impossible  int            `json:"impossible"`
	Jobs        []simulatedJob `json:"jobs"`
	Decisions   decisionTimes  `json:"decisions"`
	Wall        spec.Number    `json:"wall_s"`

	result *sim.Result
	demand map[string][2]place.Vector // of a job's tasks
}

type simulatedJob struct {
	Name       string      `json:"name"`
	Submit     float64     `json:"submit_s"`
	Start      spec.Number `json:"start_s"`
	Finish     spec.Number `json:"finish_s"`
	JCT        spec.Number `json:"jct_s"`
	Rescales   int         `json:"rescales"` // changes of its allocation after the first
	Impossible string      `json:"impossible,omitempty"`
}

// decisionTimes are those of the policy's rounds.
type decisionTimes struct {
	Count  int         `json:"count"`
	Median spec.Number `json:"median_ms"`
	P95    spec.Number `json:"p95_ms"`
}

func (a *app) simulate(ctx context.Context, o simulateOptions, policies []policy.Policy) error {
	w, err := o.readWorkload("simulate")
	if err != nil {
		return err
	}
	s, err := o.load("simulate", w, o.nodes)
	if err != nil {
		return err
	}
	var all []simulated
	var failed error
	for _, p := range policies {
		one, err := s.run(ctx, p, !o.noTiming)
		switch {
		case ctx.Err() != nil:
			return failure.E("simulate", "", "", context.Cause(ctx), "")
		case err != nil: // the others count
			failed = errors.Join(failed, err)
		case o.policies[0] == allPolicies && one.Impossible == len(one.Jobs): // not for such jobs
		default:
			all = append(all, one)
		}
	}
	if len(all) == 0 {
		return failure.E("simulate", "", "", cmp.Or(failed, errors.New("no policy can run any of the jobs")), "")
	}
	if o.trace != "" {
		if err := writeTimeline(o.trace, s, all); err != nil {
			return failure.E("simulate", o.trace, "", withoutPath(err), "choose a file that can be written")
		}
	}
	if o.plots != "" {
		if err := plotSimulations(o.plots, s, all); err != nil {
			return failure.E("simulate", o.plots, "", withoutPath(err), "choose a folder that can be written")
		}
	}
	if err := a.printSimulated(all); err != nil {
		return err
	}
	if failed != nil {
		return failure.E("simulate", "", "", failed, "")
	}
	return nil
}

// run simulates a scenario with one policy. An interrupt ends it at once; the simulation,
// which cannot be told to stop, then ends with the process.
func (s *scenario) run(ctx context.Context, p policy.Policy, timing bool) (simulated, error) {
	cfg := s.config
	cfg.Policy = p
	jobs, err := s.jobs(p.Name)
	if err != nil {
		return simulated{}, err
	}
	begin := time.Now()
	if timing {
		cfg.Stopwatch = func() float64 { return time.Since(begin).Seconds() }
	}
	type outcome struct {
		r   *sim.Result
		err error
	}
	done := make(chan outcome, 1)
	go func() {
		r, err := sim.Run(cfg, jobs)
		done <- outcome{r, err}
	}()
	select {
	case o := <-done:
		if o.err != nil {
			return simulated{}, &verbError{"simulate: ", o.err}
		}
		out := s.summary(p.Name, jobs, o.r)
		if timing {
			out.Wall = spec.Number(time.Since(begin).Seconds())
		}
		return out, nil
	case <-ctx.Done():
		return simulated{}, context.Cause(ctx)
	}
}

// verbError is an error of a package that begins with the name of the verb, which is said
// before it.
type verbError struct {
	verb string // as the error has it
	error
}

func (e *verbError) Error() string { return strings.TrimPrefix(e.error.Error(), e.verb) }

func (e *verbError) Unwrap() error { return e.error }

func (s *scenario) summary(name string, jobs []sim.Job, r *sim.Result) simulated {
	out := simulated{
		Policy: name, Workload: s.name, Nodes: len(s.config.Nodes), MeanJCT: r.MeanJCT, P99JCT: r.P99JCT, Makespan: r.Makespan,
		Jobs: make([]simulatedJob, len(r.Jobs)), Wall: unknownNumber, result: r, demand: map[string][2]place.Vector{},
		Decisions: decisionTimes{Count: r.Rounds, Median: unknownNumber, P95: unknownNumber},
	}
	if len(r.Durations) > 0 {
		out.Decisions.Median = spec.Number(1e3 * sim.Quantile(r.Durations, 0.5))
		out.Decisions.P95 = spec.Number(1e3 * sim.Quantile(r.Durations, 0.95))
	}
	used := 0.0
	for _, j := range jobs {
		if j.Process != nil {
			var shown policy.Job
			j.Process.Clone().Show(&shown)
			out.demand[j.Name] = shown.Demand
		}
	}
	for i, j := range r.Jobs {
		used += j.Service
		out.Jobs[i] = simulatedJob{Name: j.Name, Submit: j.Submit, Start: orUnknown(j.Start), Finish: orUnknown(j.Finish), JCT: orUnknown(j.JCT),
			Rescales: j.Restarts, Impossible: j.Impossible}
		if j.Impossible != "" {
			out.Impossible++
		}
	}
	if r.Makespan > 0 {
		out.Utilisation = used / (s.capacity() * r.Makespan)
	}
	return out
}

// unknownNumber is null in JSON.
var unknownNumber = spec.Number(math.NaN())

// orUnknown is a time, which is negative where there is none.
func orUnknown(t float64) spec.Number {
	if t < 0 {
		return unknownNumber
	}
	return spec.Number(t)
}

func (a *app) printSimulated(all []simulated) error {
	t := table{columns: []string{"POLICY", "NODES", "JOBS", "MEAN JCT", "P99 JCT", "MAKESPAN", "USED", "RESCALES", "IMPOSSIBLE", "+ROUNDS", "+MEDIAN MS", "+P95 MS", "+WALL"}}
	for _, s := range all {
		rescales := 0
		for _, j := range s.Jobs {
			rescales += j.Rescales
		}
		t.rows = append(t.rows, []string{s.Policy, fmt.Sprint(s.Nodes), fmt.Sprint(len(s.Jobs)), seconds(s.MeanJCT), seconds(s.P99JCT), seconds(s.Makespan),
			humanPercent(s.Utilisation), fmt.Sprint(rescales), fmt.Sprint(s.Impossible), fmt.Sprint(s.Decisions.Count),
			s.Decisions.Median.String(), s.Decisions.P95.String(), s.Wall.String()})
	}
	if !a.forPeople() {
		if len(all) == 1 {
			return a.print(all[0], t)
		}
		return a.print(all, t)
	}
	if err := t.write(a.stdout, a.format == asWide); err != nil {
		return err
	}
	for _, s := range all {
		for _, j := range s.Jobs {
			if j.Impossible == "" {
				continue
			}
			if _, err := fmt.Fprintf(a.stdout, "%s: %s is impossible: %s\n", s.Policy, j.Name, j.Impossible); err != nil {
				return err
			}
		}
	}
	return nil
}

// seconds writes a simulated time for people.
func seconds(s float64) string { return fmt.Sprintf("%.0f s", s) }
