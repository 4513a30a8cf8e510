package graph

import (
	"flag"
	"os"
	"os/exec"
	"testing"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
	"pgregory.net/rapid"

	"optimus/compute"
	"optimus/compute/optim"
	"optimus/internal/level"
	"optimus/nn"
)

// oracles are models that both package nn and Gorgonia have, for shapes drawn at
// random. A dense layer or a convolution below the layer that a model is named for
// makes the gradient of its input matter.
//
// What is not here: Gorgonia's Sum and Mean over two axes are wrong (tensor v0.9.24),
// and with them any average pool that is made of them; the gradient of its
// GlobalAveragePool2D is not written, that of CTCLoss with ReductionMean is wrong, and
// CTCLoss panics on a batch of one. Behind pictures that are one pixel wide the
// gradients of its batch norm's scale and shift are not what differences of its own
// loss say: the pictures here are wider. Dropout draws a mask that cannot be given.
// Grouped convolutions, bags, attention and sampled losses it has not.
var oracles = map[string]func(r *rapid.T, t *twin){
	"dense, relu, softmax": func(r *rapid.T, t *twin) {
		x := t.dense("a", t.floats(size(r, "in", 9)), size(r, "hidden", 40))
		x = both{t.n.ReLU(x.nn), G.Must(G.Rectify(x.g))}
		t.end(t.dense("b", x, classes(r)))
	},
	"tanh": func(r *rapid.T, t *twin) {
		x := t.dense("a", t.floats(size(r, "in", 9)), size(r, "hidden", 40))
		t.end(t.dense("b", both{t.n.Tanh(x.nn), G.Must(G.Tanh(x.g))}, classes(r)))
	},
	"concat and sum": func(r *rapid.T, t *twin) {
		in := t.floats(size(r, "in", 9))
		a, b := t.dense("a", in, size(r, "width", 20)), t.dense("b", in, size(r, "other", 20))
		c := t.dense("c", in, b.nn.Size())
		sum := both{t.n.Add(b.nn, c.nn), G.Must(G.Add(b.g, c.g))}
		t.end(t.dense("d", both{t.n.Concat(a.nn, sum.nn), G.Must(G.Concat(1, a.g, sum.g))}, classes(r)))
	},
	"conv2d": func(r *rapid.T, t *twin) {
		x := t.conv("a", t.floats(size(r, "channels", 4), 8, 7), window(r, "a", 3))
		t.end(t.dense("d", t.flat(t.conv("b", x, window(r, "b", 3))), classes(r)))
	},
	"max pool": func(r *rapid.T, t *twin) {
		x := t.conv("a", t.floats(2, 8, 9), nn.Conv{Filters: size(r, "filters", 20), Window: compute.Window{KH: 3, KW: 3, StrideH: 1, StrideW: 1, PadH: 1, PadW: 1}})
		w := window(r, "pool", 3).Window
		w.PadH, w.PadW = min(w.PadH, w.KH-1), min(w.PadW, w.KW-1)
		p := both{t.n.Pool(x.nn, nn.Pooling{Window: w}), G.Must(G.MaxPool2D(x.g, tensor.Shape{w.KH, w.KW}, []int{w.PadH, w.PadW}, []int{w.StrideH, w.StrideW}))}
		t.end(t.dense("b", t.flat(p), classes(r)))
	},
	"batch norm": func(r *rapid.T, t *twin) {
		t.batch += 4 // of two examples that are nearly alike the norm is nearly undefined
		w := window(r, "a", 3)
		w.NoBias = true                                      // its gradient is zero but for rounding
		x := t.norm("bn", t.conv("a", t.floats(2, 5, 6), w)) // at least 2×2 comes out
		t.end(t.dense("b", t.flat(x), classes(r)))
	},
	"embedding, conv1d, max over time": func(r *rapid.T, t *twin) {
		length, width, filters := rapid.IntRange(4, 12).Draw(r, "length"), size(r, "width", 9), size(r, "filters", 20)
		words, h := rapid.IntRange(2, 15).Draw(r, "words"), rapid.IntRange(1, 4).Draw(r, "window")
		ids := t.whole(t.batch*length, words)
		t.inputs = append(t.inputs, ids)
		e := t.n.Embedding("e", t.n.Ints("ids", length, words), width, optim.Init{})
		x := G.Must(G.ByIndices(t.block("e.weight", words, width), t.indices("ids", ids), 0))
		x = G.Must(G.Reshape(x, tensor.Shape{t.batch, 1, length, width}))
		var y *nn.Value
		if rapid.Bool().Draw(r, "fused") {
			y = t.n.ConvMax("c", e, h, filters, optim.Init{})
		} else {
			y = t.n.MaxOverTime(t.n.Conv1D("c", e, h, filters, optim.Init{}))
		}
		x = G.Must(G.Conv2d(x, t.block("c.weight", filters, 1, h, width), tensor.Shape{h, width}, []int{0, 0}, []int{1, 1}, []int{1, 1}))
		x = G.Must(G.BroadcastAdd(x, t.block("c.bias", 1, filters, 1, 1), nil, []byte{0, 2, 3}))
		x = G.Must(G.MaxPool2D(x, tensor.Shape{length - h + 1, 1}, []int{0, 0}, []int{1, 1}))
		t.end(t.dense("d", both{y, G.Must(G.Reshape(x, tensor.Shape{t.batch, filters}))}, classes(r)))
	},
	"lstm": func(r *rapid.T, t *twin) { t.recurrent(r, 4, t.n.LSTM, lstmStep) },
	"gru":  func(r *rapid.T, t *twin) { t.recurrent(r, 3, t.n.GRU, gruStep) },
	"ctc": func(r *rapid.T, t *twin) {
		const most = 3
		steps, in, classes := rapid.IntRange(2*most+1, 12).Draw(r, "steps"), size(r, "in", 5), rapid.IntRange(2, 6).Draw(r, "classes")
		time, text := t.n.Time("time", steps), t.n.Time("text", most)
		x := t.sequence(time, steps, in)
		labels, counts := t.whole(t.batch*most, classes-1), t.whole(t.batch, most)
		for i := range labels {
			labels[i]++ // 0 is the blank
		}
		for i := range counts {
			counts[i]++
		}
		t.inputs = append(t.inputs, labels, counts)
		y := t.n.Dense("a", x.nn, classes, optim.Init{})
		z := t.rows("a", G.Must(G.Reshape(x.g, tensor.Shape{t.batch * steps, in})), in, classes)
		t.n.CTC(y, nn.Transcript{Labels: t.n.IntsOver(text, "labels", 1, classes), Counts: t.n.Lengths("counts", text), Space: compute.None})
		z = G.Must(G.Transpose(G.Must(G.Reshape(G.Must(G.LogSoftMax(z)), tensor.Shape{t.batch, steps, classes})), 1, 0, 2))
		lengths := make([]int32, t.batch)
		for i := range lengths {
			lengths[i] = int32(steps)
		}
		targets := G.Must(G.Reshape(t.indices("labels", labels), tensor.Shape{t.batch, most}))
		t.loss = G.Must(G.CTCLoss(z, targets, t.indices("lengths", lengths), t.indices("counts", counts), G.ReductionSum))
	},
}

