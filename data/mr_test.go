package data

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"optimus/internal/shared"
)

func TestOpenMR(t *testing.T) {
	dir := put(t, mrPos, "A good , Good film \nfine\n", mrNeg, "a bad film \n\nno good at all , ever . \n")
	s, err := OpenMR(dir, Options{Seed: 3})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"negative", "negative a bad film", "negative no good at all , ever .", "positive a good , good film", "positive fine"}
	if d := cmp.Diff(want, texts(t, s)); d != "" {
		t.Error(d)
	}
	wantWords := []string{Padding, "good", ",", "a", "film", ".", "all", "at", "bad", "ever", "fine", "no"}
	if d := cmp.Diff(wantWords, s.Vocabulary); d != "" {
		t.Error(d)
	}
	if s.SequenceLength != 7 || s.Train.Len() != 4 || s.Valid.Len() != 1 || s.Generated {
		t.Errorf("length %d, %d + %d examples", s.SequenceLength, s.Train.Len(), s.Valid.Len())
	}
	var b Batch
	if err := s.Train.Fill([]int{2, 0, 2}, &b); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([][]int{{3, 7}, {3}}, [][]int{b.Inputs[0].Shape, b.Inputs[1].Shape}); d != "" || b.N != 3 {
		t.Errorf("batch of %d: %s", b.N, d)
	}
	if x := b.Inputs[0].I; !slices.Equal(x[:7], x[14:]) || len(x) != 21 {
		t.Errorf("the same example twice gave %v", x)
	}
}

func TestOpenMRReal(t *testing.T) {
	dir := shared.Dir(t, "sets", "mr")
	s, err := OpenMR(dir, Options{Seed: 10})
	if err != nil {
		t.Fatal(err)
	}
	if n := s.Train.Len() + s.Valid.Len(); n != 2*4265 || s.Valid.Len() != 853 {
		t.Errorf("%d sentences, %d to validate; want 8530, 853", n, s.Valid.Len())
	}
	if d := cmp.Diff([]string{Padding, ".", "the", ",", "a"}, s.Vocabulary[:5]); d != "" {
		t.Error(d)
	}
	for _, w := range s.Vocabulary {
		if strings.ContainsAny(w, "\u0085\ufffd") {
			t.Errorf("word %q was decoded wrongly", w)
		}
	}
	positive := 0
	all := texts(t, s)
	for _, line := range all {
		if strings.HasPrefix(line, "positive") {
			positive++
		}
	}
	if positive != 4265 {
		t.Errorf("%d positive sentences, want 4265", positive)
	}

	// A copy in UTF-8, as is also in use, is the same set.
	copied := t.TempDir()
	if err := WriteMR(copied, s); err != nil {
		t.Fatal(err)
	}
	again, err := OpenMR(copied, Options{Seed: 10})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(all, texts(t, again)); d != "" {
		t.Error(d)
	}
	inner, err := OpenMR(filepath.Join(dir, mrFolder), Options{Seed: 11})
	if err != nil {
		t.Fatal(err)
	}
	if inner.Fingerprint() == s.Fingerprint() {
		t.Error("another shuffle has the same fingerprint")
	}
}

func TestTextEncodings(t *testing.T) {
	bad := func(name string) string { return read(t, shared.Dir(t, "bad", "text", name)) }
	for _, c := range []struct {
		file         string
		lines, words int
		first        string
	}{
		{"rt_mixed.pos", 6, 0, "a"},
		{"rt_utf8_bom.neg", 2, 0, "simplistic"},
		{"crlf.txt", 4, 14, "no"},
		{"separators.en", 6, 0, ""},
		{"long_line.en", 3, 0, ""},
		{"text8_dirty", 0, 12, ""},
		{"text8_midword", 0, 7, ""},
		{"invalid_utf8.de", 4, 0, ""},
	} {
		lex, s := newLexicon(), &sentences{}
		if err := parseText("read", c.file, []byte(bad(c.file)), 0, 256, lex, s); err != nil {
			t.Error(err)
			continue
		}
		if c.lines > 0 && s.len() != c.lines || c.words > 0 && len(s.tokens) != c.words {
			t.Errorf("%s: %d lines, %d words, want %d, %d", c.file, s.len(), len(s.tokens), c.lines, c.words)
		}
		if c.first != "" && lex.words[0] != c.first {
			t.Errorf("%s: first word %q, want %q", c.file, lex.words[0], c.first)
		}
		for _, w := range lex.words {
			if strings.HasSuffix(w, "\r") {
				t.Errorf("%s: word %q", c.file, w)
			}
		}
		if c.file == "rt_mixed.pos" {
			for _, w := range []string{"cliché", "–", "…", "—", "café", "naïve"} {
				if !slices.Contains(lex.words, w) {
					t.Errorf("%s: no word %q in %q", c.file, w, lex.words)
				}
			}
		}
		if n := s.longest(); n > 256 {
			t.Errorf("%s: a sentence of %d words", c.file, n)
		}
	}
}

