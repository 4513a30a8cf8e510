// Package spec is the one shape of a training job: what a user asks for
// (TrainingJob) and what the runtime answers (Status, Result, RescaleReport).
// The command line, the daemon and Kubernetes read and write the same types, so
// a job that runs locally runs unchanged elsewhere.
//
// A job is written as JSON (or YAML of the same keys). Zero values mean "as the
// workload has it" for the learning settings and are refused where they would
// mean nothing (no servers). Decode refuses keys that it does not know, and
// Validate names every wrong field with its value and what is allowed.
//
// Counts of members are written as 3 (start with three), as "2:8" (start with
// two, rescale between two and eight), or as an object.
package spec

import (
	"encoding/json"
	"fmt"
	"io"
	"time"
)

// TrainingJob is what a user asks for. Default gives one with every field that
// has a general default; the workload fills the rest.
type TrainingJob struct {
	// Name identifies the job and its run folder: 1 to MaxName characters,
	// lower-case letters, digits and '-', starting with a letter and ending
	// with a letter or digit, so that names derived from it (job-worker-12)
	// stay legal wherever tasks run.
	Name string `json:"name"`
	// Workload is a name of the model registry, such as resnet-50.
	Workload string `json:"workload"`
	// Data is the folder of the data set; empty: the workload's generator.
	Data string `json:"data,omitempty"`
	// SkipBad is how many pictures or recordings that cannot be read are left out,
	// and listed in Result.Skipped; one more, and the set is refused.
	SkipBad int `json:"skip_bad,omitempty"`
	// Overfit, if not 0, trains and evaluates on that many training examples
	// alone: a model with the right settings learns them by heart.
	Overfit int `json:"overfit,omitempty"`
	// Merges is how many merges of a byte-pair encoding make the pieces of words, for
	// workloads of sentences in them; 0: the workload's own, -1: words are whole.
	Merges int `json:"merges,omitempty"`

	Servers Count `json:"servers"`
	Workers Count `json:"workers"`
	// VirtualWorkers is the number V of logical shares of the global batch
	// (design: same bits for every number of workers ≤ V); 0 is off.
	VirtualWorkers int `json:"virtual_workers,omitempty"`
	// Size is the size of the workload: empty for the paper's, or "tiny".
	Size string `json:"size,omitempty"`
	// Assignment is the rule that places pieces on servers.
	Assignment Rule `json:"assignment,omitempty"`

	// Mode is how pushes meet: bsp, asp or ssp.
	Mode Mode `json:"mode"`
	// Staleness bounds how many steps the fastest worker may be ahead of the
	// slowest; with ssp only, at least 1.
	Staleness int `json:"staleness,omitempty"`

	// Batch is the global batch M in examples; 0: the workload's own.
	Batch int `json:"batch,omitempty"`
	// The job ends at the first of Epochs, Steps and MaxTime that it reaches;
	// 0 sets no bound, but with neither Epochs nor Steps it is one epoch (see
	// Limits).
	Epochs  int      `json:"epochs,omitempty"`
	Steps   int      `json:"steps,omitempty"`
	MaxTime Duration `json:"max_time,omitempty"`
	Seed    uint64   `json:"seed"`

	Optimizer Optimizer `json:"optimizer"`
	// LR is the base learning rate; 0: the workload's own.
	LR float64 `json:"lr,omitempty"`
	// LRDrops are epochs, increasing: after each the learning rate is divided
	// by ten; none: the workload's own. LRWarmup is the number of steps in which
	// it first rises to LR.
	LRDrops  []int `json:"lr_drops,omitempty"`
	LRWarmup int   `json:"lr_warmup,omitempty"`
	// NonFinite says what a NaN or infinite gradient does: skip its step or
	// stop the job. NonFiniteLimit ends a job that skips more steps than that
	// in a row; 0 is no limit.
	NonFinite      NonFinite `json:"non_finite"`
	NonFiniteLimit int       `json:"non_finite_limit,omitempty"`

	// Launch is where tasks run.
	Launch Launch `json:"launch"`
	// CheckpointEvery is the number of steps between checkpoints; 0: only at
	// the end. Keep is how many of them stay, at least 1.
	CheckpointEvery int `json:"checkpoint_every,omitempty"`
	Keep            int `json:"keep"`
	// CheckpointDir moves checkpoints out of the run's folder.
	CheckpointDir string `json:"checkpoint_dir,omitempty"`
	// Resume names a job or a checkpoint folder to continue from.
	Resume string `json:"resume,omitempty"`
}

