package train_test

import (
	"context"
	"fmt"
	"os"
	"sync"

	"optimus/compute"
	"optimus/compute/optim"
	"optimus/spec"
	"optimus/train"
	"optimus/worker"
)

// line fits y = a·x + b to points; its parameters are one block [a, b].
type line struct {
	worker.Dense
	x, y []float32
	p, g [2]float32
}

func (m *line) SetParam(_, offset int, v []float32) { copy(m.p[offset:], v) }
func (m *line) Grad(int) compute.Grad               { return compute.Grad{Dense: m.g[:]} }

func (m *line) Train(_ uint64, _ int, ids []int) (r compute.Result, err error) {
	m.g = [2]float32{}
	for _, i := range ids {
		d := m.p[0]*m.x[i] + m.p[1] - m.y[i]
		m.g[0] += 2 * d * m.x[i]
		m.g[1] += 2 * d
		r.Add(compute.Result{Loss: float64(d * d), Weight: 1})
	}
	return r, nil
}

func (m *line) Evaluate([]int) (compute.Result, error) { return compute.Result{}, nil }

// A model and data of one's own through the same servers, rescaled while they train.
func Example_train() {
	x, y := make([]float32, 100), make([]float32, 100)
	for i := range x {
		x[i] = float32(i) / 100
		y[i] = 3*x[i] + 1
	}
	o := optim.Default(optim.SGD)
	o.LR, o.Momentum = 0.2, 0.9
	task := &train.Task{Name: "line", Params: []optim.Param{{Name: "ab", Shape: []int{2}}}, Optimizer: o,
		Batch: 20, Epochs: 600, Examples: len(x),
		New: func(int) (worker.Model, error) { return &line{x: x, y: y}, nil }}
	root, err := os.MkdirTemp("", "example")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(root)
	job := spec.Default()
	job.Name, job.Servers.Count, job.Workers.Count = "line", 2, 3
	rescaled := make(chan error, 1)
	var once sync.Once
	watch := func(s spec.Status) { // after each step: at the hundredth, other counts
		if s.Step >= 100 {
			once.Do(func() {
				go func() {
					_, err := train.Rescale(context.Background(), root, "line", 1, 4)
					rescaled <- err
				}()
			})
		}
	}
	r, err := train.Run(context.Background(), job, train.Options{Task: task, Root: root, Notify: watch})
	fmt.Println(r.Steps, float64(r.Loss) < 1e-4, r.Servers, r.Workers, err, <-rescaled)
	// Output: 3000 true 1 4 <nil> <nil>
}
