package spec_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"optimus/spec"
)

func ExampleDecode() {
	job, err := spec.Decode(strings.NewReader(`{"name": "night", "workload": "resnet-50", "servers": 2, "workers": "2:8"}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(job.Workers, job.Workers.Allows(9), job.Validate())

	job.Servers.Count, job.Mode = 0, "sync"
	fmt.Println(job.Validate())
	// Output:
	// 2:8 false <nil>
	// servers.count is 0; allowed: 1 to 4096
	// mode is "sync"; allowed: bsp, asp, ssp
}

// valid returns a job that Validate accepts.
func valid() spec.TrainingJob {
	job := spec.Default()
	job.Name, job.Workload = "a", "resnet-50"
	return job
}

func TestValidate(t *testing.T) {
	type job = spec.TrainingJob
	tests := []struct {
		change func(*job)
		fields []string // those named by the error
	}{
		{func(*job) {}, nil},
		{func(j *job) { j.Name = "" }, []string{"name"}},
		{func(j *job) { j.Name = strings.Repeat("a", spec.MaxName) }, nil},
		{func(j *job) { j.Name = strings.Repeat("a", spec.MaxName+1) }, []string{"name"}},
		{func(j *job) { j.Name = "Upper" }, []string{"name"}},
		{func(j *job) { j.Name = "a_b" }, []string{"name"}},
		{func(j *job) { j.Name = "ends-" }, []string{"name"}},
		{func(j *job) { j.Name = "ü" }, []string{"name"}},
		{func(j *job) { j.Name = "../x" }, []string{"name"}},
		{func(j *job) { j.Name = "1a" }, []string{"name"}},
		{func(j *job) { j.Name = "a1-b2" }, nil},
		{func(j *job) { j.Workload = "" }, []string{"workload"}},
		{func(j *job) { j.Servers.Count = 0 }, []string{"servers.count"}},
		{func(j *job) { j.Servers.Count = -1 }, []string{"servers.count"}},
		{func(j *job) { j.Workers.Count = 1e9 }, []string{"workers.count"}},
		{func(j *job) { j.Workers = spec.Count{Count: 3, Min: 4, Max: 8} }, []string{"workers.count"}},
		{func(j *job) { j.Workers = spec.Count{Count: 3, Min: 4, Max: 2} }, []string{"workers.max"}},
		{func(j *job) { j.Workers = spec.Count{Count: 3, Min: 3, Max: 3} }, nil},
		{func(j *job) { j.Mode = "" }, []string{"mode"}},
		{func(j *job) { j.Mode = spec.SSP }, []string{"staleness"}},
		{func(j *job) { j.Mode, j.Staleness = spec.SSP, 2 }, nil},
		{func(j *job) { j.Staleness = 2 }, []string{"staleness"}},
		{func(j *job) { j.VirtualWorkers = 4 }, nil},
		{func(j *job) { j.VirtualWorkers, j.Workers.Count = 4, 5 }, []string{"virtual_workers"}},
		{func(j *job) { j.VirtualWorkers, j.Mode = 4, spec.ASP }, []string{"virtual_workers"}},
		{func(j *job) { j.Assignment = "hash" }, []string{"assignment"}},
		{func(j *job) { j.Batch = -1 }, []string{"batch"}},
		{func(j *job) { j.Epochs = -1 }, []string{"epochs"}},
		{func(j *job) { j.Steps = -5 }, []string{"steps"}},
		{func(j *job) { j.MaxTime = -1 }, []string{"max_time"}},
		{func(j *job) { j.LR = math.NaN() }, []string{"lr"}},
		{func(j *job) { j.LR = math.Inf(1) }, []string{"lr"}},
		{func(j *job) { j.LR = -1 }, []string{"lr"}},
		{func(j *job) { j.Optimizer.Momentum = 1 }, []string{"optimizer.momentum"}},
		{func(j *job) { j.Optimizer.WeightDecay = -1 }, []string{"optimizer.weight_decay"}},
		{func(j *job) { j.NonFinite = "ignore" }, []string{"non_finite"}},
		{func(j *job) { j.Launch = "cloud" }, []string{"launch"}},
		{func(j *job) { j.Keep = 0 }, []string{"keep"}},
		{func(j *job) { j.CheckpointEvery = -1 }, []string{"checkpoint_every"}},
		{func(j *job) { j.Keep, j.Launch = -1, "" }, []string{"launch", "keep"}},
	}
	for _, test := range tests {
		j := valid()
		test.change(&j)
		if diff := cmp.Diff(test.fields, fieldsOf(j.Validate())); diff != "" {
			t.Errorf("%+v: fields (-want +got):\n%s", j, diff)
		}
	}
}

// fieldsOf lists the fields that err names.
func fieldsOf(err error) []string {
	var fields []string
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range joined.Unwrap() {
			if f := (*spec.FieldError)(nil); errors.As(e, &f) {
				fields = append(fields, f.Field)
			}
		}
	}
	return fields
}

func TestParseRange(t *testing.T) {
	tests := map[string]spec.Count{
		"1":                    {Count: 1},
		"2:8":                  {Count: 2, Min: 2, Max: 8},
		"3:3":                  {Count: 3, Min: 3, Max: 3},
		"4096":                 {Count: 4096},
		"1:4096":               {Count: 1, Min: 1, Max: 4096},
		"0":                    {},
		"-1":                   {},
		"+1":                   {},
		"4097":                 {},
		"1e9":                  {},
		"ten":                  {},
		"":                     {},
		":":                    {},
		"1:":                   {},
		":2":                   {},
		"3:2":                  {},
		"0:2":                  {},
		"1:2:3":                {},
		" 1":                   {},
		"99999999999999999999": {},
	}
	for text, want := range tests {
		got, err := spec.ParseRange(text)
		if got != want || (err == nil) != (want.Count > 0) {
			t.Errorf("ParseRange(%q) = %+v, %v; want %+v", text, got, err, want)
		}
		if err != nil && !strings.Contains(err.Error(), "MIN:MAX") {
			t.Errorf("ParseRange(%q): %v does not say what is allowed", text, err)
		}
	}
}

// What prints as MIN:MAX or N reads back as itself.
func TestCountRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lo := rapid.IntRange(1, spec.MaxMembers).Draw(t, "min")
		c := spec.Count{Count: lo}
		if rapid.Bool().Draw(t, "ranged") {
			c.Min, c.Max = lo, rapid.IntRange(lo, spec.MaxMembers).Draw(t, "max")
		}
		if got, err := spec.ParseRange(c.String()); err != nil || got != c {
			t.Fatalf("%+v printed as %q and read as %+v (%v)", c, c, got, err)
		}
		b, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		var got spec.Count
		if err := json.Unmarshal(b, &got); err != nil || got != c {
			t.Fatalf("%s read as %+v (%v)", b, got, err)
		}
	})
}

func TestDecode(t *testing.T) {
	tests := []struct {
		text string
		want string // part of the error; "" for none
	}{
		{`{"workers": 3}`, ""},
		{`{"workers": "1:3"}`, ""},
		{`{"workers": {"min": 2, "max": 4}}`, ""},
		{`{"max_time": "90s", "optimizer": {"name": "adam"}}`, ""},
		{`{"wrokers": 3}`, "wrokers"},
		{`{"workers": {"mni": 2}}`, "mni"},
		{`{"optimizer": {"nmae": "adam"}}`, "nmae"},
		{`{"workers": "ten"}`, "MIN:MAX"},
		{`{"workers": -1}`, "MIN:MAX"},
		{`{"max_time": "soon"}`, "soon"},
		{`{} {}`, "one job"},
		{`{}x`, "one job"},
		{``, "EOF"},
		{`[]`, "array"},
	}
	for _, test := range tests {
		_, err := spec.Decode(strings.NewReader(test.text))
		switch {
		case test.want == "" && err != nil:
			t.Errorf("%s: %v", test.text, err)
		case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
			t.Errorf("%s: error %v does not say %q", test.text, err, test.want)
		}
	}
	job, err := spec.Decode(strings.NewReader(`{"workers": {"min": 2}, "keep": 7}`))
	want := spec.Default()
	want.Workers, want.Keep = spec.Count{Count: 2, Min: 2}, 7
	if diff := cmp.Diff(want, job); err != nil || diff != "" {
		t.Errorf("over the defaults (-want +got, %v):\n%s", err, diff)
	}
}

func TestJobRoundTrip(t *testing.T) {
	job := valid()
	job.MaxTime = spec.Duration(90 * time.Minute)
	job.Workers = spec.Count{Count: 3, Min: 2, Max: 8}
	job.Optimizer = spec.Optimizer{Name: "momentum", Momentum: 0.9}
	b, err := json.Marshal(job)
	if err != nil {
		t.Fatal(err)
	}
	got, err := spec.Decode(strings.NewReader(string(b)))
	if diff := cmp.Diff(job, got); err != nil || diff != "" {
		t.Errorf("(-want +got, %v):\n%s", err, diff)
	}
	if !strings.Contains(string(b), `"max_time":"1h30m0s"`) {
		t.Errorf("%s does not show the duration as text", b)
	}
}

// The keys of the last line of `optimus train -o json` are a contract.
func TestResultKeys(t *testing.T) {
	b, err := json.Marshal(spec.Result{
		Loss: spec.Number(math.NaN()), Metric: &spec.Metric{Name: "accuracy", Value: 0.5},
		Rescales: []spec.RescaleReport{{Step: 3, From: [2]int{2, 3}, To: [2]int{3, 5}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(b, &got); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"job", "workload", "mode", "servers", "workers", "steps", "epochs", "loss", "metric",
		"wall_s", "examples_per_s", "rescales", "checkpoint", "params_sha256"} {
		if _, ok := got[key]; !ok {
			t.Errorf("no key %q in %s", key, b)
		}
	}
	if got["loss"] != nil {
		t.Errorf("loss NaN is written as %v, not null", got["loss"])
	}
	rescale := got["rescales"].([]any)[0].(map[string]any)
	for _, key := range []string{"step", "from", "to", "pause_ms", "bytes_moved"} {
		if _, ok := rescale[key]; !ok {
			t.Errorf("no key %q in a rescale of %s", key, b)
		}
	}
	var back spec.Result
	if err := json.Unmarshal(b, &back); err != nil || !math.IsNaN(float64(back.Loss)) {
		t.Errorf("loss null is read as %v (%v), not NaN", back.Loss, err)
	}
}

func TestLimits(t *testing.T) {
	for _, test := range []struct{ epochs, steps, wantEpochs, wantSteps int }{{0, 0, 1, 0}, {2, 0, 2, 0}, {0, 5, 0, 5}, {2, 5, 2, 5}} {
		job := spec.TrainingJob{Epochs: test.epochs, Steps: test.steps}
		if epochs, steps := job.Limits(); epochs != test.wantEpochs || steps != test.wantSteps {
			t.Errorf("%d epochs, %d steps: limits %d, %d", test.epochs, test.steps, epochs, steps)
		}
	}
}

func TestFinalStates(t *testing.T) {
	for state, want := range map[spec.State]bool{
		spec.Starting: false, spec.Running: false, spec.Rescaling: false, spec.Paused: false, spec.Recovering: false,
		spec.Finished: true, spec.Failed: true, spec.Stopped: true,
	} {
		if state.Final() != want {
			t.Errorf("%s.Final() = %v", state, !want)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(`{"name":"a","workers":"2:8","max_time":"1h"}`)
	f.Add(`{"servers":{"count":3,"min":1}}`)
	f.Fuzz(func(t *testing.T, text string) {
		job, err := spec.Decode(strings.NewReader(text))
		if err != nil || job.Validate() != nil {
			return
		}
		b, err := json.Marshal(job)
		if err != nil {
			t.Fatalf("a valid job does not print: %v", err)
		}
		again, err := spec.Decode(strings.NewReader(string(b)))
		if err != nil || !cmp.Equal(job, again) {
			t.Fatalf("%s read as %+v (%v), was %+v", b, again, err, job)
		}
	})
}
