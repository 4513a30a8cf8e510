package models

import (
	"errors"
	"fmt"

	"optimus/compute"
	"optimus/compute/optim"
	"optimus/data"
	"optimus/internal/suggest"
)

// ErrUnknown is wrapped by Lookup's error.
var ErrUnknown = errors.New("unknown workload")

// Options says how to make a data set.
type Options struct {
	Seed uint64 // of the split, or of the generator
	N    int    // examples to generate; 0 means the workload's own number
}

// Workload is one entry of the registry.
type Workload struct {
	Name        string
	Type        string // CNN, RNN
	Application string
	Dataset     string // the original's name
	Examples    int    // in the whole original data set

	// Open reads the data set in its original on-disk format from a folder.
	Open func(dir string, o Options) (*data.Set, error)
	// Generate makes a synthetic data set of the same shape that can be learned.
	Generate func(o Options) (*data.Set, error)
	// Program makes the model for a data set; it fails if the set is of another kind.
	Program func(*data.Set) (*compute.Program, error)
	// Full makes the model for the whole original data set.
	Full func() (*compute.Program, error)

	Optimizer optim.Config
	Batch     int // examples per step, over all workers
	Epochs    int
	Metric    compute.Metric
}

// Info is what the listing says about a workload.
type Info struct {
	Name        string `json:"name"`
	Parameters  int    `json:"parameters"`
	Blocks      int    `json:"blocks"`
	Type        string `json:"type"`
	Application string `json:"application"`
	Dataset     string `json:"dataset"`
	Examples    int    `json:"examples"`
}

// All returns the workloads: those of Table 1 in its order, then the others by
// name.
func All() []Workload {
	return []Workload{cnnRand(), cifarSmall()}
}

// List describes all workloads, in All's order.
func List() ([]Info, error) {
	var list []Info
	for _, w := range All() {
		p, err := w.Full()
		if err != nil {
			return nil, fmt.Errorf("list workload %s: %w", w.Name, err)
		}
		list = append(list, Info{w.Name, p.Parameters(), len(p.Params), w.Type, w.Application, w.Dataset, w.Examples})
	}
	return list, nil
}

// Lookup returns the workload of that name. The error for an unknown name wraps
// ErrUnknown and says which may have been meant.
func Lookup(name string) (Workload, error) {
	return suggest.Find(name, All(), func(w Workload) string { return w.Name }, ErrUnknown)
}

// Convert makes dst the batch src for an Executable. They share the values; dst's
// own memory is used again.
func Convert(dst *compute.Batch, src *data.Batch) {
	dst.N, dst.Inputs = src.N, dst.Inputs[:0]
	for _, a := range src.Inputs {
		dst.Inputs = append(dst.Inputs, compute.Array(a))
	}
}

// want returns an error that says which kind of data set a workload needs.
func want(ok bool, workload string, s *data.Set, need string) error {
	if ok {
		return nil
	}
	return fmt.Errorf("model %s for data set %s: it has %d classes, %d words and sentences of %d; the model needs %s",
		workload, s.Name, len(s.Classes), len(s.Vocabulary), s.SequenceLength, need)
}
