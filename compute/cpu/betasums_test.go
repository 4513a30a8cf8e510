package cpu

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"optimus/compute"
	"optimus/compute/optim"
	"optimus/internal/rng"
	"optimus/nn"
)

// TestBetaSums compares the gradient of the β of a norm of the data with that of a norm
// whose γ is learned and happens to be 1, which is summed from the convolution's input
// gradient; and its bits on one core and on three.
func TestBetaSums(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string, lo, hi int) int { return rapid.IntRange(lo, hi).Draw(t, name) }
		groups, n := draw("groups", 1, 2), draw("examples", 1, 4)
		channels, filters, h, w := groups*draw("channels", 1, 9), groups*draw("filters", 1, 20), draw("height", 1, 9), draw("width", 1, 9)
		window := compute.Window{StrideH: draw("stride", 1, 3), StrideW: draw("stride", 1, 3), PadH: draw("pad", 0, 4), PadW: draw("pad", 0, 4)}
		window.KH, window.KW = draw("kernel", 1, min(7, h+2*window.PadH)), draw("kernel", 1, min(7, w+2*window.PadW))
		gradient := func(fixed bool, threads int) []float32 {
			net, init := nn.New("norm of the data"), optim.Init{Kind: optim.Uniform, Scale: 1}
			x := net.Normalise("data", net.Floats("x", channels, h, w), nn.Norm{FixGamma: fixed})
			x = net.Conv2D("conv", x, nn.Conv{Filters: filters, Window: window, Groups: groups, NoBias: true, Init: init})
			net.SoftmaxCrossEntropy(net.Dense("fc", net.Flatten(net.ReLU(x)), 3, init), net.Ints("label", 1, 3))
			p, err := net.Program()
			if err != nil {
				t.Fatal(err)
			}
			if short := !slices.ContainsFunc(fused(t, p).Backward, inputGradOfConv); short != fixed {
				t.Fatalf("fixed γ: %t; without the gradient of the convolution's input: %t", fixed, short)
			}
			return train(t, p, n, threads)
		}
		want, got := gradient(false, 1), gradient(true, 1)
		for c, v := range got {
			if math.Abs(float64(v-want[c])) > 1e-5*(1+math.Abs(float64(want[c]))) {
				t.Fatalf("dβ is %v, want %v", got, want)
			}
		}
		if three := gradient(true, 3); !slices.Equal(got, three) {
			t.Fatalf("dβ is %v on one core, %v on three", got, three)
		}
	})
}

func fused(t *rapid.T, p *compute.Program) *compute.Program {
	q, err := fuse(p)
	if err != nil {
		t.Fatal(err)
	}
	return q
}

func inputGradOfConv(s compute.Step) bool {
	_, ok := s.Op.(*compute.Conv2D)
	return ok && s.Pass == compute.InputGrad
}

// train makes one step and returns the gradient of block 1, β.
func train(t *rapid.T, p *compute.Program, n, threads int) []float32 {
	e, err := Compile(p, n, Threads(threads))
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	for b, param := range p.Params {
		v := make([]float32, param.Size())
		param.Init.Fill(1, b, 0, v)
		e.SetParam(b, 0, v)
	}
	b := &compute.Batch{N: n, Inputs: make([]compute.Array, 2)}
	for i := range n * p.Inputs[0].Size() {
		b.Inputs[0].F = append(b.Inputs[0].F, float32(rng.NewKey(3).Normal(uint64(i))))
	}
	for i := range n {
		b.Inputs[1].I = append(b.Inputs[1].I, int32(i%3))
	}
	if _, err := e.Train(b, compute.Key{}, compute.Hooks{}); err != nil {
		t.Fatal(err)
	}
	return slices.Clone(e.Grad(1).Dense)
}
