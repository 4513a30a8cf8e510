package nn_test

import (
	"fmt"
	"math"
	"path"
	"strings"
	"testing"

	"optimus/compute"
	"optimus/compute/cpu"
	"optimus/compute/optim"
	"optimus/internal/rng"
	"optimus/nn"
)

var weights = optim.Init{Kind: optim.Uniform, Scale: 0.5}

// nets holds a model per layer. A learned layer below the one that a net is named
// for makes the gradient of its input matter.
var nets = map[string]func(n *nn.Net){
	"dense": func(n *nn.Net) {
		x := n.Dense("a", n.Floats("x", 5), 7, weights)
		n.SoftmaxCrossEntropy(n.Dense("b", x, 4, weights), n.Ints("label", 1, 4))
	},
	"dense rows": func(n *nn.Net) {
		x := n.Embedding("e", n.Ints("x", 6, 9), 5, weights)
		n.SoftmaxCrossEntropy(n.Dense("b", x, 3, weights), n.Ints("label", 6, 3))
	},
	"relu": func(n *nn.Net) {
		x := n.ReLU(n.Dense("a", n.Floats("x", 5), 9, weights))
		n.SoftmaxCrossEntropy(n.Dense("b", x, 3, weights), n.Ints("label", 1, 3))
	},
	"dropout": func(n *nn.Net) {
		x := n.Dropout(n.Dense("a", n.Floats("x", 5), 20, weights), 0.3)
		x = n.Dropout(n.Dense("b", x, 20, weights), 0.6)
		n.SoftmaxCrossEntropy(n.Dense("c", x, 3, weights), n.Ints("label", 1, 3))
	},
	"conv1d": func(n *nn.Net) {
		x := n.Conv1D("c", n.Embedding("e", n.Ints("x", 8, 11), 5, weights), 3, 4, weights)
		n.SoftmaxCrossEntropy(n.Dense("b", n.MaxOverTime(x), 2, weights), n.Ints("label", 1, 2))
	},
	"conv1d all windows": func(n *nn.Net) {
		x := n.Conv1D("c", n.Embedding("e", n.Ints("x", 8, 11), 5, weights), 3, 4, weights)
		n.SoftmaxCrossEntropy(n.Dense("b", n.Flatten(x), 2, weights), n.Ints("label", 1, 2))
	},
	"conv1d whole text": func(n *nn.Net) {
		x := n.Conv1D("c", n.Embedding("e", n.Ints("x", 3, 11), 5, weights), 3, 4, weights)
		n.SoftmaxCrossEntropy(n.Dense("b", n.Flatten(x), 2, weights), n.Ints("label", 1, 2))
	},
	"text, many readers": func(n *nn.Net) {
		x := n.Embedding("e", n.Ints("x", 9, 11), 5, weights)
		a, b := n.ConvMax("c3", x, 3, 4, weights), n.ConvMax("c4", x, 4, 5, weights)
		c := n.MaxOverTime(n.Conv1D("c2", x, 2, 3, weights))
		n.SoftmaxCrossEntropy(n.Dense("b", n.ReLU(n.Concat(a, b, c)), 2, weights), n.Ints("label", 1, 2))
	},
	"concat of shared values and data": func(n *nn.Net) {
		in := n.Floats("x", 4)
		x := n.Dense("a", in, 3, weights)
		n.SoftmaxCrossEntropy(n.Dense("b", n.Concat(x, in, n.ReLU(x), n.Dropout(x, 0.2)), 2, weights), n.Ints("label", 1, 2))
	},
	"conv2d": func(n *nn.Net) {
		x := n.Conv2D("a", n.Floats("x", 2, 6, 5), nn.Conv{Filters: 3, Kernel: 3, Pad: 1, Init: weights})
		x = n.Conv2D("b", x, nn.Conv{Filters: 2, Kernel: 2, Stride: 2, NoBias: true, Init: weights})
		n.SoftmaxCrossEntropy(n.Dense("d", n.Flatten(x), 3, weights), n.Ints("label", 1, 3))
	},
	"conv2d stride, wide pad": func(n *nn.Net) {
		x := n.Conv2D("a", n.Floats("x", 18, 4, 4), nn.Conv{Filters: 20, Kernel: 1, Init: weights})
		x = n.Conv2D("b", x, nn.Conv{Filters: 3, Kernel: 5, Stride: 3, Pad: 4, Init: weights})
		n.SoftmaxCrossEntropy(n.Dense("d", n.Flatten(x), 3, weights), n.Ints("label", 1, 3))
	},
	"batch norm": func(n *nn.Net) {
		x := n.BatchNorm("bn1", n.Conv2D("a", n.Floats("x", 2, 4, 3), nn.Conv{Filters: 3, Kernel: 3, Pad: 1, NoBias: true, Init: weights}))
		x = n.BatchNorm("bn2", n.Dense("b", n.Flatten(n.ReLU(x)), 6, weights))
		n.SoftmaxCrossEntropy(n.Dense("c", x, 3, weights), n.Ints("label", 1, 3))
	},
	"batch norm of the data": func(n *nn.Net) {
		x := n.Normalise("data", n.Floats("x", 4, 7, 6), nn.Norm{FixGamma: true})
		x = n.Conv2D("a", x, nn.Conv{Filters: 6, Window: compute.Window{KH: 5, KW: 3, StrideH: 2, PadH: 3, PadW: 1}, Groups: 2, Init: weights})
		n.SoftmaxCrossEntropy(n.Dense("d", n.Flatten(n.ReLU(x)), 3, weights), n.Ints("label", 1, 3))
	},
	"pools": func(n *nn.Net) {
		x := n.Conv2D("a", n.Floats("x", 2, 7, 7), nn.Conv{Filters: 3, Kernel: 3, Pad: 1, Init: weights})
		a, b, c := n.MaxPool(x, 3, 2), n.AvgPool(x, 2, 2), n.GlobalAvgPool(x)
		n.SoftmaxCrossEntropy(n.Dense("d", n.Concat(n.Flatten(a), n.Flatten(b), n.Flatten(c)), 3, weights), n.Ints("label", 1, 3))
	},
	"conv2d groups, oblong window": func(n *nn.Net) {
		x := n.Conv2D("a", n.Floats("x", 2, 7, 6), nn.Conv{Filters: 6, Window: compute.Window{KH: 3, KW: 2, StrideH: 2, PadH: 1}, Init: weights})
		x = n.Conv2D("b", x, nn.Conv{Filters: 4, Kernel: 3, Pad: 1, Groups: 2, Init: weights})
		n.SoftmaxCrossEntropy(n.Dense("d", n.Flatten(x), 3, weights), n.Ints("label", 1, 3))
	},
	"shortcut": func(n *nn.Net) {
		in := n.Floats("x", 2, 4, 4)
		x := n.Conv2D("a", in, nn.Conv{Filters: 2, Kernel: 3, Pad: 1, Init: weights})
		x = n.ReLU(n.Add(n.Conv2D("b", x, nn.Conv{Filters: 2, Kernel: 1, Init: weights}), x, in))
		n.SoftmaxCrossEntropy(n.Dense("d", n.Flatten(x), 3, weights), n.Ints("label", 1, 3))
	},
	"concat of channels": func(n *nn.Net) {
		x := n.Conv2D("a", n.Floats("x", 2, 4, 3), nn.Conv{Filters: 2, Kernel: 3, Pad: 1, Init: weights})
		x = n.Concat(n.Conv2D("b", x, nn.Conv{Filters: 3, Kernel: 1, Init: weights}), x)
		n.SoftmaxCrossEntropy(n.Dense("d", n.Flatten(n.Conv2D("c", x, nn.Conv{Filters: 2, Kernel: 3, Init: weights})), 3, weights), n.Ints("label", 1, 3))
	},
	"batch norm, fixed scale": func(n *nn.Net) {
		x := n.Normalise("bn", n.Dense("b", n.Floats("x", 5), 6, weights), nn.Norm{FixGamma: true, Eps: 1e-3})
		n.SoftmaxCrossEntropy(n.Dense("c", x, 3, weights), n.Ints("label", 1, 3))
	},
	"pools with border": func(n *nn.Net) {
		x := n.Conv2D("a", n.Floats("x", 2, 6, 7), nn.Conv{Filters: 2, Kernel: 3, Pad: 1, Init: weights})
		a := n.Pool(x, nn.Pooling{Kernel: 3, Stride: 2, Full: true})
		b := n.Pool(x, nn.Pooling{Avg: true, Kernel: 3, Stride: 2, Pad: 1, Full: true})
		c := n.Pool(x, nn.Pooling{Avg: true, Inside: true, Kernel: 3, Pad: 1})
		d := n.Pool(x, nn.Pooling{Window: compute.Window{KH: 1, KW: 3, StrideW: 2, PadW: 1}})
		n.SoftmaxCrossEntropy(n.Dense("d", n.Concat(n.Flatten(a), n.Flatten(b), n.Flatten(c), n.Flatten(d)), 3, weights), n.Ints("label", 1, 3))
	},
	"rows over time": func(n *nn.Net) {
		time := n.Time("t", 7)
		words := n.Embedding("e", n.IntsOver(time, "word", 1, 9), 4, weights)
		x := n.Dense("a", n.Concat(words, n.FloatsOver(time, "x", 3)), 5, weights)
		x = n.Dropout(n.ReLU(n.BatchNorm("bn", n.Add(x, n.Dense("b", words, 5, weights)))), 0.2)
		n.SoftmaxCrossEntropy(n.Dense("d", x, 3, weights), n.IntsOver(time, "label", 1, 3))
	},
	"pictures over time": func(n *nn.Net) {
		time := n.Time("t", 9)
		x := n.Conv2D("a", n.FloatsOver(time, "x", 1, 1, 6), nn.Conv{Filters: 3, Window: compute.Window{KH: 3, KW: 4, StrideW: 2, PadH: 1, PadW: 1}, Init: weights})
		x = n.ReLU(n.BatchNorm("bn", n.Conv2D("b", x, nn.Conv{Filters: 2, Kernel: 3, Pad: 1, Init: weights})))
		n.SoftmaxCrossEntropy(n.Dense("d", n.Frames(x), 3, weights), n.IntsOver(time, "label", 1, 3))
	},
	"pictures": func(n *nn.Net) {
		x := n.Conv2D("a", n.Pictures("x", 2, 5, 6, 2, true), nn.Conv{Filters: 2, Kernel: 3, Init: weights})
		n.SoftmaxCrossEntropy(n.Dense("d", n.Flatten(x), 3, weights), n.Ints("label", 1, 3))
	},
	"pieces of pictures": func(n *nn.Net) {
		x := n.Conv2D("a", n.Crops("x", compute.Image{C: 2, H: 6, W: 7}, 4, 4, 1, true), nn.Conv{Filters: 2, Kernel: 3, Init: weights})
		n.SoftmaxCrossEntropy(n.Dense("d", n.Flatten(x), 3, weights), n.Ints("label", 1, 3))
	},
	"lstm": func(n *nn.Net) {
		time := n.Time("t", 6)
		x := n.LSTM("a", n.FloatsOver(time, "x", 3), nn.Recurrent{Units: 5, Init: weights})
		x = n.LSTM("b", x, nn.Recurrent{Units: 4, Reverse: true, Init: weights})
		n.TokenCrossEntropy(n.Dense("d", x, 3, weights), n.IntsOver(time, "label", 1, 3), compute.None)
	},
	"lstm, lengths, many readers": func(n *nn.Net) {
		time := n.Time("t", 5)
		lengths := n.Lengths("length", time)
		x := n.Embedding("e", n.IntsOver(time, "word", 1, 9), 4, weights)
		a := n.LSTM("a", x, nn.Recurrent{Units: 3, Lengths: &lengths, Init: weights})
		b := n.LSTM("b", x, nn.Recurrent{Units: 2, Lengths: &lengths, Reverse: true, Init: weights})
		last := n.Tanh(n.Dense("c", n.LastStep(n.Concat(a, b, x), &lengths), 4, weights))
		n.SoftmaxCrossEntropy(n.Dense("d", n.Concat(last, n.Tanh(last)), 3, weights), n.Ints("label", 1, 3))
	},
	"gru": func(n *nn.Net) {
		time := n.Time("t", 6)
		x := n.GRU("a", n.FloatsOver(time, "x", 3), nn.Recurrent{Units: 5, Init: weights})
		x = n.GRU("b", x, nn.Recurrent{Units: 4, Reverse: true, Split: true, Init: weights})
		n.TokenCrossEntropy(n.Dense("d", x, 4, weights), n.IntsOver(time, "label", 1, 4), 2)
	},
	"gru, lengths of windows": func(n *nn.Net) {
		time := n.Time("t", 9)
		lengths := n.Lengths("length", time)
		x := n.Conv2D("c", n.FloatsOver(time, "x", 1, 1, 5), nn.Conv{Filters: 2, Window: compute.Window{KH: 3, KW: 2, StrideH: 2, PadH: 1}, Init: weights})
		x = n.GRU("a", n.Frames(x), nn.Recurrent{Units: 3, Lengths: &lengths, Init: weights})
		x = n.GRU("b", x, nn.Recurrent{Units: 4, Reverse: true, Lengths: &lengths, Init: weights})
		n.SoftmaxCrossEntropy(n.Dense("d", n.LastStep(x, nil), 4, weights), n.Ints("label", 1, 4))
	},
	"bags of one table": func(n *nn.Net) {
		table := n.Table("e", 9, 5, weights)
		x := n.Tanh(n.Bag("context", table, n.Ints("x", 7, 10), 1))
		n.SampledLogistic(x, n.Bag("candidates", table, n.Ints("c", 12, 10), 4))
	},
	"one of everything": func(n *nn.Net) {
		time, text := n.Time("t", 1), n.Time("text", 1)
		lengths := n.Lengths("length", time)
		x := n.LSTM("a", n.FloatsOver(time, "x", 1), nn.Recurrent{Units: 1, Lengths: &lengths, Init: weights})
		last := n.LastStep(x, &lengths)
		x = n.AttentionDecoder("b", n.BatchNorm("bn", n.Dense("c", x, 1, weights)), x, last, last, nn.Attention{Lengths: &lengths, Init: weights})
		x = n.Dense("d", n.GRU("e", x, nn.Recurrent{Units: 1, Init: weights}), 2, weights)
		n.CTC(x, nn.Transcript{Labels: n.IntsOver(text, "text.but0", 1, 2), Counts: n.Lengths("text length", text), Space: compute.None})
	},
	"attention decoder": func(n *nn.Net) {
		from, to := n.Time("source", 5), n.Time("target", 4)
		lengths := n.Lengths("length", from)
		source := n.LSTM("a", n.FloatsOver(from, "x", 3), nn.Recurrent{Units: 4, Lengths: &lengths, Init: weights})
		last := n.LastStep(source, &lengths)
		x := n.Embedding("e", n.IntsOver(to, "word", 1, 9), 3, weights)
		x = n.AttentionDecoder("b", x, source, last, n.Dense("c", last, 4, weights), nn.Attention{Lengths: &lengths, Init: weights})
		scores, labels := n.Dense("d", x, 9, weights), n.IntsOver(to, "label", 1, 9)
		n.TokenCrossEntropy(scores, labels, 0)
		n.BLEU(scores, labels, 1, 2)
	},
	"attention decoder over data": func(n *nn.Net) {
		from, to := n.Time("source", 3), n.Time("target", 4)
		source := n.Dense("a", n.FloatsOver(from, "x", 2), 4, weights)
		x := n.FloatsOver(to, "y", 3)
		x = n.AttentionDecoder("b", x, source, n.Floats("h", 4), n.Floats("c", 4), nn.Attention{Init: weights})
		n.TokenCrossEntropy(n.Dense("d", n.Concat(x, n.Tanh(x)), 5, weights), n.IntsOver(to, "label", 1, 5), compute.None)
	},
	"ctc": func(n *nn.Net) {
		time, text := n.Time("t", 11), n.Time("text", 3)
		x := n.Dense("a", n.FloatsOver(time, "x", 3), 4, weights)
		n.CTC(x, nn.Transcript{Labels: n.IntsOver(text, "label.but2", 1, 4), Counts: n.Lengths("label.length", text), Blank: 2, Space: 1})
	},
	"ctc, lengths": func(n *nn.Net) {
		time, text := n.Time("t", 28), n.Time("text", 2)
		lengths := n.Lengths("length.atleast12", time)
		x := n.Conv2D("c", n.FloatsOver(time, "x", 1, 1, 4), nn.Conv{Filters: 2, Window: compute.Window{KH: 3, KW: 2, StrideH: 2}, Init: weights})
		x = n.GRU("b", n.Frames(x), nn.Recurrent{Units: 4, Lengths: &lengths, Init: weights})
		n.CTC(n.Dense("d", x, 3, weights), nn.Transcript{Labels: n.IntsOver(text, "label.but0", 1, 3), Counts: n.Lengths("label.length", text), Lengths: &lengths, Space: compute.None})
	},
	"loss without a layer between": func(n *nn.Net) {
		x := n.Dense("a", n.Floats("x", 3), 4, weights)
		n.SoftmaxCrossEntropy(x, n.Ints("label", 1, 4))
	},
}

