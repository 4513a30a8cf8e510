package telemetry

import (
	"encoding/json"
	"math"
	"time"
)

// Record is one line of telemetry. The concrete types are [Step], [Evaluation],
// [GenerationStart], [Transition], [Checkpoint], [Lost], [Skipped],
// [Staleness], [End] and, for lines of a newer program, [Unknown].
type Record interface {
	// Kind is the line's "kind", for example "step".
	Kind() string
}

// Float is a float64 that JSON can always carry: a value that is not finite is
// written as null and read back as NaN. A diverged loss must not stop the record
// that tells of it.
type Float float64

// MarshalJSON writes the number, or null where it is not finite.
func (f Float) MarshalJSON() ([]byte, error) {
	if v := float64(f); math.IsNaN(v) || math.IsInf(v, 0) {
		return []byte("null"), nil
	}
	return json.Marshal(float64(f))
}

// UnmarshalJSON reads a number, or NaN from null.
func (f *Float) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		*f = Float(math.NaN())
		return nil
	}
	var v float64
	if err := json.Unmarshal(b, &v); err != nil {
		return err
	}
	*f = Float(v)
	return nil
}

// Step is one training step that was applied: version Step of the parameters
// exists because of it. In asp and ssp a step is one applied push.
type Step struct {
	Time       time.Time `json:"time,omitzero"`
	Generation int       `json:"generation"`
	Step       int64     `json:"step"`  // the version it produced; the first is 1
	Epoch      int       `json:"epoch"` // from 0
	// Examples counts all examples consumed up to and including this step: the
	// estimators' axis.
	Examples int64 `json:"examples"`
	// BatchExamples is how many examples this step used; Weight is the loss's own
	// denominator, in examples or tokens, that Loss is the mean over.
	BatchExamples int   `json:"batch_examples"`
	Weight        int64 `json:"weight"`
	Loss          Float `json:"loss"` // mean over Weight
	// LearningRate is the rate the servers applied; M the global batch in force,
	// which a short last batch of an epoch does not change.
	LearningRate float64 `json:"lr"`
	M            int     `json:"m"`
	Servers      int     `json:"servers"`
	Workers      int     `json:"workers"`
	// Phases is the slowest worker's time of each phase; PerWorker has one entry
	// per worker, in rank order. Each is optional.
	Phases    Phases   `json:"phases,omitzero"`
	PerWorker []Phases `json:"per_worker,omitempty"`
	// IDs are the examples used, in batch order; left out unless asked for.
	IDs []int `json:"ids,omitempty"`
}

// Phases are the parts of a step's time, in seconds. They may overlap, so they
// need not add up to Total.
type Phases struct {
	Total   float64 `json:"total,omitempty"`   // from the step's start to its end
	Compute float64 `json:"compute,omitempty"` // forward and backward
	Push    float64 `json:"push,omitempty"`    // gradients out, until acknowledged
	Pull    float64 `json:"pull,omitempty"`    // parameters in
	Update  float64 `json:"update,omitempty"`  // aggregation and optimizer, on servers
	Wait    float64 `json:"wait,omitempty"`    // idle, for data or for other members
}

// Evaluation is the outcome of one pass over held-out examples at one version.
type Evaluation struct {
	Time       time.Time        `json:"time,omitzero"`
	Generation int              `json:"generation"`
	Step       int64            `json:"step"`
	Epoch      int              `json:"epoch"`
	Set        string           `json:"set,omitempty"` // for example "validation"
	Examples   int64            `json:"examples"`      // evaluated, each once
	Loss       Float            `json:"loss"`
	Metric     string           `json:"metric,omitempty"` // the workload's own, among Metrics
	Metrics    map[string]Float `json:"metrics,omitempty"`
	Seconds    float64          `json:"seconds,omitempty"`
}

// Sources of a generation's parameters.
const (
	SourceInit       = "init"       // drawn from the seed
	SourceTransition = "transition" // moved live from the generation before
	SourceCheckpoint = "checkpoint" // restored
)

// GenerationStart begins a generation. Step is the version it starts from: steps
// of earlier generations beyond it are void (see [History]). Numbers grow over
// the life of a job.
type GenerationStart struct {
	Time    time.Time `json:"time,omitzero"`
	Number  int       `json:"number"`
	Step    int64     `json:"step"`
	Servers int       `json:"servers"`
	Workers int       `json:"workers"`
	Members []Member  `json:"members,omitempty"`
	Source  string    `json:"source"`           // init, transition or checkpoint
	Origin  string    `json:"origin,omitempty"` // the checkpoint's folder, if any
}

