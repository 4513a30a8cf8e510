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

// Others returns convolutions of other kinds: small groups as in ResNeXt, groups
// of a block, and layers of DeepSpeech2, KAGGLE and ResNeXt-110.
func Others() []Layer {
	var layers []Layer
	for _, g := range [][3]int{{32, 32, 32}, {64, 16, 32}, {128, 8, 32}, {64, 32, 16}, {256, 8, 32}, {128, 32, 8}} {
		s := square(g[0], g[1], g[0], 3, 1)
		s.Groups = g[2]
		layers = append(layers, Layer{s, 1})
	}
	for _, s := range []conv.Shape{
		{C: 1, H: 64, W: 161, O: 32, KH: 11, KW: 41, StrideH: 2, StrideW: 2, PadH: 5, Groups: 1},
		{C: 32, H: 32, W: 61, O: 32, KH: 11, KW: 21, StrideH: 1, StrideW: 2, PadH: 5, Groups: 1},
		square(32, 48, 64, 5, 1),
		square(64, 23, 128, 3, 1),
		square(16, 28, 16, 3, 1),
	} {
		layers = append(layers, Layer{s, 1})
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
