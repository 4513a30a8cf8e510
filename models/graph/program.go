package graph

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"optimus/compute/optim"
)

// building keeps graphs from being built at once: Gorgonia's graphs share nodes
// for constants.
var building sync.Mutex

// program is a graph for one size of batch, ready to run.
type program struct {
	Graph
	batch    int
	inputs   []*tensor.Dense // the values of Inputs
	forward  plan            // to the loss and the output
	training plan            // to the gradients as well
	grads    gorgonia.Nodes  // of Learnables
}

// newProgram builds the graph for a batch, checks it and differentiates it.
func newProgram(c Config, batch int) (*program, error) {
	building.Lock()
	defer building.Unlock()
	p := &program{batch: batch}
	what := fmt.Sprintf("graph for a batch of %d", batch)
	err := guard(func() (err error) {
		p.Graph, err = c.Build(batch)
		return err
	})
	if err != nil {
		return nil, c.invalid(what, fmt.Errorf("building it: %w", err), "")
	}
	if what, do, err := p.check(c); err != nil {
		return nil, c.invalid(what, err, do)
	}
	err = guard(func() (err error) {
		p.grads, err = gorgonia.Grad(p.Loss, p.Learnables...)
		return err
	})
	if err != nil {
		return nil, c.invalid(what, fmt.Errorf("differentiating it: %w", err), "let the loss depend on each learnable, through operations that Gorgonia can differentiate")
	}
	wanted := gorgonia.Nodes{p.Loss}
	if p.Output != nil {
		wanted = append(wanted, p.Output)
	}
	if p.forward, err = newPlan(wanted); err == nil {
		p.training, err = newPlan(append(wanted, p.grads...))
	}
	if err != nil {
		return nil, c.invalid(what, err, "")
	}
	return p, nil
}

// check looks at all that Build returned, and makes the inputs' values. It returns
// which part is wrong and what to do about it.
func (p *program) check(c Config) (what, do string, err error) {
	if p.Loss == nil {
		return "loss", "let Build return the node of the loss", errMissing
	}
	if !p.Loss.IsScalar() || p.Loss.Dtype() != tensor.Float32 {
		return "loss", "it must be a float32 scalar, the mean over the batch: end it with gorgonia.Mean", fmt.Errorf("node %v is a %v of shape %v", p.Loss, p.Loss.Type(), p.Loss.Shape())
	}
	if len(p.Learnables) == 0 {
		return "learnables", "let Build return the nodes to train", errors.New("there are none")
	}
	if c.Hits != nil && p.Output == nil {
		return "output", "let Build return the node that Hits judges", errMissing
	}
	seen := map[string]bool{}
	for i, n := range p.Learnables {
		what := fmt.Sprintf("learnable %d", i)
		if do, err := checkVariable(p.Loss, n); err != nil {
			return what, do, err
		}
		name := n.Name()
		what = "learnable " + name
		switch {
		case strings.HasPrefix(name, unnamed) || seen[name]:
			return what, "name each differently with gorgonia.WithName", errors.New("it has no name of its own")
		case n.Dtype() != tensor.Float32:
			return what, "servers hold float32", fmt.Errorf("it is of %v", n.Dtype())
		case !n.IsScalar() && len(n.Shape()) == 0 || n.Shape().TotalSize() < 1:
			return what, "give it one with gorgonia.WithShape", fmt.Errorf("its shape is %v", n.Shape())
		case n.Deriv() != nil:
			return what, "leave gorgonia.Grad to this package", errors.New("the graph is differentiated already")
		}
		seen[name] = true
	}
	for i, n := range p.Inputs {
		what := fmt.Sprintf("input %d", i)
		if do, err := checkVariable(p.Loss, n); err != nil {
			return what, do, err
		}
		if len(n.Shape()) == 0 || n.Shape().TotalSize() < 1 {
			return what + " " + n.Name(), "give it one with gorgonia.WithShape, with a place for each example of the batch", fmt.Errorf("its shape is %v", n.Shape())
		}
		p.inputs = append(p.inputs, tensor.New(tensor.Of(n.Dtype()), tensor.WithShape(n.Shape()...)))
	}
	for _, n := range p.Loss.Graph().AllNodes() {
		if _, ok := n.Op().(*gorgonia.BatchNormOp); ok {
			return "batch norm", "use another normalisation, or build the model with package nn", errors.New("its running averages are kept within the operation, which no server reaches")
		}
	}
	return "", "", nil
}

// unnamed is how Gorgonia prints the name of a variable without one.
const unnamed = "%!s(<nil>)"

// checkVariable makes sure that n is a variable of the loss's graph.
func checkVariable(loss, n *gorgonia.Node) (do string, err error) {
	switch {
	case n == nil:
		return "let Build return no nil node", errMissing
	case n.Graph() != loss.Graph():
		return "build all nodes in the graph that Build makes", fmt.Errorf("%s is of another graph than the loss", n.Name())
	case !n.IsVar():
		return "give the node of gorgonia.NewMatrix or one like it", fmt.Errorf("%s is no variable but computed", n.Name())
	}
	return "", nil
}