// Member is one task of a generation.
type Member struct {
	Role        string `json:"role"` // server or worker
	ID          int    `json:"id"`
	Incarnation int64  `json:"incarnation,omitempty"`
	PID         int    `json:"pid,omitempty"`
	Node        string `json:"node,omitempty"`
	Device      string `json:"device,omitempty"`
}

// Size is a number of servers and of workers.
type Size struct {
	Servers int `json:"servers"`
	Workers int `json:"workers"`
}

// Transition is one change of membership or assignment, finished or given up.
type Transition struct {
	Time       time.Time `json:"time,omitzero"`
	Generation int       `json:"generation"` // the new one
	Step       int64     `json:"step"`       // the boundary
	From       Size      `json:"from"`
	To         Size      `json:"to"`
	// PhasesMS are the times of prepare, pull, move, commit and so on, in
	// milliseconds; PauseMS is how long the longest worker stood still.
	PhasesMS map[string]float64 `json:"phases_ms,omitempty"`
	PauseMS  float64            `json:"pause_ms"`
	Elements int64              `json:"elements"` // parameters that changed owner
	Bytes    int64              `json:"bytes"`    // moved, with optimizer state
	Digest   string             `json:"digest,omitempty"`
	Reason   string             `json:"reason,omitempty"`
	Error    string             `json:"error,omitempty"` // why it was given up
}

// Checkpoint is one save, successful where Error is empty.
type Checkpoint struct {
	Time         time.Time `json:"time,omitzero"`
	Generation   int       `json:"generation"`
	Step         int64     `json:"step"`
	Sequence     int64     `json:"sequence"`
	Dir          string    `json:"dir"`
	Bytes        int64     `json:"bytes"`
	Seconds      float64   `json:"seconds"`
	ParamsSHA256 string    `json:"params_sha256,omitempty"`
	Error        string    `json:"error,omitempty"`
}

// Lost is a member that died or was given up, and why.
type Lost struct {
	Time       time.Time `json:"time,omitzero"`
	Generation int       `json:"generation"`
	Step       int64     `json:"step"`
	Member     Member    `json:"member"`
	Cause      string    `json:"cause"`
}

// Skipped is a step whose gradient was not finite and that therefore changed
// nothing: its examples count as not used.
type Skipped struct {
	Time       time.Time `json:"time,omitzero"`
	Generation int       `json:"generation"`
	Step       int64     `json:"step"`
	Worker     int       `json:"worker"`
	Block      string    `json:"block"`
	Cause      string    `json:"cause,omitempty"`
}

// Staleness counts, for asp and ssp, how many versions behind pushes were when
// applied: Counts[i] pushes were i versions late, since the last such record.
type Staleness struct {
	Time       time.Time `json:"time,omitzero"`
	Generation int       `json:"generation"`
	Step       int64     `json:"step"`
	Bound      int       `json:"bound,omitempty"` // ssp's s; 0 means none
	Counts     []int64   `json:"counts"`
}

// End is the last record of a run.
type End struct {
	Time         time.Time `json:"time,omitzero"`
	Generation   int       `json:"generation"`
	Step         int64     `json:"step"`
	Epoch        int       `json:"epoch"`
	Examples     int64     `json:"examples"`
	Loss         Float     `json:"loss"`
	Seconds      float64   `json:"seconds"`
	Reason       string    `json:"reason"` // done, stopped, paused, failed
	ParamsSHA256 string    `json:"params_sha256,omitempty"`
	Error        string    `json:"error,omitempty"`
}

// Unknown is a line of a kind that this program does not know; Line is all of it.
type Unknown struct {
	Name string
	Line json.RawMessage
}

// MarshalJSON writes the line back as it was read.
func (u Unknown) MarshalJSON() ([]byte, error) { return u.Line, nil }

// Kind returns "step".
func (Step) Kind() string { return "step" }

// Kind returns "evaluation".
func (Evaluation) Kind() string { return "evaluation" }

// Kind returns "generation_start".
func (GenerationStart) Kind() string { return "generation_start" }

// Kind returns "transition".
func (Transition) Kind() string { return "transition" }

// Kind returns "checkpoint".
func (Checkpoint) Kind() string { return "checkpoint" }

// Kind returns "lost".
func (Lost) Kind() string { return "lost" }

// Kind returns "skipped".
func (Skipped) Kind() string { return "skipped" }

// Kind returns "staleness".
func (Staleness) Kind() string { return "staleness" }

// Kind returns "end".
func (End) Kind() string { return "end" }

// Kind returns the kind that the line names.
func (u Unknown) Kind() string { return u.Name }
