package nn_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"optimus/compute"
	"optimus/compute/optim"
	"optimus/nn"
)

func TestBadModels(t *testing.T) {
	loss := func(n *nn.Net, x *nn.Value) { n.SoftmaxCrossEntropy(x, n.Ints("label", 1, 2)) }
	for name, c := range map[string]struct {
		build func(n *nn.Net)
		want  string
	}{
		"no loss": {func(n *nn.Net) { n.Dense("a", n.Floats("x", 2), 2, weights) }, "no loss"},
		"two losses": {func(n *nn.Net) {
			x := n.Dense("a", n.Floats("x", 2), 2, weights)
			loss(n, x)
			n.SoftmaxCrossEntropy(x, n.Ints("label2", 1, 2))
		}, "two losses"},
		"name twice":    {func(n *nn.Net) { loss(n, n.Dense("a", n.Dense("a", n.Floats("x", 2), 2, weights), 2, weights)) }, `"a.weight" is empty or used twice`},
		"unused value":  {func(n *nn.Net) { x := n.Dense("a", n.Floats("x", 2), 2, weights); n.ReLU(x); loss(n, x) }, `"a.relu" is not used`},
		"classes":       {func(n *nn.Net) { loss(n, n.Dense("a", n.Floats("x", 2), 3, weights)) }, "1 labels of 2 classes"},
		"nothing":       {func(n *nn.Net) { loss(n, n.Floats("x", 2)) }, "nothing is learned"},
		"window":        {func(n *nn.Net) { loss(n, n.ConvMax("c", n.Floats("x", 3, 2), 4, 2, weights)) }, "window of 4"},
		"not a text":    {func(n *nn.Net) { loss(n, n.Conv1D("c", n.Floats("x", 3), 2, 2, weights)) }, "window of 2"},
		"kernel":        {func(n *nn.Net) { loss(n, n.Conv2D("c", n.Floats("x", 1, 2, 2), nn.Conv{Filters: 2, Kernel: 3})) }, "does not fit"},
		"filters":       {func(n *nn.Net) { loss(n, n.Conv2D("c", n.Floats("x", 1, 2, 2), nn.Conv{Kernel: 1})) }, "sizes must be positive"},
		"not a picture": {func(n *nn.Net) { loss(n, n.MaxPool(n.Floats("x", 4), 2, 2)) }, "must be [C,H,W]"},
		"no pixels":     {func(n *nn.Net) { loss(n, n.GlobalAvgPool(n.Floats("x", 3))) }, "is not [C,H,W]"},
		"groups": {func(n *nn.Net) {
			loss(n, n.Conv2D("c", n.Floats("x", 3, 2, 2), nn.Conv{Filters: 2, Kernel: 1, Groups: 2}))
		}, "do not divide"},
		"wide border": {func(n *nn.Net) { loss(n, n.Pool(n.Floats("x", 1, 4, 4), nn.Pooling{Kernel: 2, Pad: 2})) }, "must be narrower"},
		"shapes":      {func(n *nn.Net) { loss(n, n.Add(n.Floats("x", 3), n.Floats("z", 4))) }, "does not go with"},
		"pictures":    {func(n *nn.Net) { loss(n, n.Concat(n.Floats("x", 1, 2, 2), n.Floats("z", 1, 3, 2))) }, "does not go with"},
		"axes":        {func(n *nn.Net) { loss(n, n.Add(n.Floats("x", 3), n.FloatsOver(n.Time("t", 4), "z", 3))) }, "same time axis"},
		"no steps":    {func(n *nn.Net) { loss(n, n.FloatsOver(n.Time("t", 0), "z", 3)) }, "at least 1"},
		"rate":        {func(n *nn.Net) { loss(n, n.Dropout(n.Dense("a", n.Floats("x", 2), 2, weights), 1)) }, "outside [0,1)"},
		"no shape":    {func(n *nn.Net) { loss(n, n.Dense("a", n.Floats("x"), 2, weights)) }, "must be positive"},
		"no width":    {func(n *nn.Net) { loss(n, n.Dense("a", n.Floats("x", 2), 0, weights)) }, "must be positive"},
		"no ids": {func(n *nn.Net) {
			loss(n, n.Dense("a", n.Flatten(n.Embedding("e", n.Ints("x", 0, 2), 2, weights)), 2, weights))
		}, "must be positive"},
		"no time":  {func(n *nn.Net) { loss(n, n.LSTM("a", n.Floats("x", 2), nn.Recurrent{Units: 2})) }, "vectors over a time axis"},
		"no cells": {func(n *nn.Net) { loss(n, n.GRU("a", n.FloatsOver(n.Time("t", 4), "x", 2), nn.Recurrent{})) }, "0 cells"},
		"no last":  {func(n *nn.Net) { loss(n, n.LastStep(n.Floats("x", 2), nil)) }, "has no time axis"},
		"no axis":  {func(n *nn.Net) { n.Lengths("length", 0) }, `"length": no time axis`},
		"other lengths": {func(n *nn.Net) {
			lengths := n.Lengths("length", n.Time("u", 3))
			loss(n, n.LastStep(n.LSTM("a", n.FloatsOver(n.Time("t", 4), "x", 2), nn.Recurrent{Units: 2, Lengths: &lengths}), nil))
		}, "do not count steps"},
		"no memory": {func(n *nn.Net) {
			x := n.FloatsOver(n.Time("t", 4), "x", 2)
			loss(n, n.AttentionDecoder("a", x, n.Floats("m", 2), n.Floats("h", 2), n.Floats("c", 2), nn.Attention{}))
		}, "two time axes"},
		"ids of bags": {func(n *nn.Net) { loss(n, n.Bag("b", n.Table("e", 4, 2, weights), n.Ints("x", 6, 4), 2)) }, "one more than the 4 rows"},
		"candidates": {func(n *nn.Net) {
			n.SampledLogistic(n.Dense("a", n.Floats("x", 2), 3, weights), n.Dense("b", n.Floats("y", 5, 2), 2, weights))
		}, "it needs [width] and [K,width]"},
		"letters": {func(n *nn.Net) {
			text := n.Time("text", 3)
			n.CTC(n.Dense("a", n.FloatsOver(n.Time("t", 4), "x", 2), 5, weights), nn.Transcript{Labels: n.IntsOver(text, "y", 1, 4), Counts: n.Lengths("n", text), Blank: 1})
		}, "labels of 4 classes"},
		"blank": {func(n *nn.Net) {
			text := n.Time("text", 3)
			n.CTC(n.Dense("a", n.FloatsOver(n.Time("t", 4), "x", 2), 5, weights), nn.Transcript{Labels: n.IntsOver(text, "y", 1, 5), Counts: n.Lengths("n", text), Blank: 5})
		}, "blank 5"},
		"no translation": {func(n *nn.Net) {
			t := n.Time("t", 3)
			x, y := n.Dense("a", n.FloatsOver(t, "x", 2), 5, weights), n.IntsOver(t, "y", 1, 5)
			n.TokenCrossEntropy(x, y, 0)
			n.BLEU(x, y, 1, 2)
		}, "no attention decoder"},
	} {
		n := nn.New("bad")
		c.build(n)
		if _, err := n.Program(); !errors.Is(err, nn.ErrModel) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one with %q", name, err, c.want)
		}
	}
}

