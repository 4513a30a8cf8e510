package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"optimus/internal/chrometrace"
	"optimus/scheduler/place"
	"optimus/scheduler/sim"
)

// Two jobs share a node for a while, and one of them moves.
func sharing() simulated {
	ps, worker := place.Counts{1, 0}, place.Counts{0, 1}
	return simulated{
		Policy: "p",
		demand: map[string][2]place.Vector{"a": {{2}, {3}}, "b": {{1}, {1}}},
		result: &sim.Result{
			Jobs: []sim.JobResult{{Name: "a", Submit: 0, Start: 10, Finish: 50, JCT: 50}, {Name: "b", Submit: 5, Start: 20, Finish: 40, JCT: 35}, {Name: "c", Finish: -1, JCT: -1, Start: -1}},
			Timeline: []sim.Span{
				{Job: "a", Start: 10, End: 30, Tasks: place.Counts{1, 1}, Nodes: []sim.NodeTasks{{Node: "n0", Tasks: ps}, {Node: "n1", Tasks: worker}}, Reason: "gain"},
				{Job: "b", Start: 20, End: 40, Tasks: worker, Nodes: []sim.NodeTasks{{Node: "n1", Tasks: worker}}},
				{Job: "a", Start: 30, End: 50, Tasks: worker, Nodes: []sim.NodeTasks{{Node: "n1", Tasks: worker}}},
			},
		},
	}
}

func TestTimeline(t *testing.T) {
	s := sharing()
	jobs := jobLines(s)
	if len(jobs.Threads) != 3 || len(jobs.Threads[0].Spans) != 2 || jobs.Threads[0].Spans[0].Name != "1 ps + 1 worker" ||
		jobs.Threads[0].Spans[0].Args["nodes"] != "n0: 1 ps + 0 workers, n1: 0 ps + 1 worker" || jobs.Threads[0].Spans[0].Args["reason"] != "gain" {
		t.Errorf("lines of the jobs %+v", jobs.Threads)
	}
	count := func(at, running, waiting float64) chrometrace.Sample {
		return chrometrace.Sample{At: at, Values: map[string]float64{"running": running, "waiting": waiting}}
	}
	want := []chrometrace.Sample{
		{At: 0, Values: map[string]float64{"waiting": 1}}, {At: 5, Values: map[string]float64{"waiting": 2}},
		count(10, 1, 1), count(20, 2, 0), count(30, 2, 0), count(40, 1, 0), count(50, 0, 0),
	}
	if diff := cmp.Diff(want, jobs.Counters[0].Samples); diff != "" {
		t.Error(diff)
	}
	nodes := nodeLines(s, []place.Node{{ID: "n0"}, {ID: "n1"}})
	var names []string
	for _, th := range nodes.Threads {
		names = append(names, th.Name)
	}
	if diff := cmp.Diff([]string{"n0", "n1", "n1"}, names); diff != "" {
		t.Error(diff)
	}
}

// What is in use adds up, and is nothing at the end.
func TestUse(t *testing.T) {
	w := &scenario{workload: &workload{}, config: sim.Config{Nodes: []place.Node{{ID: "n0", Capacity: place.Vector{8}}, {ID: "n1", Capacity: place.Vector{2}}}}}
	got := w.use(sharing())
	if diff := cmp.Diff([]float64{0, 10, 20, 30, 40, 50}, got.X); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]float64{0, .5, .6, .4, .3, 0}, got.Y); diff != "" {
		t.Error(diff)
	}
	d := distribution(sharing())
	if diff := cmp.Diff([]float64{35, 50}, d.X); diff != "" || d.Y[1] != 2./3 {
		t.Errorf("%v, %s", d.Y, diff)
	}
}
