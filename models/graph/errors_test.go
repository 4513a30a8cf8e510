package graph

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"go.uber.org/goleak"
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"optimus/compute/optim"
	"optimus/internal/failure"
	"optimus/train"
)

// edited is the perceptron with something wrong.
func edited(edit func(g *G.ExprGraph, m *Graph, batch int)) func(*Config) {
	return func(c *Config) {
		build := c.Build
		c.Build = func(batch int) (Graph, error) {
			m, err := build(batch)
			if err == nil {
				edit(m.Loss.Graph(), &m, batch)
			}
			return m, err
		}
	}
}

// learnable replaces the first learnable by a node that nothing reads.
func learnable(t tensor.Dtype, shape []int, options ...G.NodeConsOpt) func(*Config) {
	return edited(func(g *G.ExprGraph, m *Graph, _ int) {
		all := options
		if shape != nil {
			all = append([]G.NodeConsOpt{G.WithShape(shape...)}, options...)
		}
		m.Learnables[0] = G.NewMatrix(g, t, all...)
	})
}

func TestBadGraphs(t *testing.T) {
	for name, c := range map[string]struct {
		edit func(c *Config)
		want string
	}{
		"no builder":  {func(c *Config) { c.Build = nil }, "wrap graph test, Build: it is not set; give the function"},
		"no filler":   {func(c *Config) { c.Fill = nil }, "test, Fill: it is not set"},
		"no examples": {func(c *Config) { c.Examples = 0 }, "test: 0 examples"},
		"negative":    {func(c *Config) { c.Largest = -1 }, "nothing negative"},
		"init": {func(c *Config) {
			c.Init = func(string, []int) optim.Init { return optim.Init{Kind: "glorot"} }
		}, `learnable hidden.w: hidden.w: invalid parameter array: init kind "glorot" is unknown`},
		"build fails": {func(c *Config) { c.Build = func(int) (Graph, error) { return Graph{}, errors.New("no memory") } }, "graph for a batch of 14: building it: no memory"},
		"build panics": {edited(func(_ *G.ExprGraph, m *Graph, _ int) {
			G.Must(G.Mul(m.Loss, m.Inputs[0]))
			G.Must(G.Mul(m.Inputs[0], m.Inputs[0]))
		}), "building it: panic: "},
		"no loss":      {edited(func(_ *G.ExprGraph, m *Graph, _ int) { m.Loss = nil }), "loss: it is not set"},
		"loss of rows": {edited(func(_ *G.ExprGraph, m *Graph, _ int) { m.Loss = m.Output }), "of shape (14, 3); it must be a float32 scalar"},
		"float64":      {learnable(G.Float64, []int{6, 8}, G.WithName("w")), "learnable w: it is of float64; servers hold float32"},
		"no shape":     {learnable(G.Float32, nil, G.WithName("w")), "learnable w: its shape is ()"},
		"no name":      {learnable(G.Float32, []int{6, 8}), "it has no name of its own"},
		"name twice":   {learnable(G.Float32, []int{6, 8}, G.WithName("out.w")), "learnable out.w: it has no name of its own; name each differently"},
		"value": {edited(func(_ *G.ExprGraph, m *Graph, _ int) {
			if err := G.Let(m.Learnables[0], filled([]int{6, 8}, float32(math.Inf(1)))); err != nil {
				t.Error(err)
			}
		}), "learnable hidden.w: hidden.w: invalid parameter array: element 0 of the given values is +Inf"},
		"not used":    {learnable(G.Float32, []int{6, 8}, G.WithName("w")), "differentiating it: "},
		"computed":    {edited(func(_ *G.ExprGraph, m *Graph, _ int) { m.Learnables[0] = m.Output }), "is no variable but computed"},
		"nil":         {edited(func(_ *G.ExprGraph, m *Graph, _ int) { m.Learnables[0] = nil }), "learnable 0: it is not set"},
		"nothing":     {edited(func(_ *G.ExprGraph, m *Graph, _ int) { m.Learnables = nil }), "learnables: there are none"},
		"other graph": {edited(func(_ *G.ExprGraph, m *Graph, _ int) { m.Learnables[0] = G.NewMatrix(G.NewGraph(), G.Float32) }), "of another graph than the loss"},
		"no output":   {edited(func(_ *G.ExprGraph, m *Graph, _ int) { m.Output = nil }), "output: it is not set; let Build return the node that Hits judges"},
		"differentiated": {edited(func(_ *G.ExprGraph, m *Graph, _ int) {
			if _, err := G.Grad(m.Loss, m.Learnables...); err != nil {
				t.Error(err)
			}
		}), "the graph is differentiated already"},
		"scalar input": {edited(func(g *G.ExprGraph, m *Graph, _ int) { m.Inputs[0] = G.NewScalar(g, G.Float32, G.WithName("s")) }), "input 0 s: its shape is ()"},
		"batch norm": {edited(func(g *G.ExprGraph, m *Graph, batch int) {
			x := G.NewTensor(g, G.Float32, 4, G.WithShape(batch, 1, 2, 2))
			one := G.NewTensor(g, G.Float32, 4, G.WithShape(1, 1, 1, 1), G.WithName("γ"), G.WithInit(G.Ones()))
			if _, _, _, _, err := G.BatchNorm(x, one, one, 0.9, 1e-5); err != nil {
				t.Error(err)
			}
		}), "batch norm: its running averages"},
		"one size":            {func(c *Config) { b := c.Build; c.Build = func(int) (Graph, error) { return b(14) } }, "let Build make the graph for the batch"},
		"learnables of batch": {func(c *Config) { c.Build = func(n int) (Graph, error) { return mlp(6, n, 3)(n) } }, "learnable 0 is hidden.w [6 14] for one batch and hidden.w [6 15] for another"},
		"fewer learnables": {edited(func(_ *G.ExprGraph, m *Graph, batch int) {
			if batch > 14 {
				m.Learnables = m.Learnables[:3]
			}
		}), "4 learnables for one batch and 3 for another"},
	} {
		t.Run(name, func(t *testing.T) {
			config := config(blobs(45, 6, 3), mlp(6, 8, 3), 14, 0)
			c.edit(&config)
			_, err := Wrap(config)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
			if failure.KindOf(err) != failure.InvalidArgument {
				t.Errorf("kind %v of %v", failure.KindOf(err), err)
			}
		})
	}
}

