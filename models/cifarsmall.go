package models

import (
	"fmt"

	"optimus/compute"
	"optimus/compute/optim"
	"optimus/data"
	"optimus/nn"
)

// cifarSmall is a small convnet for CIFAR-10 that a laptop trains in minutes:
// three stages of convolution, batch norm and ReLU, halved by pooling; pictures
// are shifted and mirrored at random in training. Not one of the paper's jobs.
// 11 blocks, 33,946 parameters; 6 auxiliary arrays.
func cifarSmall() Workload {
	optimizer := optim.Default(optim.SGD)
	optimizer.LR, optimizer.WeightDecay = 0.02, 5e-4
	return Workload{
		Name: "cifar-small", Type: "CNN", Application: "image classification", Dataset: "CIFAR10", Examples: 60000,
		Open:     func(dir string, o Options) (*data.Set, error) { return data.OpenCIFAR10(dir) },
		Generate: func(o Options) (*data.Set, error) { return data.GenerateCIFAR10(defaultTo(o.N, 5000), o.Seed) },
		Program: func(s *data.Set) (*compute.Program, error) {
			if err := want(len(s.Classes) > 1 && len(s.Vocabulary) == 0, "cifar-small", s, "pictures of 3×32×32 and their classes"); err != nil {
				return nil, err
			}
			return smallConvNet(len(s.Classes))
		},
		Full:      func() (*compute.Program, error) { return smallConvNet(10) },
		Optimizer: optimizer, Batch: 50, Epochs: 30, Metric: "accuracy",
	}
}

func smallConvNet(classes int) (*compute.Program, error) {
	n := nn.New("cifar-small")
	x := n.Pictures("pixels", 3, 32, 32, 3, true)
	for i, filters := range []int{16, 32, 64} {
		name := fmt.Sprint("conv", i+1)
		x = n.Conv2D(name, x, nn.Conv{Filters: filters, Kernel: 3, Pad: 1, NoBias: true, Init: nn.He(9 * x.Shape[0])})
		x = n.ReLU(n.MaxPool(n.BatchNorm(fmt.Sprint("norm", i+1), x), 2, 2))
	}
	// Small weights at the end let training start from an even guess.
	small := optim.Init{Kind: optim.Normal, Scale: 0.01}
	n.SoftmaxCrossEntropy(n.Dense("fc", n.Flatten(x), classes, small), n.Ints("label", 1, classes))
	return n.Program()
}
