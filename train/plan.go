package train

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"

	"optimus/compute/optim"
	"optimus/data/order"
	"optimus/elastic"
	"optimus/elastic/checkpoint"
	"optimus/internal/failure"
	"optimus/ps/pieces"
	"optimus/spec"
)

// layout is what every member of a job must know, the same for all. Child
// processes read it from the run's folder.
type layout struct {
	Run         uint64           `json:"run"`
	Job         spec.TrainingJob `json:"job"`
	Params      []optim.Param    `json:"params"`
	Aux         []optim.Param    `json:"aux,omitempty"`
	AuxMomentum float64          `json:"aux_momentum,omitempty"`
	Carried     int              `json:"carried,omitempty"` // values per lane of the last of Aux, which is a state
	Optimizer   optim.Config     `json:"optimizer"`
	Plan        order.Plan       `json:"plan"`
	Steps       int64            `json:"steps"`
	Epochs      int              `json:"epochs"`
	Validation  int              `json:"validation"`
	Fingerprint string           `json:"fingerprint,omitempty"` // of the data
	Notes       []string         `json:"notes,omitempty"`       // see spec.Status
	Capacity    int              `json:"capacity"`              // examples that a worker takes at once
	Checkpoints string           `json:"checkpoints"`
}

// newLayout derives a job's plan from its spec and task.
func newLayout(j spec.TrainingJob, t *Task) (*layout, error) {
	batch := j.Batch
	if batch == 0 {
		batch = t.Batch
	}
	l := &layout{Job: j, Params: t.Params, Aux: t.Aux, AuxMomentum: t.AuxMomentum, Validation: t.Validation, Fingerprint: t.Fingerprint, Notes: t.Notes,
		Plan: order.Plan{Seed: j.Seed, Examples: t.Examples, Batch: batch}}
	if err := l.Plan.Validate(); err != nil {
		return nil, failure.E("train", t.Name, failure.InvalidArgument, err, "")
	}
	if j.Batch > t.Examples {
		l.Notes = append(slices.Clone(t.Notes), fmt.Sprintf("--batch %d: the set has %d examples to train on, so each step has all of them", batch, t.Examples))
	}
	if t.Carried > 0 && j.Mode == spec.BSP {
		l.Carried = t.Carried
		l.Aux = append(slices.Clone(t.Aux), optim.Param{Name: "carried.state", Shape: []int{batch, t.Carried}})
	}
	perEpoch := l.Plan.StepsPerEpoch()
	var err error
	if l.Optimizer, err = t.optimizer(j, perEpoch); err != nil {
		return nil, err
	}
	l.Epochs = j.Epochs
	if j.Epochs == 0 && j.Steps == 0 {
		l.Epochs = max(t.Epochs, 1)
	}
	switch {
	case l.Epochs == 0:
		l.Steps, l.Epochs = int64(j.Steps), math.MaxInt32
		if j.Mode == spec.BSP {
			l.Epochs = int((l.Steps + perEpoch - 1) / perEpoch)
		}
	case j.Mode == spec.BSP:
		l.Steps = int64(l.Epochs) * perEpoch
		if j.Steps > 0 {
			l.Steps = min(l.Steps, int64(j.Steps))
		}
	default:
		l.Steps = math.MaxInt64 / 4
		if j.Steps > 0 {
			l.Steps = int64(j.Steps)
		}
	}
	l.Capacity = max(1, min(batch, max(t.Examples, t.Validation)))
	return l, nil
}

// examples returns how many examples the first so many steps take. A step of asp
// and ssp is one push, which is a batch at most.
func (l *layout) examples(steps int64) int64 {
	if l.Job.Mode != spec.BSP {
		return steps * int64(l.Plan.Batch)
	}
	epoch, _, hi := l.Plan.Positions(steps)
	return int64(epoch)*int64(l.Plan.Examples) + int64(hi)
}

// batch returns the examples of a synchronous step.
func (l *layout) batch(step int64) []int {
	if l.Carried > 0 {
		return l.Plan.Windows(step, 0, l.Plan.Batch, nil)
	}
	return l.Plan.IDs(step, nil)
}

func (l *layout) mode() elastic.Mode { return elastic.Mode(l.Job.Mode) }

// store is the configuration of a server's pieces.
func (l *layout) store() pieces.Config {
	c := pieces.Config{Params: l.Params, Aux: l.Aux, AuxMomentum: l.AuxMomentum, Carried: l.Carried > 0, Optimizer: l.Optimizer, Staleness: l.Job.Staleness}
	switch l.Job.Mode {
	case spec.ASP:
		c.Mode = pieces.ASP
	case spec.SSP:
		c.Mode = pieces.SSP
	}
	return c
}

// arrays lists what a checkpoint holds, in model order.
func (l *layout) arrays() []checkpoint.Array {
	var list []checkpoint.Array
	for _, p := range l.Params {
		list = append(list, checkpoint.Array{Name: p.Name, Shape: p.Shape})
	}
	for _, p := range l.Aux {
		list = append(list, checkpoint.Array{Name: p.Name, Shape: p.Shape, Aux: true})
	}
	return list
}

func sizes(params []optim.Param) []int {
	list := make([]int, len(params))
	for i, p := range params {
		list[i] = p.Size()
	}
	return list
}

// write makes the file appear whole or not at all.
func (l *layout) write(path string) error {
	b, err := json.MarshalIndent(l, "", "  ")
	if err != nil {
		return err
	}
	temp := path + ".tmp"
	if err = os.WriteFile(temp, b, 0o644); err == nil {
		err = os.Rename(temp, path)
	}
	if err != nil {
		_ = os.Remove(temp)
	}
	return err
}

// resumable says how the job can go on, if a checkpoint of it exists.
func (l *layout) resumable() (advice string, ok bool) {
	_, err := checkpoint.Newest(checkpoint.OS{}, l.Checkpoints)
	return "go on with --resume " + l.Job.Name, err == nil
}

func readLayout(path string) (*layout, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	l := new(layout)
	return l, json.Unmarshal(b, l)
}
