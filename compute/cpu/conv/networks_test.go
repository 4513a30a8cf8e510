package conv

import "testing"

// network lists the convolutions of a network, equal ones once.
type network struct {
	name   string
	shapes []Shape
}

func (n *network) add(c, h, w, o, k, stride int) {
	n.shape(Shape{C: c, H: h, W: w, O: o, KH: k, KW: k, StrideH: stride, StrideW: stride, PadH: k / 2, PadW: k / 2, Groups: 1})
}

func (n *network) shape(s Shape) {
	for _, t := range n.shapes {
		if t == s {
			return
		}
	}
	n.shapes = append(n.shapes, s)
}

// resnet50 has the shapes of v1.5 and of v2, which are the same, and of v1, whose
// strides lie in the first 1×1 of a unit.
func resnet50() network {
	n := network{name: "ResNet-50"}
	n.add(3, 224, 224, 64, 7, 2)
	in, size := 64, 56
	for stage, units := range []int{3, 4, 6, 3} {
		width := 64 << stage
		for unit := range units {
			stride := 1
			if unit == 0 && stage > 0 {
				stride = 2
				n.add(in, size, size, width, 1, 2) // v1
			}
			n.add(in, size, size, width, 1, 1)
			n.add(width, size, size, width, 3, stride)
			if unit == 0 {
				n.add(in, size, size, 4*width, 1, stride)
			}
			size /= stride
			n.add(width, size, size, 4*width, 1, 1)
			in = 4 * width
		}
	}
	return n
}

func inceptionBN() network {
	n := network{name: "Inception-BN"}
	n.add(3, 224, 224, 64, 7, 2)
	n.add(64, 56, 56, 64, 1, 1)
	n.add(64, 56, 56, 192, 3, 1)
	// pixels, input, 1×1, 3×3 reduced, 3×3, double reduced, double, projection; 0: none, stride 2
	for _, m := range [][8]int{
		{28, 192, 64, 64, 64, 64, 96, 32}, {28, 256, 64, 64, 96, 64, 96, 64}, {28, 320, 0, 128, 160, 64, 96, 0},
		{14, 576, 224, 64, 96, 96, 128, 128}, {14, 576, 192, 96, 128, 96, 128, 128}, {14, 576, 160, 128, 160, 128, 160, 128},
		{14, 608, 96, 128, 192, 160, 192, 128}, {14, 608, 0, 128, 192, 192, 256, 0},
		{7, 1056, 352, 192, 320, 160, 224, 128}, {7, 1024, 352, 192, 320, 192, 224, 128},
	} {
		size, in, stride := m[0], m[1], 1
		if m[2] == 0 {
			stride = 2
		} else {
			n.add(in, size, size, m[2], 1, 1)
			n.add(in, size, size, m[7], 1, 1)
		}
		n.add(in, size, size, m[3], 1, 1)
		n.add(m[3], size, size, m[4], 3, stride)
		n.add(in, size, size, m[5], 1, 1)
		n.add(m[5], size, size, m[6], 3, 1)
		n.add(m[6], size, size, m[6], 3, stride)
	}
	return n
}

func otherNetworks() []network {
	kaggle := network{name: "KAGGLE"}
	kaggle.add(3, 48, 48, 32, 5, 1)
	kaggle.add(32, 48, 48, 64, 5, 1)
	kaggle.add(64, 23, 23, 64, 3, 1)
	kaggle.add(64, 23, 23, 128, 3, 1)
	kaggle.add(128, 11, 11, 256, 3, 1)
	kaggle.add(256, 11, 11, 256, 3, 1)

	resnext := network{name: "ResNeXt-110"}
	resnext.add(3, 28, 28, 16, 3, 1)
	for stage, in := range []int{16, 16, 32} {
		size, width, stride := 28>>max(0, stage-1), 16<<stage, 1
		if stage > 0 {
			stride = 2
		}
		resnext.add(in, size, size, width, 3, stride)
		resnext.add(in, size, size, width, 1, stride)
		resnext.add(width, size/stride, size/stride, width, 3, 1)
	}
	for i, group := range []int{1, 2, 4, 8} { // what 32 groups would make of it
		c, size := 32*group, 32>>i
		s := Shape{C: c, H: size, W: size, O: c, KH: 3, KW: 3, StrideH: 1, StrideW: 1, PadH: 1, PadW: 1, Groups: 32}
		resnext.shape(s)
		s.StrideH, s.StrideW = 2, 2
		resnext.shape(s)
	}

	speech := network{name: "DeepSpeech2"}
	const frames = 60
	speech.shape(Shape{C: 1, H: frames, W: 161, O: 32, KH: 11, KW: 41, StrideH: 2, StrideW: 2, PadH: 5, PadW: 0, Groups: 1})
	speech.shape(Shape{C: 32, H: frames / 2, W: 61, O: 32, KH: 11, KW: 21, StrideH: 1, StrideW: 2, PadH: 5, PadW: 0, Groups: 1})

	return []network{kaggle, resnext, speech}
}

// TestNetworks runs every convolution of the networks at every level, cropped to
// what can be computed by definition.
func TestNetworks(t *testing.T) {
	for _, n := range append([]network{resnet50(), inceptionBN()}, otherNetworks()...) {
		t.Run(n.name, func(t *testing.T) {
			for _, s := range n.shapes {
				p := newProblem(crop(s), 1)
				each(t, func(t *testing.T, name string) {
					if err := check(p, Config{Level: name}, 0.4); err != nil {
						t.Error(err)
					}
				})
			}
		})
	}
}

// crop takes rows off a picture, and then blocks of channels off both sides, until
// the definition is computed quickly; the width, which decides about tiles, stays.
func crop(s Shape) Shape {
	const most = 1e6
	work := func() float64 { return float64(s.O*s.OutH()*s.OutW()) * float64(s.Weights()/s.O) }
	for s.H > s.KH+3 && work() > most {
		s.H -= s.StrideH
	}
	for s.Groups == 1 && max(s.C, s.O) > 48 && work() > most {
		if s.C > s.O {
			s.C -= 16
		} else {
			s.O -= 16
		}
	}
	return s
}
