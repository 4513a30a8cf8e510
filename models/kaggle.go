package models

import (
	"fmt"

	"optimus/compute"
	"optimus/compute/optim"
	"optimus/data"
	"optimus/nn"
)

// kaggle is the net of MXNet's example kaggle-ndsb1, which tells 121 kinds of
// plankton. That script cuts pictures to 36×36, for which its last pool is too large;
// the paper's number of parameters is that of 48×48, which is used.
//
// 16 blocks, 1,365,561 parameters.
func kaggle() Workload {
	w := plankton(1, 121)
	w.tiny = func() Workload { return shrunk(plankton(4, 9), 10, 16) }
	return w
}

// plankton has filters in every layer, divided by shrink.
func plankton(shrink, classes int) Workload {
	model := classifier{name: "kaggle", eighths: 8, layers: func(n *nn.Net, x *nn.Value, classes int) *nn.Value {
		return planktonLayers(n, x, shrink, classes)
	}}
	optimizer := optim.Default(optim.SGD)
	optimizer.LR, optimizer.WeightDecay, optimizer.Clip = 0.01, 1e-5, 5
	return Workload{
		Name: model.name, Type: "CNN", Application: "image classification", Dataset: "Kaggle-NDSB1", Examples: 37920,
		Open: func(dir string, o Options) (*data.Set, error) {
			return data.OpenNDSB1(dir, data.PictureOptions{Seed: o.Seed, Skip: o.Skip})
		},
		Generate: func(o Options) (*data.Set, error) {
			return data.GenerateNDSB1(defaultTo(o.N, 4000), data.PictureOptions{Seed: o.Seed, Classes: classes})
		},
		Program:   model.of,
		Full:      func() (*compute.Program, error) { return model.program(3, 48, 48, classes) },
		Optimizer: optimizer, Batch: 64, Epochs: 100,
	}
}

func planktonLayers(n *nn.Net, x *nn.Value, shrink, classes int) *nn.Value {
	init := func(fanIn int) optim.Init { return nn.Xavier(optim.Uniform, fanIn, 2.34) }
	convs := 0
	conv := func(filters, kernel int) {
		convs++
		c := nn.Conv{Filters: filters / shrink, Kernel: kernel, Pad: kernel / 2, Init: init(kernel * kernel * x.Shape[0])}
		x = n.ReLU(n.Conv2D(fmt.Sprint("conv", convs), x, c))
	}
	conv(32, 5)
	conv(64, 5)
	x = n.MaxPool(x, 3, 2)
	conv(64, 3)
	conv(64, 3)
	conv(128, 3)
	x = n.MaxPool(x, 3, 2)
	conv(256, 3)
	conv(256, 3)
	x = n.Dropout(n.Flatten(n.AvgPool(x, 9, 1)), 0.25)
	return n.Dense("fc", x, classes, init(x.Size()))
}
