package graph

import (
	"math"
	"testing"

	"go.uber.org/goleak"
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"optimus/data/order"
	"optimus/spec"
)

// plain trains as a Gorgonia program does: one process, its tape machine and its
// solver, on the batches of the same plan. It returns the learnables by name.
func plain(t *testing.T, c Config, steps int) map[string][]float32 {
	t.Helper()
	task, err := Wrap(c)
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]*tensor.Dense{}
	for b, p := range task.Params {
		x := make([]float32, p.Size())
		p.Init.Fill(1, b, 0, x)
		values[p.Name] = tensor.New(tensor.WithShape(p.Shape...), tensor.WithBacking(x))
	}
	type machine struct {
		Graph
		vm     G.VM
		inputs []*tensor.Dense
	}
	machines := map[int]machine{} // by batch
	build := func(batch int) (m machine) {
		var err error
		if m.Graph, err = c.Build(batch); err != nil {
			t.Fatal(err)
		}
		for _, n := range m.Learnables {
			if err := G.Let(n, values[n.Name()]); err != nil {
				t.Fatal(err)
			}
		}
		for _, n := range m.Inputs {
			in := tensor.New(tensor.Of(G.Float32), tensor.WithShape(n.Shape()...))
			if err := G.Let(n, in); err != nil {
				t.Fatal(err)
			}
			m.inputs = append(m.inputs, in)
		}
		if _, err := G.Grad(m.Loss, m.Learnables...); err != nil {
			t.Fatal(err)
		}
		m.vm = G.NewTapeMachine(m.Loss.Graph(), G.BindDualValues(m.Learnables...))
		return m
	}
	plan := order.Plan{Seed: 1, Examples: c.Examples, Batch: c.Batch}
	solver := G.NewVanillaSolver(G.WithLearnRate(c.Optimizer.LR))
	for step := range int64(steps) {
		ids := plan.IDs(step+1, nil)
		m, ok := machines[len(ids)]
		if !ok {
			m = build(len(ids))
			machines[len(ids)] = m
		}
		for _, in := range m.inputs {
			in.Zero()
		}
		if err := c.Fill(ids, true, m.inputs); err != nil {
			t.Fatal(err)
		}
		if err := m.vm.RunAll(); err != nil {
			t.Fatal(err)
		}
		if err := solver.Step(G.NodesToValueGrads(m.Learnables)); err != nil {
			t.Fatal(err)
		}
		m.vm.Reset()
	}
	out := map[string][]float32{}
	for name, v := range values {
		out[name] = v.Float32s()
	}
	return out
}

// distance is the largest difference between parameters and what the checkpoint at
// dir holds.
func distance(t *testing.T, want map[string][]float32, dir string) float64 {
	t.Helper()
	got, err := Values(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != len(want) {
		t.Fatalf("%d arrays, want %d", len(got), len(want))
	}
	far := 0.0
	for name, x := range want {
		for i, v := range got[name].Float32s() {
			far = max(far, math.Abs(float64(v-x[i])))
		}
	}
	return far
}

// TestAsPlainGorgonia: a job ends with the parameters of the program that a user
// of Gorgonia would write. 45 examples in batches of 14 make a short last batch of
// three, of which five workers have shares of one example or none.
func TestAsPlainGorgonia(t *testing.T) {
	defer goleak.VerifyNone(t)
	const steps, tolerance = 40, 1e-5
	pictures := blobs(45, 64, 3)
	for name, c := range map[string]Config{
		"mlp":     config(blobs(45, 6, 3), mlp(6, 8, 3), 14, 0),
		"convnet": config(pictures, convnet, 14, 0),
	} {
		t.Run(name, func(t *testing.T) {
			want := plain(t, c, steps)
			sha := map[int]string{} // by workers
			for _, n := range [][]int{{1, 1}, {2, 1}, {1, 2}, {2, 2}, {3, 5}, {2, 2, 1, 2}, {1, 1, 2, 3}} {
				r := run(t, c, job(n[0], n[1], steps), t.TempDir(), n[2:]...)
				far := distance(t, want, r.Checkpoint)
				t.Logf("%v: %.1e from the plain program", n, far)
				if r.Steps != steps || far > tolerance {
					t.Errorf("%v: %d steps, parameters %.1e from those of the plain program", n, r.Steps, far)
				}
				if w := n[1]; w == r.Workers {
					if sha[w] != "" && sha[w] != r.ParamsSHA256 {
						t.Errorf("%v: other bits than the same workers with other servers", n)
					}
					sha[w] = r.ParamsSHA256
				}
			}
		})
	}
}

func TestResume(t *testing.T) {
	c := config(blobs(45, 6, 3), mlp(6, 8, 3), 14, 0)
	c.Optimizer.Momentum = 0.9
	want := run(t, c, job(1, 2, 20), t.TempDir())
	root := t.TempDir()
	run(t, c, job(2, 2, 9), root)
	j := job(1, 2, 20)
	j.Resume = "job"
	if got := run(t, c, j, root); got.ParamsSHA256 != want.ParamsSHA256 {
		t.Error("a job that was resumed at step 9 ended with other bits")
	}
}

func TestModes(t *testing.T) {
	c := config(blobs(240, 6, 3), mlp(6, 16, 3), 12, 60)
	c.Epochs, c.Largest = 3, 5
	for _, mode := range []spec.Mode{spec.BSP, spec.ASP, spec.SSP} {
		j := job(2, 2, 0)
		if j.Mode = mode; mode == spec.SSP {
			j.Staleness = 2
		}
		r := run(t, c, j, t.TempDir())
		if r.Metric == nil || r.Metric.Name != "accuracy" || r.Metric.Value < 0.9 {
			t.Errorf("%s: %+v", mode, r.Metric)
		}
	}
}
