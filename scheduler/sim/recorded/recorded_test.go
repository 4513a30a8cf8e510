package recorded_test

import (
	"strings"
	"testing"

	"optimus/scheduler/place"
	"optimus/scheduler/policy"
	"optimus/scheduler/sim"
	"optimus/scheduler/sim/recorded"
	"optimus/scheduler/trace"
)

// run simulates jobs on two nodes of 4 GPUs, first come first served.
func run(t *testing.T, jobs []sim.Job, slow float64) *sim.Result {
	t.Helper()
	p, err := policy.ByName("tiresias")
	if err != nil {
		t.Fatal(err)
	}
	cfg := sim.Config{Policy: p, Nodes: []place.Node{{ID: "a", Capacity: place.Vector{4}}, {ID: "b", Capacity: place.Vector{4}}}}
	if slow > 1 {
		cfg.Stragglers = []sim.Straggler{{Node: "a", At: 0, Until: 1e6, Factor: slow}}
	}
	r, err := sim.Run(cfg, jobs)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Jobs take the GPUs and the time that were recorded, begin at a round, and wait for
// each other.
func TestPhilly(t *testing.T) {
	jobs := recorded.Philly([]trace.PhillyJob{{Submit: 0, Duration: 100, GPUs: 6}, {Submit: 10, Duration: 50, GPUs: 4}, {Submit: 20, Duration: 0, GPUs: 1}, {Submit: 30, Duration: 9, GPUs: 9}})
	r := run(t, jobs, 1)
	want := []struct{ start, finish float64 }{{60, 160}, {180, 230}, {60, 60}, {-1, -1}}
	for i, j := range r.Jobs {
		if j.Start != want[i].start || j.Finish != want[i].finish {
			t.Errorf("%s from %v to %v, want %v", j.Name, j.Start, j.Finish, want[i])
		}
	}
	if r.Jobs[0].Service != 600 || !strings.Contains(r.Jobs[3].Impossible, "9 workers, more than the whole cluster holds") {
		t.Errorf("%+v", r.Jobs)
	}
	again := run(t, jobs, 2)
	if f := again.Jobs[0].Finish; f != 260 {
		t.Errorf("with a node that is twice as slow the first job ends at %v s, want 260", f)
	}
}

func TestGavel(t *testing.T) {
	a, b := trace.GavelKind{Model: "A", Batch: 1}, trace.GavelKind{Model: "B", Batch: 2}
	speeds := []trace.GavelSpeed{
		{GPU: "v100", Kind: a, GPUs: 2, Speed: 4}, {GPU: "v100", Kind: b, GPUs: 1, Speed: 0}, {GPU: "k80", Kind: b, GPUs: 1, Speed: 3},
	}
	jobs, err := recorded.Gavel([]trace.GavelJob{{Kind: a, Steps: 400, GPUs: 2}, {Kind: b, Steps: 1, GPUs: 1}, {Kind: a, Steps: 1, GPUs: 8}}, speeds, "v100")
	if err != nil {
		t.Fatal(err)
	}
	r := run(t, jobs, 1)
	if r.Jobs[0].Finish != 160 {
		t.Errorf("400 steps at 4 steps/s from second 60 end at %v", r.Jobs[0].Finish)
	}
	for i, want := range map[int]string{1: "does not fit into the memory", 2: "was not measured"} {
		if !strings.Contains(r.Jobs[i].Impossible, want) {
			t.Errorf("%+v, want %q", r.Jobs[i], want)
		}
	}
	if _, err := recorded.Gavel(nil, speeds, "tpu"); err == nil || !strings.Contains(err.Error(), `"tpu"`) {
		t.Errorf("an unknown type: %v", err)
	}
}