// Optimizer says how servers apply gradients. Zero values mean the workload's
// own (an empty Name) or the optimizer's own (a zero setting).
type Optimizer struct {
	Name        string  `json:"name,omitempty"` // sgd, momentum, adam, ...
	Momentum    float64 `json:"momentum,omitempty"`
	Beta1       float64 `json:"beta1,omitempty"`
	Beta2       float64 `json:"beta2,omitempty"`
	Epsilon     float64 `json:"epsilon,omitempty"`
	WeightDecay float64 `json:"weight_decay,omitempty"`
	ClipNorm    float64 `json:"clip_norm,omitempty"` // bound on the global norm of the gradient; 0: none
}

// Mode is how the pushes of workers meet on the servers.
type Mode string

// The modes.
const (
	BSP Mode = "bsp" // every step waits for all workers
	ASP Mode = "asp" // every push is applied at once
	SSP Mode = "ssp" // as asp, but at most Staleness steps apart
)

// Rule places pieces on servers.
type Rule string

// The rules of package paa.
const (
	MXNet Rule = "mxnet"
	PAA   Rule = "paa"
)

// NonFinite is the policy for NaN and infinite gradients.
type NonFinite string

// The policies.
const (
	Skip NonFinite = "skip"
	Stop NonFinite = "stop"
)

// Launch is where the tasks of a job run.
type Launch string

// The places.
const (
	InProc  Launch = "inproc"  // goroutines of one process
	Process Launch = "process" // child processes under one supervisor
)

// Default returns a job with every general default: one server and one worker,
// bsp, seed 1, three checkpoints kept. Name and Workload are empty.
func Default() TrainingJob {
	return TrainingJob{
		Servers:    Count{Count: 1},
		Workers:    Count{Count: 1},
		Assignment: PAA,
		Mode:       BSP,
		Seed:       1,
		NonFinite:  Skip,
		Launch:     InProc,
		Keep:       3,
	}
}

// Limits returns how many epochs and steps the job may take at most, 0 for no
// bound; at least one of them is set.
func (j TrainingJob) Limits() (epochs, steps int) {
	if j.Epochs == 0 && j.Steps == 0 {
		return 1, 0
	}
	return j.Epochs, j.Steps
}

// Decode reads one job as JSON over the defaults. A key that is not a field, or
// anything after the job, is an error. It does not validate.
func Decode(r io.Reader) (TrainingJob, error) {
	job := Default()
	dec := json.NewDecoder(r)
	dec.DisallowUnknownFields()
	if err := dec.Decode(&job); err != nil {
		return TrainingJob{}, fmt.Errorf("read training job: %w; the keys are in docs/cli.md", err)
	}
	if _, err := dec.Token(); err != io.EOF {
		return TrainingJob{}, fmt.Errorf("read training job: text after the job's closing brace; give one job per file")
	}
	return job, nil
}

// Duration is a time.Duration that JSON carries as text ("90s", "1h30m").
type Duration time.Duration

// String is the text form.
func (d Duration) String() string { return time.Duration(d).String() }

// MarshalText writes the text form.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads what time.ParseDuration reads.
func (d *Duration) UnmarshalText(b []byte) error {
	v, err := time.ParseDuration(string(b))
	*d = Duration(v)
	return err
}
