package optimus

import (
	"fmt"
	"math"
	"os"
	"testing"

	"optimus/internal/shared"
	"optimus/scheduler/place"
	"optimus/scheduler/policy"
	"optimus/scheduler/sim"
	"optimus/scheduler/trace"
)

func ringTruth(t testing.TB, batch int) *RingTruth {
	t.Helper()
	f, err := os.Open(shared.Dir(t, "traces", "gavel", "simulation_throughputs.json"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	speeds, err := trace.ReadGavelSpeeds("simulation_throughputs.json", f)
	if err != nil {
		t.Fatal(err)
	}
	truth, err := NewRingTruth(speeds, trace.GavelKind{Model: "ResNet-18", Batch: batch}, "p100")
	if err != nil {
		t.Fatal(err)
	}
	return truth
}

func TestRingTruth(t *testing.T) {
	truth := ringTruth(t, 128)
	for i, w := range truth.gpus {
		if f := truth.BatchesPerSecond(int(w)); math.Abs(f/truth.speed[i]-1) > 1e-12 {
			t.Errorf("%v GPUs: %v batches/s, measured %v", w, f, truth.speed[i])
		}
	}
	if f := truth.BatchesPerSecond(6); f <= truth.BatchesPerSecond(4) || f >= truth.BatchesPerSecond(8) {
		t.Errorf("6 GPUs: %v batches/s is not between 4 and 8", f)
	}
	if e := truth.BatchesPerSecond(8) / truth.BatchesPerSecond(4) / 2; math.Abs(e-.937) > .002 {
		t.Errorf("efficiency from 4 to 8 GPUs is %.3f, want 0.937, near the paper's 0.945", e)
	}
	if _, err := NewRingTruth(nil, trace.GavelKind{Model: "ResNet-18", Batch: 128}, "p100"); err == nil {
		t.Error("no speeds were taken for a truth")
	}
}

// TestRingStrategies: where GPUs scale badly, doubling halves what a fixed eight takes under contention (§4). The jobs'
// speeds are measured, the scheduler sees a fit.
func TestRingStrategies(t *testing.T) {
	var nodes []place.Node
	for i := range 8 {
		nodes = append(nodes, place.Node{ID: fmt.Sprint(i), Capacity: place.Vector{8}})
	}
	truth := ringTruth(t, 16)
	mean := func(name string, interval float64, known bool) float64 {
		p, err := policy.ByName(name)
		if err != nil {
			t.Fatal(err)
		}
		r, err := sim.Run(sim.Config{Policy: p, Nodes: nodes, Interval: interval, Restart: 10}, truth.Ring(206, trace.Poisson(1, 250), known, 1))
		if err != nil {
			t.Fatal(err)
		}
		for _, j := range r.Jobs {
			if j.Finish < 0 {
				t.Errorf("%s: %s did not end: %s", name, j.Name, j.Impossible)
			}
		}
		return r.MeanJCT / 3600
	}
	doubling, eight, explore := mean("ring", 600, true), mean("ring-eight", 600, true), mean("ring-explore", 150, false)
	t.Logf("Precompute %.2f h, Exploratory %.2f h, Eight %.2f h", doubling, explore, eight)
	if eight < 2*doubling || explore < doubling || explore > eight {
		t.Errorf("Precompute %.2f h, Exploratory %.2f h, Eight %.2f h", doubling, explore, eight)
	}
}
