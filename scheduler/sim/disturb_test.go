package sim

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"optimus/scheduler/place"
	"optimus/scheduler/policy"
)

// Two jobs on several nodes slow each other down while they share one.
func TestInterference(t *testing.T) {
	r := run(t, Config{Policy: gang, Nodes: nodes(3), Interference: 0.5, Reactive: true},
		job("a", 0, 100, 6), job("b", 0, 100, 6))
	// a takes n0 and half of n1, b n2 and the rest of n1; alone on its node nobody is slowed.
	near(t, "a", r.Jobs[0].Finish, 200)
	near(t, "b", r.Jobs[1].Finish, 200)
	r = run(t, Config{Policy: gang, Nodes: nodes(3), Interference: 0.5, Reactive: true},
		job("a", 0, 100, 6), job("b", 0, 50, 6))
	near(t, "b", r.Jobs[1].Finish, 100)
	near(t, "a", r.Jobs[0].Finish, 150) // alone after 100 s, with 50 s of work left
	r = run(t, Config{Policy: gang, Nodes: nodes(3), Interference: 0.5, Reactive: true},
		job("a", 0, 100, 6), job("b", 0, 100, 4), job("c", 0, 100, 2))
	near(t, "jobs of one node", r.Makespan, 100)
}

func TestFailures(t *testing.T) {
	for _, c := range []struct {
		name       string
		nodes      int
		checkpoint float64
		failures   []Failure
		finish     float64
		service    float64
	}{
		// Starts at 60 s. Fails at 160 s with 70 s done, waits for its node to the round at 240 s or before.
		{"no checkpoint", 1, 0, []Failure{{"n0", 160, 200}}, 240 + 30 + 200, 100 + 230},
		{"checkpoints", 1, 25, []Failure{{"n0", 160, 200}}, 240 + 30 + 150, 100 + 180}, // 50 s of them saved
		{"back before anybody looks", 1, 25, []Failure{{"n0", 160, 170}}, 180 + 30 + 150, 100 + 180},
		{"another node's", 2, 25, []Failure{{"n1", 160, 200}}, 60 + 30 + 200, 230},
		{"twice", 1, 25, []Failure{{"n0", 160, 170}, {"n0", 250, 260}}, 300 + 30 + 125, 100 + 70 + 155},
		{"moves to another node", 2, 25, []Failure{{"n0", 160, 0}}, 180 + 30 + 150, 100 + 180},
		{"overlapping", 1, 0, []Failure{{"n0", 160, 290}, {"n0", 170, 200}}, 300 + 30 + 200, 100 + 230},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := Config{Policy: gang, Nodes: nodes(c.nodes), Restart: 30, Checkpoint: c.checkpoint, Failures: c.failures}
			r := run(t, cfg, job("a", 0, 200, 4))
			near(t, "finish", r.Jobs[0].Finish, c.finish)
			near(t, "service", r.Jobs[0].Service, 4*c.service)
		})
	}
}

// A job for which the cluster has become too small waits if nodes come back, and is given up if they do not.
func TestFailureMakesImpossible(t *testing.T) {
	cfg := Config{Policy: gang, Nodes: nodes(2), Failures: []Failure{{"n0", 100, 1000}}}
	if r := run(t, cfg, job("a", 0, 100, 8)); r.Jobs[0].Finish != 1120 {
		t.Errorf("%+v", r.Jobs[0])
	}
	cfg.Failures[0].Back = 0
	if r := run(t, cfg, job("a", 0, 100, 8)); !strings.Contains(r.Jobs[0].Impossible, "whole cluster") || r.Jobs[0].Service != 8*40 {
		t.Errorf("%+v", r.Jobs[0])
	}
}

func TestStragglers(t *testing.T) {
	cfg := Config{Policy: gang, Nodes: nodes(3), Stragglers: []Straggler{{"n1", 100, 200, 4}, {"n1", 150, 160, 2}, {"n2", 0, 1e6, 3}}}
	r := run(t, cfg, job("a", 0, 200, 8), job("b", 0, 100, 4))
	near(t, "a, on n0 and n1", r.Jobs[0].Finish, 60+200+75) // at a quarter of its speed for 100 s
	near(t, "b, on n2", r.Jobs[1].Finish, 60+300)
}

// Estimates are off by the error, less as the job gets on, in a direction that the seed fixes.
func TestErrors(t *testing.T) {
	type seen struct{ remaining, speed float64 }
	observe := func(seed uint64) (out []seen) {
		watch := policy.Policy{Name: "watch", Planner: plan(func(r *policy.Round) []policy.Plan {
			j := &r.Jobs[0]
			out = append(out, seen{j.Remaining / (100 * (1 - j.Progress)), j.Speed.StepsPerSecond(0, 3) / 3})
			return []policy.Plan{{Placement: place.Placement{{Node: 0, Tasks: place.Counts{0, 1}}}, Reason: "go"}}
		})}
		run(t, Config{Policy: watch, Nodes: nodes(1), Interval: 50, SpeedError: 0.2, RemainingError: 0.4, Seed: seed}, job("a", 0, 100, 1))
		return out
	}
	signs := map[seen]bool{}
	for seed := range uint64(20) {
		s := observe(seed)
		sr, sv := sign(seed, 0, place.Counts{}), sign(seed, 0, place.Counts{0, 3})
		for i, left := range []float64{1, 0.5} {
			near(t, "remaining", s[i].remaining, 1+sr*0.4*left)
			near(t, "speed", s[i].speed, 1+sv*0.2*left)
		}
		signs[seen{sr, sv}] = true
	}
	if len(signs) != 4 {
		t.Errorf("of the four combinations of signs only %v in 20 seeds", signs)
	}
}

// Spells alternate, last as long as they should in the mean, and are the same for the same seed.
func TestRandomDisturbances(t *testing.T) {
	all := nodes(4)
	const until = 1e6
	fails := RandomFailures(all, 900, 100, until, 7)
	down, last := 0.0, map[string]float64{}
	for _, f := range fails {
		if f.At <= last[f.Node] || f.Back <= f.At || f.At >= until {
			t.Errorf("%+v after %v", f, last[f.Node])
		}
		last[f.Node] = f.Back
		down += f.Back - f.At
	}
	if part := down / (4 * until); part < 0.09 || part > 0.11 || len(last) != 4 {
		t.Errorf("%v of the time down, on %d nodes; want a tenth, on 4", part, len(last))
	}
	if diff := cmp.Diff(fails, RandomFailures(all, 900, 100, until, 7)); diff != "" {
		t.Error(diff)
	}
	if cmp.Equal(fails, RandomFailures(all, 900, 100, until, 8)) {
		t.Error("the seed changes nothing")
	}
	slow := RandomStragglers(all, 900, 100, 5000, 3, 7)
	r := run(t, Config{Policy: gang, Nodes: all, Failures: RandomFailures(all, 500, 50, 5000, 7), Stragglers: slow, Checkpoint: 60, Restart: 10},
		job("a", 0, 1000, 8), job("b", 0, 1000, 8))
	if len(slow) == 0 || r.Jobs[0].Restarts == 0 || r.Makespan < 1060 {
		t.Errorf("%+v with %d stragglers", r.Jobs, len(slow))
	}
}