func size(r *rapid.T, name string, most int) int { return rapid.IntRange(1, most).Draw(r, name) }

func classes(r *rapid.T) int { return rapid.IntRange(2, 8).Draw(r, "classes") }

// window draws a convolution with a kernel of up to most pixels each way.
func window(r *rapid.T, name string, most int) nn.Conv {
	draw := func(of string, lo, hi int) int { return rapid.IntRange(lo, hi).Draw(r, name+of) }
	return nn.Conv{Filters: draw(".filters", 1, 20), NoBias: rapid.Bool().Draw(r, name+".nobias"), Window: compute.Window{
		KH: draw(".kh", 1, most), KW: draw(".kw", 1, most), StrideH: draw(".sh", 1, 2), StrideW: draw(".sw", 1, 2), PadH: draw(".ph", 0, 2), PadW: draw(".pw", 0, 2)}}
}

// sequence is an input of vectors over time: (batch,steps,in) in Gorgonia.
func (t *twin) sequence(time compute.Axis, steps, in int) both {
	x := t.normal(t.batch * steps * in)
	t.inputs = append(t.inputs, x)
	return both{t.n.FloatsOver(time, "x", in), t.constant("x", x, t.batch, steps, in)}
}

// indices is a vector of whole numbers.
func (t *twin) indices(name string, x []int32) *G.Node {
	ids := make([]int, len(x))
	for i, v := range x {
		ids[i] = int(v)
	}
	return G.NewVector(t.g, G.Int, G.WithShape(len(ids)), G.WithName(name), G.WithValue(tensor.New(tensor.WithBacking(ids))))
}

