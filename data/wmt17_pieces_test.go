package data

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"optimus/data/bpe"
	"optimus/internal/shared"
)

// said returns the words of an example's source or target, joined.
func said(p *pairSplit, s *sentences, vocabulary []string, example int) string {
	var pieces []string
	for _, n := range s.at(int(p.ids[example])) {
		pieces = append(pieces, vocabulary[n])
	}
	return string(bpe.Decode([]byte(strings.Join(pieces, " "))))
}

// TestWMT17Pieces: pieces of both languages are learned from the training text alone,
// and spell words that are not in it.
func TestWMT17Pieces(t *testing.T) {
	files := []string{
		"train.tok.de", "das tat gut\nlang lang lang lang\ntat\n", "train.tok.en", "that was good\nlong\ntat\n",
		"newstest1.tok.de", "das gute tat\n", "newstest1.tok.en", "that zoo\n",
	}
	s, err := OpenWMT17(put(t, files...), PairOptions{Merges: 3, MaxWords: 13})
	if err != nil {
		t.Fatal(err)
	}
	list, err := s.Merges().MarshalText()
	if d := cmp.Diff("#version: 0.2\nn g</w>\nl a\nla ng</w>\n", string(list)); d != "" || err != nil {
		t.Error(d, err)
	}
	want := [][]string{
		{Padding, Unknown, Begin, End, "lang", "a@@", "t", "t@@", "d@@", "g@@", "s", "u@@"},
		{Padding, Unknown, Begin, End, "a@@", "o@@", "t", "t@@", "d", "g@@", "h@@", "l@@", "ng", "s", "w@@"},
	}
	if d := cmp.Diff(want, [][]string{s.Vocabulary, s.Target}); d != "" {
		t.Error(d)
	}
	train, valid := s.Train.(*pairSplit), s.Valid.(*pairSplit)
	got := []string{said(train, train.source, s.Vocabulary, 1), said(train, train.target, s.Target, 0), said(valid, valid.source, s.Vocabulary, 0), said(valid, valid.target, s.Target, 0)}
	if d := cmp.Diff([]string{"lang lang lang lang", "that was good", "das gut" + Unknown + " tat", "that " + Unknown + " o" + Unknown}, got); d != "" {
		t.Error(d)
	}
	// The limit of a sentence is in pieces.
	if s, err = OpenWMT17(put(t, files...), PairOptions{Merges: 3, MaxWords: 10}); err != nil || s.Train.Len() != 2 || s.LeftOut != 1 {
		t.Errorf("%+v, %v", s, err)
	}
	// The same files make the same set.
	var prints []string
	for _, merges := range []int{3, 3, 2, 0} {
		s, err := OpenWMT17(put(t, files...), PairOptions{Merges: merges})
		if err != nil || (s.Merges() == nil) != (merges == 0) {
			t.Fatalf("%+v, %v", s, err)
		}
		prints = append(prints, s.Fingerprint())
	}
	if prints[0] != prints[1] || prints[1] == prints[2] || prints[0] == prints[3] {
		t.Errorf("%q", prints)
	}
	_, err = OpenWMT17(put(t, files...), PairOptions{Merges: -1})
	wantError(t, err, BadOption, "Merges:-1")
}

// TestWMT17Codes: a list of merges beside the text is taken in place of learning.
func TestWMT17Codes(t *testing.T) {
	files := []string{"train.de", "abc\n", "train.en", "abc\n", "newstest1.de", "abc\n", "newstest1.en", "cab\n", "bpe.codes"}
	s, err := OpenWMT17(put(t, append(files, "#version: 0.2\nb c</w>\na b\na bc</w>\n")...), PairOptions{Merges: 2})
	if err != nil {
		t.Fatal(err)
	}
	if s.Merges().Len() != 2 || len(s.Vocabulary) != specials+2 || s.Vocabulary[4] != "a@@" || s.Vocabulary[5] != "bc" {
		t.Errorf("%d merges, %q", s.Merges().Len(), s.Vocabulary)
	}
	_, err = OpenWMT17(put(t, append(files, "#version: 0.2\nb c</w>\na b c\n")...), PairOptions{Merges: 2})
	wantError(t, err, BadFormat, "bpe.codes: bad-format: line 3: \"a b c\", want two pieces")
	_, err = OpenWMT17(put(t, append(files, "\x1f\x8b")...), PairOptions{Merges: 2})
	wantError(t, err, BadFormat, "gzip")
	if s, err := OpenWMT17(put(t, append(files, "a b c\n")...), PairOptions{}); err != nil || s.Merges() != nil {
		t.Errorf("whole words: %v", err)
	}
	if (&Set{Train: s.Train}).Merges().Len() != 2 || (&Set{}).Merges() != nil {
		t.Error("merges of other sets")
	}
}

// TestWMT17PiecesReal: with pieces nearly no word of the real text is unknown, where of
// whole words one in seven is; and every sentence is what the file has.
func TestWMT17PiecesReal(t *testing.T) {
	dir := shared.Dir(t, "sets", "wmt17")
	unknown := func(o PairOptions) (*Set, [2]float64) {
		s, err := OpenWMT17(dir, o)
		if err != nil {
			t.Fatal(err)
		}
		var share [2]float64
		p := s.Valid.(*pairSplit)
		for side, text := range []*sentences{p.source, p.target} {
			n := 0
			for _, token := range text.tokens {
				if token == UnknownToken {
					n++
				}
			}
			share[side] = float64(n) / float64(len(text.tokens))
		}
		t.Logf("%d merges: %d + %d pairs, %d left out, %d and %d words, %d and %d tokens, unknown in validation %.4f and %.4f", o.Merges, s.Train.Len(), s.Valid.Len(), s.LeftOut,
			len(s.Vocabulary), len(s.Target), len(p.source.tokens), len(p.target.tokens), share[0], share[1])
		return s, share
	}
	_, whole := unknown(PairOptions{})
	s, cut := unknown(PairOptions{Merges: 3500})
	if whole[0] < 0.1 || whole[1] < 0.1 || max(cut[0], cut[1]) > 0.002 || len(s.Vocabulary) > 4000 || len(s.Target) > 4000 {
		t.Errorf("unknown of whole words %.3f, of pieces %.4f", whole, cut)
	}
	text, err := os.ReadFile(filepath.Join(dir, "train.tok.en"))
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.Split(text, []byte{'\n'})
	p := s.Train.(*pairSplit)
	for example, line := range p.ids {
		want := strings.Join(strings.Fields(string(lines[line])), " ")
		if got := said(p, p.target, s.Target, example); got != want && !strings.Contains(got, Unknown) {
			t.Fatalf("line %d: %q, want %q", line+1, got, want)
		}
	}
}
