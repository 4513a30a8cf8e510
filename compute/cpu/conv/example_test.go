package conv_test

import (
	"fmt"

	"optimus/compute/cpu/conv"
)

// A 1×2 filter that takes differences, forward and backward.
func Example() {
	c, err := conv.New(conv.Shape{C: 1, H: 1, W: 4, O: 1, KH: 1, KW: 2}, conv.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	samples := func(l conv.Layout, pixels ...float32) conv.Samples {
		s := conv.Samples{Data: make([]float32, l.Size()), Stride: l.Size()}
		if pixels != nil {
			l.Put(s.Data, pixels)
		}
		return s
	}
	filter := []float32{-1, 1}
	forward, backward := make([]float32, c.ForwardSize()), make([]float32, c.BackwardSize())
	c.PackForward(forward, filter)
	c.PackBackward(backward, filter)

	x, y := samples(c.X(), 1, 4, 9, 16), samples(c.Y())
	c.Forward(y, x, forward, nil, 0, 1)
	differences := make([]float32, 3)
	c.Y().Get(differences, y.Data)

	dy, dx := samples(c.Y(), 1, 1, 1), samples(c.DX())
	c.BackwardData(dx, dy, backward, false, 0, 1)
	back := make([]float32, 4)
	c.DX().Get(back, dx.Data)

	packed, gradient := make([]float32, c.GradientSize()), make([]float32, 2)
	c.BackwardWeights(packed, x, dy, 1, 0, c.Tasks())
	c.UnpackGradient(gradient, packed)
	fmt.Println(differences, back, gradient)
	// Output: [3 5 7] [-1 0 0 1] [14 29]
}
