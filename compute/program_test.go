package compute_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"optimus/compute"
	"optimus/compute/optim"
)

// chain is two dense layers and a loss, by hand.
func chain() *compute.Program {
	p := &compute.Program{
		Name:    "chain",
		Inputs:  []compute.Input{{Name: "x", Shape: []int{2}}, {Name: "label", Shape: []int{1}, Limit: 2}},
		Buffers: []compute.Buffer{{Name: "x", Shape: []int{2}}, {Name: "a", Shape: []int{3}}, {Name: "a.grad", Shape: []int{3}}, {Name: "b", Shape: []int{2}}, {Name: "b.grad", Shape: []int{2}}},
		Params:  []optim.Param{{Name: "a", Shape: []int{3, 2}}, {Name: "b", Shape: []int{2, 3}}},
	}
	load := &compute.Load{In: 0, Y: 0, Size: 2}
	a := &compute.Dense{IO: compute.IO{X: 0, DX: compute.None, Y: 1, DY: 2}, W: 0, B: compute.None, Rows: 1, In: 2, Out: 3}
	b := &compute.Dense{IO: compute.IO{X: 1, DX: 2, Y: 3, DY: 4}, W: 1, B: compute.None, Rows: 1, In: 3, Out: 2}
	loss := &compute.SoftmaxLoss{X: 3, DX: 4, Labels: 1, Rows: 1, Classes: 2}
	p.Forward = []compute.Step{{Op: load}, {Op: a}, {Op: b}, {Op: loss}}
	p.Backward = []compute.Step{{Op: b, Pass: compute.InputGrad}, {Op: b, Pass: compute.ParamGrad}, {Op: a, Pass: compute.ParamGrad}}
	return p
}

func TestSealSetsMarks(t *testing.T) {
	p := chain()
	for range 2 { // sealing again changes nothing
		if err := p.Seal(); err != nil {
			t.Fatal(err)
		}
		marks := func(steps []compute.Step) (out []string) {
			for i, s := range steps {
				out = append(out, fmt.Sprint(i, " wait ", s.Wait, " ready ", s.Ready))
			}
			return out
		}
		want := []string{
			"0 wait [] ready []", "1 wait [0] ready []", "2 wait [1] ready []", "3 wait [] ready []",
			"0 wait [] ready []", "1 wait [] ready [1]", "2 wait [] ready [0]",
		}
		if diff := cmp.Diff(want, append(marks(p.Forward), marks(p.Backward)...)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	if n := p.Parameters(); n != 12 {
		t.Errorf("%d parameters, want 12", n)
	}
}

func TestSealRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		change func(p *compute.Program)
		want   string
	}{
		"no gradient":    {func(p *compute.Program) { p.Backward = p.Backward[:2] }, "block 0 (a)"},
		"no use":         {func(p *compute.Program) { p.Params = append(p.Params, optim.Param{Name: "idle"}) }, "block 2 (idle)"},
		"strange buffer": {func(p *compute.Program) { p.Buffers = p.Buffers[:4] }, "buffer 4 of 4"},
		"strange block":  {func(p *compute.Program) { p.Params = p.Params[:1] }, "block 1 of 1"},
		"strange input":  {func(p *compute.Program) { p.Inputs = p.Inputs[:1] }, "input 1 of 1"},
	} {
		p := chain()
		c.change(p)
		if err := p.Seal(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one with %q", name, err, c.want)
		}
	}
}

func ExampleResult() {
	shares := []compute.Result{{Loss: 6, Weight: 10, Counts: compute.Counts{7}}, {}, {Loss: 3, Weight: 20, Counts: compute.Counts{11}}}
	var total compute.Result
	for _, s := range shares {
		total.Add(s)
	}
	fmt.Printf("loss %.2f accuracy %.2f\n", total.Mean(), compute.Accuracy.Figures(total)[0].Value)
	fmt.Println(compute.Result{}.Mean())
	// Output:
	// loss 0.30 accuracy 0.60
	// 0
}
