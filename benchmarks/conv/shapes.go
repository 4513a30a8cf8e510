package conv

import "optimus/compute/cpu/conv"

// Layer is a convolution and how often it occurs in a network.
type Layer struct {
	Shape conv.Shape
	Count int
}

// ResNet50 returns the 53 convolutions of ResNet-50 for 224×224 pictures, equal
// ones once. The bottleneck's stride lies in its 3×3 convolution (v1.5).
func ResNet50() []Layer {
	layers := []Layer{{square(3, 224, 64, 7, 2), 1}}
	add := func(n, c, size, o, k, stride int) {
		s := square(c, size, o, k, stride)
		for i := range layers {
			if layers[i].Shape == s {
				layers[i].Count += n
				return
			}
		}
		layers = append(layers, Layer{s, n})
	}
	in, size := 64, 56
	for stage, units := range []int{3, 4, 6, 3} {
		width := 64 << stage
		for unit := range units {
			stride := 1
			if unit == 0 && stage > 0 {
				stride = 2
			}
			add(1, in, size, width, 1, 1)
			add(1, width, size, width, 3, stride)
			if unit == 0 {
				add(1, in, size, 4*width, 1, stride)
			}
			size /= stride
			add(1, width, size, 4*width, 1, 1)
			in = 4 * width
		}
	}
	return layers
}

// square is a k×k convolution of square pictures, padded to keep their size.
func square(c, size, o, k, stride int) conv.Shape {
	return conv.Shape{
		C: c, H: size, W: size, O: o, KH: k, KW: k,
		StrideH: stride, StrideW: stride, PadH: k / 2, PadW: k / 2, Groups: 1,
	}
}
