package nn_test

import (
	"testing"

	"optimus/compute"
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
