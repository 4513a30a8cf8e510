package cpu_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"optimus/compute"
	"optimus/compute/cpu"
	"optimus/compute/optim"
	"optimus/internal/rng"
	"optimus/nn"
)

var weights = optim.Init{Kind: optim.Uniform, Scale: 0.3}

// textNet has every operation for text; pictureNet every one for pictures.
func textNet(t testing.TB) *compute.Program {
	n := nn.New("text")
	x := n.Embedding("embed", n.Ints("tokens", 12, 40), 10, weights)
	y := n.Concat(n.ConvMax("conv3", x, 3, 70, weights), n.MaxOverTime(n.Conv1D("conv4", x, 4, 6, weights)))
	n.SoftmaxCrossEntropy(n.Dense("fc", n.Dropout(n.ReLU(y), 0.4), 3, weights), n.Ints("label", 1, 3))
	return finish(t, n)
}

func pictureNet(t testing.TB) *compute.Program {
	n := nn.New("pictures")
	x := n.Pictures("pixels", 3, 8, 8, 2, true)
	x = n.Normalise("norm0", x, nn.Norm{FixGamma: true})
	x = n.Conv2D("conv1", x, nn.Conv{Filters: 20, Kernel: 3, Pad: 1, NoBias: true, Init: weights})
	x = n.MaxPool(n.ReLU(n.BatchNorm("norm1", x)), 2, 2)
	x = n.AvgPool(n.Conv2D("conv2", x, nn.Conv{Filters: 5, Kernel: 3, Init: weights}), 2, 1)
	n.SoftmaxCrossEntropy(n.Dense("fc", n.Flatten(x), 3, weights), n.Ints("label", 1, 3))
	return finish(t, n)
}

// speechNet has layers over time; examples differ in length.
func speechNet(t testing.TB) *compute.Program {
	n := nn.New("speech")
	time := n.Time("t", 7)
	lengths := n.Lengths("length", time)
	words := n.Embedding("embed", n.IntsOver(time, "tokens", 1, 40), 10, weights)
	x := n.LSTM("lstm", words, nn.Recurrent{Units: 70, Lengths: &lengths, Init: weights})
	to := n.Time("u", 5)
	state := n.Tanh(n.LastStep(x, &lengths))
	answer := n.AttentionDecoder("decoder", n.FloatsOver(to, "x", 4), x, state, state, nn.Attention{Lengths: &lengths, Init: weights})
	x = n.Concat(n.GRU("gru", x, nn.Recurrent{Units: 9, Lengths: &lengths, Reverse: true, Init: weights}), x)
	n.SoftmaxCrossEntropy(n.Dense("fc", n.Concat(n.LastStep(answer, nil), n.Tanh(n.LastStep(x, &lengths))), 3, weights), n.Ints("label", 1, 3))
	return finish(t, n)
}

// translationNet is one whose evaluation writes sentences.
func translationNet(t testing.TB) *compute.Program {
	n := nn.New("translation")
	from, to := n.Time("source", 6), n.Time("target", 5)
	lengths := n.Lengths("length", from)
	target := n.Embedding("embed", n.IntsOver(to, "before", 1, 40), 10, weights)
	memory := n.LSTM("lstm", n.FloatsOver(from, "x", 3), nn.Recurrent{Units: 20, Lengths: &lengths, Init: weights})
	last := n.LastStep(memory, &lengths)
	y := n.AttentionDecoder("decoder", target, memory, last, last, nn.Attention{Lengths: &lengths, Init: weights})
	scores, next := n.Dense("fc", y, 40, weights), n.IntsOver(to, "next", 1, 40)
	n.TokenCrossEntropy(scores, next, 0)
	n.BLEU(scores, next, 1, 2)
	return finish(t, n)
}

func bagNet(t testing.TB) *compute.Program {
	n := nn.New("bags")
	table := n.Table("embed", 40, 10, weights)
	n.SampledLogistic(n.Bag("context", table, n.Ints("tokens", 6, 41), 1), n.Bag("candidates", table, n.Ints("candidates", 12, 41), 3))
	return finish(t, n)
}