// recurrent scores the last state of a recurrent layer, whose step of Gorgonia makes
// the next states of a: what input and state contribute to the gates.
func (t *twin) recurrent(r *rapid.T, gates int, layer func(string, *nn.Value, nn.Recurrent) *nn.Value, step func(input, state func(gate int) *G.Node, h, c *G.Node) (*G.Node, *G.Node)) {
	steps, in, units := rapid.IntRange(1, 5).Draw(r, "steps"), rapid.IntRange(2, 6).Draw(r, "in"), rapid.IntRange(2, 20).Draw(r, "units")
	x := t.sequence(t.n.Time("time", steps), steps, in)
	y := t.n.LastStep(layer("a", x.nn, nn.Recurrent{Units: units}), nil)
	all := t.rows("a.input", G.Must(G.Reshape(x.g, tensor.Shape{t.batch * steps, in})), in, gates*units)
	all = G.Must(G.Reshape(all, tensor.Shape{t.batch, steps, gates * units}))
	w, b := t.block("a.state.weight", gates*units, units), t.block("a.state.bias", 1, gates*units)
	h, c := t.constant("h", make([]float32, t.batch*units), t.batch, units), t.constant("c", make([]float32, t.batch*units), t.batch, units)
	for i := range steps {
		of := func(a *G.Node) func(int) *G.Node {
			return func(gate int) *G.Node { return G.Must(G.Slice(a, nil, G.S(gate*units, (gate+1)*units))) }
		}
		state := G.Must(G.BroadcastAdd(G.Must(G.Mul(h, G.Must(G.Transpose(w, 1, 0)))), b, nil, []byte{0}))
		h, c = step(of(G.Must(G.Slice(all, nil, G.S(i)))), of(state), h, c)
	}
	t.end(t.dense("b", both{y, h}, classes(r)))
}

// lstmStep and gruStep follow the equations of compute.LSTM and compute.GRU.
func lstmStep(input, state func(int) *G.Node, _, c *G.Node) (*G.Node, *G.Node) {
	gate := func(i int, f func(*G.Node) (*G.Node, error)) *G.Node {
		return G.Must(f(G.Must(G.Add(input(i), state(i)))))
	}
	in, forget, new, out := gate(0, G.Sigmoid), gate(1, G.Sigmoid), gate(2, G.Tanh), gate(3, G.Sigmoid)
	c = G.Must(G.Add(G.Must(G.HadamardProd(forget, c)), G.Must(G.HadamardProd(in, new))))
	return G.Must(G.HadamardProd(out, G.Must(G.Tanh(c)))), c
}

func gruStep(input, state func(int) *G.Node, h, c *G.Node) (*G.Node, *G.Node) {
	reset, update := G.Must(G.Sigmoid(G.Must(G.Add(input(0), state(0))))), G.Must(G.Sigmoid(G.Must(G.Add(input(1), state(1)))))
	new := G.Must(G.Tanh(G.Must(G.Add(input(2), G.Must(G.HadamardProd(reset, state(2)))))))
	return G.Must(G.Add(new, G.Must(G.HadamardProd(update, G.Must(G.Sub(h, new)))))), c
}

// TestOracle compares losses and gradients of package nn, compiled for the CPU, with
// those of Gorgonia.
func TestOracle(t *testing.T) {
	const tolerance = 1e-4 // of the largest element; 150 draws of each model came to 4e-6
	at, err := level.Current()
	if err != nil {
		t.Fatal(err)
	}
	if f := flag.Lookup("rapid.checks"); f.Value.String() == f.DefValue {
		defer flag.Set("rapid.checks", f.DefValue)
		flag.Set("rapid.checks", "12") // Gorgonia takes its time
	}
	for name, build := range oracles {
		t.Run(name, func(t *testing.T) {
			worst, where := 0.0, ""
			rapid.Check(t, func(r *rapid.T) {
				twin := newTwin(r)
				build(r, twin)
				far, what, err := twin.compare()
				if err != nil {
					r.Fatal(err)
				}
				if !(far <= tolerance) {
					r.Fatalf("%s is %.1e apart", what, far)
				}
				if far > worst {
					worst, where = far, what
				}
			})
			t.Logf("%s, %s: at most %.1e apart, in %s", at, name, worst, where)
		})
	}
}

// TestOracleAtOtherLevels runs TestOracle at the levels of the CPU that this process
// does not run at: the kernels of a process are of one level.
func TestOracleAtOtherLevels(t *testing.T) {
	if os.Getenv(level.Env) != "" {
		t.Skip("this process runs at a level that was asked for")
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range level.Present()[:len(level.Present())-1] {
		cmd := exec.CommandContext(t.Context(), exe, "-test.run=^TestOracle$", "-test.v")
		cmd.Env = append(os.Environ(), level.Env+"="+name)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("level %s: %v\n%s", name, err, out)
		}
		t.Logf("%s", out)
	}
}