func TestMRErrors(t *testing.T) {
	good := "a fine film\n"
	bad := func(name string) string { return read(t, shared.Dir(t, "bad", "text", name)) }
	for _, c := range []struct {
		name string
		dir  string
		kind Kind
		say  []string
	}{
		{"no folder", filepath.Join(t.TempDir(), "nowhere"), NotFound, []string{"nowhere", "unpack"}},
		{"no files", t.TempDir(), NotFound, []string{mrNeg}},
		{"no pos", put(t, mrNeg, good), NotFound, []string{mrPos}},
		{"a file", filepath.Join(put(t, "x.tar.gz", "\x1f\x8b\x08"), "x.tar.gz"), BadFormat, []string{"x.tar.gz", "gzip", "folder"}},
		{"empty", put(t, mrNeg, good, mrPos, bad("empty.txt")), Empty, []string{mrPos, "0 bytes"}},
		{"blank", put(t, mrNeg, bad("blank.txt"), mrPos, good), Empty, []string{mrNeg, "white space"}},
		{"cut", put(t, mrNeg, good, mrPos, good+"a fine fi"), Truncated, []string{mrPos, "line 2", "newline", "fetch it again"}},
		{"one line, cut", put(t, mrNeg, "a ba", mrPos, good), Truncated, []string{mrNeg, "line 1"}},
		{"nul", put(t, mrNeg, bad("nul_bytes.txt"), mrPos, good), BadFormat, []string{mrNeg, "offset 8"}},
		{"utf16", put(t, mrNeg, bad("utf16.txt"), mrPos, good), BadFormat, []string{mrNeg, "UTF-16"}},
		{"zip", put(t, mrNeg, bad("text8.zip"), mrPos, good), BadFormat, []string{mrNeg, "zip"}},
	} {
		_, err := OpenMR(c.dir, Options{})
		t.Run(c.name, func(t *testing.T) { wantError(t, err, c.kind, c.say...) })
	}
	_, err := OpenMR(put(t, mrNeg, good, mrPos, good), Options{MaxWords: -1})
	wantError(t, err, BadOption, "-1")
}

func TestPart(t *testing.T) {
	for _, n := range []int{0, 1, 2, 9, 10, 11, 1000} {
		for seed := range uint64(3) {
			train, valid := part(n, 10, seed)
			all := slices.Concat(train, valid)
			slices.Sort(all)
			for i, id := range all {
				if int(id) != i {
					t.Fatalf("part(%d) lost %d", n, i)
				}
			}
			want := n / 10
			if n > 1 {
				want = max(want, 1)
			}
			if len(valid) != want || len(all) != n {
				t.Errorf("part(%d) gave %d + %d", n, len(train), len(valid))
			}
		}
	}
	a, _ := part(1000, 10, 1)
	b, _ := part(1000, 10, 2)
	if slices.Equal(a, b) || slices.IsSorted(a) {
		t.Error("the seed does not shuffle")
	}
}

func TestFillErrors(t *testing.T) {
	mr, err := GenerateMR(20, 1)
	if err != nil {
		t.Fatal(err)
	}
	cifar, err := GenerateCIFAR10(20, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []Split{mr.Train, mr.Valid, cifar.Train, cifar.Valid} {
		var b Batch
		for _, id := range []int{-1, s.Len(), 1 << 40} {
			wantError(t, s.Fill([]int{0, id}, &b), BadID, fmt.Sprint(id))
		}
		if err := s.Fill(nil, &b); err != nil || b.N != 0 || len(b.Inputs) != 2 || b.Inputs[0].Shape[0] != 0 {
			t.Errorf("no ids gave %v, %+v", err, b)
		}
	}
}

// A batch that is large enough is filled without allocation, also where the
// last of an epoch was shorter.
func TestFillReuses(t *testing.T) {
	mr, _ := GenerateMR(100, 1)
	cifar, _ := GenerateCIFAR10(100, 1)
	for _, s := range []*Set{mr, cifar} {
		var b Batch
		list := ids(32)
		if err := s.Train.Fill(list, &b); err != nil {
			t.Fatal(err)
		}
		allocs := testing.AllocsPerRun(10, func() {
			for _, n := range []int{32, 7, 32} {
				if err := s.Train.Fill(list[:n], &b); err != nil {
					t.Fatal(err)
				}
			}
		})
		if allocs != 0 {
			t.Errorf("%s: %v allocations", s.Name, allocs)
		}
	}
}

func FuzzText(f *testing.F) {
	f.Add([]byte("a good film .\nna\xefve \x85\n"))
	f.Add([]byte("\xef\xbb\xbfcaf\xc3\xa9\r\n\n"))
	f.Add([]byte("\xff\xfea\x00"))
	f.Fuzz(func(t *testing.T, text []byte) {
		lex, s := newLexicon(), &sentences{}
		if err := parseText("read", "f", text, 1, 16, lex, s); err != nil {
			wantError(t, err, KindOf(err), "f")
			return
		}
		lines := strings.Count(string(text), "\n")
		if !strings.HasSuffix(string(text), "\n") && string(text) != "\ufeff" {
			lines++
		}
		if s.len() != lines || s.longest() > 16 || len(s.tokens) > len(text) {
			t.Errorf("%d lines gave %d sentences up to %d words", lines, s.len(), s.longest())
		}
		for _, w := range lex.vocabulary(s.tokens)[1:] {
			if len(strings.Fields(w)) != 1 {
				t.Errorf("word %q", w)
			}
		}
	})
}
