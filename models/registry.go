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
	Skip int    // pictures or recordings that cannot be read and may be left out
	N    int    // examples to generate; 0 means the workload's own number
	// Merges is how many merges of a byte-pair encoding make the pieces of words, for a
	// workload with Pieces; 0 means the workload's own number, WholeWords none.
	Merges int
}

// WholeWords says in Options that words are not cut to pieces.
const WholeWords = -1

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

	Optimizer optim.Config // with the learning rate of the first epoch
	Drops     []int        // after so many epochs each, the learning rate is divided by ten
	Batch     int          // examples per step, over all workers
	Epochs    int
	Pieces    bool // Options.Merges has a meaning

	tiny func() Workload // see At
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
	return []Workload{resNeXt110(), resNet50(), inceptionBN(), kaggle(), cnnRand(), dssm(), rnnLSTM(), seq2seq(), deepSpeech2(), cifarSmall()}
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

// Tiny is the size of a workload for tests and first steps: the same architecture,
// with fewer units and filters and where that helps on smaller pictures.
const Tiny = "tiny"

// At returns the workload in a size: "", that of the paper, or Tiny. Its data set,
// its model and its settings go with each other, so a job keeps to one size.
func (w Workload) At(size string) (Workload, error) {
	switch {
	case size == "":
		return w, nil
	case size == Tiny && w.tiny != nil:
		return w.tiny(), nil
	case w.tiny == nil:
		return Workload{}, fmt.Errorf("workload %s has no size %q; it has but one, leave the size out", w.Name, size)
	}
	return Workload{}, fmt.Errorf("workload %s has no size %q; leave it out or use %q", w.Name, size, Tiny)
}

// shrunk gives a workload the settings of the size Tiny.
func shrunk(w Workload, epochs, batch int) Workload {
	w.Epochs, w.Batch, w.Drops = epochs, batch, nil
	return w
}

// Schedule returns the optimizer for a job of so many training examples and global
// batch: Drops, which are in epochs, as the steps that begin them.
func (w Workload) Schedule(examples, batch int) optim.Config {
	return w.Optimizer.DropAfter(w.Drops, int64((examples+batch-1)/batch))
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
	return fmt.Errorf("model %s for data set %s: it has %d classes, pictures of %v, %d words and sentences of %d; the model needs %s",
		workload, s.Name, len(s.Classes), s.Picture, len(s.Vocabulary), s.SequenceLength, need)
}
