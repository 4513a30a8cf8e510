package models

import (
	"fmt"

	"optimus/compute"
	"optimus/data"
	"optimus/nn"
)

// resNeXt110 is ResNeXt-110 on CIFAR-10, as MXNet's symbols/resnext.py makes it. It
// has no groups in spite of its name: below 164 layers that script takes units of
// two 3×3 convolutions, in which they are not used, so it is in effect the
// ResNet-110 of He et al., "Deep residual learning for image recognition" (2016),
// with a norm of the data in front and projections at all stages.
//
// 338 blocks, 1,730,976 parameters. Pictures of 3×28×28 are cut out of 32×32 and a
// border of 4; MXNet's colour jitter is left out.
func resNeXt110() Workload {
	w := resNeXt(18, 16)
	w.tiny = func() Workload { return shrunk(resNeXt(2, 8), 20, 32) }
	return w
}

// resNeXt has three stages of units; filters is the width of the first.
func resNeXt(units, filters int) Workload {
	model := classifier{name: "resnext-110", eighths: 7, pad: 4, layers: basicUnits{units, filters}.layers}
	return Workload{
		Name: model.name, Type: "CNN", Application: "image classification", Dataset: "CIFAR10", Examples: 60000,
		Open:      func(dir string, o Options) (*data.Set, error) { return data.OpenCIFAR10(dir) },
		Generate:  func(o Options) (*data.Set, error) { return data.GenerateCIFAR10(defaultTo(o.N, 5000), o.Seed) },
		Program:   model.of,
		Full:      func() (*compute.Program, error) { return model.program(3, 32, 32, 10) },
		Optimizer: imageSGD(0.05), Drops: []int{200, 250}, Batch: 128, Epochs: 300,
	}
}

// basicUnits is a residual net in which ReLU comes after the sum.
type basicUnits struct{ units, filters int }

func (b basicUnits) layers(n *nn.Net, x *nn.Value, classes int) *nn.Value {
	x = n.Normalise("data", x, nn.Norm{Eps: residualEps, FixGamma: true})
	x = conv(n, "conv0", x, b.filters, 3, 1)
	for stage := range 3 {
		for unit := range b.units {
			stride := 1
			if stage > 0 && unit == 0 {
				stride = 2
			}
			x = b.unit(n, fmt.Sprintf("stage%d.unit%d", stage+1, unit+1), x, b.filters<<stage, stride, unit == 0)
		}
	}
	return scores(n, x, classes)
}

// unit is ReLU(F(x) + x), or with project ReLU(F(x) + W·x).
func (b basicUnits) unit(n *nn.Net, name string, x *nn.Value, filters, stride int, project bool) *nn.Value {
	norm := nn.Norm{Eps: residualEps}
	y := n.ReLU(n.Normalise(name+".norm1", conv(n, name+".conv1", x, filters, 3, stride), norm))
	y = n.Normalise(name+".norm2", conv(n, name+".conv2", y, filters, 3, 1), norm)
	if project {
		x = n.Normalise(name+".shortcut.norm", conv(n, name+".shortcut", x, filters, 1, stride), norm)
	}
	return n.ReLU(n.Add(y, x))
}

// residualEps is ε of the norms in MXNet's residual nets.
const residualEps = 2e-5
