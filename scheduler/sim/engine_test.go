package sim

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"optimus/scheduler/place"
	"optimus/scheduler/policy"
)

func TestRounds(t *testing.T) {
	// The second needs what the first holds, to the end of the interval in which that ends.
	jobs := []Job{job("a", 0, 100, 4), job("b", 70, 10, 4)}
	for _, c := range []struct {
		name           string
		reactive       bool
		interval       float64
		starts, finish [2]float64
		rounds         int
	}{
		{"at multiples", false, 60, [2]float64{60, 180}, [2]float64{160, 190}, 4}, // 60, 120, 180
		{"default interval", false, 0, [2]float64{60, 180}, [2]float64{160, 190}, 4},
		{"short interval", false, 7, [2]float64{7, 112}, [2]float64{107, 122}, 17},
		{"also at events", true, 60, [2]float64{0, 100}, [2]float64{100, 110}, 5}, // 0, 60, 70, 100 and the end
	} {
		t.Run(c.name, func(t *testing.T) {
			r := run(t, Config{Policy: gang, Nodes: nodes(1), Interval: c.interval, Reactive: c.reactive}, jobs...)
			for i, j := range r.Jobs {
				near(t, j.Name+" start", j.Start, c.starts[i])
				near(t, j.Name+" finish", j.Finish, c.finish[i])
				near(t, j.Name+" jct", j.JCT, c.finish[i]-jobs[i].Submit)
				near(t, j.Name+" service", j.Service, []float64{400, 40}[i])
			}
			if r.Rounds > c.rounds {
				t.Errorf("%d rounds, want at most %d", r.Rounds, c.rounds)
			}
			near(t, "makespan", r.Makespan, c.finish[1])
		})
	}
}

func TestNothingToDecide(t *testing.T) {
	late := 1e9 + 1
	for _, reactive := range []bool{false, true} {
		r := run(t, Config{Policy: gang, Nodes: nodes(1), Reactive: reactive}, job("a", 0, 1, 1), job("b", late, 1, 1))
		if r.Rounds > 4 {
			t.Errorf("%d rounds in a gap without jobs", r.Rounds)
		}
		if want := math.Ceil(late/60) * 60; !reactive && r.Jobs[1].Start != want {
			t.Errorf("start at %v s, want %v", r.Jobs[1].Start, want)
		}
	}
	if r := run(t, Config{Policy: gang, Nodes: nodes(1)}); r.Rounds != 0 || r.MeanJCT != 0 {
		t.Errorf("no jobs: %+v", r)
	}
}

// Jobs of one time are served in the workload's order, whatever their names.
func TestTies(t *testing.T) {
	r := run(t, Config{Policy: gang, Nodes: nodes(1)}, job("z", 60, 10, 4), job("m", 60, 10, 4), job("a", 60, 10, 4), job("b", 0, 10, 4))
	var starts []float64
	for _, j := range r.Jobs {
		starts = append(starts, j.Start)
	}
	if diff := cmp.Diff([]float64{120, 180, 240, 60}, starts); diff != "" {
		t.Error(diff)
	}
}

// A change costs its time, in which GPUs are charged, and another change begins it anew.
func TestRestart(t *testing.T) {
	round := 0
	moving := policy.Policy{Name: "moving", Planner: plan(func(r *policy.Round) []policy.Plan {
		round++
		node := min(round, 4) - 1 // moves at 60, 120, 180 and 240 s
		return []policy.Plan{{Placement: place.Placement{{Node: node, Tasks: place.Counts{0, 2}}}, Reason: "moves"}}
	})}
	r := run(t, Config{Policy: moving, Nodes: nodes(4), Restart: 90}, job("a", 0, 45, 2))
	near(t, "finish", r.Jobs[0].Finish, 240+90+45)
	near(t, "service", r.Jobs[0].Service, 2*(3*60+90+45))
	if r.Jobs[0].Restarts != 3 || len(r.Timeline) != 4 {
		t.Errorf("%d restarts, %d spans; want 3 and 4", r.Jobs[0].Restarts, len(r.Timeline))
	}
	want := Span{Job: "a", Start: 240, End: 375, Tasks: place.Counts{0, 2}, Nodes: []NodeTasks{{"n3", place.Counts{0, 2}}}, Reason: "moves"}
	if diff := cmp.Diff(want, r.Timeline[3]); diff != "" {
		t.Error(diff)
	}
}

