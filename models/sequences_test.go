package models_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"optimus/compute"
	"optimus/internal/shared"
	"optimus/models"
	"optimus/paa"
)

// sequences are the workloads of Table 1 over sequences.
func sequences() map[string]int { return map[string]int{"dssm": 1500000, "rnn-lstm": 4653200} }

// TestSequenceBlocks compares the sizes of all blocks, in order, with the catalog,
// which was derived from the published lists without this package.
func TestSequenceBlocks(t *testing.T) {
	for name, total := range sequences() {
		p, err := lookup(t, name).Full()
		if err != nil {
			t.Fatal(err)
		}
		known, err := paa.Lookup(name)
		if err != nil {
			t.Fatal(err)
		}
		var sizes []int
		for _, b := range p.Params {
			sizes = append(sizes, b.Size())
		}
		if diff := cmp.Diff(known.Sizes, sizes); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if p.Parameters() != total {
			t.Errorf("%s: %d parameters, want %d", name, p.Parameters(), total)
		}
	}
}

// figure returns the first figure of a result's metric.
func (tr *trainer) figure(r compute.Result) float64 { return tr.p.Metric.Figures(r)[0].Value }

// TestRNNLSTMLearnsGenerated: counting words gives a perplexity near 190, counting
// pairs 14.
func TestRNNLSTMLearnsGenerated(t *testing.T) {
	w := tiny(t, "rnn-lstm")
	tr := newTrainer(t, w, generated(t, "rnn-lstm", 1500), 1)
	got := 0.0
	for epoch := range 6 {
		trained := tr.epoch(epoch)
		got = tr.figure(tr.evaluate())
		t.Logf("epoch %d: perplexity %.1f, validation %.1f", epoch, tr.figure(trained), got)
	}
	if got > 30 {
		t.Errorf("perplexity %.1f, want at most 30", got)
	}
}

// TestDSSMLearnsGenerated: by chance a fifth of the words are told from four others.
func TestDSSMLearnsGenerated(t *testing.T) {
	newTrainer(t, tiny(t, "dssm"), generated(t, "dssm", 40000), 1).reach(0.5, 3)
}

// TestDSSMLearnsText8 trains the full model on real text.
func TestDSSMLearnsText8(t *testing.T) {
	long(t)
	w := lookup(t, "dssm")
	set, err := w.Open(shared.Dir(t, "sets", "text8"), models.Options{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	newTrainer(t, w, set, 1).reach(0.31, 3)
}

// TestRNNLSTMOnPTB takes a few steps of the full model on the Penn Treebank, which
// is as much as a test has time for.
func TestRNNLSTMOnPTB(t *testing.T) {
	long(t)
	w := lookup(t, "rnn-lstm")
	set, err := w.Open(shared.Dir(t, "sets", "ptb"), models.Options{})
	if err != nil {
		t.Fatal(err)
	}
	tr := newTrainer(t, w, set, 1)
	ids := make([]int, 8)
	perplexity := [2]float64{}
	for step := range 6 {
		for i := range ids {
			ids[i] = (step*len(ids) + i) * 50
		}
		perplexity[min(step, 1)] = tr.figure(tr.step(0, ids))
	}
	t.Logf("perplexity %.0f, then %.0f", perplexity[0], perplexity[1])
	if p := perplexity; p[0] < 9000 || p[0] > 11000 || p[1] > 8000 {
		t.Errorf("perplexity %v, want 10000 words' in the first step and less than 8000 in the last", p)
	}
}
