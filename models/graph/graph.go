package graph

import (
	"errors"
	"fmt"
	"slices"

	// Gorgonia's tensors refuse to start under a release of Go that they do not know.
	// The version of this module that is required here knows all.
	_ "go4.org/unsafe/assume-no-moving-gc"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"optimus/compute"
	"optimus/compute/optim"
	"optimus/internal/failure"
	"optimus/train"
	"optimus/worker"
)

// Graph is a model for batches of one size. All nodes belong to one graph.
type Graph struct {
	// Loss is a float32 scalar: the mean over the batch's examples. It has not been
	// differentiated: that is done here.
	Loss *gorgonia.Node
	// Learnables are the float32 nodes that are trained. Each has a name and a shape
	// that do not depend on the batch. One with a value (gorgonia.WithInit, WithValue)
	// starts with it, one without as Config.Init says.
	Learnables gorgonia.Nodes
	// Inputs are the nodes that Config.Fill fills, of any type. Their shapes depend
	// on the batch.
	Inputs gorgonia.Nodes
	// Output is what Config.Hits judges; nil without Hits.
	Output *gorgonia.Node
}

// Config describes a model and its data. Build, Fill and Examples are required.
type Config struct {
	Name string // of the workload, in messages and checkpoints; "" means "graph"
	// Build returns a new graph for batches of that many examples, at least two. It
	// is called by one goroutine at a time; a panic (of gorgonia.Must) is an error.
	Build func(batch int) (Graph, error)
	// Fill puts examples into a graph's inputs: ids[i] into place i of the batch.
	// The ids count from 0 to Examples, or without training to Validation, and may
	// repeat. The tensors are row-major and zero. Fill is called by all workers at
	// once.
	Fill func(ids []int, training bool, inputs []*tensor.Dense) error
	// Hits returns how many of a batch's predictions are right, of as many as there
	// are examples; nil if the model has no accuracy. It is called by all workers at
	// once.
	Hits func(output *tensor.Dense, inputs []*tensor.Dense) (int, error)
	// Init says how a learnable without a value starts, by its name and shape. With
	// nil it is DefaultInit.
	Init func(name string, shape []int) optim.Init

	Optimizer  optim.Config // the zero value means optim.Default(optim.SGD)
	Batch      int          // global batch of a step, where the job does not say; 0 means 32
	Epochs     int          // passes, where the job does not say; 0 means 1
	Examples   int          // for training
	Validation int          // examples to evaluate on; 0 for no evaluation
	// Largest is the largest batch that a graph is built for; a larger share of a
	// step is computed in parts of about one size. 0 means that there is no limit.
	Largest int
	// Fingerprint tells these data from others: a job that is resumed must find the
	// same. It may be empty.
	Fingerprint string
}

// errMissing says that a part of Config was left out.
var errMissing = errors.New("it is not set")

// Wrap makes a task of a graph, which goes into train.Options.Task. It builds the
// graph twice, to see that it can be trained and that its parameters do not depend
// on the batch. The values of learnables are those of the first of these graphs.
func Wrap(c Config) (*train.Task, error) {
	if c.Name == "" {
		c.Name = "graph"
	}
	if c.Batch == 0 {
		c.Batch = 32
	}
	if c.Init == nil {
		c.Init = DefaultInit
	}
	if c.Optimizer.Kind == "" {
		c.Optimizer = optim.Default(optim.SGD)
	}
	switch {
	case c.Build == nil:
		return nil, c.invalid("Build", errMissing, "give the function that builds the graph")
	case c.Fill == nil:
		return nil, c.invalid("Fill", errMissing, "give the function that fills its inputs")
	case c.Examples < 1 || c.Batch < 1 || c.Validation < 0 || c.Epochs < 0 || c.Largest < 0:
		return nil, c.invalid("", fmt.Errorf("%d examples, %d for validation, batch %d, %d epochs, at most %d in a graph", c.Examples, c.Validation, c.Batch, c.Epochs, c.Largest),
			"there must be an example, and nothing negative")
	}
	params, err := c.params()
	if err != nil {
		return nil, err
	}
	t := &train.Task{Name: c.Name, Params: params, Optimizer: c.Optimizer, Batch: c.Batch, Epochs: c.Epochs, Examples: c.Examples,
		Validation: c.Validation, Fingerprint: c.Fingerprint}
	if c.Hits != nil {
		t.Metric = compute.Accuracy
	}
	t.New = func(int) (worker.Model, error) { return newModel(c, params), nil }
	return t, nil
}

// params builds the graph for two sizes and returns the blocks that both have.
func (c Config) params() ([]optim.Param, error) {
	n := c.Batch
	if c.Largest > 0 {
		n = min(n, c.Largest)
	}
	n = max(n, 2)
	p, err := newProgram(c, n)
	if err != nil {
		return nil, err
	}
	params := p.learned()
	other, err := newProgram(c, n+1)
	if err != nil {
		return nil, err
	}
	if err := sameParams(params, other.learned()); err != nil {
		return nil, c.invalid("", err, doSame)
	}
	if p.size() == other.size() {
		return nil, c.invalid("", fmt.Errorf("the inputs have %d values for a batch of %d, and for one of %d as well", p.size(), n, n+1), "let Build make the graph for the batch that it is given")
	}
	for i := range params {
		params[i].NoDecay = len(params[i].Shape) < 2
		if params[i].Init, err = p.start(c, i); err == nil {
			err = params[i].Validate()
		}
		if err != nil {
			return nil, c.invalid("learnable "+params[i].Name, err, "")
		}
	}
	return params, nil
}

const doSame = "name the learnables with gorgonia.WithName, and let only inputs depend on the batch"

// sameParams compares what graphs of two sizes learn.
func sameParams(a, b []optim.Param) error {
	if len(a) != len(b) {
		return fmt.Errorf("it has %d learnables for one batch and %d for another", len(a), len(b))
	}
	for i, p := range a {
		if q := b[i]; p.Name != q.Name || !slices.Equal(p.Shape, q.Shape) {
			return fmt.Errorf("learnable %d is %s %v for one batch and %s %v for another", i, p.Name, p.Shape, q.Name, q.Shape)
		}
	}
	return nil
}

// invalid is the error of a model that cannot be trained; what names a part of it.
func (c Config) invalid(what string, cause error, do string) error {
	return c.failed("wrap graph", what, failure.InvalidArgument, cause, do)
}

func (c Config) failed(op, what string, kind failure.Kind, cause error, do string) error {
	subject := c.Name
	if what != "" {
		subject += ", " + what
	}
	return failure.E(op, subject, kind, cause, do)
}