// TestFailingSteps: what goes wrong while a graph runs ends the job with an error
// that says where, and not the program.
func TestFailingSteps(t *testing.T) {
	defer goleak.VerifyNone(t)
	for name, c := range map[string]struct {
		edit func(c *Config)
		want string
	}{
		"fill":     {func(c *Config) { c.Fill = func([]int, bool, []*tensor.Dense) error { return errors.New("disk gone") } }, "filling the inputs: disk gone"},
		"hits":     {func(c *Config) { c.Hits = func(*tensor.Dense, []*tensor.Dense) (int, error) { return 99, nil } }, "counting hits: 99 of 14"},
		"no value": {edited(func(_ *G.ExprGraph, m *Graph, _ int) { m.Inputs = m.Inputs[:1] }), "node y :: Matrix float32: the variable has no value"},
		"panic": {func(c *Config) {
			c.Build, c.Hits = lookup, nil
			c.Fill = func(ids []int, _ bool, inputs []*tensor.Dense) error {
				inputs[0].Ints()[len(ids)-1] = -1
				return nil
			}
		}, "panic: "},
	} {
		t.Run(name, func(t *testing.T) {
			config := config(blobs(45, 6, 3), mlp(6, 8, 3), 14, 0)
			if c.edit(&config); name == "no value" {
				config.Fill = func([]int, bool, []*tensor.Dense) error { return nil }
			}
			task, err := Wrap(config)
			if err != nil {
				t.Fatal(err)
			}
			m, err := task.New(14)
			if err != nil {
				t.Fatal(err)
			}
			defer m.Close()
			if _, err := m.Train(1, 0, make([]int, 14)); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
			j := job(1, 1, 3)
			if _, err := train.Run(context.Background(), j, train.Options{Task: task, Root: t.TempDir()}); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("job: error %v, want one with %q", err, c.want)
			}
		})
	}
}

// lookup is a graph of rows of a table of five.
func lookup(batch int) (Graph, error) {
	g := G.NewGraph()
	ids := G.NewVector(g, G.Int, G.WithShape(batch), G.WithName("ids"))
	table := G.NewMatrix(g, G.Float32, G.WithShape(5, 2), G.WithName("table"))
	rows := G.Must(G.ByIndices(table, ids, 0))
	return Graph{Loss: G.Must(G.Mean(rows)), Learnables: G.Nodes{table}, Inputs: G.Nodes{ids}, Output: rows}, nil
}

func TestValuesOfNothing(t *testing.T) {
	if _, err := Values(""); failure.KindOf(err) != failure.InvalidArgument {
		t.Error(err)
	}
	if _, err := Values(t.TempDir()); err == nil || !strings.Contains(err.Error(), "manifest") {
		t.Errorf("%v does not say what is missing", err)
	}
}
