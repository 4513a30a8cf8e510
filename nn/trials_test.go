package nn_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"optimus/compute"
	"optimus/compute/optim"
	"optimus/internal/rng"
	"optimus/nn"
)

// TestBO35_SizesOfZeroAndOne: sizes of zero are errors of the model, sizes of one are
// sizes like others. (Batches of one and layers of one cell: "one of everything" in TestGradients.)
func TestBO35_SizesOfZeroAndOne(t *testing.T) {
	for _, shape := range [][]int{{}, {0}, {1}, {1, 1}, {2, 0}, {0, 3}, {1, 5, 1}} {
		for name, layer := range map[string]func(n *nn.Net, x *nn.Value) *nn.Value{
			"dense":   func(n *nn.Net, x *nn.Value) *nn.Value { return n.Dense("a", x, 2, weights) },
			"concat":  func(n *nn.Net, x *nn.Value) *nn.Value { return n.Concat(x, x) },
			"add":     func(n *nn.Net, x *nn.Value) *nn.Value { return n.Add(x, x) },
			"relu":    func(n *nn.Net, x *nn.Value) *nn.Value { return n.ReLU(x) },
			"dropout": func(n *nn.Net, x *nn.Value) *nn.Value { return n.Dropout(x, 0.5) },
			"norm":    func(n *nn.Net, x *nn.Value) *nn.Value { return n.BatchNorm("bn", x) },
			"flat":    func(n *nn.Net, x *nn.Value) *nn.Value { return n.Flatten(x) },
		} {
			t.Run(fmt.Sprint(name, shape), func(t *testing.T) {
				n := nn.New("sizes")
				x := layer(n, n.Floats("x", shape...))
				n.SoftmaxCrossEntropy(n.Dense("fc", n.Flatten(x), 2, weights), n.Ints("label", 1, 2))
				p, err := n.Program()
				if len(shape) == 0 || slices.Contains(shape, 0) {
					if !errors.Is(err, nn.ErrModel) {
						t.Errorf("error %v, want one of the model", err)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				r, e := random(p, 1, 1), compile(t, p, 1)
				load(t, e, r)
				got, err := e.Train(r.batch, r.key, compute.Hooks{})
				if want := r.run(); err != nil || math.Abs(got.Loss-want) > 1e-4*math.Abs(want) || got.Weight != 1 {
					t.Errorf("%+v, %v; want the loss %v", got, err, want)
				}
			})
		}
	}
	if mean := (compute.Result{}).Mean(); mean != 0 {
		t.Errorf("the mean of nothing is %v, want 0", mean)
	}
}

// TestBO36_BatchNormStatisticsAreShared: workers whose data differ agree on the statistics
// of batch norms, which are averaged like gradients, so that whoever evaluates with them
// predicts the same.
func TestBO36_BatchNormStatisticsAreShared(t *testing.T) {
	n := nn.New("norms")
	x := n.Conv2D("a", n.Floats("x", 1, 6, 6), nn.Conv{Filters: 4, Kernel: 3, Pad: 1, NoBias: true, Init: nn.He(9)})
	x = n.ReLU(n.BatchNorm("bn", x))
	n.SoftmaxCrossEntropy(n.Dense("fc", n.Flatten(n.GlobalAvgPool(x)), 2, weights), n.Ints("label", 1, 2))
	p, err := n.Program()
	if err != nil {
		t.Fatal(err)
	}
	// Pictures of one class are brighter on the left. Worker w sees them on a background
	// of 5·w; a fourth kind, on all of them, is for evaluation.
	pictures := func(first, count int, background func(i int) float64) *compute.Batch {
		b := &compute.Batch{N: count, Inputs: make([]compute.Array, 2)}
		for i := first; i < first+count; i++ {
			key := rng.NewKey(3, uint64(i))
			for j := range 36 {
				v := background(i) + key.Normal(uint64(j))
				if j%6 < 3 == (i%2 == 0) {
					v++
				}
				b.Inputs[0].F = append(b.Inputs[0].F, float32(v))
			}
			b.Inputs[1].I = append(b.Inputs[1].I, int32(i%2))
		}
		return b
	}
	model := newServer(p)
	train := func(workers, steps, from int) {
		var all []compute.Executable
		for range workers {
			all = append(all, compile(t, p, 8))
		}
		for step := from; step < from+steps; step++ {
			model.collect()
			for w, e := range all {
				model.set(e)
				b := pictures((step*workers+w)*8, 8, func(int) float64 { return 5 * float64(w) })
				r, err := e.Train(b, compute.Key{}, compute.Hooks{})
				if err != nil {
					t.Fatal(err)
				}
				model.push(e, r)
			}
			model.apply(0.1)
		}
	}
	accuracies := func(workers int) {
		t.Helper()
		b := pictures(100000, 500, func(i int) float64 { return float64(5 * (i / 2 % 3)) })
		var want compute.Result
		for w := range workers {
			e := compile(t, p, 500)
			model.set(e)
			got, err := e.Evaluate(b)
			if err != nil {
				t.Fatal(err)
			}
			if w == 0 {
				want = got
			}
			if got != want || got.Counts[0] < 300 {
				t.Errorf("worker %d of %d: %+v, the first has %+v; at least 300 should be right", w, workers, got, want)
			}
		}
	}
	train(3, 200, 0)
	accuracies(3)
	train(5, 20, 200)
	accuracies(5)
	mean, variance := model.aux[0], model.aux[1]
	if slices.ContainsFunc(variance, func(v float32) bool { return !(v > 0) }) || slices.Max(mean) < 0.5 && slices.Min(mean) > -0.5 {
		t.Errorf("mean %v, variance %v: they do not follow the data", mean, variance)
	}
}

// server holds blocks and auxiliary arrays as the servers of a job do.
type server struct {
	p             *compute.Program
	params, grads [][]float32
	aux, auxSums  [][]float32
	weight        int64
}

func newServer(p *compute.Program) *server {
	s := &server{p: p, params: blank(p.Params), grads: blank(p.Params), aux: blank(p.Aux), auxSums: blank(p.Aux)}
	for b, param := range p.Params {
		param.Init.Fill(1, b, 0, s.params[b])
	}
	for i, a := range p.Aux {
		a.Init.Fill(1, len(p.Params)+i, 0, s.aux[i])
	}
	return s
}

func blank(list []optim.Param) (out [][]float32) {
	for _, p := range list {
		out = append(out, make([]float32, p.Size()))
	}
	return out
}

func (s *server) set(e compute.Executable) {
	for b, v := range s.params {
		e.SetParam(b, 0, v)
	}
	for i, v := range s.aux {
		e.SetAux(i, 0, v)
	}
}

func (s *server) collect() { s.grads, s.auxSums, s.weight = blank(s.p.Params), blank(s.p.Aux), 0 }

func (s *server) push(e compute.Executable, r compute.Result) {
	s.weight += r.Weight
	for b, sum := range s.grads {
		for j, g := range e.Grad(b).Dense {
			sum[j] += g
		}
	}
	for i, sum := range s.auxSums {
		for j, v := range e.AuxSum(i) {
			sum[j] += v
		}
	}
}

func (s *server) apply(rate float32) {
	for b, v := range s.params {
		for j := range v {
			v[j] -= rate * s.grads[b][j] / float32(s.weight)
		}
	}
	m := float32(s.p.AuxMomentum)
	for i, v := range s.aux {
		for j := range v {
			v[j] = m*v[j] + (1-m)*s.auxSums[i][j]/float32(s.weight)
		}
	}
}