// start returns how learnable i starts: with the value that Build gave it, or as
// Config.Init says.
func (p *program) start(c Config, i int) (optim.Init, error) {
	n := p.Learnables[i]
	if n.Value() == nil {
		return c.Init(n.Name(), slices.Clone([]int(n.Shape()))), nil
	}
	values, err := floats(n.Value())
	return optim.InitFrom(slices.Clone(values)), err // the memory may be the caller's
}

// learned returns the blocks of the graph, without Init.
func (p *program) learned() []optim.Param {
	var list []optim.Param
	for _, n := range p.Learnables {
		list = append(list, optim.Param{Name: n.Name(), Shape: slices.Clone([]int(n.Shape()))})
	}
	return list
}

// size returns the number of values of all inputs.
func (p *program) size() int {
	total := 0
	for _, in := range p.inputs {
		total += in.Shape().TotalSize()
	}
	return total
}

// train computes loss and gradients at params. The loss is a mean, and so are the
// gradients: add is called with each of them.
func (p *program) train(params [][]float32, add func(block int, grad []float32)) (loss float32, output *tensor.Dense, err error) {
	values, err := p.run(p.training, true, params)
	if err != nil {
		return 0, nil, err
	}
	for b, n := range p.grads {
		grad, err := floats(values[n])
		if err != nil {
			return 0, nil, fmt.Errorf("gradient of %s: %w", p.Learnables[b].Name(), err)
		}
		if len(grad) != len(params[b]) {
			return 0, nil, fmt.Errorf("gradient of %s: it has %d values, not %d", p.Learnables[b].Name(), len(grad), len(params[b]))
		}
		add(b, grad)
	}
	return p.ends(values)
}

// evaluate computes the loss alone.
func (p *program) evaluate(params [][]float32) (loss float32, output *tensor.Dense, err error) {
	values, err := p.run(p.forward, false, params)
	if err != nil {
		return 0, nil, err
	}
	return p.ends(values)
}

// ends returns the values of loss and output.
func (p *program) ends(values map[*gorgonia.Node]gorgonia.Value) (loss float32, output *tensor.Dense, err error) {
	l, err := floats(values[p.Loss])
	if err != nil || len(l) != 1 {
		return 0, nil, fmt.Errorf("the loss has %d values: %v", len(l), err)
	}
	if p.Output != nil {
		var ok bool
		if output, ok = values[p.Output].(*tensor.Dense); !ok {
			return 0, nil, fmt.Errorf("the output is a %T, not a tensor", values[p.Output])
		}
	}
	return l[0], output, nil
}

// run computes the nodes that a plan is for, in one of the two modes.
func (p *program) run(plan plan, training bool, params [][]float32) (map[*gorgonia.Node]gorgonia.Value, error) {
	given := map[*gorgonia.Node]gorgonia.Value{}
	for i, n := range p.Inputs {
		given[n] = p.inputs[i]
	}
	for b, n := range p.Learnables {
		if n.IsScalar() {
			given[n] = gorgonia.NewF32(params[b][0])
			continue
		}
		given[n] = tensor.New(tensor.WithShape(n.Shape()...), tensor.WithBacking(params[b]))
	}
	return plan.run(given, training)
}

// floats returns the values of v in row-major order: its memory, where it is in
// that order.
func floats(v gorgonia.Value) ([]float32, error) {
	switch v := v.(type) {
	case *gorgonia.F32:
		return []float32{float32(*v)}, nil
	case *tensor.Dense:
		if v.Dtype() != tensor.Float32 {
			return nil, fmt.Errorf("it is of %v, not of float32", v.Dtype())
		}
		if v.RequiresIterator() || v.IsMaterializable() || v.DataOrder().IsColMajor() {
			v = v.Materialize().(*tensor.Dense)
		}
		if x, ok := v.Data().(float32); ok {
			return []float32{x}, nil
		}
		return v.Float32s(), nil
	}
	return nil, fmt.Errorf("it is a %T, not a float32 tensor", v)
}

// DefaultInit starts a matrix, or a tensor of more dimensions, uniformly within
// ±√(6/(in+out)), and all others with zeros (Glorot and Bengio, "Understanding the
// difficulty of training deep feedforward neural networks", 2010, equation 16). The
// first two dimensions count inputs and outputs, the others the pixels of a window.
func DefaultInit(_ string, shape []int) optim.Init {
	if len(shape) < 2 {
		return optim.Init{}
	}
	window := 1
	for _, d := range shape[2:] {
		window *= d
	}
	return optim.Init{Kind: optim.Uniform, Scale: math.Sqrt(6 / float64((shape[0]+shape[1])*window))}
}
