package graph_test

import (
	"context"
	"fmt"
	"math"
	"os"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"optimus/models/graph"
	"optimus/spec"
	"optimus/train"
)

// A perceptron learns which points lie within a ring, over two servers and three
// workers. Of a Gorgonia program there is the graph; what made its batches fills the
// inputs, and machine and solver are not needed.
func Example() {
	const examples = 400
	ring := func(i int) (x, y float64, inside int) { // points of a spiral
		angle, radius := 2.4*float64(i), 2*math.Sqrt(float64(i)/examples)
		if radius > 0.7 && radius < 1.4 {
			inside = 1
		}
		return radius * math.Cos(angle), radius * math.Sin(angle), inside
	}
	build := func(batch int) (graph.Graph, error) {
		g := G.NewGraph()
		x := G.NewMatrix(g, G.Float32, G.WithShape(batch, 2), G.WithName("x"))
		y := G.NewMatrix(g, G.Float32, G.WithShape(batch, 2), G.WithName("y"))
		w1 := G.NewMatrix(g, G.Float32, G.WithShape(2, 24), G.WithName("w1"), G.WithInit(G.Uniform(-1, 1)))
		b1 := G.NewMatrix(g, G.Float32, G.WithShape(1, 24), G.WithName("b1"), G.WithInit(G.Uniform(-1, 1)))
		w2 := G.NewMatrix(g, G.Float32, G.WithShape(24, 2), G.WithName("w2"), G.WithInit(G.Uniform(-1, 1)))
		h := G.Must(G.Rectify(G.Must(G.BroadcastAdd(G.Must(G.Mul(x, w1)), b1, nil, []byte{0}))))
		p := G.Must(G.LogSoftMax(G.Must(G.Mul(h, w2))))
		loss := G.Must(G.Neg(G.Must(G.Mean(G.Must(G.Sum(G.Must(G.HadamardProd(p, y)), 1))))))
		return graph.Graph{Loss: loss, Learnables: G.Nodes{w1, b1, w2}, Inputs: G.Nodes{x, y}}, nil
	}
	fill := func(ids []int, _ bool, inputs []*tensor.Dense) error {
		points, labels := inputs[0].Float32s(), inputs[1].Float32s()
		for i, id := range ids {
			x, y, inside := ring(id)
			points[2*i], points[2*i+1] = float32(x), float32(y)
			labels[2*i+inside] = 1
		}
		return nil
	}
	task, err := graph.Wrap(graph.Config{Name: "ring", Build: build, Fill: fill, Examples: examples, Batch: 40, Epochs: 60})
	if err != nil {
		fmt.Println(err)
		return
	}
	root, err := os.MkdirTemp("", "example")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(root)
	job := spec.Default()
	job.Servers.Count, job.Workers.Count, job.LR, job.Optimizer.Name = 2, 3, 0.05, "adam"
	r, err := train.Run(context.Background(), job, train.Options{Task: task, Root: root})
	if err != nil {
		fmt.Println(err)
		return
	}
	values, err := graph.Values(r.Checkpoint) // each can WriteNpy
	fmt.Println(r.Steps, "steps, loss below 0.5:", r.Loss < 0.5, values["w1"].Shape(), err)
	// Output: 600 steps, loss below 0.5: true (2, 24) <nil>
}
