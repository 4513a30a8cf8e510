package graph

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"optimus/compute/optim"
	"optimus/spec"
	"optimus/train"
)

// set is a small classification problem.
type set struct {
	x       [][]float32
	labels  []int
	classes int
}

// blobs are points around as many centres as there are classes.
func blobs(n, features, classes int) set {
	r := rand.New(rand.NewPCG(1, 2))
	centres := make([][]float32, classes)
	for c := range centres {
		for range features {
			centres[c] = append(centres[c], float32(2*r.NormFloat64()))
		}
	}
	s := set{classes: classes}
	for i := range n {
		x := make([]float32, features)
		for j := range x {
			x[j] = centres[i%classes][j] + float32(r.NormFloat64())
		}
		s.x, s.labels = append(s.x, x), append(s.labels, i%classes)
	}
	return s
}

// fill puts pictures, or vectors, and their labels as one-hot rows into a graph.
func (s set) fill(ids []int, inputs []*tensor.Dense) {
	x, y := inputs[0].Float32s(), inputs[1].Float32s()
	for i, id := range ids {
		copy(x[i*len(s.x[id]):], s.x[id])
		y[i*s.classes+s.labels[id]] = 1
	}
}

// hits counts the rows whose largest value is at the label.
func hits(output *tensor.Dense, inputs []*tensor.Dense) (int, error) {
	scores, labels := output.Float32s(), inputs[1].Float32s()
	classes, n := output.Shape()[1], 0
	for i := range output.Shape()[0] {
		best := 0
		for c := range classes {
			if scores[i*classes+c] > scores[i*classes+best] {
				best = c
			}
		}
		n += int(labels[i*classes+best])
	}
	return n, nil
}

// dense is x·w + b.
func dense(x *G.Node, name string, in, out int) (y *G.Node, learned G.Nodes) {
	g := x.Graph()
	w := G.NewMatrix(g, G.Float32, G.WithShape(in, out), G.WithName(name+".w"))
	b := G.NewMatrix(g, G.Float32, G.WithShape(1, out), G.WithName(name+".b"))
	return G.Must(G.BroadcastAdd(G.Must(G.Mul(x, w)), b, nil, []byte{0})), G.Nodes{w, b}
}

// crossEntropy ends a graph.
func crossEntropy(scores, x, labels *G.Node, learned G.Nodes) Graph {
	p := G.Must(G.LogSoftMax(scores))
	loss := G.Must(G.Neg(G.Must(G.Mean(G.Must(G.Sum(G.Must(G.HadamardProd(p, labels)), 1))))))
	return Graph{Loss: loss, Learnables: learned, Inputs: G.Nodes{x, labels}, Output: p}
}

// mlp is a perceptron with one hidden layer.
func mlp(in, hidden, classes int) func(batch int) (Graph, error) {
	return func(batch int) (Graph, error) {
		g := G.NewGraph()
		x := G.NewMatrix(g, G.Float32, G.WithShape(batch, in), G.WithName("x"))
		y := G.NewMatrix(g, G.Float32, G.WithShape(batch, classes), G.WithName("y"))
		h, first := dense(x, "hidden", in, hidden)
		scores, second := dense(G.Must(G.Rectify(h)), "out", hidden, classes)
		return crossEntropy(scores, x, y, append(first, second...)), nil
	}
}

// convnet has a convolution, a pool and a layer of scores, on pictures of 8×8.
func convnet(batch int) (Graph, error) {
	g := G.NewGraph()
	x := G.NewTensor(g, G.Float32, 4, G.WithShape(batch, 1, 8, 8), G.WithName("x"))
	y := G.NewMatrix(g, G.Float32, G.WithShape(batch, 3), G.WithName("y"))
	f := G.NewTensor(g, G.Float32, 4, G.WithShape(4, 1, 3, 3), G.WithName("filter"))
	c := G.Must(G.Tanh(G.Must(G.Conv2d(x, f, tensor.Shape{3, 3}, []int{1, 1}, []int{1, 1}, []int{1, 1}))))
	p := G.Must(G.MaxPool2D(c, tensor.Shape{2, 2}, []int{0, 0}, []int{2, 2}))
	scores, learned := dense(G.Must(G.Reshape(p, tensor.Shape{batch, 4 * 4 * 4})), "out", 4*4*4, 3)
	return crossEntropy(scores, x, y, append(G.Nodes{f}, learned...)), nil
}

// config makes a task of a set whose last examples are for validation.
func config(s set, build func(int) (Graph, error), batch, validation int) Config {
	o := optim.Default(optim.SGD)
	o.LR, o.Momentum = 0.1, 0
	examples := len(s.labels) - validation
	return Config{Name: "test", Build: build, Optimizer: o, Batch: batch, Examples: examples, Validation: validation, Hits: hits,
		Fill: func(ids []int, training bool, inputs []*tensor.Dense) error {
			from := s
			if !training {
				from = set{s.x[examples:], s.labels[examples:], s.classes}
			}
			from.fill(ids, inputs)
			return nil
		}}
}

func wrap(t *testing.T, c Config) *train.Task {
	t.Helper()
	task, err := Wrap(c)
	if err != nil {
		t.Fatal(err)
	}
	return task
}

// run trains a job to its end. rescale, if it names counts, happens in the midst:
// steps are slow until it is over.
func run(t *testing.T, task *train.Task, j spec.TrainingJob, root string, rescale ...int) spec.Result {
	t.Helper()
	o := train.Options{Task: task, Root: root, Tune: train.Tuning{Tick: 10 * time.Millisecond, Beat: 50 * time.Millisecond, Lease: 50 * time.Millisecond}}
	j.Name = "job"
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	rescaled := make(chan error, 1)
	if len(rescale) == 0 {
		rescaled <- nil
	} else {
		var over, begun atomic.Bool
		o.Slow = func(int) func() {
			return func() {
				if !over.Load() {
					time.Sleep(10 * time.Millisecond)
				}
			}
		}
		o.Notify = func(s spec.Status) {
			if s.Step >= 3 && begun.CompareAndSwap(false, true) {
				go func() {
					_, err := train.Rescale(ctx, root, "job", rescale[0], rescale[1])
					over.Store(true)
					rescaled <- err
				}()
			}
		}
	}
	r, err := train.Run(ctx, j, o)
	if err != nil {
		t.Fatal(err)
	}
	if err := <-rescaled; err != nil {
		t.Fatal(err)
	}
	if n := len(rescale) / 2; len(r.Rescales) != n {
		t.Fatalf("%d rescales happened, want %d", len(r.Rescales), n)
	}
	return r
}

func job(p, w, steps int) spec.TrainingJob {
	j := spec.Default()
	j.Servers.Count, j.Workers.Count, j.Steps = p, w, steps
	return j
}
