package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"runtime"
	"time"

	"optimus/benchmarks/step"
	"optimus/scheduler/place"
	"optimus/scheduler/policy"
)

// decisions are the times of one round of the scheduler, allocation and placement
// with all estimates given.
type decisions struct {
	Optimus []round `json:"optimus"`
	// Growth is the exponent g of the power (n log n)ᵍ that fits the times of Optimus
	// best, with n the number of jobs, nodes and tasks placed: up to 1, cost grows no
	// faster.
	Growth float64 `json:"growth"`
	Pollux []round `json:"pollux"`
}

// round is one size of cluster.
type round struct {
	Jobs    int     `json:"jobs"`
	Nodes   int     `json:"nodes"`
	Tasks   float64 `json:"tasks_per_job"` // in the result
	Seconds float64 `json:"s"`             // CPU time of one core
	Paper   float64 `json:"paper_s,omitempty"`
	Ratio   float64 `json:"ratio,omitempty"`
	PerN    float64 `json:"ns_per_n_log_n"`
}

// fig12 are the seconds of the Optimus paper's Fig 12, on one core of a Xeon E5-1620 v4.
var fig12 = struct {
	jobs, nodes []int
	seconds     [][]float64 // by jobs, then nodes
}{
	jobs:  []int{1000, 2000, 4000, 8000},
	nodes: []int{1000, 2000, 4000, 8000, 16000, 32000, 64000},
	seconds: [][]float64{
		{0.91, 1.00, 1.29, 1.68, 2.42, 4.12, 7.18},
		{0.92, 1.68, 2.00, 2.20, 3.11, 4.72, 7.97},
		{0.95, 1.62, 2.71, 3.59, 4.20, 5.89, 9.14},
		{0.94, 1.76, 3.14, 5.68, 6.75, 8.46, 11.82},
	},
}

const fig12Peer = "Optimus paper, Fig 12, a core of a Xeon E5-1620 v4"

func measureScheduler(ctx context.Context, o options, rep *report) error {
	p, err := policy.ByName("optimus")
	if err != nil {
		return err
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // the garbage collector's work counts, and on the same core
	d := &decisions{}
	for i, jobs := range fig12.jobs {
		fmt.Fprintf(o.progress, "measuring the scheduler, %d jobs\n", jobs)
		for k, nodes := range fig12.nodes {
			r, err := measureRound(ctx, p, fig12View(jobs, nodes), o.rounds)
			if err != nil {
				return err
			}
			r.Paper = fig12.seconds[i][k]
			r.Ratio = r.Paper / r.Seconds
			d.Optimus = append(d.Optimus, r)
		}
	}
	d.Growth = growth(d.Optimus)
	if d.Pollux, err = measurePollux(ctx, o); err != nil {
		return err
	}
	rep.Scheduler = d
	return nil
}

// measureRound returns the median CPU time of a round. Each begins with nothing
// placed, which is the most work.
func measureRound(ctx context.Context, p policy.Policy, v policy.View, rounds int) (round, error) {
	out := round{Jobs: len(v.Jobs), Nodes: len(v.Nodes)}
	var times []float64
	for range rounds {
		if err := ctx.Err(); err != nil {
			return out, err
		}
		_, took, tasks, err := timed(p, policy.State{}, v)
		if err != nil {
			return out, err
		}
		times, out.Tasks = append(times, took), float64(tasks)/float64(out.Jobs)
	}
	out.settle(times)
	return out, nil
}

// settle takes the median of the times of a round's turns.
func (r *round) settle(times []float64) {
	r.Seconds = median(times)
	r.PerN = r.Seconds * 1e9 / r.nLogN()
}

// timed decides one round, and tells its CPU time in seconds and the tasks in its result.
func timed(p policy.Policy, st policy.State, v policy.View) (next policy.State, took float64, tasks int, err error) {
	begin, err := step.CPUTime()
	if err != nil {
		return st, 0, 0, err
	}
	next, decided, err := policy.Step(p, st, v)
	if err != nil {
		return st, 0, 0, err
	}
	end, err := step.CPUTime()
	for _, d := range decided {
		tasks += d.Tasks.Total()
	}
	return next, max(end-begin, time.Microsecond).Seconds(), tasks, err // the clock may be coarse
}

func (r round) nLogN() float64 {
	n := float64(r.Jobs)*(1+r.Tasks) + float64(r.Nodes)
	return n * math.Log2(n)
}

// growth is the slope of log seconds over log (n log n).
func growth(rounds []round) float64 {
	var n, sx, sy, sxx, sxy float64
	for _, r := range rounds {
		x, y := math.Log(r.nLogN()), math.Log(r.Seconds)
		n, sx, sy, sxx, sxy = n+1, sx+x, sy+y, sxx+x*x, sxy+x*y
	}
	return (n*sxy - sx*sy) / (n*sxx - sx*sx)
}

// fig12View is the set-up of Fig 12: jobs of the two kinds of Table 2 (with M = 40)
// on equal nodes of 16 cores and 80 GB; a task takes 2 cores and 10 GB.
func fig12View(jobs, nodes int) policy.View {
	rng := rand.New(rand.NewPCG(12, uint64(jobs)))
	v := policy.View{Nodes: make([]place.Node, nodes), Jobs: make([]policy.Job, jobs)}
	for i := range v.Nodes {
		v.Nodes[i] = place.Node{ID: fmt.Sprintf("node-%05d", i), Capacity: place.Vector{16, 80}}
	}
	for i := range v.Jobs {
		speed := policy.SpeedFunc(func(p, w int) float64 {
			return 1 / (1.02*40/float64(w) + 2.78 + 4.92*float64(w)/float64(p) + 0.02*float64(p))
		})
		if rng.IntN(2) == 0 {
			speed = func(p, w int) float64 { return float64(w) / (2.83 + 3.92*float64(w)/float64(p) + 0.11*float64(p)) }
		}
		v.Jobs[i] = policy.Job{ID: fmt.Sprintf("job-%05d", i), Submitted: float64(i), Demand: [2]place.Vector{{2, 10}, {2, 10}},
			Remaining: 1000 * (1 + 9*rng.Float64()), Speed: speed}
	}
	return v
}

func (d *decisions) write(w io.Writer) {
	var rows [][]string
	for _, r := range d.Optimus {
		rows = append(rows, []string{fmt.Sprint(r.Jobs), fmt.Sprint(r.Nodes), number(r.Tasks, 1), number(r.Paper, 2), number(r.Seconds, 3), number(r.Ratio, 1), number(r.PerN, 1)})
	}
	table(w, "A round of the policy optimus, CPU time, s, against "+fig12Peer,
		[]string{"jobs", "nodes", "tasks/job", "paper", "ours", "ratio", "ns/(n log n)"}, rows)
	fmt.Fprintf(w, "Time grows as (n log n)^%.2f, n being jobs, nodes and tasks.\n", d.Growth)
	rows = nil
	for _, r := range d.Pollux {
		rows = append(rows, []string{fmt.Sprint(r.Jobs), fmt.Sprint(r.Nodes), number(r.Tasks, 1), number(r.Paper, 2), number(r.Seconds, 3), number(r.Ratio, 1)})
	}
	table(w, "A round of the policy pollux on nodes of 4 GPUs, CPU time, s, against "+polluxPeer,
		[]string{"jobs", "nodes", "GPUs/job", "paper", "ours", "ratio"}, rows)
}
