package models_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"optimus/data"
	"optimus/internal/shared"
	"optimus/models"
)

func lookup(t testing.TB, name string) models.Workload {
	t.Helper()
	w, err := models.Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func TestListing(t *testing.T) {
	list, err := models.List()
	if err != nil {
		t.Fatal(err)
	}
	got, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	want := `[` +
		`{"name":"resnext-110","parameters":1730976,"blocks":338,"type":"CNN","application":"image classification","dataset":"CIFAR10","examples":60000},` +
		`{"name":"resnet-50","parameters":25549486,"blocks":157,"type":"CNN","application":"image classification","dataset":"ILSVRC2012-ImageNet","examples":1313788},` +
		`{"name":"inception-bn","parameters":11295240,"blocks":278,"type":"CNN","application":"image classification","dataset":"Caltech (256)","examples":30607},` +
		`{"name":"kaggle","parameters":1365561,"blocks":16,"type":"CNN","application":"image classification","dataset":"Kaggle-NDSB1","examples":37920},` +
		`{"name":"cnn-rand","parameters":5990102,"blocks":9,"type":"CNN","application":"sentence classification","dataset":"MR","examples":10662},` +
		`{"name":"dssm","parameters":1500000,"blocks":1,"type":"RNN","application":"word representation","dataset":"text8","examples":214288},` +
		`{"name":"rnn-lstm","parameters":4653200,"blocks":11,"type":"RNN","application":"language modeling","dataset":"PTB","examples":1002000},` +
		`{"name":"seq2seq","parameters":9090464,"blocks":23,"type":"RNN","application":"machine translation","dataset":"WMT17","examples":1000000},` +
		`{"name":"deepspeech2","parameters":37984533,"blocks":56,"type":"RNN","application":"speech recognition","dataset":"LibriSpeech","examples":45000},` +
		`{"name":"cifar-small","parameters":33946,"blocks":11,"type":"CNN","application":"image classification","dataset":"CIFAR10","examples":60000}]`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWorkloadsAreComplete(t *testing.T) {
	for _, w := range models.All() {
		if w.Open == nil || w.Generate == nil || w.Program == nil || w.Full == nil || w.Batch < 1 || w.Epochs < 1 {
			t.Errorf("%s: %+v lacks something", w.Name, w)
		}
		if err := errors.Join(w.Optimizer.Validate(), w.Schedule(w.Examples, w.Batch).Validate()); err != nil {
			t.Errorf("%s: %v", w.Name, err)
		}
		p, err := w.Full()
		if err != nil {
			t.Fatal(err)
		}
		if p.Name != w.Name || p.Metric == "" {
			t.Errorf("%s: the program is %s with metric %q", w.Name, p.Name, p.Metric)
		}
	}
}

func TestLookupSuggests(t *testing.T) {
	for name, want := range map[string]string{"cnnrand": "cnn-rand", "CNN-rand": "cnn-rand", "cifar-smal": "cifar-small"} {
		_, err := models.Lookup(name)
		if !errors.Is(err, models.ErrUnknown) || !strings.Contains(fmt.Sprint(err), fmt.Sprintf("mean %q", want)) {
			t.Errorf("%q: error %v, want one that suggests %s", name, err, want)
		}
	}
	for _, name := range []string{"", "bert"} {
		_, err := models.Lookup(name)
		if !errors.Is(err, models.ErrUnknown) || !strings.Contains(fmt.Sprint(err), "; known: ") {
			t.Errorf("%q: error %v, want one that lists all", name, err)
		}
	}
}

// TestCNNRandBlocks checks the sizes against the published model (Optimus's
// released block list).
func TestCNNRandBlocks(t *testing.T) {
	w := lookup(t, "cnn-rand")
	for _, vocabulary := range []int{1000, 18764} {
		set := &data.Set{Name: "MR", Classes: []string{"neg", "pos"}, Vocabulary: make([]string, vocabulary), SequenceLength: 56}
		p, err := w.Program(set)
		if err != nil {
			t.Fatal(err)
		}
		var sizes []int
		for _, b := range p.Params {
			sizes = append(sizes, b.Size())
			if b.Rows != (b.Name == "embed.weight") {
				t.Errorf("block %s: rows %v", b.Name, b.Rows)
			}
		}
		if diff := cmp.Diff([]int{300 * vocabulary, 90000, 100, 120000, 100, 150000, 100, 600, 2}, sizes); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if got, want := p.Parameters(), 300*vocabulary+360902; got != want {
			t.Errorf("%d parameters, want %d", got, want)
		}
	}
}

func TestProgramRefusesOtherData(t *testing.T) {
	text := &data.Set{Name: "words", Classes: []string{"a", "b"}, Vocabulary: []string{"x"}, SequenceLength: 9}
	pictures := &data.Set{Name: "pictures", Classes: []string{"a", "b"}}
	for name, set := range map[string]*data.Set{"cnn-rand": pictures, "cifar-small": text, "resnet-50": text, "kaggle": pictures,
		"dssm": text, "rnn-lstm": text, "seq2seq": text, "deepspeech2": pictures} {
		if _, err := lookup(t, name).Program(set); err == nil || !strings.Contains(err.Error(), set.Name) {
			t.Errorf("%s on %s: error %v, want one that names both", name, set.Name, err)
		}
	}
}

func TestCNNRandLearnsGenerated(t *testing.T) {
	w := lookup(t, "cnn-rand")
	set, err := w.Generate(models.Options{Seed: 3, N: 1500})
	if err != nil {
		t.Fatal(err)
	}
	newTrainer(t, w, set, 1).reach(0.9, 8)
}

// TestCNNRandLearnsMR trains on real sentences. Naive Bayes on words reaches 0.77
// on all of it; a few epochs must be well on the way.
func TestCNNRandLearnsMR(t *testing.T) {
	long(t)
	w := lookup(t, "cnn-rand")
	set, err := w.Open(shared.Dir(t, "sets", "mr", "rt-polaritydata"), models.Options{Seed: 10})
	if err != nil {
		t.Fatal(err)
	}
	newTrainer(t, w, set, 1).reach(0.72, 8)
}

func TestCIFARSmallLearnsGenerated(t *testing.T) {
	w := lookup(t, "cifar-small")
	set, err := w.Generate(models.Options{Seed: 3, N: 600})
	if err != nil {
		t.Fatal(err)
	}
	newTrainer(t, w, set, 1).reach(0.5, 10)
}

// TestCIFARSmallLearnsCIFAR trains on 2,600 real pictures, where a linear model
// reaches 0.36.
func TestCIFARSmallLearnsCIFAR(t *testing.T) {
	long(t)
	w := lookup(t, "cifar-small")
	set, err := w.Open(shared.Dir(t, "sets", "cifar10", "cifar-10-batches-bin"), models.Options{})
	if err != nil {
		t.Fatal(err)
	}
	newTrainer(t, w, set, 1).reach(0.5, 12)
}

// long skips a test of some ten seconds where time is short.
func long(t *testing.T) {
	if testing.Short() {
		t.Skip("trains for some ten seconds; run without -short")
	}
}

func BenchmarkCNNRand(b *testing.B) {
	w := lookup(b, "cnn-rand")
	set, err := w.Generate(models.Options{Seed: 3, N: 1000})
	if err != nil {
		b.Fatal(err)
	}
	tr := newTrainer(b, w, set, 1)
	b.ResetTimer()
	n := int64(0)
	for i := 0; b.Loop(); i++ {
		n += tr.epoch(i).Weight
	}
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "examples/s")
}

func ExampleLookup() {
	w, err := models.Lookup("cnn-rand")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(w.Application, "on", w.Dataset, "by", w.Optimizer.Kind, "with lr", w.Optimizer.LR)
	_, err = models.Lookup("cnn-ranf")
	fmt.Println(err)
	// Output:
	// sentence classification on MR by rmsprop with lr 0.0005
	// unknown workload "cnn-ranf"; did you mean "cnn-rand"?
}
