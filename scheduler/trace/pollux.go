package trace

import (
	"io"
	"math"
	"slices"
)

// PolluxJob is a job of a workload of the Pollux paper.
type PolluxJob struct {
	Name        string
	Submit      float64 // seconds
	Application string
	GPUs        int // as its user asked for
	Batch       int // total batch size, as its user asked for
}

// ReadPollux reads a CSV file with the columns name, time, application, num_replicas and batch_size. The jobs are
// returned as listed. Their applications must be among the given ones, and their names differ. Errors name the file
// as given here, the line and the field.
func ReadPollux(file string, r io.Reader, applications []string) ([]PolluxJob, error) {
	t := newRows(file, r, "name", "time", "application", "num_replicas", "batch_size")
	var jobs []PolluxJob
	line := map[string]int{}
	for t.next() {
		j := PolluxJob{
			Name: t.text("name"), Submit: t.number("time", 0), Application: t.text("application"),
			GPUs: t.count("num_replicas", 1), Batch: t.count("batch_size", 1),
		}
		if before, twice := line[j.Name]; twice {
			t.fail("name", "job %q is also on line %d; give each job its own name", j.Name, before)
		}
		if !slices.Contains(applications, j.Application) {
			t.fail("application", "there is no model of %q; it must be one of %q", j.Application, applications)
		}
		line[j.Name] = t.line
		jobs = append(jobs, j)
	}
	if t.err != nil {
		return nil, t.err
	}
	return jobs, nil
}

// PolluxTime is a measured time of a training iteration.
type PolluxTime struct {
	Placement   []int // GPUs on each node, in cyclic order; nil if only their numbers are known
	Nodes, GPUs int
	PerGPU      int     // examples of one GPU's pass
	Step        float64 // seconds of one iteration with a single pass
	Sync        float64 // seconds of it that are spent on the exchange of gradients, after the last of them is known
}

// ReadPolluxTimes reads a CSV file with the columns local_bsz, step_time and sync_time, and either placement (one
// digit for each node) or num_nodes and num_replicas.
func ReadPolluxTimes(file string, r io.Reader) ([]PolluxTime, error) {
	t := newRows(file, r, "local_bsz", "step_time", "sync_time")
	if t.err == nil && !t.has("placement") && !(t.has("num_nodes") && t.has("num_replicas")) {
		t.fail("placement", "the column is missing, and so is num_nodes or num_replicas")
	}
	var times []PolluxTime
	for t.next() {
		m := PolluxTime{PerGPU: t.count("local_bsz", 1), Step: t.number("step_time", 0), Sync: t.number("sync_time", 0)}
		if t.has("placement") {
			m.Placement = t.digits("placement")
			m.Nodes = len(m.Placement)
			for _, n := range m.Placement {
				m.GPUs += n
			}
		} else {
			m.Nodes, m.GPUs = t.count("num_nodes", 1), t.count("num_replicas", 1)
		}
		if m.Sync >= m.Step {
			t.fail("sync_time", "%v s of an iteration of %v s leave no time for its pass", m.Sync, m.Step)
		}
		times = append(times, m)
	}
	if t.err != nil {
		return nil, t.err
	}
	return times, nil
}

// digits returns the digits of a field, each 1 to 9.
func (t *rows) digits(column string) []int {
	s := t.text(column)
	out := make([]int, len(s))
	for i := range s {
		if s[i] < '1' || s[i] > '9' {
			t.fail(column, "%q has something else than digits from 1 to 9", s)
			return nil
		}
		out[i] = int(s[i] - '0')
	}
	return out
}

// PolluxEpoch is the state of a training run after an epoch.
type PolluxEpoch struct {
	Progress   float64 // iterations at the initial batch size M₀ that would have got as far
	Iterations float64
	Metric     float64 // of the validation
	Sqr, Var   float64 // of the gradient: squared norm of its mean, and variance at M₀
}

// ReadPolluxEpochs reads a CSV file with the columns progress, iteration, metric, grad_sqr and grad_var, one line for
// each epoch.
func ReadPolluxEpochs(file string, r io.Reader) ([]PolluxEpoch, error) {
	t := newRows(file, r, "progress", "iteration", "metric", "grad_sqr", "grad_var")
	var epochs []PolluxEpoch
	last := PolluxEpoch{}
	for t.next() {
		e := PolluxEpoch{
			Progress: t.number("progress", 0), Iterations: t.number("iteration", 0), Metric: t.number("metric", math.Inf(-1)),
			Sqr: t.number("grad_sqr", 0), Var: t.number("grad_var", 0),
		}
		if e.Progress <= last.Progress {
			t.fail("progress", "it is %v, not above the %v of the epoch before", e.Progress, last.Progress)
		}
		epochs, last = append(epochs, e), e
	}
	if t.err != nil {
		return nil, t.err
	}
	return epochs, nil
}
