package data

import (
	"bytes"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"unicode/utf8"
)

const (
	opPTB    = "open PTB"
	doPTB    = "unpack simple-examples.tgz (Mikolov's Penn Treebank) and give its folder data"
	ptbTrain = "ptb.train.txt"
	ptbValid = "ptb.valid.txt"
	ptbLimit = 64 << 20 // bytes; the real files have 5 MB
	ptbStep  = 35       // words of an example

	// EndOfSentence is the word that stands for the end of a line.
	EndOfSentence = "<eos>"
)

// OpenPTB reads the Penn Treebank as Mikolov et al. (2010) prepared it, on which
// language models are measured: ptb.train.txt and ptb.valid.txt, a sentence a
// line, in dir or dir/data. The end of a line becomes the word <eos>, sentences
// follow each other, and the text is cut into windows of 35 words.
//
// Inputs of a batch: [N,35] int32 tokens, [N,35] int32 tokens that follow each of
// them. An example is a window; the up to 35 words behind the last whole one are in
// none. The vocabulary is every word of both files, the most frequent first; there
// is no padding.
func OpenPTB(dir string) (*Set, error) {
	dir, err := folder(opPTB, dir, "data", doPTB)
	if err != nil {
		return nil, err
	}
	lex := newLexicon()
	var texts [2][]int32
	for i, name := range []string{ptbTrain, ptbValid} {
		if texts[i], err = readWords(filepath.Join(dir, name), lex); err != nil {
			return nil, err
		}
	}
	return newPTB("PTB", lex, texts[0], texts[1]), nil
}

// readWords reads a file of lines of words.
func readWords(path string, lex *lexicon) ([]int32, error) {
	text, err := readAll(opPTB, path, ptbLimit, doPTB)
	if err != nil {
		return nil, err
	}
	var tokens []int32
	for line := range bytes.Lines(text) {
		for _, word := range strings.Fields(string(line)) {
			tokens = append(tokens, lex.add(word))
		}
		tokens = append(tokens, lex.add(EndOfSentence))
	}
	if len(tokens) <= ptbStep {
		return nil, &Error{Op: opPTB, Path: path, Kind: Empty, Detail: fmt.Sprintf("%d words, want %d or more", len(tokens), ptbStep+1), Do: doPTB}
	}
	return tokens, nil
}

// readAll reads a text file in UTF-8 of at most limit bytes.
func readAll(op, path string, limit int64, do string) ([]byte, error) {
	f, size, err := openSized(op, path, limit, do)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, size))
	if err != nil {
		return nil, systemError(op, path, err, "check the disk, or fetch the file again")
	}
	what := knownFormat(text)
	if what == "" && (!utf8.Valid(text) || bytes.IndexByte(text, 0) >= 0) {
		what = "a binary file or text of another encoding"
	}
	if what != "" {
		return nil, &Error{Op: op, Path: path, Kind: BadFormat, Detail: "it is " + what + ", want text in UTF-8", Do: do}
	}
	return text, nil
}

// newPTB makes the set of two texts.
func newPTB(name string, lex *lexicon, train, valid []int32) *Set {
	tokens := append(train[:len(train):len(train)], valid...)
	words := lex.vocabulary(tokens)[1:]
	for i := range tokens {
		tokens[i]-- // without padding
	}
	return &Set{
		Name: name, Vocabulary: words, SequenceLength: ptbStep,
		Train: &windowSplit{tokens[:len(train)], ptbStep},
		Valid: &windowSplit{tokens[len(train):], ptbStep},
	}
}

// windowSplit is a text in windows of step words, each with the words that follow
// its words.
type windowSplit struct {
	tokens []int32
	step   int
}

func (s *windowSplit) Len() int { return (len(s.tokens) - 1) / s.step }

func (s *windowSplit) Fill(ids []int, b *Batch) error {
	b.resize(len(ids), 2)
	words := b.Inputs[0].ints(len(ids), s.step)
	next := b.Inputs[1].ints(len(ids), s.step)
	for i, id := range ids {
		if err := checkID("read window", id, s.Len()); err != nil {
			return err
		}
		copy(words[i*s.step:(i+1)*s.step], s.tokens[id*s.step:])
		copy(next[i*s.step:(i+1)*s.step], s.tokens[id*s.step+1:])
	}
	return nil
}

func (s *windowSplit) digest(w io.Writer) { writeInt32s(w, s.tokens) }
