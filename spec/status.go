package spec

import (
	"encoding/json"
	"math"
	"strconv"
	"time"
)

// State is where a job stands.
type State string

// The states. The last three are final.
const (
	Starting   State = "starting"
	Running    State = "running"
	Rescaling  State = "rescaling"
	Paused     State = "paused"
	Recovering State = "recovering"
	Finished   State = "finished"
	Failed     State = "failed"
	Stopped    State = "stopped"
)

// Final reports whether a job in this state never runs again by itself.
func (s State) Final() bool { return s == Finished || s == Failed || s == Stopped }

// Status is a job as it is now.
type Status struct {
	Job      string `json:"job"`
	Workload string `json:"workload"`
	State    State  `json:"state"`
	// Reason explains the state in one line: who is lost, what is awaited.
	Reason string `json:"reason,omitempty"`
	// Notes tell, a line each, where what is trained is not quite what was asked for.
	Notes []string `json:"notes,omitempty"`

	Step   int     `json:"step"`  // steps applied
	Steps  int     `json:"steps"` // steps in all; 0: not known
	Epoch  float64 `json:"epoch"` // epochs done, with the fraction of the present one
	Epochs int     `json:"epochs"`

	Loss         Number  `json:"loss"`
	Metric       *Metric `json:"metric,omitempty"`
	ExamplesPerS Number  `json:"examples_per_s"`
	ETAS         Number  `json:"eta_s"` // seconds that the job still needs

	Servers    int    `json:"servers"`
	Workers    int    `json:"workers"`
	Generation uint64 `json:"generation"`

	Members  []Member        `json:"members"`
	Rescales []RescaleReport `json:"rescales"`

	LastCheckpoint string    `json:"last_checkpoint,omitempty"`
	Updated        time.Time `json:"updated"`
}

// Member is one server, worker or coordinator of a job. ID and Incarnation are
// its identity; an address or a process id may be used again by another.
type Member struct {
	Role        string `json:"role"` // server, worker, coordinator
	ID          int    `json:"id"`
	Incarnation uint64 `json:"incarnation"`
	PID         int    `json:"pid,omitempty"`
	Addr        string `json:"addr,omitempty"`
	State       string `json:"state"`
	Step        int    `json:"step"`
	// Idle marks a worker that has no examples in the present step.
	Idle bool `json:"idle,omitempty"`
}

// Metric is a figure of merit of the workload on its evaluation set.
type Metric struct {
	Name  string `json:"name"`
	Value Number `json:"value"`
	Loss  Number `json:"loss"` // mean loss on the same set
}

// Result is what a training run ends with: the last line of
// `optimus train -o json`. Servers and Workers are as they are at the end.
type Result struct {
	Job          string          `json:"job"`
	Workload     string          `json:"workload"`
	Mode         Mode            `json:"mode"`
	Servers      int             `json:"servers"`
	Workers      int             `json:"workers"`
	Steps        int             `json:"steps"`
	Epochs       float64         `json:"epochs"`
	Loss         Number          `json:"loss"`
	Metric       *Metric         `json:"metric,omitempty"`
	WallS        float64         `json:"wall_s"`
	ExamplesPerS Number          `json:"examples_per_s"`
	Rescales     []RescaleReport `json:"rescales"`
	Checkpoint   string          `json:"checkpoint"`
	// ParamsSHA256 is over all parameters in block order, as little-endian
	// float32; hexadecimal.
	ParamsSHA256 string `json:"params_sha256"`
	// Skipped are the examples that were left out, as SkipBad allowed.
	Skipped []Skipped `json:"skipped,omitempty"`
}

// Skipped is an example that was left out of the data.
type Skipped struct {
	File   string `json:"file"`
	Reason string `json:"reason"`
}

// RescaleReport is one rescale that happened. Counts are [servers, workers].
type RescaleReport struct {
	Step       int    `json:"step"` // the boundary: last step under the old generation
	From       [2]int `json:"from"`
	To         [2]int `json:"to"`
	Generation uint64 `json:"generation"` // the new one
	// PauseMS is how much longer the steps around the boundary took than
	// steps beside it: what the job felt.
	PauseMS float64 `json:"pause_ms"`
	Phases  []Phase `json:"phases,omitempty"`
	// ElementsMoved counts parameters that changed servers; BytesMoved all
	// bytes that did, of which AuxBytesMoved were neither parameters nor
	// optimizer state.
	ElementsMoved int64 `json:"elements_moved"`
	BytesMoved    int64 `json:"bytes_moved"`
	AuxBytesMoved int64 `json:"aux_bytes_moved"`
	Moves         int   `json:"moves,omitempty"` // ranges that moved; known while the job runs
	// StateDigest is over parameters and optimizer state at the boundary, the
	// same before and after.
	StateDigest string `json:"state_digest,omitempty"`
}

// Phase is one part of a rescale and how long it took.
type Phase struct {
	Name string  `json:"name"`
	MS   float64 `json:"ms"`
}

// Number is a float64 for which JSON has no value when it is not finite: NaN
// and infinities are written as null, and null is read as NaN.
type Number float64

// MarshalJSON writes the number or null.
func (n Number) MarshalJSON() ([]byte, error) {
	f := float64(n)
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return []byte("null"), nil
	}
	return json.Marshal(f)
}

// UnmarshalJSON reads a number or null.
func (n *Number) UnmarshalJSON(b []byte) error {
	f := math.NaN()
	if string(b) == "null" {
		*n = Number(f)
		return nil
	}
	err := json.Unmarshal(b, &f)
	*n = Number(f)
	return err
}

// String writes the number shortly, as tables show it; "-" when it is not
// known.
func (n Number) String() string {
	if math.IsNaN(float64(n)) {
		return "-"
	}
	return strconv.FormatFloat(float64(n), 'g', 5, 64)
}
