package bpe

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func read(t testing.TB, name string) []byte {
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func parse(t testing.TB, text string) *Merges {
	m, err := Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestSubwordNMT: the files are what subword-nmt 0.3.8 learned from text.txt and made
// of it.
func TestSubwordNMT(t *testing.T) {
	text := read(t, "text.txt")
	var words Counts
	words.Add(text)
	learned, err := Learn(&words, 120).MarshalText()
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(read(t, "codes.txt")), string(learned)); d != "" {
		t.Errorf("merges (-want +got):\n%s", d)
	}
	for codes, pieces := range map[string]string{"codes.txt": "pieces.txt", "codes-0.1.txt": "pieces-0.1.txt"} {
		m := parse(t, string(read(t, codes)))
		got := m.NewEncoder().Append(nil, text)
		if d := cmp.Diff(string(read(t, pieces)), string(got)); d != "" {
			t.Errorf("%s (-want +got):\n%s", pieces, d)
		}
		if string(Decode(got)) != string(text) {
			t.Errorf("%s: decoded %q", pieces, Decode(got))
		}
	}
}

// draw makes words of few letters, so that pairs repeat and overlap.
func draw(t *rapid.T) map[string]int {
	word := rapid.StringOfN(rapid.RuneFrom([]rune("abcab<>/w@ä日")), 1, 12, -1).Filter(func(s string) bool { return !strings.Contains(s, wordEnd) })
	return rapid.MapOfN(word, rapid.IntRange(1, 9), 1, 30).Draw(t, "words")
}

func TestLearnIsTheDefinition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		counts, n := draw(t), rapid.IntRange(0, 60).Draw(t, "merges")
		want := learnNaive(counts, n)
		got := Learn(countsOf(counts, sorted(counts)), n)
		if d := cmp.Diff(want, pairsOf(got)); d != "" {
			t.Fatalf("(-want +got):\n%s", d)
		}
		shuffled := Learn(countsOf(counts, rapid.Permutation(sorted(counts)).Draw(t, "order")), n)
		if d := cmp.Diff(want, pairsOf(shuffled)); d != "" {
			t.Fatalf("in another order (-want +got):\n%s", d)
		}
	})
}

func TestEncodeIsTheDefinition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		counts := draw(t)
		m := Learn(countsOf(counts, sorted(counts)), rapid.IntRange(0, 60).Draw(t, "merges"))
		e := m.NewEncoder()
		for range 5 {
			text := rapid.StringOfN(rapid.RuneFrom([]rune("abcabc  w@ä日")), 0, 40, -1).Draw(t, "text")
			text = strings.Join(strings.Fields(text), " ")
			if strings.Contains(text+" ", Mark+" ") {
				continue // where the definition is no code
			}
			if got, want := string(e.Append(nil, []byte(text))), encodeNaive(pairsOf(m), text); got != want {
				t.Fatalf("%q: %q, want %q", text, got, want)
			}
		}
	})
}

// TestDecodeInverts: any text comes back, be it with marks, odd white space or bytes
// that are no letters, and whatever the merges.
func TestDecodeInverts(t *testing.T) {
	part := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"@", "@@", "@@ ", " @@\n", "a@@", "</w>", "a</w>", " ", "\u2028", "\u00a0", "\xff", strings.Repeat("ab", 200)}))
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOf(part).Draw(t, "parts"), "")
		var words Counts
		words.Add([]byte(text))
		learned := Learn(&words, 40)
		listed, err := learned.MarshalText()
		if err != nil {
			t.Fatal(err)
		}
		var again Merges
		if err := again.UnmarshalText(listed); err != nil || !slices.Equal(learned.list, again.list) || again.apart {
			t.Fatalf("%v: written %q, read %v", err, listed, again.list)
		}
		apart := newMerges(learned.list, true)
		for _, m := range []*Merges{learned, &again, apart, newMerges(nil, false)} {
			e := m.NewEncoder()
			for range 2 { // from the cache too
				pieces := e.Append(nil, []byte(text))
				if got := string(Decode(pieces)); got != text {
					t.Fatalf("%q became %q, and that %q", text, pieces, got)
				}
			}
		}
	})
}

func TestDecodeCutPieces(t *testing.T) {
	for pieces, want := range map[string]string{
		"lo@@ w pri@@\nx": "low pri\nx", "lo@@": "lo", "": "", "@@": "", "a @@ b": "a b", "a@@b": "a@@b", "@": "@",
	} {
		if got := string(Decode([]byte(pieces))); got != want {
			t.Errorf("%q: %q, want %q", pieces, got, want)
		}
	}
}

