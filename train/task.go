package train

import (
	"cmp"
	"errors"
	"fmt"

	"optimus/compute"
	"optimus/compute/cpu"
	"optimus/compute/optim"
	"optimus/data"
	"optimus/internal/failure"
	"optimus/models"
	"optimus/spec"
	"optimus/worker"
)

// Task is what a job trains: the arrays that the servers hold, and how a worker
// computes on them.
type Task struct {
	Name        string
	Params      []optim.Param // learned blocks, model order
	Aux         []optim.Param // arrays that are averaged (batch norm's statistics)
	AuxMomentum float64       // weight of the old average; see pieces.Config
	Optimizer   optim.Config
	Metric      compute.Metric
	Batch       int // global batch of a step, where the job does not say
	Epochs      int // passes, where the job does not say
	Examples    int // training examples
	Validation  int // examples to evaluate on; 0 for no evaluation
	// Carried, if not 0, says that the examples are the windows of a running text, in its
	// order, and how many values of a state go on from each to the next. In mode bsp they
	// are read in as many lanes as the batch has, see order.Plan.Windows, and models are
	// a worker.Carrier. In the others, without common steps, they are read in any order
	// and each begins with a state of zeros.
	Carried int
	// New makes a worker's instance for shares of at most capacity examples.
	New func(capacity int) (worker.Model, error)

	Generated   bool // the data were made up, since none were given
	Vocabulary  []string
	Target      []string // vocabulary of the other language
	Merges      string   // that cut words to pieces, as package bpe has them in text
	Classes     []string
	Fingerprint string         // of the data; a resumed job, and each member, must find the same
	Skipped     []spec.Skipped // examples that were left out of the data
	Notes       []string       // see spec.Status
}

// generatedEpochs are enough for the made-up sets: their labels follow rules
// that the models learn quickly.
const generatedEpochs = 4

// Open makes the task of a workload of package models, on the data in j.Data or
// on generated ones.
func Open(j spec.TrainingJob) (*Task, error) {
	w, err := models.Lookup(j.Workload)
	if err == nil {
		w, err = w.At(j.Size)
	}
	if err != nil {
		return nil, failure.E("train", j.Workload, failure.InvalidArgument, err, "")
	}
	var set *data.Set
	if j.Merges != 0 && !w.Pieces {
		return nil, failure.E("train", j.Workload, failure.InvalidArgument, fmt.Errorf("--merges %d is for sentences in pieces of words, and this workload has none", j.Merges), "leave it out")
	}
	o := models.Options{Merges: j.Merges, Seed: j.Seed, Skip: j.SkipBad}
	if j.Data != "" {
		set, err = w.Open(j.Data, o)
	} else {
		set, err = w.Generate(o)
	}
	if err != nil {
		return nil, err
	}
	return NewTask(w, set, j)
}

// NewTask makes the task of a workload on a data set of one's own, or on a part of
// one.
func NewTask(w models.Workload, set *data.Set, j spec.TrainingJob) (*Task, error) {
	var notes []string
	if n := len(set.Skipped); n > 0 {
		notes = append(notes, fmt.Sprintf("examples that cannot be read are left out: %d; the log of the job names them", n))
	}
	if n := set.Train.Len(); j.Overfit > n {
		notes = append(notes, fmt.Sprintf("--overfit %d: the set has %d examples to train on, and all are", j.Overfit, n))
	}
	p, err := w.Program(set) // of the whole set, which knows its merges
	if err != nil {
		return nil, err
	}
	var merges []byte
	if m := set.Merges(); m != nil {
		if merges, err = m.MarshalText(); err != nil {
			return nil, err
		}
	}
	if j.Overfit > 0 {
		part := *set
		part.Train = &beginning{set.Train, min(j.Overfit, set.Train.Len())}
		part.Valid = part.Train
		set = &part
	}
	t := &Task{Name: w.Name, Params: p.Params, Aux: p.Aux, AuxMomentum: p.AuxMomentum, Optimizer: w.Schedule(set.Train.Len(), cmp.Or(j.Batch, w.Batch)),
		Metric: p.Metric, Batch: w.Batch, Epochs: w.Epochs, Examples: set.Train.Len(), Validation: set.Valid.Len(),
		Generated: set.Generated, Vocabulary: set.Vocabulary, Target: set.Target, Merges: string(merges), Classes: set.Classes, Fingerprint: set.Fingerprint(),
		Skipped: skipped(set.Skipped), Notes: notes}
	if set.Generated && j.Overfit == 0 {
		t.Epochs = min(t.Epochs, generatedEpochs)
	}
	t.New = func(capacity int) (worker.Model, error) { return newProgramModel(p, set, capacity) }
	return t, nil
}

