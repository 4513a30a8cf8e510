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
	model := classifier{name: "cifar-small", eighths: 8, pad: 3, layers: threeStages}
	return Workload{
		Name: model.name, Type: "CNN", Application: "image classification", Dataset: "CIFAR10", Examples: 60000,
		Open:      func(dir string, o Options) (*data.Set, error) { return data.OpenCIFAR10(dir) },
		Generate:  func(o Options) (*data.Set, error) { return data.GenerateCIFAR10(defaultTo(o.N, 5000), o.Seed) },
		Program:   model.of,
		Full:      func() (*compute.Program, error) { return model.program(3, 32, 32, 10) },
		Optimizer: optimizer, Batch: 50, Epochs: 30,
	}
}

func threeStages(n *nn.Net, x *nn.Value, classes int) *nn.Value {
	for i, filters := range []int{16, 32, 64} {
		x = conv(n, fmt.Sprint("conv", i+1), x, filters, 3, 1)
		x = n.ReLU(n.MaxPool(n.BatchNorm(fmt.Sprint("norm", i+1), x), 2, 2))
	}
	// Small weights at the end let training start from an even guess.
	return n.Dense("fc", n.Flatten(x), classes, optim.Init{Kind: optim.Normal, Scale: 0.01})
}