func finish(t testing.TB, n *nn.Net) *compute.Program {
	t.Helper()
	p, err := n.Program()
	if err != nil {
		t.Fatal(err)
	}
	return p
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

// batch makes examples lo, …, hi-1 of an endless random data set.
func batch(p *compute.Program, lo, hi int) *compute.Batch {
	b := &compute.Batch{N: hi - lo}
	for i, in := range p.Inputs {
		var a compute.Array
		size := in.Size() * p.Steps(in.Axis)
		for j := lo * size; j < hi*size; j++ {
			k := rng.NewKey(uint64(i))
			if in.Limit > 0 {
				a.I = append(a.I, int32(k.Intn(uint64(j), in.Limit)))
			} else {
				a.F = append(a.F, float32(k.Normal(uint64(j))))
			}
		}
		b.Inputs = append(b.Inputs, a)
	}
	return b
}

// key names the examples of batch(p, lo, hi).
func key(lo, hi int) compute.Key {
	k := compute.Key{Seed: 7, Epoch: 2, Examples: []int{}}
	for i := lo; i < hi; i++ {
		k.Examples = append(k.Examples, i)
	}
	return k
}

// set gives every block values that depend on block and element alone.
func set(t testing.TB, e compute.Executable, b *compute.Batch) {
	t.Helper()
	for block, p := range e.Program().Params {
		v := make([]float32, p.Size())
		for j := range v {
			v[j] = float32(rng.NewKey(uint64(block)).Float64(uint64(j)) - 0.4)
		}
		if !p.Rows {
			e.SetParam(block, 0, v)
			continue
		}
		rows, err := e.Rows(block, b)
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range rows {
			w := p.RowSize()
			e.SetRow(block, int(row), 0, v[int(row)*w:int(row+1)*w])
		}
	}
	for i, a := range e.Program().Aux {
		e.SetAux(i, 0, slices.Repeat([]float32{0.7}, a.Size()))
	}
}

// outcome is all that a training step yields.
type outcome struct {
	Result compute.Result
	Dense  map[int][]float32
	Rows   map[int]map[int32][]float32
	Aux    [][]float32
}

func train(t testing.TB, e compute.Executable, lo, hi int) outcome {
	t.Helper()
	b := batch(e.Program(), lo, hi)
	set(t, e, b)
	result, err := e.Train(b, key(lo, hi), compute.Hooks{})
	if err != nil {
		t.Fatal(err)
	}
	o := outcome{Result: result, Dense: map[int][]float32{}, Rows: map[int]map[int32][]float32{}}
	for block, p := range e.Program().Params {
		g := e.Grad(block)
		if !p.Rows {
			o.Dense[block] = slices.Clone(g.Dense)
			continue
		}
		o.Rows[block] = map[int32][]float32{}
		for i, row := range g.Rows {
			o.Rows[block][row] = slices.Clone(g.Values[i*p.RowSize() : (i+1)*p.RowSize()])
		}
	}
	for i := range e.Program().Aux {
		o.Aux = append(o.Aux, slices.Clone(e.AuxSum(i)))
	}
	return o
}

func TestBitsDoNotDependOnThreadsOrCapacity(t *testing.T) {
	for _, net := range []func(testing.TB) *compute.Program{textNet, pictureNet, speechNet, translationNet, bagNet} {
		p := net(t)
		want := train(t, compile(t, p, 19), 0, 19)
		for _, threads := range []int{2, 3} {
			e := compile(t, p, 32, cpu.Threads(threads))
			train(t, e, 5, 37) // leave something behind in every buffer
			for range 3 {
				if diff := cmp.Diff(want, train(t, e, 0, 19)); diff != "" {
					t.Fatalf("%s, %d threads (-want +got):\n%s", p.Name, threads, diff)
				}
			}
		}
	}
}

// TestEvaluationDoesNotDependOnThreads nor on how a batch is cut: what is written and
// counted is that of each example.
func TestEvaluationDoesNotDependOnThreads(t *testing.T) {
	p := translationNet(t)
	var want compute.Result
	for i, threads := range []int{1, 3} {
		e := compile(t, p, 19, cpu.Threads(threads))
		var got compute.Result
		for lo, size := 0, 19; lo < 19; lo += size {
			if i == 1 {
				size = min(5, 19-lo)
			}
			b := batch(p, lo, lo+size)
			set(t, e, b)
			r, err := e.Evaluate(b)
			if err != nil {
				t.Fatal(err)
			}
			got.Add(r)
		}
		if i == 0 {
			want = got
		}
		if got.Counts != want.Counts || got.Weight != want.Weight || got.Counts[8] == 0 || math.Abs(got.Loss-want.Loss) > 1e-9*want.Loss {
			t.Errorf("%d threads: %+v, want %+v", threads, got, want)
		}
	}
}

// TestSharesAddUp cuts a batch anywhere, also into an empty share: the sums of the
// shares are the sums of the batch, dropout included.
func TestSharesAddUp(t *testing.T) {
	for _, net := range []func(testing.TB) *compute.Program{textNet, speechNet, bagNet} {
		p := net(t)
		t.Run(p.Name, func(t *testing.T) { sharesAddUp(t, compile(t, p, 16)) })
	}
}

func sharesAddUp(t *testing.T, e compute.Executable) {
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(0, 16).Draw(rt, "n")
		cut := rapid.IntRange(0, n).Draw(rt, "cut")
		whole, a, b := train(t, e, 0, n), train(t, e, 0, cut), train(t, e, cut, n)
		sum := a.Result
		sum.Add(b.Result)
		if sum.Weight != whole.Result.Weight || sum.Counts != whole.Result.Counts || math.Abs(sum.Loss-whole.Result.Loss) > 1e-9*(1+whole.Result.Loss) {
			rt.Fatalf("results %+v and %+v do not add up to %+v", a.Result, b.Result, whole.Result)
		}
		for block, g := range whole.Dense {
			for j := range g {
				close32(rt, fmt.Sprintf("block %d[%d]", block, j), a.Dense[block][j]+b.Dense[block][j], g[j])
			}
		}
		for block, rows := range whole.Rows {
			for row, g := range rows {
				for j := range g {
					got := float32(0)
					for _, o := range []outcome{a, b} {
						if r, ok := o.Rows[block][row]; ok {
							got += r[j]
						}
					}
					close32(rt, fmt.Sprintf("block %d row %d[%d]", block, row, j), got, g[j])
				}
			}
		}
	})
}

