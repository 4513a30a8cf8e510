package data

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"optimus/internal/shared"
)

func TestOpenWMT17(t *testing.T) {
	long := strings.Repeat("x ", 61) + "\n"
	dir := put(t,
		"train.tok.de", "das Haus ist das\n"+long+"ja\nleer\n", "train.tok.en", "the house is the house\nlong\nyes\n\n",
		"newstest2012.tok.de", "das Boot\n", "newstest2012.tok.en", "a house\n", "newstest2013.tok.de", "no pair\n")
	s, err := OpenWMT17(dir, PairOptions{Words: 7})
	if err != nil {
		t.Fatal(err)
	}
	// Words of one count go by their bytes; a sentence that is left out still counts.
	if d := cmp.Diff([][]string{{Padding, Unknown, Begin, End, "x", "das", "Haus"}, {Padding, Unknown, Begin, End, "house", "the", "is"}}, [][]string{s.Vocabulary, s.Target}); d != "" {
		t.Error(d)
	}
	if s.Train.Len() != 2 || s.Valid.Len() != 1 || s.SequenceLength != 60 {
		t.Errorf("%d + %d pairs of up to %d words", s.Train.Len(), s.Valid.Len(), s.SequenceLength)
	}
	var b Batch
	if err := s.Train.Fill([]int{1, 0}, &b); err != nil {
		t.Fatal(err)
	}
	want := [][]int32{
		{1, 0, 0, 0, 5, 6, 1, 5}, {1, 4},
		{2, 1, 0, 0, 0, 0, 2, 5, 4, 6, 5, 4}, {1, 3, 0, 0, 0, 0, 5, 4, 6, 5, 4, 3},
	}
	for i, in := range b.Inputs {
		if d := cmp.Diff(want[i], in.I); d != "" {
			t.Errorf("input %d: %s", i, d)
		}
	}
	if err := s.Valid.Fill([]int{0}, &b); err != nil || b.Inputs[0].I[1] != UnknownToken {
		t.Errorf("a word that training lacks: %v, %v", b.Inputs[0].I, err)
	}
	wantError(t, s.Valid.Fill([]int{1}, &b), BadID, "example 1")
}

// The parts of WMT17's parallel data are read one behind the other; tokenised text goes
// before text that is not.
func TestWMT17Parts(t *testing.T) {
	files := []string{
		"europarl-v7.de-en.de", "eins\nzwei\n", "europarl-v7.de-en.en", "one\ntwo\n",
		"commoncrawl.de-en.de", "drei", "commoncrawl.de-en.en", "three", // without a last \n
		"newstest2016.de", "vier\n", "newstest2016.en", "four\n", "notes.de", "no\n",
	}
	s, err := OpenWMT17(put(t, files...), PairOptions{})
	if err != nil {
		t.Fatal(err)
	}
	p := s.Train.(*pairSplit)
	if s.Train.Len() != 3 || s.Valid.Len() != 1 || s.Vocabulary[p.source.at(0)[0]] != "drei" || s.Target[p.target.at(2)[0]] != "two" {
		t.Errorf("%d + %d pairs of %q and %q", s.Train.Len(), s.Valid.Len(), s.Vocabulary, s.Target)
	}
	files = append(files, "train.tok.de", "f\u00fcnf\n", "train.tok.en", "five\n")
	if s, err = OpenWMT17(put(t, files...), PairOptions{}); err != nil || s.Train.Len() != 1 {
		t.Errorf("%+v, %v", s, err)
	}
}

func TestOpenWMT17Real(t *testing.T) {
	s, err := OpenWMT17(shared.Dir(t, "sets", "wmt17"), PairOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if s.Train.Len() != 8000 || s.Valid.Len() < 2900 || len(s.Vocabulary) != 4000 || len(s.Target) != 4000 || s.Target[4] != "the" {
		t.Errorf("%d + %d pairs, %d and %d words, the most frequent %q", s.Train.Len(), s.Valid.Len(), len(s.Vocabulary), len(s.Target), s.Target[4])
	}
}

func TestWMT17Refuses(t *testing.T) {
	files := func(de, en string) []string {
		return []string{"train.tok.de", de, "train.tok.en", en, "newstest1.tok.de", "a\n", "newstest1.tok.en", "b\n"}
	}
	for name, c := range map[string]struct {
		files []string
		kind  Kind
		part  string
	}{
		"no validation":  {files("a\n", "b\n")[:4], NotFound, "newstest"},
		"all too long":   {files(strings.Repeat("x ", 61)+"\n", "b\n"), Empty, "1 to 60 words"},
		"no translation": {append(files("a\n", "b\n")[:2], files("", "")[4:]...), NotFound, "train.tok.en"},
		"lines lack":     {files("a\nb\n", "c\n"), BadFormat, "2 lines, and train.tok.en has 1"},
		"no words":       {files("\n", "\n"), Empty, "white space"},
		"latin-1":        {files("\xfcber\n", "over\n"), BadFormat, "UTF-8"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := OpenWMT17(put(t, c.files...), PairOptions{})
			wantError(t, err, c.kind, c.part)
		})
	}
	_, err := OpenWMT17(t.TempDir(), PairOptions{Words: 3})
	wantError(t, err, BadOption, "Words:3")
}

// TestGenerateWMT17 looks at the grammar: a translation has as many words as its
// source, and a noun each time its source has one.
func TestGenerateWMT17(t *testing.T) {
	s, err := GenerateWMT17(400, 1, PairOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if s.Train.Len() != 360 || s.Valid.Len() != 40 || !s.Generated || len(s.Vocabulary) > 200 || len(s.Target) < 100 {
		t.Errorf("%d + %d pairs, %d and %d words", s.Train.Len(), s.Valid.Len(), len(s.Vocabulary), len(s.Target))
	}
	p := s.Train.(*pairSplit)
	for i := range p.source.len() {
		var nouns [2][]string
		for _, w := range p.source.at(i) {
			if word := s.Vocabulary[w]; word[0] == 'm' {
				nouns[0] = append(nouns[0], word[1:])
			}
		}
		for _, w := range p.target.at(i) {
			if word := s.Target[w]; word[0] == 'n' {
				nouns[1] = append(nouns[1], word[1:])
			}
		}
		if d := cmp.Diff(nouns[0], nouns[1]); d != "" || len(nouns[0]) < 2 || len(p.source.at(i)) != len(p.target.at(i)) {
			t.Fatalf("pair %d: %s", i, d)
		}
	}
}
