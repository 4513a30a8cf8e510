package graph

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"optimus/data/order"
	"optimus/internal/failure"
	"optimus/spec"
	"optimus/train"
)

// plain trains as a Gorgonia program does: one process, its tape machine and its
// solver, on the batches of the same plan. It returns the learnables by name.
func plain(t *testing.T, c Config, task *train.Task, steps int) map[string][]float32 {
	t.Helper()
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
		"values":  config(blobs(45, 6, 3), valued(mlp(6, 8, 3)), 14, 0),
	} {
		t.Run(name, func(t *testing.T) {
			task := wrap(t, c)
			want := plain(t, c, task, steps)
			sha := map[int]string{} // by workers
			for _, n := range [][]int{{1, 1}, {2, 1}, {1, 2}, {2, 2}, {3, 5}, {2, 2, 1, 2}, {1, 1, 2, 3}} {
				r := run(t, task, job(n[0], n[1], steps), t.TempDir(), n[2:]...)
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

// valued gives learnables values as Gorgonia programs do: drawn anew for each graph.
// The last one has none.
func valued(build func(int) (Graph, error)) func(batch int) (Graph, error) {
	return func(batch int) (Graph, error) {
		m, err := build(batch)
		for _, n := range m.Learnables[:len(m.Learnables)-1] {
			G.WithInit(G.Gaussian(0, 0.5))(n)
		}
		return m, err
	}
}

// TestGivenValues: a learnable with a value starts with exactly that of one graph.
func TestGivenValues(t *testing.T) {
	var graphs []Graph
	shift, row := G.NewF32(-3), filled([]int{1, 3}, 0.25)
	build := valued(mlp(6, 8, 3))
	c := config(blobs(45, 6, 3), func(batch int) (Graph, error) {
		m, err := build(batch)
		g := m.Loss.Graph()
		s := G.NewScalar(g, G.Float32, G.WithName("shift"), G.WithValue(shift))
		r := G.NewMatrix(g, G.Float32, G.WithName("row"), G.WithValue(row), G.WithShape(1, 3))
		sum := G.Must(G.Mean(G.Must(G.Sum(r, 1))))
		m.Loss = G.Must(G.Add(m.Loss, G.Must(G.Mul(s, sum))))
		m.Learnables = append(m.Learnables, s, r)
		graphs = append(graphs, m)
		return m, err
	}, 14, 0)
	task := wrap(t, c)
	want := map[string][]float32{}
	for b, n := range graphs[0].Learnables {
		x := make([]float32, n.Shape().TotalSize())
		if n.Value() == nil {
			DefaultInit(n.Name(), n.Shape()).Fill(1, b, 0, x)
		} else if v, err := floats(n.Value()); err != nil || copy(x, v) != len(x) {
			t.Fatal(v, err)
		}
		want[n.Name()] = x
	}
	if other := graphs[1].Learnables[0].Value().(*tensor.Dense); slices.Equal(other.Float32s(), want["hidden.w"]) {
		t.Fatal("graphs are built with the same values: this shows nothing")
	}
	*shift = 9 // the caller's memory is the caller's
	row.Zero()
	for _, n := range [][]int{{1, 1}, {3, 2}} {
		j := job(n[0], n[1], 1)
		j.LR = 1e-30 // nothing moves
		r := run(t, task, j, t.TempDir())
		if far := distance(t, want, r.Checkpoint); far != 0 {
			t.Errorf("%v: the job starts %.1e from the values of the first graph", n, far)
		}
	}
	j := job(1, 1, 1)
	j.Launch = spec.Process
	for cause, child := range map[string][]string{"Options.Child": nil, "starting values": {"member"}} {
		_, err := train.Run(t.Context(), j, train.Options{Task: task, Root: t.TempDir(), Child: child})
		if failure.KindOf(err) != failure.InvalidArgument || !strings.Contains(fmt.Sprint(err), cause) {
			t.Errorf("with processes: %v, want %q", err, cause)
		}
	}
}

func filled(shape []int, v float32) *tensor.Dense {
	d := tensor.New(tensor.Of(G.Float32), tensor.WithShape(shape...))
	if err := d.Memset(v); err != nil {
		panic(err)
	}
	return d
}

func TestResume(t *testing.T) {
	c := config(blobs(45, 6, 3), valued(mlp(6, 8, 3)), 14, 0)
	c.Optimizer.Momentum = 0.9
	task := wrap(t, c)
	want := run(t, task, job(1, 2, 20), t.TempDir())
	root := t.TempDir()
	run(t, task, job(2, 2, 9), root)
	j := job(1, 2, 20)
	j.Resume = "job"
	if got := run(t, wrap(t, c), j, root); got.ParamsSHA256 != want.ParamsSHA256 {
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
		r := run(t, wrap(t, c), j, t.TempDir())
		if r.Metric == nil || r.Metric.Name != "accuracy" || r.Metric.Value < 0.9 {
			t.Errorf("%s: %+v", mode, r.Metric)
		}
	}
}