// skipped says which files were left out of a set and why.
func skipped(faults []error) (list []spec.Skipped) {
	for _, err := range faults {
		s := spec.Skipped{Reason: err.Error()}
		if e, ok := errors.AsType[*data.Error](err); ok {
			s = spec.Skipped{File: e.Path, Reason: fmt.Sprintf("%s: %s", e.Kind, e.Detail)}
		}
		list = append(list, s)
	}
	return list
}

// beginning is the first examples of a split.
type beginning struct {
	data.Split
	n int
}

func (b *beginning) Len() int { return b.n }

func (b *beginning) InEpoch(epoch int) data.Split {
	return &beginning{data.InEpoch(b.Split, epoch), b.n}
}

// optimizer returns the task's settings as the job overrides them, for epochs of
// so many steps.
func (t *Task) optimizer(j spec.TrainingJob, perEpoch int64) (optim.Config, error) {
	o := t.Optimizer
	if name := j.Optimizer.Name; name != "" && name != o.Kind {
		switch name {
		case optim.SGD, optim.RMSProp, optim.Adam:
			o = optim.Default(name)
		case "momentum":
			o = optim.Default(optim.SGD)
			o.Momentum = 0.9
		default:
			return o, failure.E("train", "optimizer "+name, failure.InvalidArgument, fmt.Errorf("unknown"), "use sgd, momentum, rmsprop or adam")
		}
	}
	for _, set := range []struct {
		to   *float64
		from float64
	}{{&o.LR, j.LR}, {&o.Momentum, j.Optimizer.Momentum}, {&o.Beta1, j.Optimizer.Beta1}, {&o.Beta2, j.Optimizer.Beta2},
		{&o.Epsilon, j.Optimizer.Epsilon}, {&o.WeightDecay, j.Optimizer.WeightDecay}, {&o.ClipNorm, j.Optimizer.ClipNorm}} {
		if set.from != 0 {
			*set.to = set.from
		}
	}
	if len(j.LRDrops) > 0 {
		o = o.DropAfter(j.LRDrops, perEpoch)
	}
	if j.LRWarmup > 0 {
		o.Warmup = int64(j.LRWarmup)
	}
	if err := o.Validate(); err != nil {
		return o, failure.E("train", "optimizer", failure.InvalidArgument, err, "")
	}
	return o, nil
}

// programModel runs a compiled Program on the examples of a data set.
type programModel struct {
	compute.Executable
	batches   *data.Prefetch
	batch     compute.Batch
	nextEpoch int // and examples that probably follow those of the running step
	next      []int
}

func newProgramModel(p *compute.Program, set *data.Set, capacity int) (worker.Model, error) {
	exe, err := cpu.Compile(p, capacity)
	if err != nil {
		return nil, err
	}
	return &programModel{Executable: exe, batches: data.NewPrefetch(set, 1)}, nil
}

// Next notes what the step behind the running one will probably train on.
func (m *programModel) Next(epoch int, ids []int) {
	m.nextEpoch, m.next = epoch, append(m.next[:0], ids...)
}

// load fills the batch with examples, unless it holds them already, and lets those of
// the next step be filled meanwhile.
func (m *programModel) load(epoch int, ids []int) error {
	raw, err := m.batches.Batch(epoch, ids)
	if err != nil {
		return err
	}
	models.Convert(&m.batch, raw)
	if epoch != data.Evaluation && len(m.next) > 0 {
		m.batches.Ahead(m.nextEpoch, m.next)
	}
	return nil
}

// Close ends the executable's threads and the reading ahead.
func (m *programModel) Close() {
	m.batches.Close()
	m.Executable.Close()
}

func (m *programModel) Rows(block, epoch int, ids []int, training bool) ([]int32, error) {
	if !training {
		epoch = data.Evaluation
	}
	if err := m.load(epoch, ids); err != nil {
		return nil, err
	}
	return m.Executable.Rows(block, &m.batch)
}

func (m *programModel) Train(seed uint64, epoch int, ids []int) (compute.Result, error) {
	if err := m.load(epoch, ids); err != nil {
		return compute.Result{}, err
	}
	return m.Executable.Train(&m.batch, compute.Key{Seed: seed, Epoch: epoch, Examples: ids}, compute.Hooks{})
}

func (m *programModel) Evaluate(ids []int) (compute.Result, error) {
	if err := m.load(data.Evaluation, ids); err != nil {
		return compute.Result{}, err
	}
	return m.Executable.Evaluate(&m.batch)
}
