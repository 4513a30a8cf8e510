package nn_test

import (
	"testing"
	"time"

	"optimus/compute"
	"optimus/compute/cpu/sgemm"
	"optimus/compute/optim"
	"optimus/nn"
)

// BenchmarkTextCNN trains a sentence classifier of the size of cnn-rand, 50
// sentences of 56 words at a time, on one thread.
func BenchmarkTextCNN(b *testing.B) {
	n := nn.New("text")
	init := optim.Init{Kind: optim.Uniform, Scale: 0.1}
	x := n.Embedding("embed", n.Ints("tokens", 56, 18764), 300, init)
	y := n.ReLU(n.Concat(n.ConvMax("conv3", x, 3, 100, init), n.ConvMax("conv4", x, 4, 100, init), n.ConvMax("conv5", x, 5, 100, init)))
	n.SoftmaxCrossEntropy(n.Dense("fc", y, 2, init), n.Ints("label", 1, 2))
	benchmark(b, n, 50)
}

// BenchmarkConvNet trains a small convnet with batch norm on 32×32 pictures.
func BenchmarkConvNet(b *testing.B) {
	n := nn.New("pictures")
	x := n.Pictures("x", 3, 32, 32, 4, true)
	for i, filters := range []int{16, 32, 64} {
		name := string(rune('a' + i))
		x = n.Conv2D(name, x, nn.Conv{Filters: filters, Kernel: 3, Pad: 1, NoBias: true, Init: nn.He(9 * x.Shape[0])})
		x = n.ReLU(n.MaxPool(n.BatchNorm(name+".norm", x), 2, 2))
	}
	n.SoftmaxCrossEntropy(n.Dense("fc", n.Flatten(x), 10, nn.He(x.Size())), n.Ints("label", 1, 10))
	benchmark(b, n, 50)
}

// BenchmarkLSTM trains two layers of the size of rnn-lstm, 32 windows of 35 words at
// a time, on one thread, and in turns makes the same products alone, each over all
// time steps at once. It reports how much of the layers' time the products take: what
// the loop over time and all else cost is the rest.
func BenchmarkLSTM(b *testing.B) {
	const steps, batch, units = 35, 32, 200
	n := nn.New("lstm")
	t := n.Time("t", steps)
	x := n.FloatsOver(t, "x", units)
	for _, name := range []string{"a", "b"} {
		x = n.LSTM(name, x, nn.Recurrent{Units: units, Init: weights})
	}
	n.SoftmaxCrossEntropy(n.Dense("fc", n.LastStep(x, nil), 2, weights), n.Ints("label", 1, 2))
	p, err := n.Program()
	if err != nil {
		b.Fatal(err)
	}
	r, e := random(p, batch, 1), compile(b, p, batch)
	load(b, e, r)
	const rows, gates = steps * batch, 4 * units
	hs, as, w := make([]float32, rows*units), make([]float32, rows*gates), make([]float32, gates*units)
	var layers, products time.Duration
	for b.Loop() {
		began := time.Now()
		if _, err := e.Train(r.batch, r.key, compute.Hooks{}); err != nil {
			b.Fatal(err)
		}
		trained := time.Now()
		for i := range 4 { // W and R of two layers; the data has no gradient
			sgemm.Gemm(false, true, rows, gates, units, hs, units, w, units, false, as, gates)
			sgemm.Gemm(true, false, gates, units, rows, as, gates, hs, units, false, w, units)
			if i > 0 {
				sgemm.Gemm(false, false, rows, units, gates, as, gates, w, units, false, hs, units)
			}
		}
		layers, products = layers+trained.Sub(began), products+time.Since(trained)
	}
	b.ReportMetric(products.Seconds()/layers.Seconds(), "products/layers")
}

func benchmark(b *testing.B, n *nn.Net, batch int) {
	p, err := n.Program()
	if err != nil {
		b.Fatal(err)
	}
	r, e := random(p, batch, 1), compile(b, p, batch)
	load(b, e, r)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := e.Train(r.batch, r.key, compute.Hooks{}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(batch*b.N)/b.Elapsed().Seconds(), "examples/s")
}