func close32(t *rapid.T, what string, got, want float32) {
	if math.Abs(float64(got-want)) > 1e-5*(1+math.Abs(float64(want))) {
		t.Fatalf("%s: %v, want %v", what, got, want)
	}
}

func TestNoExamples(t *testing.T) {
	for _, net := range []func(testing.TB) *compute.Program{textNet, pictureNet, speechNet, translationNet, bagNet} {
		e := compile(t, net(t), 4)
		train(t, e, 0, 4)
		o := train(t, e, 0, 0)
		if o.Result != (compute.Result{}) {
			t.Errorf("result %+v", o.Result)
		}
		for block, g := range o.Dense {
			if i := slices.IndexFunc(g, func(v float32) bool { return v != 0 }); i >= 0 {
				t.Errorf("block %d[%d] = %v", block, i, g[i])
			}
		}
		for block, rows := range o.Rows {
			if len(rows) != 0 {
				t.Errorf("block %d has %d rows", block, len(rows))
			}
		}
		for i, a := range o.Aux {
			if slices.ContainsFunc(a, func(v float32) bool { return v != 0 }) {
				t.Errorf("auxiliary sum %d = %v", i, a)
			}
		}
		if r, err := e.Evaluate(batch(e.Program(), 0, 0)); err != nil || r != (compute.Result{}) {
			t.Errorf("evaluation of nothing: %+v, %v", r, err)
		}
	}
}

func TestHooks(t *testing.T) {
	for _, n := range []int{0, 3} {
		p := textNet(t)
		e := compile(t, p, 3)
		b := batch(p, 0, n)
		set(t, e, b)
		var events []string
		_, err := e.Train(b, key(0, n), compute.Hooks{
			Wait:  func(block int) error { events = append(events, "wait "+p.Params[block].Name); return nil },
			Ready: func(block int) error { events = append(events, "ready "+p.Params[block].Name); return nil },
		})
		if err != nil {
			t.Fatal(err)
		}
		want := []string{
			"wait embed.weight", "wait conv3.weight", "wait conv3.bias", "wait conv4.weight", "wait conv4.bias", "wait fc.weight", "wait fc.bias",
			"ready fc.weight", "ready fc.bias", "ready conv4.weight", "ready conv4.bias", "ready conv3.weight", "ready conv3.bias", "ready embed.weight",
		}
		if diff := cmp.Diff(want, events); diff != "" {
			t.Errorf("N=%d (-want +got):\n%s", n, diff)
		}
	}
}

