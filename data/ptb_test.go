package data

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"optimus/internal/shared"
)

func TestOpenPTB(t *testing.T) {
	line := strings.Repeat(" the cat", 17) + " \n"
	dir := put(t, ptbTrain, line+line+" a <unk> \n", ptbValid, " the end of it \n"+line)
	s, err := OpenPTB(dir)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"cat", "the", EndOfSentence, Unknown, "a"}
	if d := cmp.Diff(want, s.Vocabulary); d != "" {
		t.Error(d)
	}
	if s.Train.Len() != 2 || s.Valid.Len() != 1 || s.SequenceLength != 35 {
		t.Errorf("%d + %d windows of %d", s.Train.Len(), s.Valid.Len(), s.SequenceLength)
	}
	var b Batch
	if err := s.Train.Fill([]int{1, 0}, &b); err != nil {
		t.Fatal(err)
	}
	words, next := b.Inputs[0].I, b.Inputs[1].I
	if d := cmp.Diff(words[1:35], next[:34]); d != "" || next[34] != 4 || words[35] != 1 || next[69] != 1 {
		t.Errorf("words %v, next words %v: %s", words, next, d)
	}
	wantError(t, s.Valid.Fill([]int{1}, &b), BadID, "example 1")
}

func TestOpenPTBReal(t *testing.T) {
	s, err := OpenPTB(shared.Dir(t, "sets", "ptb"))
	if err != nil {
		t.Fatal(err)
	}
	train, valid := s.Train.(*windowSplit), s.Valid.(*windowSplit)
	if len(train.tokens) != 929589 || len(valid.tokens) != 73760 || len(s.Vocabulary) != 10000 {
		t.Errorf("%d and %d words of %d, want 929589 and 73760 of 10000", len(train.tokens), len(valid.tokens), len(s.Vocabulary))
	}
	if train.Len() != 26559 || valid.Len() != 2107 {
		t.Errorf("%d and %d windows", train.Len(), valid.Len())
	}
}

func TestPTBRefuses(t *testing.T) {
	text := strings.Repeat("word ", 40)
	for name, c := range map[string]struct {
		files []string
		kind  Kind
		parts []string
	}{
		"no file":  {[]string{ptbTrain, text}, NotFound, []string{ptbValid}},
		"short":    {[]string{ptbTrain, text, ptbValid, "word word\n"}, Empty, []string{ptbValid, "3 words"}},
		"unknown":  {[]string{ptbTrain, text, ptbValid, "word\nword bird\n"}, BadFormat, []string{ptbValid, "line 2", "bird"}},
		"gzip":     {[]string{ptbTrain, "\x1f\x8b\x08 something", ptbValid, text}, BadFormat, []string{ptbTrain, "gzip"}},
		"binary":   {[]string{ptbTrain, "a\x00b", ptbValid, text}, BadFormat, []string{ptbTrain}},
		"no bytes": {[]string{ptbTrain, "", ptbValid, text}, Empty, []string{ptbTrain}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := OpenPTB(put(t, c.files...))
			wantError(t, err, c.kind, c.parts...)
		})
	}
}

// TestGeneratePTBCanBeLearned counts: pairs of words tell much that single words do not.
func TestGeneratePTBCanBeLearned(t *testing.T) {
	s, err := GeneratePTB(2000, 1)
	if err != nil {
		t.Fatal(err)
	}
	train, valid := s.Train.(*windowSplit).tokens, s.Valid.(*windowSplit).tokens
	if s.Train.Len() != 1800 || s.Valid.Len() != 200 {
		t.Errorf("%d + %d windows", s.Train.Len(), s.Valid.Len())
	}
	n := float64(len(s.Vocabulary))
	one, two := map[int32]float64{}, map[[2]int32]float64{}
	for i, w := range train[1:] {
		one[w]++
		two[[2]int32{train[i], w}]++
	}
	unigram, bigram := 0.0, 0.0
	for i, w := range valid[1:] {
		p := (one[w] + 1) / (float64(len(train)) + n)
		unigram -= math.Log(p)
		bigram -= math.Log((two[[2]int32{valid[i], w}] + 5*p) / (one[valid[i]] + 5))
	}
	count := float64(len(valid) - 1)
	u, b := math.Exp(unigram/count), math.Exp(bigram/count)
	t.Logf("perplexity of words %.1f, of pairs %.1f", u, b)
	if u < 100 || b > u/4 {
		t.Errorf("perplexity of words %v, want over 100; of pairs %v, want less than a quarter", u, b)
	}
}