// TestLongWords: a word that no one writes costs as much time as its length, teaches
// nothing, and comes back.
func TestLongWords(t *testing.T) {
	long := bytes.Repeat([]byte("ab"), 100_000)
	var words Counts
	words.Add(long)
	words.Add(long)
	words.Add([]byte("ab ab"))
	m := Learn(&words, 10)
	if d := cmp.Diff([][2]string{{"a", "b" + wordEnd}}, pairsOf(m)); d != "" {
		t.Error(d)
	}
	e := parse(t, "#version: 0.2\na b\nab ab\n").NewEncoder()
	if got := Decode(e.Append(nil, long)); !bytes.Equal(got, long) || len(e.cache) != 0 {
		t.Errorf("%d bytes of %d, %d words remembered", len(got), len(long), len(e.cache))
	}
}

func TestFirst(t *testing.T) {
	m := parse(t, "#version: 0.2\na b\nab c</w>\nd e\n")
	if d := cmp.Diff([][2]string{{"a", "b"}, {"ab", "c</w>"}}, pairsOf(m.First(2))); d != "" {
		t.Error(d)
	}
	if m.First(7).Len() != 3 || m.First(0).Len() != 0 {
		t.Errorf("%d and %d merges", m.First(7).Len(), m.First(0).Len())
	}
}

// TestTravels: merges are text within JSON.
func TestTravels(t *testing.T) {
	text, err := json.Marshal(map[string]*Merges{"bpe": parse(t, "#version: 0.2\na b\nab c</w>\n")})
	if err != nil || string(text) != `{"bpe":"#version: 0.2\na b\nab c\u003c/w\u003e\n"}` {
		t.Fatalf("%s, %v", text, err)
	}
	var back map[string]*Merges
	if err := json.Unmarshal(text, &back); err != nil || back["bpe"].Len() != 2 {
		t.Errorf("%v, %v", back, err)
	}
}

func TestParse(t *testing.T) {
	for name, c := range map[string]struct {
		text  string
		n     int
		apart bool
	}{
		"0.2":             {"#version: 0.2\na b\nab c</w>\n", 2, false},
		"0.1":             {"#version: 0.1\na b\nab </w>\n", 2, true},
		"no version":      {"a b\nab </w>", 2, true},
		"CRLF":            {"#version: 0.2\r\na b\r\nab c</w>\r\n", 2, false},
		"blanks about":    {"#version: 0.2\n a b \n\n\n", 1, false},
		"no merges":       {"#version: 0.2\n", 0, false},
		"a merge twice":   {"#version: 0.2\na b\na b\n", 2, false},
		"other separator": {"#version: 0.2\na \u2028\n", 1, false},
		"# as a letter":   {"#version: 0.2\n# a\n#a #</w>\n", 2, false},
		"a later version": {"a b\n#version: 0.2\n", 2, true}, // is a merge
	} {
		if m, err := Parse([]byte(c.text)); err != nil || m.Len() != c.n || m.apart != c.apart {
			t.Errorf("%s: %+v, %v", name, m, err)
		}
	}
	for name, c := range map[string]struct {
		text string
		line int
		part string
	}{
		"empty":             {"", 1, "nothing"},
		"blank lines":       {"\n\r\n", 1, "nothing"},
		"version":           {"#version: 0.3\na b\n", 1, `"0.3", want 0.1 or 0.2`},
		"no version number": {"#version:\n", 1, "want 0.1 or 0.2"},
		"three pieces":      {"#version: 0.2\na b\na b c\n", 3, `"a b c", want two pieces`},
		"one piece":         {"#version: 0.2\na\n", 2, `"a"`},
		"two spaces":        {"#version: 0.2\na  b\n", 2, `"a  b"`},
		"blank line":        {"#version: 0.2\na b\n\nc d\n", 3, `""`},
		"vocabulary":        {"the 1234 5\n", 1, "two pieces"},
		"end in the middle": {"#version: 0.2\na</w> b\n", 2, `"a</w>" ends its word`},
		"end by itself":     {"#version: 0.2\na </w>\n", 2, "version 0.1"},
		"end before":        {"</w> b\n", 1, "ends its word"},
		"not UTF-8":         {"#version: 0.2\na b\n\xff b\n", 3, "not UTF-8"},
	} {
		_, err := Parse([]byte(c.text))
		e, ok := errors.AsType[*SyntaxError](err)
		if !ok || e.Line != c.line || !strings.Contains(e.Error(), c.part) || strings.Contains(e.Error(), "\n") {
			t.Errorf("%s: %v, want line %d and %q", name, err, c.line, c.part)
		}
	}
}