// TestReadyMeansReady reads each gradient in its Ready hook and destroys the
// block's values there: neither may matter to the rest of the step.
func TestReadyMeansReady(t *testing.T) {
	p := pictureNet(t)
	e := compile(t, p, 6)
	want := train(t, e, 0, 6)
	b := batch(p, 0, 6)
	set(t, e, b)
	got := map[int][]float32{}
	if _, err := e.Train(b, key(0, 6), compute.Hooks{Ready: func(block int) error {
		got[block] = slices.Clone(e.Grad(block).Dense)
		e.SetParam(block, 0, slices.Repeat([]float32{float32(math.NaN())}, p.Params[block].Size()))
		return nil
	}}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want.Dense, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestGradStays reads gradients after the worker has gone on to other batches.
func TestGradStays(t *testing.T) {
	p := textNet(t)
	e := compile(t, p, 6)
	want := train(t, e, 0, 6)
	other := batch(p, 6, 11)
	set(t, e, other)
	if _, err := e.Evaluate(other); err != nil {
		t.Fatal(err)
	}
	for block, g := range want.Dense {
		if diff := cmp.Diff(g, e.Grad(block).Dense); diff != "" {
			t.Errorf("block %d (-want +got):\n%s", block, diff)
		}
	}
	got, g := map[int32][]float32{}, e.Grad(0)
	for i, row := range g.Rows {
		got[row] = g.Values[i*10 : (i+1)*10]
	}
	if diff := cmp.Diff(want.Rows[0], got); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
}

func TestHookErrorsEndTheStep(t *testing.T) {
	p := textNet(t)
	e := compile(t, p, 3)
	b := batch(p, 0, 3)
	set(t, e, b)
	boom := errors.New("server is gone")
	fail := func(at int) func(int) error {
		return func(block int) error {
			if block == at {
				return boom
			}
			return nil
		}
	}
	for _, h := range []compute.Hooks{{Wait: fail(2)}, {Ready: fail(2)}} {
		if _, err := e.Train(b, key(0, 3), h); !errors.Is(err, boom) || !strings.Contains(err.Error(), "conv3.bias") {
			t.Errorf("error %v does not wrap the hook's and name the block", err)
		}
	}
	if _, err := e.Train(b, key(0, 3), compute.Hooks{}); err != nil {
		t.Errorf("the next step: %v", err)
	}
}

func TestBadBatches(t *testing.T) {
	p := textNet(t)
	e := compile(t, p, 3)
	for name, c := range map[string]struct {
		change func(b *compute.Batch)
		want   string
	}{
		"id too large":     {func(b *compute.Batch) { b.Inputs[0].I[12+5] = 40 }, `input "tokens", example 1, position 5: value 40 is outside [0,40)`},
		"negative id":      {func(b *compute.Batch) { b.Inputs[0].I[0] = -1 }, `input "tokens", example 0, position 0: value -1 is outside`},
		"label":            {func(b *compute.Batch) { b.Inputs[1].I[2] = 3 }, `input "label", example 2, position 0: value 3 is outside [0,3)`},
		"too many":         {func(b *compute.Batch) { *b = *batch(p, 0, 4) }, "4 examples, compiled for up to 3"},
		"negative":         {func(b *compute.Batch) { b.N = -1 }, "-1 examples"},
		"missing input":    {func(b *compute.Batch) { b.Inputs = b.Inputs[:1] }, "1 inputs, the program has 2"},
		"short input":      {func(b *compute.Batch) { b.Inputs[0].I = b.Inputs[0].I[1:] }, `input "tokens" holds 35 values`},
		"floats, not ints": {func(b *compute.Batch) { b.Inputs[0] = compute.Array{F: make([]float32, 36)} }, `input "tokens" holds 0 values`},
	} {
		b := batch(p, 0, 3)
		set(t, e, b)
		c.change(b)
		_, train := e.Train(b, compute.Key{}, compute.Hooks{})
		_, eval := e.Evaluate(b)
		_, rows := e.Rows(0, b)
		for _, err := range []error{train, eval, rows} {
			if !errors.Is(err, cpu.ErrInput) || !strings.Contains(fmt.Sprint(err), c.want) {
				t.Errorf("%s: error %v, want one with %q", name, err, c.want)
			}
		}
	}
	if _, err := e.Train(batch(p, 0, 3), key(0, 2), compute.Hooks{}); !errors.Is(err, cpu.ErrInput) {
		t.Errorf("a key for another number of examples: %v", err)
	}
	if _, err := e.Rows(1, batch(p, 0, 3)); err == nil {
		t.Error("rows of a dense block: no error")
	}
}

func TestRowThatWasNeverSet(t *testing.T) {
	p := textNet(t)
	e := compile(t, p, 3)
	_, err := e.Train(batch(p, 0, 3), compute.Key{}, compute.Hooks{})
	if !errors.Is(err, cpu.ErrInput) || !strings.Contains(err.Error(), "embed.weight") {
		t.Errorf("error %v, want one that names the block", err)
	}
}

// TestHugeTable compiles an embedding of 2.4e9 values, of which a batch holds few.
func TestHugeTable(t *testing.T) {
	n := nn.New("huge")
	x := n.Embedding("embed", n.Ints("tokens", 4, 8_000_000), 300, weights)
	n.SoftmaxCrossEntropy(n.Dense("fc", n.Flatten(x), 2, weights), n.Ints("label", 1, 2))
	e := compile(t, finish(t, n), 2)
	b := &compute.Batch{N: 1, Inputs: []compute.Array{{I: []int32{7_999_999, 3, 3, 0}}, {I: []int32{1}}}}
	rows, err := e.Rows(0, b)
	if diff := cmp.Diff([]int32{0, 3, 7_999_999}, rows); err != nil || diff != "" {
		t.Fatalf("rows: %v (-want +got):\n%s", err, diff)
	}
	for _, row := range rows {
		e.SetRow(0, int(row), 0, make([]float32, 300))
	}
	if _, err := e.Train(b, compute.Key{}, compute.Hooks{}); err != nil {
		t.Fatal(err)
	}
	if g := e.Grad(0); len(g.Values) != 3*300 {
		t.Errorf("%d values for three rows", len(g.Values))
	}
}

func TestStepAllocatesNothing(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector makes sync.Pool allocate")
	}
	for _, net := range []func(testing.TB) *compute.Program{textNet, pictureNet, speechNet, translationNet, bagNet} {
		for _, threads := range []int{1, 2} {
			p := net(t)
			e := compile(t, p, 8, cpu.Threads(threads))
			full, short := batch(p, 0, 8), batch(p, 8, 11)
			k := compute.Key{Seed: 1}
			step := func() {
				for _, b := range []*compute.Batch{full, short} {
					if p.Params[0].Rows {
						rows, err := e.Rows(0, b)
						if err != nil {
							t.Fatal(err)
						}
						for _, row := range rows {
							e.SetRow(0, int(row), 0, zeros[:10])
						}
					}
					if _, err := e.Train(b, k, compute.Hooks{}); err != nil {
						t.Fatal(err)
					}
					if _, err := e.Evaluate(b); err != nil {
						t.Fatal(err)
					}
				}
			}
			step()
			if n := testing.AllocsPerRun(20, step); n >= 1 {
				t.Errorf("%s, %d threads: %v allocations in a step", p.Name, threads, n)
			}
		}
	}
}

var zeros [10]float32

func TestCompileRefuses(t *testing.T) {
	p := textNet(t)
	if _, err := cpu.Compile(p, 0); err == nil {
		t.Error("capacity 0: no error")
	}
	if _, err := cpu.Compile(p, 1, cpu.Threads(0)); err == nil {
		t.Error("no threads: no error")
	}
	strange := *p
	strange.Forward = append(slices.Clone(p.Forward), compute.Step{Op: unknown{}})
	if _, err := cpu.Compile(&strange, 1); err == nil || !strings.Contains(err.Error(), "unknown") {
		t.Errorf("an unknown operation: %v", err)
	}
	dense := *p
	dense.Params = slices.Clone(p.Params)
	dense.Params[0].Rows = false
	if _, err := cpu.Compile(&dense, 1); err == nil || !strings.Contains(err.Error(), "embed.weight") {
		t.Errorf("a lookup in a dense block: %v", err)
	}
}

type unknown struct{}

func (unknown) Uses() compute.Use                                { return compute.Use{} }
func (unknown) Touch(compute.Pass) (reads, writes []compute.Buf) { return nil, nil }

func ExampleCompile() {
	n := nn.New("tiny")
	x := n.Dense("fc", n.Floats("x", 2), 2, optim.Init{})
	n.SoftmaxCrossEntropy(x, n.Ints("label", 1, 2))
	p, err := n.Program()
	if err != nil {
		fmt.Println(err)
		return
	}
	e, err := cpu.Compile(p, 8)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer e.Close()
	e.SetParam(0, 0, []float32{1, 0, 0, 1}) // W
	b := &compute.Batch{N: 2, Inputs: []compute.Array{{F: []float32{3, 0, 0, 3}}, {I: []int32{0, 0}}}}
	r, err := e.Train(b, compute.Key{}, compute.Hooks{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("mean loss %.4f, accuracy %.1f\n", r.Mean(), compute.Accuracy.Figures(r)[0].Value)
	fmt.Printf("bias gradient %.4f\n", e.Grad(1).Dense)
	// Output:
	// mean loss 1.5486, accuracy 0.5
	// bias gradient [-1.0000 1.0000]
}
