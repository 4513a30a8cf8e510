package cpu_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"optimus/compute"
	"optimus/compute/cpu"
	"optimus/nn"
)

// ctcNet passes its input x on to the loss: the dense layer is the identity.
func ctcNet(t testing.TB, classes, steps, labels, blank, space int) compute.Executable {
	t.Helper()
	n := nn.New("ctc")
	time, text := n.Time("t", steps), n.Time("text", labels)
	lengths := n.Lengths("length", time)
	x := n.Dense("fc", n.FloatsOver(time, "x", classes), classes, weights)
	n.CTC(x, nn.Transcript{Labels: n.IntsOver(text, "labels", 1, classes), Counts: n.Lengths("label length", text), Lengths: &lengths, Blank: blank, Space: space})
	e := compile(t, finish(t, n), 8, cpu.Threads(2))
	eye := make([]float32, classes*classes)
	for i := range classes {
		eye[i*classes+i] = 1
	}
	e.SetParam(0, 0, eye)
	return e
}

// utterances is a batch of recordings of equal length.
func utterances(steps int, x []float32, lengths []int32, texts ...[]int32) *compute.Batch {
	b := &compute.Batch{N: len(texts), Inputs: make([]compute.Array, 4)}
	most := 1
	for _, text := range texts {
		most = max(most, len(text))
	}
	for _, text := range texts {
		b.Inputs[2].I = append(append(b.Inputs[2].I, text...), make([]int32, most-len(text))...)
		b.Inputs[3].I = append(b.Inputs[3].I, int32(len(text)))
		if lengths == nil {
			b.Inputs[0].I = append(b.Inputs[0].I, int32(steps))
		}
	}
	b.Inputs[0].I, b.Inputs[1].F = append(b.Inputs[0].I, lengths...), x
	return b
}

// TestBO33_CTCLosses has values that can be counted by hand: with equal probabilities of
// three classes the loss is -log of the number of paths over 3^T.
func TestBO33_CTCLosses(t *testing.T) {
	e := ctcNet(t, 3, 3, 2, 0, compute.None)
	for _, c := range []struct {
		text  []int32
		steps int
		want  float64
	}{{[]int32{1}, 2, 1.098612}, {nil, 2, 2.197225}, {[]int32{1, 2}, 2, 2.197225}, {[]int32{1, 1}, 3, 3.295837}, {nil, 1, 1.098612}} {
		r, err := e.Train(utterances(c.steps, make([]float32, 3*c.steps), nil, c.text), compute.Key{}, compute.Hooks{})
		if err != nil || math.Abs(r.Loss-c.want) > 1e-6 || r.Weight != 1 {
			t.Errorf("labels %v in %d steps: %+v, %v; want the loss %v", c.text, c.steps, r, err, c.want)
		}
	}
}

// TestBO33_CTCRefuses: labels that no path makes are refused with their example's number, before
// anything is computed, so that they cannot ruin the gradients of the others.
func TestBO33_CTCRefuses(t *testing.T) {
	e := ctcNet(t, 3, 3, 2, 0, compute.None)
	x := make([]float32, 3*3*2)
	for name, c := range map[string]struct {
		batch *compute.Batch
		want  string
	}{
		"too long":   {utterances(3, x, []int32{3, 1}, []int32{1, 1}, []int32{1, 2}), `example 1: its 2 labels need 2 time steps, and 1 are left`},
		"repeats":    {utterances(3, x, []int32{2, 3}, []int32{1, 1}, nil), `example 0: its 2 labels need 3 time steps, and 2 are left`},
		"blank":      {utterances(3, x, nil, []int32{1, 2}, []int32{2, 0}), `example 1, position 1: label 0 is the blank`},
		"recordings": {utterances(2, x[:12], []int32{2, 3}, nil, nil), `"length", example 1: 3 time steps of axis "t", the batch has 2`},
	} {
		_, train := e.Train(c.batch, compute.Key{}, compute.Hooks{})
		_, evaluate := e.Evaluate(c.batch)
		for _, err := range []error{train, evaluate} {
			if !errors.Is(err, cpu.ErrInput) || !strings.Contains(fmt.Sprint(err), c.want) {
				t.Errorf("%s: error %v, want one with %q", name, err, c.want)
			}
		}
	}
}

// TestBO34_CTCBlank moves the blank from the first class to the last: the same loss,
// and the same text is heard. A blank that is mixed up would show in the loss.
func TestBO34_CTCBlank(t *testing.T) {
	logs := func(rows ...float32) []float32 {
		for i, p := range rows {
			rows[i] = float32(math.Log(float64(p)))
		}
		return rows
	}
	first, err := ctcNet(t, 3, 3, 2, 0, compute.None).Evaluate(utterances(3, logs(.5, .3, .2, .2, .5, .3, .1, .2, .7), nil, []int32{1, 2}))
	if err != nil {
		t.Fatal(err)
	}
	mixed, err := ctcNet(t, 3, 3, 2, 2, compute.None).Evaluate(utterances(3, logs(.5, .3, .2, .2, .5, .3, .1, .2, .7), nil, []int32{0, 1}))
	if err != nil || math.Abs(mixed.Loss-1.262308) > 1e-6 {
		t.Errorf("mixed up: loss %v, %v; want 1.262308", mixed.Loss, err)
	}
	last, err := ctcNet(t, 3, 3, 2, 2, compute.None).Evaluate(utterances(3, logs(.3, .2, .5, .5, .3, .2, .2, .7, .1), nil, []int32{0, 1}))
	if err != nil || math.Abs(first.Loss-0.931404) > 1e-6 || math.Abs(last.Loss-first.Loss) > 1e-6 {
		t.Errorf("losses %v and %v (%v), want 0.931404", first.Loss, last.Loss, err)
	}
	if want := (compute.Counts{0, 2}); first.Counts != want || last.Counts != want {
		t.Errorf("counts %v and %v, want %v", first.Counts, last.Counts, want)
	}
}

// TestCTCCounts decodes paths that are certain; class 4 is the space.
func TestCTCCounts(t *testing.T) {
	e := ctcNet(t, 5, 9, 7, 0, 4)
	paths := [][]int32{{1, 1, 0, 1, 4, 2, 3, 3, 0}, {0, 0, 0, 0, 0, 0, 0, 0, 0}, {1, 4, 4, 2, 2, 2, 4, 0, 3}}
	texts := [][]int32{{1, 1, 4, 2, 3}, {1, 2}, {1, 4, 3, 4, 3}}
	var x []float32
	for _, class := range slices.Concat(paths...) {
		row := make([]float32, 5)
		row[class] = 9
		x = append(x, row...)
	}
	r, err := e.Evaluate(utterances(9, x, nil, texts...))
	if err != nil {
		t.Fatal(err)
	}
	// Nothing, two letters that are missing, one letter of another word.
	if diff := cmp.Diff(compute.Counts{0 + 2 + 1, 5 + 2 + 5, 0 + 1 + 1, 2 + 1 + 3}, r.Counts); diff != "" {
		t.Error(diff)
	}
	if f := compute.CharacterErrors.Figures(r); f[0].Value != 0.25 || f[1].Value != 2.0/6 {
		t.Errorf("figures %v", f)
	}
}