// Taking everything away is no restart, coming back is.
func TestPause(t *testing.T) {
	round := 0
	pausing := policy.Policy{Name: "pausing", Planner: plan(func(r *policy.Round) []policy.Plan {
		if round++; round == 2 {
			return []policy.Plan{{Reason: "pause"}}
		}
		return []policy.Plan{{Placement: place.Placement{{Node: 0, Tasks: place.Counts{0, 1}}}, Reason: "run"}}
	})}
	r := run(t, Config{Policy: pausing, Nodes: nodes(1), Restart: 30}, job("a", 0, 50, 1))
	near(t, "finish", r.Jobs[0].Finish, 180+30+20)
	near(t, "service", r.Jobs[0].Service, 60+50)
	if r.Jobs[0].Restarts != 1 {
		t.Errorf("%d restarts, want 1", r.Jobs[0].Restarts)
	}
}

func TestImpossible(t *testing.T) {
	known := Job{Name: "known", Impossible: "was never measured"}
	r := run(t, Config{Policy: gang, Nodes: nodes(2)}, job("large", 0, 10, 9), known, job("small", 0, 10, 8))
	if j := r.Jobs[0]; j.JCT != -1 || j.Finish != -1 || !strings.Contains(j.Impossible, "more than the whole cluster") {
		t.Errorf("%+v", j)
	}
	if r.Jobs[1].Impossible != known.Impossible {
		t.Errorf("%+v", r.Jobs[1])
	}
	if r.Jobs[2].JCT != 70 || r.MeanJCT != 70 || r.P99JCT != 70 {
		t.Errorf("%+v", r)
	}
}

func TestStalled(t *testing.T) {
	stuck := job("stuck", 0, 10, 1)
	stuck.Process.(*steady).stuck = true
	never := policy.Policy{Name: "never", Planner: plan(func(r *policy.Round) []policy.Plan {
		return make([]policy.Plan, len(r.Jobs))
	})}
	for _, c := range []struct {
		cfg Config
		job Job
	}{
		{Config{Policy: gang, Nodes: nodes(1), Patience: 6000}, stuck},
		{Config{Policy: gang, Nodes: nodes(1), Patience: 6000, Reactive: true}, stuck},
		{Config{Policy: never, Nodes: nodes(1), Patience: 6000}, job("stuck", 0, 10, 1)},
		{Config{Policy: gang, Nodes: nodes(1), Patience: 6000, Failures: []Failure{{Node: "n0", At: 0, Back: 1e5}}}, job("stuck", 0, 10, 1)},
	} {
		if _, err := Run(c.cfg, []Job{c.job, job("done", 0, 1, 1)}); err == nil || !strings.Contains(err.Error(), "stuck (") {
			t.Errorf("%s: error %v does not name the job", c.cfg.Policy.Name, err)
		}
	}
}

