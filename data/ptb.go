package data

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"optimus/data/source"
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
// none. The vocabulary is every word of the training file, the most frequent first;
// there is no padding. A word of the other file that is not among them is <unk>; where
// the training file has no <unk> either, it is an error.
func OpenPTB(dir string) (*Set, error) {
	return openAt(opPTB, dir, func(dir source.Path) (*Set, error) { return openPTB(dir, &faults{}) })
}

func openPTB(dir source.Path, f *faults) (*Set, error) {
	for _, sub := range []string{"simple-examples", "data"} {
		var err error
		if dir, err = folder(opPTB, dir, sub, doPTB); err != nil {
			return nil, err
		}
	}
	lex := newLexicon()
	var texts [2][]int32
	for i, name := range []string{ptbTrain, ptbValid} {
		path := dir.Join(name)
		text, err := readAll(opPTB, path, ptbLimit, doPTB)
		if err == nil && i == 0 {
			texts[i], err = readTokens(path.String(), text, func(word string) (int32, error) { return lex.add(word), nil })
		} else if err == nil && texts[0] != nil {
			texts[i], err = readTokens(path.String(), text, lex.known)
		}
		if err := f.need(err); err != nil {
			return nil, err
		}
	}
	if err := f.whole(); err != nil {
		return nil, err
	}
	return newPTB("PTB", lex, texts[0], texts[1]), nil
}

// known returns the number of a word, or that of Unknown in its place.
func (l *lexicon) known(word string) (int32, error) {
	n, ok := l.number[word]
	if !ok {
		n, ok = l.number[Unknown]
	}
	if !ok {
		return 0, fmt.Errorf("the word %.40q is not in %s, which has no %s either", word, ptbTrain, Unknown)
	}
	return n, nil
}

// readTokens numbers the words of lines.
func readTokens(path string, text []byte, number func(word string) (int32, error)) ([]int32, error) {
	var tokens []int32
	line := 0
	for words := range bytes.Lines(text) {
		line++
		for _, word := range append(strings.Fields(string(words)), EndOfSentence) {
			n, err := number(word)
			if err != nil {
				return nil, &Error{Op: opPTB, Path: path, Kind: BadFormat, Detail: fmt.Sprintf("line %d: %v", line, err), Do: doPTB, Err: err}
			}
			tokens = append(tokens, n)
		}
	}
	if len(tokens) <= ptbStep {
		return nil, &Error{Op: opPTB, Path: path, Kind: Empty, Detail: fmt.Sprintf("%d words, want %d or more", len(tokens), ptbStep+1), Do: doPTB}
	}
	return tokens, nil
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
