package models

import (
	"optimus/compute"
	"optimus/compute/optim"
	"optimus/data"
	"optimus/nn"
)

// classifier is a model that tells of what class a picture is.
type classifier struct {
	name string
	// The model sees a square of so many eighths of a picture's side: from a random
	// place in training, where it may reach pad pixels over the edges, and mirrored
	// half the time; from the middle in evaluation.
	eighths, pad int
	// layers make scores of the classes out of pixels.
	layers func(n *nn.Net, x *nn.Value, classes int) *nn.Value
}

// of makes the model for a set of pictures.
func (c classifier) of(s *data.Set) (*compute.Program, error) {
	if err := want(len(s.Classes) > 1 && len(s.Picture) == 3, c.name, s, "pictures and their classes"); err != nil {
		return nil, err
	}
	return c.program(s.Picture[0], s.Picture[1], s.Picture[2], len(s.Classes))
}

// program makes the model for pictures [channels,height,width].
func (c classifier) program(channels, height, width, classes int) (*compute.Program, error) {
	n := nn.New(c.name)
	x := n.Crops("pixels", compute.Image{C: channels, H: height, W: width}, height*c.eighths/8, width*c.eighths/8, c.pad, true)
	n.SoftmaxCrossEntropy(c.layers(n, x, classes), n.Ints("label", 1, classes))
	return n.Program()
}

// conv is a convolution without bias that keeps a picture's size but for the
// stride. MXNet's scripts start all weights of their image models like this:
// Xavier, gaussian, factor type "in", magnitude 2, which is He's initialisation.
func conv(n *nn.Net, name string, x *nn.Value, filters, kernel, stride int) *nn.Value {
	return n.Conv2D(name, x, nn.Conv{Filters: filters, Kernel: kernel, Stride: stride, Pad: kernel / 2, NoBias: true, Init: nn.He(kernel * kernel * x.Shape[0])})
}

// scores ends a classifier: the mean of each channel, then a dense layer.
func scores(n *nn.Net, x *nn.Value, classes int) *nn.Value {
	return n.Dense("fc", n.Flatten(n.GlobalAvgPool(x)), classes, nn.He(x.Shape[0]))
}

// imageSGD is the optimizer of MXNet's scripts for image classification.
func imageSGD(lr float64) optim.Config {
	o := optim.Default(optim.SGD)
	o.LR, o.WeightDecay = lr, 1e-4
	return o
}
