package models

import (
	"optimus/compute"
	"optimus/data"
	"optimus/nn"
)

// inceptionBN is Inception-BN on Caltech-256 (Ioffe and Szegedy, "Batch
// normalization", 2015), as MXNet's symbols/inception-bn.py makes it: every
// convolution has a bias and a norm, the pools of the stem have no border.
//
// 278 blocks; 11,295,240 parameters with the 1,000 classes that the paper's number
// is of, 10,533,665 with the 257 of Caltech-256. Pictures of 3×224×224 are cut out of
// 256×256. MXNet's script has a batch of 128; 32 fits into less memory.
func inceptionBN() Workload {
	w := inception(1, 256, 257)
	w.tiny = func() Workload { return shrunk(inception(8, 64, 8), 10, 16) }
	return w
}

// inception has filters in every layer, divided by shrink.
func inception(shrink, side, classes int) Workload {
	model := classifier{name: "inception-bn", eighths: 7, layers: modules{shrink}.layers}
	return Workload{
		Name: model.name, Type: "CNN", Application: "image classification", Dataset: "Caltech (256)", Examples: 30607,
		Open: func(dir string, o Options) (*data.Set, error) {
			return data.OpenCaltech(dir, data.PictureOptions{Seed: o.Seed, Side: side, Skip: o.Skip})
		},
		Generate: func(o Options) (*data.Set, error) {
			return data.GenerateCaltech(defaultTo(o.N, 2000), data.PictureOptions{Seed: o.Seed, Side: side, Classes: classes})
		},
		Program:   model.of,
		Full:      func() (*compute.Program, error) { return model.program(3, side, side, 1000) },
		Optimizer: imageSGD(0.1), Drops: []int{30, 60}, Batch: 32, Epochs: 80,
	}
}

// modules is a net of modules, each of towers side by side.
type modules struct{ shrink int }

// module is one of the net's modules: the filters of its towers.
type module struct {
	name            string
	one             int  // 1×1; 0 for a module that halves the picture
	reduce3, conv3  int  // 1×1, then 3×3
	reduced, double int  // 1×1, then 3×3 twice
	max             bool // the fourth tower pools by the maximum, else by the mean
	project         int  // 1×1 behind the pool; 0: the pool's output as it is
}

func (m modules) layers(n *nn.Net, x *nn.Value, classes int) *nn.Value {
	x = m.conv(n, "1", x, 64, 7, 2)
	x = n.MaxPool(x, 3, 2)
	x = m.conv(n, "2.reduce", x, 64, 1, 1)
	x = m.conv(n, "2", x, 192, 3, 1)
	x = n.MaxPool(x, 3, 2)
	for _, c := range []module{
		{"3a", 64, 64, 64, 64, 96, false, 32},
		{"3b", 64, 64, 96, 64, 96, false, 64},
		{"3c", 0, 128, 160, 64, 96, true, 0},
		{"4a", 224, 64, 96, 96, 128, false, 128},
		{"4b", 192, 96, 128, 96, 128, false, 128},
		{"4c", 160, 128, 160, 128, 160, false, 128},
		{"4d", 96, 128, 192, 160, 192, false, 128},
		{"4e", 0, 128, 192, 192, 256, true, 0},
		{"5a", 352, 192, 320, 160, 224, false, 128},
		{"5b", 352, 192, 320, 192, 224, true, 128},
	} {
		x = m.module(n, x, c)
	}
	return scores(n, x, classes)
}

// module joins towers that all read x.
func (m modules) module(n *nn.Net, x *nn.Value, c module) *nn.Value {
	stride := 1
	if c.one == 0 {
		stride = 2
	}
	var towers []*nn.Value
	if c.one > 0 {
		towers = append(towers, m.conv(n, c.name+".1x1", x, c.one, 1, 1))
	}
	y := m.conv(n, c.name+".3x3.reduce", x, c.reduce3, 1, 1)
	towers = append(towers, m.conv(n, c.name+".3x3", y, c.conv3, 3, stride))
	y = m.conv(n, c.name+".double.reduce", x, c.reduced, 1, 1)
	y = m.conv(n, c.name+".double0", y, c.double, 3, 1)
	towers = append(towers, m.conv(n, c.name+".double1", y, c.double, 3, stride))
	y = n.Pool(x, nn.Pooling{Avg: !c.max, Kernel: 3, Stride: stride, Pad: 1})
	if c.project > 0 {
		y = m.conv(n, c.name+".project", y, c.project, 1, 1)
	}
	return n.Concat(append(towers, y)...)
}

// conv is a convolution with bias, a norm and ReLU.
func (m modules) conv(n *nn.Net, name string, x *nn.Value, filters, kernel, stride int) *nn.Value {
	c := nn.Conv{Filters: filters / m.shrink, Kernel: kernel, Stride: stride, Pad: kernel / 2, Init: nn.He(kernel * kernel * x.Shape[0])}
	return n.ReLU(n.Normalise("norm."+name, n.Conv2D("conv."+name, x, c), nn.Norm{Eps: 1e-5 + 1e-10}))
}
