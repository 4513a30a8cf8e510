package models

import (
	"fmt"

	"optimus/compute"
	"optimus/data"
	"optimus/nn"
)

// resNet50 is ResNet-50 on ImageNet with pre-activation (He et al., "Identity
// mappings in deep residual networks", 2016), as MXNet's symbols/resnet.py makes it:
// norm and ReLU come before each convolution, the data are normed too, and a
// projection reads what the first ReLU of its unit makes.
//
// 157 blocks; 25,549,486 parameters with 1,000 classes. Pictures of 3×224×224 are cut
// out of 256×256. The batch is that of the paper's job; MXNet's script has 128.
func resNet50() Workload {
	w := resNet(64, 256, 1000, 3, 4, 6, 3)
	w.tiny = func() Workload { return shrunk(resNet(8, 64, 8, 1, 1, 1, 1), 10, 16) }
	return w
}

// resNet has a stage for each number of units; filters is the width of the stem.
// Pictures are made side × side, generated ones of so many classes.
func resNet(filters, side, classes int, units ...int) Workload {
	model := classifier{name: "resnet-50", eighths: 7, layers: bottlenecks{filters, units}.layers}
	return Workload{
		Name: model.name, Type: "CNN", Application: "image classification", Dataset: "ILSVRC2012-ImageNet", Examples: 1313788,
		Open: func(dir string, o Options) (*data.Set, error) {
			return data.OpenImageNet(dir, data.PictureOptions{Side: side, Skip: o.Skip})
		},
		Generate: func(o Options) (*data.Set, error) {
			return data.GenerateImageNet(defaultTo(o.N, 2000), data.PictureOptions{Seed: o.Seed, Side: side, Classes: classes})
		},
		Program:   model.of,
		Full:      func() (*compute.Program, error) { return model.program(3, side, side, classes) },
		Optimizer: imageSGD(0.1), Drops: []int{30, 60}, Batch: 32, Epochs: 80,
	}
}

// bottlenecks is a residual net of units of three convolutions.
type bottlenecks struct {
	filters int
	units   []int
}

func (b bottlenecks) layers(n *nn.Net, x *nn.Value, classes int) *nn.Value {
	norm := nn.Norm{Eps: residualEps}
	x = n.Normalise("data", x, nn.Norm{Eps: residualEps, FixGamma: true})
	x = n.ReLU(n.Normalise("norm0", conv(n, "conv0", x, b.filters, 7, 2), norm))
	x = n.Pool(x, nn.Pooling{Kernel: 3, Stride: 2, Pad: 1})
	for stage, units := range b.units {
		for unit := range units {
			stride := 1
			if stage > 0 && unit == 0 {
				stride = 2
			}
			x = b.unit(n, fmt.Sprintf("stage%d.unit%d", stage+1, unit+1), x, 4*b.filters<<stage, stride, unit == 0)
		}
	}
	return scores(n, n.ReLU(n.Normalise("norm1", x, norm)), classes)
}

// unit is F(h) + x with h = ReLU(norm(x)), or with project F(h) + W·h.
func (b bottlenecks) unit(n *nn.Net, name string, x *nn.Value, filters, stride int, project bool) *nn.Value {
	norm := func(i int, x *nn.Value) *nn.Value {
		return n.ReLU(n.Normalise(fmt.Sprint(name, ".norm", i), x, nn.Norm{Eps: residualEps}))
	}
	h := norm(1, x)
	y := norm(2, conv(n, name+".conv1", h, filters/4, 1, 1))
	y = norm(3, conv(n, name+".conv2", y, filters/4, 3, stride))
	y = conv(n, name+".conv3", y, filters, 1, 1)
	if project {
		x = conv(n, name+".shortcut", h, filters, 1, stride)
	}
	return n.Add(y, x)
}
