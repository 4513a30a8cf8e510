package data

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"

	"optimus/data/source"
)

// Padding is the word of token 0.
const Padding = "<pad>"

// sentences is labelled text as token numbers, one sentence after another and
// without padding, so that its memory is in the order of the text.
type sentences struct {
	tokens []int32
	ends   []int32 // sentence i is tokens[ends[i-1]:ends[i]]
	labels []int32
}

func (s *sentences) len() int { return len(s.ends) }

func (s *sentences) at(i int) []int32 {
	lo := int32(0)
	if i > 0 {
		lo = s.ends[i-1]
	}
	return s.tokens[lo:s.ends[i]]
}

func (s *sentences) longest() int {
	n := 0
	for i := range s.ends {
		n = max(n, len(s.at(i)))
	}
	return n
}

// end ends the sentence that begins after the last one.
func (s *sentences) end(label int32) {
	s.ends = append(s.ends, int32(len(s.tokens)))
	s.labels = append(s.labels, label)
}

// lexicon numbers words from 0 in order of first sight and counts them.
type lexicon struct {
	number map[string]int32
	words  []string
	counts []int
}

func newLexicon() *lexicon { return &lexicon{number: map[string]int32{}} }

func (l *lexicon) add(word string) int32 {
	n, ok := l.number[word]
	if !ok {
		n = int32(len(l.words))
		word = strings.Clone(word) // not to hold on to the line
		l.number[word] = n
		l.words, l.counts = append(l.words, word), append(l.counts, 0)
	}
	l.counts[n]++
	return n
}

// vocabulary returns the words by falling count, equal counts by text, with
// Padding before them, and rewrites the tokens to number them so.
func (l *lexicon) vocabulary(tokens []int32) []string {
	rank := make([]int32, len(l.words))
	for i := range rank {
		rank[i] = int32(i)
	}
	slices.SortFunc(rank, func(a, b int32) int {
		if d := l.counts[b] - l.counts[a]; d != 0 {
			return d
		}
		return strings.Compare(l.words[a], l.words[b])
	})
	list := make([]string, 1, len(rank)+1)
	list[0] = Padding
	to := make([]int32, len(rank))
	for _, old := range rank {
		to[old] = int32(len(list))
		list = append(list, l.words[old])
	}
	for i, t := range tokens {
		tokens[i] = to[t]
	}
	return list
}

// parseText appends the lines of a file, each a sentence with the given label,
// cut after limit words. Only \n ends a line; a blank line is a sentence of no
// words. See [OpenMR] for encodings and words.
func parseText(op, path string, text []byte, label int32, limit int, lex *lexicon, dst *sentences) error {
	text, err := plainText(op, path, text)
	if err != nil {
		return err
	}
	for line := range bytes.Lines(text) {
		words := strings.Fields(strings.ToLower(decodeLine(line)))
		for _, word := range words[:min(limit, len(words))] {
			dst.tokens = append(dst.tokens, lex.add(word))
		}
		dst.end(label)
	}
	return nil
}

// plainText returns a text without its byte-order mark. It refuses other formats, a
// zero byte and white space alone.
func plainText(op, path string, text []byte) ([]byte, error) {
	fail := func(kind Kind, detail, do string) ([]byte, error) {
		return nil, &Error{Op: op, Path: path, Kind: kind, Detail: detail, Do: do}
	}
	if what := knownFormat(text); what != "" {
		return fail(BadFormat, "it is "+what+", want plain text", "unpack it, or convert it to UTF-8")
	}
	if i := bytes.IndexByte(text, 0); i >= 0 {
		return fail(BadFormat, fmt.Sprintf("byte 0 in line %d at offset %d, which text does not hold", lineAt(text, i), i), "the file was cut by a crash or is not text: fetch it again")
	}
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	if len(bytes.TrimSpace(text)) == 0 {
		return fail(Empty, "there is nothing in it but white space", "fetch it again")
	}
	return text, nil
}

// lineAt returns the number of the line in which a byte lies.
func lineAt(text []byte, at int) int { return bytes.Count(text[:at], []byte{'\n'}) + 1 }

// readAll reads a text file in UTF-8 of at most limit bytes.
func readAll(op string, path source.Path, limit int64, do string) ([]byte, error) {
	text, err := readSized(op, path, limit, do)
	if err != nil {
		return nil, err
	}
	return unicodeText(op, path.String(), text)
}

// unicodeText is plainText that must be in UTF-8.
func unicodeText(op, path string, text []byte) ([]byte, error) {
	plain, err := plainText(op, path, text)
	if err != nil || utf8.Valid(plain) {
		return plain, err
	}
	at := 0
	for {
		r, n := utf8.DecodeRune(text[at:])
		if r == utf8.RuneError && n == 1 {
			break
		}
		at += n
	}
	return nil, &Error{Op: op, Path: path, Kind: BadFormat, Detail: fmt.Sprintf("byte %#02x in line %d at offset %d is not UTF-8", text[at], lineAt(text, at), at),
		Do: "convert it to UTF-8, or fetch it again"}
}

// decodeLine takes a line that is valid UTF-8 as that, else as cp1252.
func decodeLine(line []byte) string {
	if utf8.Valid(line) {
		return string(line)
	}
	var b strings.Builder
	for _, c := range line {
		b.WriteRune(charmap.Windows1252.DecodeByte(c))
	}
	return b.String()
}
