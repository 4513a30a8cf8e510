package main

import (
	"math"
	"testing"
	"time"

	"optimus/scheduler/estimate"
	"optimus/telemetry"
)

// stepsOf makes the steps of a generation, gap apart, of which every tenth comes late as
// after a checkpoint.
func stepsOf(generation, servers, workers, n int, gap time.Duration) []telemetry.Step {
	at := time.Date(2026, 1, generation, 0, 0, 0, 0, time.UTC)
	steps := make([]telemetry.Step, n)
	for i := range steps {
		if at = at.Add(gap); i%10 == 9 {
			at = at.Add(time.Minute)
		}
		steps[i] = telemetry.Step{Generation: generation, Time: at, Servers: servers, Workers: workers, M: 40}
	}
	return steps
}

// A generation's speed is that of its usual steps; one that was too short, or has no
// times, tells none.
func TestMeasuredSpeeds(t *testing.T) {
	steps := stepsOf(2, 3, 4, 50, 250*time.Millisecond)
	steps = append(steps, stepsOf(1, 1, 2, 50, 500*time.Millisecond)...)
	steps = append(steps, stepsOf(3, 1, 1, 10, time.Second)...)
	steps = append(steps, stepsOf(4, 2, 2, 30, 0)...)
	for i := range 30 {
		steps[len(steps)-1-i].Time = time.Time{}
	}
	got := measuredSpeeds(steps, true)
	want := []estimate.Probe{{Servers: 1, Workers: 2, Speed: 2}, {Servers: 3, Workers: 4, Speed: 4}}
	if len(got.probes) != 2 || got.probes[0] != want[0] || got.probes[1] != want[1] || got.batch != 40 || got.where[1].Generation != 2 {
		t.Errorf("%+v, want %v", got, want)
	}
	if len(got.rejected) != 2 || got.rejected[0].String() != "generation 3: it has 10 steps; 11 tell a speed" ||
		got.rejected[1].String() != "generation 4: its speed is +Inf steps/s, not positive and finite" {
		t.Errorf("rejected %v", got.rejected)
	}
}

// The pushes of asynchronous workers may come in bursts; the speed is still that of all.
func TestMeasuredSpeedsOfBursts(t *testing.T) {
	var steps []telemetry.Step
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for range 40 {
		at = at.Add(2 * time.Second)
		for i := range 4 {
			steps = append(steps, telemetry.Step{Generation: 1, Time: at.Add(time.Duration(i) * time.Millisecond), Servers: 2, Workers: 4, M: 10})
		}
	}
	got := measuredSpeeds(steps, false)
	if len(got.probes) != 1 || math.Abs(got.probes[0].Speed-2) > 1e-9 {
		t.Errorf("%+v, want 4 pushes in 2 s", got)
	}
}

func TestEpochExamples(t *testing.T) {
	steps := []telemetry.Step{{Epoch: 0, Examples: 50}, {Epoch: 0, Examples: 90}, {Epoch: 1, Examples: 140}}
	var a asked
	if n, err := epochExamples(0, a, steps); err != nil || n != 90 {
		t.Errorf("by the first epoch: %d, %v", n, err)
	}
	a.Plan.Examples = 91
	if n, err := epochExamples(0, a, steps); err != nil || n != 91 {
		t.Errorf("by the job's folder: %d, %v", n, err)
	}
	if n, err := epochExamples(7, a, steps); err != nil || n != 7 {
		t.Errorf("as given: %d, %v", n, err)
	}
	if _, err := epochExamples(0, asked{}, steps[:2]); err == nil {
		t.Error("half an epoch tells its length")
	}
}
