package trace

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strconv"
)

// GavelJob is a job of a trace of the Gavel or Shockwave simulators.
type GavelJob struct {
	Kind     GavelKind
	Steps    int     // iterations to run
	Submit   float64 // seconds
	GPUs     int     // its scale factor
	Weight   float64 // priority; 1 where the trace has none
	SLO      float64 // seconds; 0 for none
	Mode     string  // how the batch changes while it runs: "static", "accordion" or "gns"
	Duration float64 // seconds; 0 where the trace has none
	Cluster  string  // virtual cluster; "" where the trace has none
}

// GavelKind is a model with the batch of one GPU.
type GavelKind struct {
	Model string
	Batch int
}

// String returns for example "ResNet-18 (batch size 128)".
func (k GavelKind) String() string { return fmt.Sprintf("%s (batch size %d)", k.Model, k.Batch) }

// ReadGavel reads a CSV file with the columns job_type, total_steps, scale_factor and arrival_s, and where they are
// there also priority_weight, slo, mode, duration_s and vc. The jobs are returned by arrival, equal ones as listed.
// Errors name the file as given here, the line and the field.
func ReadGavel(file string, r io.Reader) ([]GavelJob, error) {
	t := newRows(file, r, "job_type", "total_steps", "scale_factor", "arrival_s")
	var jobs []GavelJob
	for t.next() {
		j := GavelJob{Steps: t.count("total_steps", 1), GPUs: t.count("scale_factor", 1), Submit: t.number("arrival_s", 0), Weight: 1, Mode: "static"}
		var err error
		if j.Kind, err = gavelKind(t.text("job_type")); err != nil {
			t.fail("job_type", "%v", err)
		}
		if t.has("priority_weight") {
			j.Weight = t.number("priority_weight", 0)
		}
		if t.has("slo") {
			j.SLO = max(0, t.number("slo", -1)) // −1 is none
		}
		if t.has("mode") {
			if j.Mode = t.text("mode"); !slices.Contains([]string{"static", "accordion", "gns"}, j.Mode) {
				t.fail("mode", `%q is neither "static", "accordion" nor "gns"`, j.Mode)
			}
		}
		if t.has("duration_s") {
			j.Duration = t.number("duration_s", 0)
		}
		if t.has("vc") {
			j.Cluster = t.text("vc")
		}
		jobs = append(jobs, j)
	}
	if t.err != nil {
		return nil, t.err
	}
	slices.SortStableFunc(jobs, func(a, b GavelJob) int { return cmp.Compare(a.Submit, b.Submit) })
	return jobs, nil
}

var gavelName = regexp.MustCompile(`^(.+) \(batch size ([0-9]+)\)$`)

// gavelKind reads "ResNet-18 (batch size 128)", or a name without a batch.
func gavelKind(s string) (GavelKind, error) {
	m := gavelName.FindStringSubmatch(s)
	if m == nil {
		return GavelKind{Model: s}, nil
	}
	n, err := strconv.ParseInt(m[2], 10, 32)
	if err != nil || n < 1 {
		return GavelKind{}, fmt.Errorf("%q has a batch size that is not a number from 1", s)
	}
	return GavelKind{Model: m[1], Batch: int(n)}, nil
}

// GavelSpeed is the measured speed of a job alone on its GPUs, which exchange gradients by all-reduce.
type GavelSpeed struct {
	GPU   string // type, such as "v100"
	Kind  GavelKind
	GPUs  int
	Speed float64 // batches/s of all GPUs together; 0 if the job does not fit into the memory
}

var gavelConfiguration = regexp.MustCompile(`^\('(.+)', ([0-9]+)\)$`)

// ReadGavelSpeeds reads Gavel's throughputs in JSON: GPU type → "('model (batch size B)', GPUs)" → "null" → iterations
// per second. What jobs do that share GPUs is passed over. Errors name the file as given here and the key.
func ReadGavelSpeeds(file string, r io.Reader) ([]GavelSpeed, error) {
	var all map[string]map[string]map[string]json.RawMessage
	fail := func(key, problem string, args ...any) ([]GavelSpeed, error) {
		return nil, &FieldError{File: file, Field: key, Problem: fmt.Sprintf(problem, args...)}
	}
	if err := json.NewDecoder(r).Decode(&all); err != nil {
		return fail("", "not a table of throughputs: %v", err)
	}
	var out []GavelSpeed
	for gpu, configurations := range all {
		for key, shared := range configurations {
			path := gpu + "." + key
			m := gavelConfiguration.FindStringSubmatch(key)
			if m == nil {
				return fail(path, "the key is not like ('model (batch size B)', GPUs)")
			}
			s := GavelSpeed{GPU: gpu}
			var err error
			if s.Kind, err = gavelKind(m[1]); err != nil {
				return fail(path, "%v", err)
			}
			n, err := strconv.ParseInt(m[2], 10, 32)
			if err != nil || n < 1 {
				return fail(path, "%s GPUs; the number must be from 1", m[2])
			}
			s.GPUs = int(n)
			alone, ok := shared["null"]
			if !ok {
				return fail(path, `it has no "null", the speed of the job alone`)
			}
			if err := json.Unmarshal(alone, &s.Speed); err != nil || s.Speed < 0 || math.IsInf(s.Speed, 0) {
				return fail(path, "the speed %s is not a finite number ≥ 0", alone)
			}
			out = append(out, s)
		}
	}
	slices.SortFunc(out, func(a, b GavelSpeed) int {
		return cmp.Or(cmp.Compare(a.GPU, b.GPU), cmp.Compare(a.Kind.Model, b.Kind.Model), cmp.Compare(a.Kind.Batch, b.Kind.Batch), cmp.Compare(a.GPUs, b.GPUs))
	})
	return out, nil
}