func TestBadInput(t *testing.T) {
	good := Config{Policy: gang, Nodes: nodes(2)}
	one := []Job{job("a", 0, 1, 1)}
	with := func(change func(*Config)) Config {
		c := good
		change(&c)
		return c
	}
	for want, c := range map[string]struct {
		cfg  Config
		jobs []Job
	}{
		"no planner":           {with(func(c *Config) { c.Policy = policy.Policy{} }), one},
		"no nodes":             {with(func(c *Config) { c.Nodes = nil }), one},
		"resource 1":           {with(func(c *Config) { c.Charged = 1 }), one},
		"interval is -1":       {with(func(c *Config) { c.Interval = -1 }), one},
		"restart cost is NaN":  {with(func(c *Config) { c.Restart = math.NaN() }), one},
		"checkpoint interval":  {with(func(c *Config) { c.Checkpoint = math.Inf(1) }), one},
		"patience":             {with(func(c *Config) { c.Patience = -1 }), one},
		"interference is 1":    {with(func(c *Config) { c.Interference = 1 }), one},
		"error of the speed":   {with(func(c *Config) { c.SpeedError = -0.1 }), one},
		"error of the steps":   {with(func(c *Config) { c.RemainingError = math.NaN() }), one},
		`failure 0 (node "x"`:  {with(func(c *Config) { c.Failures = []Failure{{Node: "x", At: 1}} }), one},
		`failure 0 (node "n0"`: {with(func(c *Config) { c.Failures = []Failure{{Node: "n0", At: 2, Back: 1}} }), one},
		"0.5 times slower":     {with(func(c *Config) { c.Stragglers = []Straggler{{Node: "n0", At: 1, Until: 2, Factor: 0.5}} }), one},
		`called "a"`:           {good, []Job{one[0], one[0]}},
		`called ""`:            {good, []Job{job("", 0, 1, 1)}},
		"submitted at -1":      {good, []Job{job("a", -1, 1, 1)}},
		"submitted at NaN":     {good, []Job{job("a", math.NaN(), 1, 1)}},
		"no process":           {good, []Job{{Name: "a"}}},
	} {
		if _, err := Run(c.cfg, c.jobs); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
}

// A job that tells nonsense is reported, and the others run.
func TestUnfinished(t *testing.T) {
	bad := job("a", 0, 1, 1)
	bad.Process = unfinished{bad.Process.(*steady)}
	r := run(t, Config{Policy: gang, Nodes: nodes(1)}, bad, job("b", 0, 1, 1))
	if !strings.Contains(r.Jobs[0].Impossible, "steps left") || r.Jobs[1].JCT != 61 {
		t.Errorf("%+v", r.Jobs)
	}
}

func TestStopwatch(t *testing.T) {
	now := 0.0
	r := run(t, Config{Policy: gang, Nodes: nodes(1), Stopwatch: func() float64 { now += 0.5; return now }}, job("a", 0, 100, 1))
	if diff := cmp.Diff([]float64{0.5, 0.5}, r.Durations); diff != "" || r.Rounds != 2 {
		t.Errorf("%d rounds: %s", r.Rounds, diff)
	}
}

// unfinished is a job that tells no finite number of steps.
type unfinished struct{ *steady }

func (u unfinished) Show(j *policy.Job) { u.steady.Show(j); j.Remaining = math.Inf(1) }
func (u unfinished) Clone() Process     { return u }

// Whatever the workload and the disturbances, no node is overbooked, no job has two allocations at a time, the
// service is what the timeline shows, and everything is as before when it is run again.
func TestTimeline(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := Config{
			Policy: gang, Nodes: nodes(3), Interval: rapid.Float64Range(5, 100).Draw(t, "interval"),
			Reactive: rapid.Bool().Draw(t, "reactive"), Restart: rapid.Float64Range(0, 50).Draw(t, "restart"),
			Interference: rapid.Float64Range(0, 0.9).Draw(t, "interference"), Checkpoint: rapid.SampledFrom([]float64{0, 0.3, 10, 100}).Draw(t, "checkpoint"),
		}
		if rapid.Bool().Draw(t, "elastic") {
			cfg.Policy, _ = policy.ByName("srtf")
		}
		for i := range rapid.IntRange(0, 3).Draw(t, "failures") {
			at := rapid.Float64Range(0, 500).Draw(t, "at")
			cfg.Failures = append(cfg.Failures, Failure{Node: fmt.Sprintf("n%d", i), At: at, Back: at + rapid.Float64Range(1, 500).Draw(t, "down")})
			cfg.Stragglers = append(cfg.Stragglers, Straggler{Node: fmt.Sprintf("n%d", i), At: at / 2, Until: at/2 + 100, Factor: 2})
		}
		var jobs []Job
		for i := range rapid.IntRange(1, 8).Draw(t, "jobs") {
			jobs = append(jobs, job(fmt.Sprint("j", i), rapid.Float64Range(0, 500).Draw(t, "submit"),
				rapid.Float64Range(1, 300).Draw(t, "seconds"), rapid.IntRange(1, 12).Draw(t, "gpus")))
		}
		r, err := Run(cfg, jobs)
		if err != nil {
			t.Fatal(err)
		}
		checkTimeline(t, r)
		again, err := Run(cfg, jobs)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(r, again); diff != "" {
			t.Error(diff)
		}
	})
}

func checkTimeline(t *rapid.T, r *Result) {
	service, until := map[string]float64{}, map[string]float64{}
	for i, s := range r.Timeline {
		if s.End < s.Start || s.Start < until[s.Job] || s.Reason == "" {
			t.Errorf("span %+v begins before the one before it ends, at %v s, or lacks a reason", s, until[s.Job])
		}
		until[s.Job] = s.End
		service[s.Job] += (s.End - s.Start) * float64(s.Tasks[place.Worker])
		for _, n := range s.Nodes {
			used := 0
			for _, o := range r.Timeline[:i+1] {
				for _, m := range o.Nodes {
					if m.Node == n.Node && o.Start <= s.Start && (s.Start < o.End || o.Start == s.Start && o.Job == s.Job) {
						used += m.Tasks[place.Worker]
					}
				}
			}
			if used > 4 {
				t.Errorf("node %s has %d tasks at %v s", n.Node, used, s.Start)
			}
		}
	}
	for _, j := range r.Jobs {
		if j.JCT < 0 || j.Start < j.Submit || j.Finish < j.Start {
			t.Errorf("%+v", j)
		}
		if d := j.Service - service[j.Name]; math.Abs(d) > 1e-6*(1+j.Service) {
			t.Errorf("%s has service %v, its timeline %v", j.Name, j.Service, service[j.Name])
		}
	}
}
