package compute_test

import (
	"math"
	"testing"

	"optimus/compute"
)

func TestFigures(t *testing.T) {
	for _, c := range []struct {
		metric compute.Metric
		r      compute.Result
		want   []compute.Figure
	}{
		{compute.Accuracy, compute.Result{Weight: 8, Counts: compute.Counts{6}}, []compute.Figure{{Name: "accuracy", Value: 0.75}}},
		{compute.Accuracy, compute.Result{}, []compute.Figure{{Name: "accuracy", Value: 0}}},
		{compute.Perplexity, compute.Result{Loss: 3 * math.Log(50), Weight: 3}, []compute.Figure{{Name: "perplexity", Value: 50}}},
		{compute.CharacterErrors, compute.Result{Counts: compute.Counts{3, 60, 2, 10}}, []compute.Figure{{Name: "cer", Value: 0.05}, {Name: "wer", Value: 0.2}}},
		// A candidate of 18 words, reference of 18: precisions 17/18, 10/17, 6/16 and 4/15.
		{compute.BLEU, compute.Result{Counts: compute.Counts{17, 10, 6, 4, 18, 17, 16, 15, 18, 18}},
			[]compute.Figure{{Name: "bleu", Value: 100 * math.Pow(17.0/18*10/17*6/16*4/15, 0.25)}, {Name: "perplexity", Value: 1}}},
		// Short candidates are punished by e^(1-r/c).
		{compute.BLEU, compute.Result{Counts: compute.Counts{5, 4, 3, 2, 5, 4, 3, 2, 5, 10}}, []compute.Figure{{Name: "bleu", Value: 100 / math.E}, {Name: "perplexity", Value: 1}}},
		{compute.BLEU, compute.Result{Counts: compute.Counts{5, 0, 0, 0, 5, 4, 3, 2, 5, 5}}, []compute.Figure{{Name: "bleu", Value: 0}, {Name: "perplexity", Value: 1}}},
		{compute.BLEU, compute.Result{}, []compute.Figure{{Name: "bleu", Value: 0}, {Name: "perplexity", Value: 1}}},
	} {
		got := c.metric.Figures(c.r)
		if len(got) != len(c.want) {
			t.Fatalf("%s of %+v: %v", c.metric, c.r, got)
		}
		for i, f := range got {
			if f.Name != c.want[i].Name || math.Abs(f.Value-c.want[i].Value) > 1e-9*math.Max(1, c.want[i].Value) {
				t.Errorf("%s of %+v: %v, want %v", c.metric, c.r, got, c.want)
			}
		}
	}
}

// TestResultsAddUp checks that the result of shares is that of the whole.
func TestResultsAddUp(t *testing.T) {
	a := compute.Result{Loss: 1, Weight: 2, Counts: compute.Counts{3, 4, 9: 5}}
	a.Add(compute.Result{Loss: 0.5, Weight: 1, Counts: compute.Counts{1, 1, 9: 1}})
	if want := (compute.Result{Loss: 1.5, Weight: 3, Counts: compute.Counts{4, 5, 9: 6}}); a != want {
		t.Errorf("sum %+v, want %+v", a, want)
	}
}
