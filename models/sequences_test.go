package models_test

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"optimus/compute"
	"optimus/data"
	"optimus/internal/shared"
	"optimus/models"
	"optimus/paa"
)

// sequences are the workloads of Table 1 over sequences.
func sequences() map[string]int {
	return map[string]int{"dssm": 1500000, "rnn-lstm": 4653200, "seq2seq": 9090464, "deepspeech2": 37984533}
}

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
		t.Logf("epoch %d: perplexity %.1f, validation %.1f", epoch, math.Exp(trained.Mean()), got)
	}
	if got > 30 {
		t.Errorf("perplexity %.1f, want at most 30", got)
	}
}

// TestDSSMLearnsGenerated: by chance a fifth of the words are told from four others.
func TestDSSMLearnsGenerated(t *testing.T) {
	const examples, near = 40000, 10
	tr := newTrainer(t, tiny(t, "dssm"), generated(t, "dssm", examples), 1)
	words := data.TopicWords(examples, 3, 2*near)
	before := neighbourShare(tr, words, near)
	tr.reach(0.5, 3)
	after := neighbourShare(tr, words, near)
	t.Logf("share of neighbours on the same topic: %.2f, before training %.2f", after, before)
	if before > 0.1 || after < 0.5 {
		t.Errorf("%.2f of the nearest neighbours are on a word's topic, before training %.2f; want 0.5 of them, and as many as by chance, 0.05", after, before)
	}
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

// TestSeq2SeqLearnsGenerated: who does not read the source cannot get a perplexity
// below 7 or so, since in its six words two are of 60 nouns and one of 30 verbs.
func TestSeq2SeqLearnsGenerated(t *testing.T) {
	tr := newTrainer(t, tiny(t, "seq2seq"), generated(t, "seq2seq", 2500), 1)
	var got compute.Result
	for epoch := range 5 {
		trained := tr.epoch(epoch)
		got = tr.evaluate()
		t.Logf("epoch %d: perplexity %.2f, validation %.2f, BLEU %.1f", epoch, math.Exp(trained.Mean()), math.Exp(got.Mean()), tr.figure(got))
	}
	if math.Exp(got.Mean()) > 2 || tr.figure(got) < 60 {
		t.Errorf("perplexity %.2f, BLEU %.1f; want at most 2 and at least 60", math.Exp(got.Mean()), tr.figure(got))
	}
	var alone compute.Result // what is written does not depend on the rest of a batch
	for i := range tr.set.Valid.Len() {
		tr.load(tr.set.Valid, []int{i})
		r, err := tr.e.Evaluate(&tr.batch)
		if err != nil {
			t.Fatal(err)
		}
		alone.Add(r)
	}
	if alone.Counts != got.Counts || alone.Weight != got.Weight {
		t.Errorf("counts %v one by one, %v in batches", alone, got)
	}
}

// TestSeq2SeqOnWMT17 takes a few steps of the full model on real sentences.
func TestSeq2SeqOnWMT17(t *testing.T) {
	long(t)
	w := lookup(t, "seq2seq")
	set, err := w.Open(shared.Dir(t, "sets", "wmt17"), models.Options{})
	if err != nil {
		t.Fatal(err)
	}
	tr := newTrainer(t, w, set, 1)
	first, last := 0.0, 0.0
	for step := range 8 {
		last = math.Exp(tr.step(step, []int{0, 1, 2, 3}).Mean())
		if step == 0 {
			first = last
		}
	}
	t.Logf("perplexity %.0f, then %.0f", first, last)
	pieces := float64(len(set.Target))
	if first < 0.9*pieces || first > 1.1*pieces || last > 0.98*first {
		t.Errorf("perplexity %.0f, then %.0f; want that of %.0f pieces and then less", first, last, pieces)
	}
	if set.Merges().Len() != 4000 || len(set.Vocabulary) > 4000 || pieces < 3000 {
		t.Errorf("%d merges, %d and %.0f pieces", set.Merges().Len(), len(set.Vocabulary), pieces)
	}
}

// TestDeepSpeech2LearnsGenerated: to hear nothing is a rate of errors of 1.
func TestDeepSpeech2LearnsGenerated(t *testing.T) {
	tr := newTrainer(t, tiny(t, "deepspeech2"), generated(t, "deepspeech2", 300), 1)
	got := 1.0
	for epoch := 0; epoch < 7 && got > 0.5; epoch++ {
		trained := tr.epoch(epoch)
		valid := tr.evaluate()
		got = tr.figure(valid)
		t.Logf("epoch %d: loss %.2f; validation %.2f, character errors %.3f", epoch, trained.Mean(), valid.Mean(), got)
	}
	if got > 0.5 {
		t.Errorf("character errors %.3f, want at most 0.5", got)
	}
}

// TestDeepSpeech2OnLibriSpeech takes a step on real recordings.
func TestDeepSpeech2OnLibriSpeech(t *testing.T) {
	w := tiny(t, "deepspeech2")
	set, err := w.Open(shared.Dir(t, "sets", "librispeech"), models.Options{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	tr := newTrainer(t, w, set, 1)
	ids := []int{0, 1, 2}
	first := tr.step(0, ids)
	var last compute.Result
	for step := range 4 {
		last = tr.step(step+1, ids)
	}
	t.Logf("loss %.1f, then %.1f", first.Mean(), last.Mean())
	if first.Weight != 3 || !(last.Loss < 0.9*first.Loss) || first.Counts[1] < 60 || first.Counts[3] < 12 {
		t.Errorf("%+v, then %+v", first, last)
	}
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
	for step := range 30 {
		for i := range ids {
			ids[i] = (step*len(ids) + i) * 50
		}
		perplexity[min(step, 1)] = tr.figure(tr.step(0, ids))
	}
	t.Logf("perplexity %.0f, then %.0f", perplexity[0], perplexity[1])
	if p := perplexity; p[0] < 9000 || p[0] > 11000 || p[1] > 2500 {
		t.Errorf("perplexity %v, want 10000 words' in the first step and less than 2500 in the last", p)
	}
}
