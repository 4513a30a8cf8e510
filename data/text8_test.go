package data

import (
	"archive/zip"
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"optimus/internal/shared"
)

// spelled returns what bags of trigrams spell.
func spelled(s *Set, ids []int32) (list []string) {
	for bag := range slices.Chunk(ids, trigramWord) {
		word := ""
		for _, id := range bag {
			if int(id) < len(s.Vocabulary) {
				word += s.Vocabulary[id][1:2]
			}
		}
		list = append(list, word)
	}
	return list
}

func TestOpenText8(t *testing.T) {
	dir := put(t, text8File, " anarchism originated as a revolutionary term of abuse"+strings.Repeat(" the cat sat on the mat", 10))
	s, err := OpenText8(dir, Options{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	// 68 words, of which one is too long.
	if s.Train.Len() != 67-6-4 || s.Valid.Len() != 2 || s.Trigrams != 10 {
		t.Errorf("%d + %d examples", s.Train.Len(), s.Valid.Len())
	}
	var b Batch
	if err := s.Train.Fill([]int{0, 6}, &b); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"anarchism", "originated", "a", "term", "abuse", "the", "sat", "on"}, spelled(s, b.Inputs[0].I)); d != "" {
		t.Error(d)
	}
	candidates := spelled(s, b.Inputs[1].I)
	if candidates[0] != "as" || candidates[5] != "cat" || len(candidates) != 10 {
		t.Errorf("candidates %v", candidates)
	}
	frequent := []string{"the", "cat", "sat", "on", "mat"}
	for i, word := range candidates {
		if i%5 > 0 && !slices.Contains(frequent, word) {
			t.Errorf("%q was drawn", word)
		}
	}
	wantError(t, s.Valid.Fill([]int{2}, &b), BadID, "example 2")
}

// Other words than those of a to z stand as they are, and the archive reads as its file.
func TestText8Zip(t *testing.T) {
	text := " Caf\u00e9 1999\tCAFE\n" + strings.Repeat(" the cat sat on the mat", 10)
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, file := range [][2]string{{"readme", "x"}, {text8File, text}} {
		f, err := w.Create(file[0])
		if err != nil {
			t.Fatal(err)
		}
		f.Write([]byte(file[1]))
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	one, err := OpenText8(put(t, text8File, text), Options{})
	two, err2 := OpenText8(put(t, text8File+".zip", b.String()), Options{})
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	if one.Fingerprint() != two.Fingerprint() || !slices.Contains(one.Vocabulary, "f\u00e9#") || !slices.Contains(one.Vocabulary, "#19") {
		t.Errorf("trigrams %q", one.Vocabulary)
	}
	broken := bytes.Clone(b.Bytes())
	broken[bytes.Index(broken, []byte("PK\x01\x02"))-40] ^= 1
	_, err = OpenText8(put(t, text8File+".zip", string(broken)), Options{})
	if err == nil {
		t.Error("a damaged archive was read")
	}
}

func TestOpenText8Real(t *testing.T) {
	s, err := OpenText8(shared.Dir(t, "sets", "text8"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	n := s.Train.Len() + s.Valid.Len()
	t.Logf("%d examples, %d trigrams", n, len(s.Vocabulary))
	if n < 65000 || n > 73754 || len(s.Vocabulary) < 3000 || s.Vocabulary[0] != "ed#" && s.Vocabulary[0] != "ing" {
		t.Errorf("%d examples of 73754 words, %d trigrams", n, len(s.Vocabulary))
	}
}

func TestText8Refuses(t *testing.T) {
	for name, c := range map[string]struct {
		files []string
		kind  Kind
		part  string
	}{
		"no file": {nil, NotFound, text8File},
		"short":   {[]string{text8File, " a few words"}, Empty, "3 words"},
		"zip":     {[]string{text8File, "PK\x03\x04 text8"}, BadFormat, "zip"},
		"latin-1": {[]string{text8File, " caf\xe9"}, BadFormat, "offset 4"},
		"cut zip": {[]string{text8File + ".zip", "PK\x03\x04 text8"}, Truncated, "text8.zip"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := OpenText8(put(t, c.files...), Options{})
			wantError(t, err, c.kind, c.part)
		})
	}
}