func build(t testing.TB, name string) *compute.Program {
	t.Helper()
	n := nn.New(name)
	nets[name](n)
	p, err := n.Program()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// random fills a batch and a reference with values that depend on the seed alone.
func random(p *compute.Program, n int, seed uint64) *reference {
	r := &reference{p: p, batch: &compute.Batch{N: n}, key: compute.Key{Seed: seed, Epoch: 3}, train: true}
	for i, in := range p.Inputs {
		k, a := rng.NewKey(seed, 1, uint64(i)), compute.Array{Shape: in.Shape}
		size, limit := in.Size(), in.Limit
		if in.Axis != 0 { // batches of different lengths
			size *= max(1, p.Axes[in.Axis-1].Max-n%4)
		}
		if strings.Contains(in.Name, "length") {
			limit = max(2, limit-n%4)
		}
		for j := range n * size {
			if limit > 0 {
				v, bound := k.Intn(uint64(j), limit), 0
				if _, err := fmt.Sscanf(path.Ext(in.Name), ".but%d", &bound); err == nil && v == bound {
					v = (v + 1) % limit
				}
				if _, err := fmt.Sscanf(path.Ext(in.Name), ".atleast%d", &bound); err == nil {
					v = max(v, bound)
				}
				a.I = append(a.I, int32(v))
			} else {
				a.F = append(a.F, float32(k.Normal(uint64(j))))
			}
		}
		r.batch.Inputs = append(r.batch.Inputs, a)
	}
	for i := range n {
		r.key.Examples = append(r.key.Examples, 1000-7*i)
	}
	r.params, r.aux = values(p.Params, seed, 2), values(p.Aux, seed, 3)
	return r
}

// values draws from ±0.5, shifted to (0.5,1.5) for what starts as a constant: scales
// and variances. All are float32 values, so both computations start alike.
func values(params []optim.Param, seed, kind uint64) [][]float64 {
	var out [][]float64
	for b, p := range params {
		v, low := make([]float64, p.Size()), -0.5
		if p.Init.Kind == optim.Constant {
			low = 0.5
		}
		for j := range v {
			v[j] = float64(float32(low + rng.NewKey(seed, kind, uint64(b)).Float64(uint64(j))))
		}
		out = append(out, v)
	}
	return out
}

// load gives the executable the reference's values.
func load(t testing.TB, e compute.Executable, r *reference) {
	t.Helper()
	for b, p := range r.p.Params {
		if !p.Rows {
			e.SetParam(b, 0, narrow(r.params[b]))
			continue
		}
		rows, err := e.Rows(b, r.batch)
		if err != nil {
			t.Fatal(err)
		}
		w := p.RowSize()
		for _, row := range rows {
			v := narrow(r.params[b][int(row)*w : (int(row)+1)*w])
			e.SetRow(b, int(row), 0, v[:w/2])
			e.SetRow(b, int(row), w/2, v[w/2:])
		}
	}
	for i := range r.p.Aux {
		e.SetAux(i, 0, narrow(r.aux[i]))
	}
}

func narrow(v []float64) []float32 {
	out := make([]float32, len(v))
	for i, x := range v {
		out[i] = float32(x)
	}
	return out
}

// full spreads a gradient over the whole block.
func full(p optim.Param, g compute.Grad) []float32 {
	if !p.Rows {
		return g.Dense
	}
	out, w := make([]float32, p.Size()), p.RowSize()
	for i, row := range g.Rows {
		copy(out[int(row)*w:], g.Values[i*w:(i+1)*w])
	}
	return out
}

func compile(t testing.TB, p *compute.Program, capacity int, options ...cpu.Option) compute.Executable {
	t.Helper()
	e, err := cpu.Compile(p, capacity, options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return e
}

// TestGradients compares each element of each gradient with the central
// difference, step 1e-5, of a float64 forward pass. The difference itself is good
// to about 1e-9; what remains is the float32 of the backend.
func TestGradients(t *testing.T) {
	const h, tolerance = 1e-5, 1e-4
	for name := range nets {
		for _, n := range []int{1, 3, 10} {
			t.Run(fmt.Sprint(name, " N=", n), func(t *testing.T) {
				if n == 1 && name == "batch norm" {
					n = 2 // one example normalised over itself alone is constant: no gradient, only noise
				}
				p := build(t, name)
				r, e := random(p, n, uint64(n)), compile(t, p, 10)
				load(t, e, r)
				result, err := e.Train(r.batch, r.key, compute.Hooks{})
				if err != nil {
					t.Fatal(err)
				}
				if want := r.run(); math.Abs(result.Loss-want) > tolerance*math.Abs(want) {
					t.Errorf("loss %v, want %v", result.Loss, want)
				}
				checkAux(t, e, r, result.Weight, tolerance)
				for b, param := range p.Params {
					g := full(param, e.Grad(b))
					for j := range g {
						want := difference(r, &r.params[b][j], h)
						if diff := math.Abs(float64(g[j]) - want); diff > tolerance*math.Max(1, math.Abs(want)) {
							t.Fatalf("%s[%d]: gradient %v, central difference %v", param.Name, j, g[j], want)
						}
					}
				}
				checkEvaluate(t, e, r, tolerance)
			})
		}
	}
}

func difference(r *reference, w *float64, h float64) float64 {
	old := *w
	*w = old + h
	up := r.run()
	*w = old - h
	down := r.run()
	*w = old
	return (up - down) / (2 * h)
}

func checkAux(t *testing.T, e compute.Executable, r *reference, weight int64, tolerance float64) {
	t.Helper()
	for i := range r.p.Aux {
		for c, v := range e.AuxSum(i) {
			if want := r.mean[i][c] * float64(weight); math.Abs(float64(v)-want) > tolerance*math.Max(1, math.Abs(want)) {
				t.Errorf("%s[%d]: sum %v, want %v", r.p.Aux[i].Name, c, v, want)
			}
		}
	}
}

func checkEvaluate(t *testing.T, e compute.Executable, r *reference, tolerance float64) {
	t.Helper()
	got, err := e.Evaluate(r.batch)
	if err != nil {
		t.Fatal(err)
	}
	r.train = false
	if want := r.run(); math.Abs(got.Loss-want) > tolerance*math.Abs(want) {
		t.Errorf("evaluation: loss %v, want %v", got.Loss, want)
	}
}
