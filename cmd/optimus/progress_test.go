package main

import (
	"strings"
	"testing"

	"optimus/spec"
	"optimus/train"
)

// A checkpoint that was not written is told once, whatever numbers its cause
// holds; again for another cause, and when one is written.
func TestProgressTellsOfFailedCheckpoints(t *testing.T) {
	var out strings.Builder
	p := newProgress(&out, spec.TrainingJob{Workload: "w", Data: "d"}, false)
	full := func(step string) spec.Status {
		return spec.Status{Job: "j", State: spec.Running, Reason: train.NotSaved + "step" + step + ": no space left"}
	}
	good := func(at string) spec.Status {
		return spec.Status{Job: "j", State: spec.Running, LastCheckpoint: at}
	}
	denied := spec.Status{Job: "j", State: spec.Running, Reason: train.NotSaved + "denied"}
	waits := spec.Status{Job: "j", State: spec.Rescaling, Reason: "waiting for worker 1"}
	for _, s := range []spec.Status{good(""), full("2"), full("4"), waits, full("6"), denied, good("/c/7"), good("/c/8"), full("10")} {
		p.show(s)
	}
	p.close()
	var got []string
	for l := range strings.Lines(out.String()) {
		if strings.Contains(l, "checkpoint") {
			got = append(got, l)
		}
	}
	want := "warning: " + train.NotSaved + "step2: no space left\n" + "warning: " + train.NotSaved + "denied\n" +
		"checkpoints are written again: /c/7\n" + "warning: " + train.NotSaved + "step10: no space left\n"
	if strings.Join(got, "") != want {
		t.Errorf("got\n%swant\n%s", strings.Join(got, ""), want)
	}
}

func TestSteps(t *testing.T) {
	for want, s := range map[string]spec.Status{"step 3/9": {Step: 3, Steps: 9}, "step 3": {Step: 3}} {
		if got := steps(s); got != want {
			t.Errorf("steps are %q, want %q", got, want)
		}
	}
}