// TestConvMaxIsConvThenMax checks that the fused layer changes nothing but speed,
// up to the order of float32 additions.
func TestConvMaxIsConvThenMax(t *testing.T) {
	build := func(fused bool) *compute.Program {
		n := nn.New("text")
		x := n.Embedding("e", n.Ints("x", 20, 30), 12, weights)
		if fused {
			x = n.ReLU(n.ConvMax("c", x, 4, 9, weights))
		} else {
			x = n.MaxOverTime(n.ReLU(n.Conv1D("c", x, 4, 9, weights)))
		}
		n.SoftmaxCrossEntropy(n.Dense("fc", x, 2, weights), n.Ints("label", 1, 2))
		p, err := n.Program()
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	var grads [2][][]float32
	for i, fused := range []bool{true, false} {
		p := build(fused)
		r, e := random(p, 17, 5), compile(t, p, 17)
		load(t, e, r)
		if _, err := e.Train(r.batch, r.key, compute.Hooks{}); err != nil {
			t.Fatal(err)
		}
		for b, param := range p.Params {
			grads[i] = append(grads[i], full(param, e.Grad(b)))
		}
	}
	for b := range grads[0] {
		for j, v := range grads[0][b] {
			if w := grads[1][b][j]; max(v-w, w-v) > 1e-5*max(1, w, -w) {
				t.Fatalf("block %d[%d]: fused %v, apart %v", b, j, v, w)
			}
		}
	}
}

func ExampleNet() {
	n := nn.New("xor")
	x := n.Floats("x", 2)
	h := n.ReLU(n.Dense("hidden", x, 8, nn.He(2)))
	n.SoftmaxCrossEntropy(n.Dense("out", h, 2, optim.Init{}), n.Ints("label", 1, 2))
	p, err := n.Program()
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, b := range p.Params {
		fmt.Println(b.Name, b.Shape)
	}
	fmt.Println(p.Parameters(), "parameters")
	// Output:
	// hidden.weight [8 2]
	// hidden.bias [8]
	// out.weight [2 8]
	// out.bias [2]
	// 42 parameters
}
