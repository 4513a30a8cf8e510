package data

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// linear trains logistic regression over any features and returns its share of
// right answers on valid.
func linear(t *testing.T, s *Set, classes, features int, rate float64, read func(b *Batch, x []float64)) float64 {
	w := make([]float64, classes*(features+1))
	x := make([]float64, features+1)
	p := make([]float64, classes)
	var b Batch
	score := func(split Split, i int) int {
		if err := split.Fill([]int{i}, &b); err != nil {
			t.Fatal(err)
		}
		clear(x)
		x[features] = 1
		read(&b, x)
		best := 0
		for k := range p {
			p[k] = 0
			for j, v := range x {
				p[k] += v * w[k*len(x)+j]
			}
			if p[k] > p[best] {
				best = k
			}
		}
		return best
	}
	for epoch := range 10 {
		for i := range s.Train.Len() {
			best := score(s.Train, i)
			top, sum := p[best], 0.0
			for k := range p {
				p[k] = math.Exp(p[k] - top)
				sum += p[k]
			}
			for k := range p {
				d := p[k] / sum
				if int32(k) == b.Inputs[1].I[0] {
					d--
				}
				for j, v := range x {
					if v != 0 {
						w[k*len(x)+j] -= rate / float64(1+epoch) * d * v
					}
				}
			}
		}
	}
	right := 0
	for i := range s.Valid.Len() {
		if best := score(s.Valid, i); int32(best) == b.Inputs[1].I[0] {
			right++
		}
	}
	return float64(right) / float64(s.Valid.Len())
}

// A bag of words gets most of the generated sentences, a net that reads words
// in a row nearly all.
func TestGenerateMRCanBeLearned(t *testing.T) {
	s, err := GenerateMR(2000, 1)
	if err != nil {
		t.Fatal(err)
	}
	bag := linear(t, s, 2, len(s.Vocabulary), 0.1, func(b *Batch, x []float64) {
		for _, w := range b.Inputs[0].I {
			if w != 0 {
				x[w]++
			}
		}
	})
	net := newTinyNet(len(s.Vocabulary), 16, 8, 0.01)
	for range 4 {
		net.epoch(s.Train, 50, ids(s.Train.Len()))
	}
	got := net.accuracy(s.Valid)
	t.Logf("bag of words %.3f, net %.3f, %d words of %d", bag, got, s.SequenceLength, len(s.Vocabulary))
	if bag < 0.8 || bag > 0.97 || got < 0.95 || got < bag {
		t.Errorf("bag of words %v, want 0.8 to 0.97; net %v, want 0.95 or more", bag, got)
	}
}

// A linear model of the pixels stays far below a convolutional net, which gets
// 98 % of these (not trained here: two minutes in plain Go).
func TestGenerateCIFAR10IsNotLinear(t *testing.T) {
	s, err := GenerateCIFAR10(900, 1)
	if err != nil {
		t.Fatal(err)
	}
	got := linear(t, s, cifarClasses, cifarPixels, 0.0005, func(b *Batch, x []float64) {
		for i, v := range b.Inputs[0].F {
			x[i] = float64(v)
		}
	})
	t.Logf("linear %.3f", got)
	if got < 0.15 || got > 0.6 {
		t.Errorf("a linear model gets %v, want 0.15 (chance is 0.1) to 0.6", got)
	}
}

func TestGeneratorsAreOfTheirSeed(t *testing.T) {
	for name, make := range map[string]func(n int, seed uint64) (*Set, error){"MR": GenerateMR, "CIFAR10": GenerateCIFAR10, "MNIST": GenerateMNIST, "PTB": GeneratePTB, "text8": GenerateText8, "LibriSpeech": GenerateLibriSpeech, "WMT17": func(n int, seed uint64) (*Set, error) { return GenerateWMT17(n, seed, PairOptions{}) }} {
		prints := map[string]int{}
		for _, seed := range []uint64{1, 2, 1} {
			s, err := make(60, seed)
			if err != nil {
				t.Fatal(err)
			}
			if !s.Generated || s.Train.Len()+s.Valid.Len() != 60 {
				t.Errorf("%s: %d + %d examples", name, s.Train.Len(), s.Valid.Len())
			}
			prints[s.Fingerprint()]++
		}
		if len(prints) != 2 {
			t.Errorf("%s: seeds 1, 2, 1 gave %d sets, want 2", name, len(prints))
		}
		for _, n := range []int{-1, 0, 1, 1<<25 + 1} {
			_, err := make(n, 1)
			wantError(t, err, BadOption, fmt.Sprint(n))
		}
	}
}

func TestGenerateMRShape(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, err := GenerateMR(rapid.IntRange(2, 60).Draw(t, "n"), rapid.Uint64().Draw(t, "seed"))
		if err != nil {
			t.Fatal(err)
		}
		all := s.Train.(*sentenceSplit).from
		for i := range all.len() {
			if n := len(all.at(i)); n < shortest || n > longest {
				t.Errorf("a sentence of %d words", n)
			}
		}
	})
}

func TestWriteMRRoundTrip(t *testing.T) {
	s, err := GenerateMR(300, 7)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "new", mrFolder)
	if err := WriteMR(dir, s); err != nil {
		t.Fatal(err)
	}
	again, err := OpenMR(filepath.Dir(dir), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(texts(t, s), texts(t, again)); d != "" {
		t.Error(d)
	}
	if !slices.Equal(s.Vocabulary, again.Vocabulary) {
		t.Error("the vocabulary changed")
	}
}

func TestFingerprint(t *testing.T) {
	base := func() *Set { s, _ := GenerateMR(50, 1); return s }
	want := base().Fingerprint()
	for name, change := range map[string]func(s *Set){
		"class":      func(s *Set) { s.Classes[0] = "poor" },
		"word":       func(s *Set) { s.Vocabulary[9] += "x" },
		"length":     func(s *Set) { s.SequenceLength++ },
		"validation": func(s *Set) { s.Valid = s.Train },
		"label":      func(s *Set) { s.Train.(*sentenceSplit).from.labels[0] ^= 1 },
		"token":      func(s *Set) { s.Train.(*sentenceSplit).from.tokens[0] ^= 1 },
	} {
		s := base()
		change(s)
		if s.Fingerprint() == want {
			t.Errorf("another %s leaves the fingerprint as it is", name)
		}
	}
	s := base()
	s.Name, s.Train = "other", plain{s.Train}
	first := s.Fingerprint()
	s.Train.(plain).Split.(*sentenceSplit).from.labels[0] ^= 1
	if first == s.Fingerprint() {
		t.Error("a split of another package: another label leaves the fingerprint as it is")
	}
}

func ExampleGenerateMR() {
	set, err := GenerateMR(1000, 1)
	if err != nil {
		fmt.Println(err)
		return
	}
	var batch Batch
	if err := set.Train.Fill([]int{4, 2, 7}, &batch); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(set.Train.Len(), set.Valid.Len(), set.Classes)
	fmt.Println(batch.N, batch.Inputs[0].Shape, batch.Inputs[1].Shape)
	// Output:
	// 900 100 [negative positive]
	// 3 [3 50] [3]
}

func BenchmarkFillCIFAR10(b *testing.B) {
	s, _ := GenerateCIFAR10(512, 1)
	var batch Batch
	list := ids(128)
	b.ReportAllocs()
	for b.Loop() {
		if err := s.Train.Fill(list, &batch); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N*128)/b.Elapsed().Seconds(), "pictures/s")
}
