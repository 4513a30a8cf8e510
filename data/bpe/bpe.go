// Package bpe cuts words into subwords by a byte-pair encoding (Sennrich, Haddow and
// Birch, "Neural Machine Translation of Rare Words with Subword Units", 2016), so that a
// vocabulary of a few thousand pieces spells every word.
//
// The idea: at first each letter of a word is a piece, and the last one knows that it
// ends the word. [Learn] counts which two neighbours are the most frequent over all words
// of a text, merges them everywhere, and does so n times. The list of these merges is all
// that there is to know: an [Encoder] makes the same merges, in their order, in any
// other text. Frequent words become one piece, rare ones a few, and what was never seen
// falls back to letters.
//
// In text, every piece but the last of its word ends in the mark @@, as people have it
// on disk:
//
//	the low@@ est price
//
// [Decode] joins them again. As an encoder never lets the last piece of a word end in
// @@, Decode gives back any text whatever, byte for byte.
//
// The list of merges has the text form of subword-nmt, the program of the paper's
// authors; see [Parse]. From the same text both learn the same merges.
package bpe

import (
	"bytes"
	"fmt"
	"iter"
	"strings"
	"unicode/utf8"
)

// Mark is behind every piece but the last of its word.
const Mark = "@@"

const (
	wordEnd = "</w>" // behind the last piece of a word, in a list of merges
	header  = "#version: "
	// longest is the most letters of a word that pieces are learned from, and of the
	// stretches in which a longer one is cut: it bounds the work, and is beyond any
	// word that is none of a file's accidents.
	longest = 128
)

// symbol is a piece of a word; end says that the word ends with it.
type symbol struct {
	text string
	end  bool
}

func (s symbol) String() string {
	if s.end {
		return s.text + wordEnd
	}
	return s.text
}

// readSymbol is the inverse of String for all that Learn writes.
func readSymbol(text string) symbol {
	text, end := strings.CutSuffix(text, wordEnd)
	return symbol{text, end}
}

// Merges is a list of merges in their order. It does not change, so any number of
// encoders may use it.
type Merges struct {
	list [][2]symbol
	// Version 0.1 of the format: the end of a word is a symbol of its own, of no
	// letters, that merges join like any other.
	apart bool
	ids   map[symbol]int32
	rules map[[2]int32]rule
}

// rule is a merge by the numbers of its two symbols.
type rule struct{ rank, product int32 }

// newMerges prepares a list. Where a merge comes twice its first place counts.
func newMerges(list [][2]symbol, apart bool) *Merges {
	m := &Merges{list: list, apart: apart, ids: map[symbol]int32{}, rules: make(map[[2]int32]rule, len(list))}
	for rank, p := range list {
		key := [2]int32{m.id(p[0]), m.id(p[1])}
		if _, twice := m.rules[key]; !twice {
			m.rules[key] = rule{int32(rank), m.id(symbol{p[0].text + p[1].text, p[1].end})}
		}
	}
	return m
}

func (m *Merges) id(s symbol) int32 {
	id, ok := m.ids[s]
	if !ok {
		id = int32(len(m.ids))
		m.ids[s] = id
	}
	return id
}

// Len returns the number of merges.
func (m *Merges) Len() int { return len(m.list) }

// All returns the merges in their order, as a list in text has them: </w> is behind a
// piece that ends its word.
func (m *Merges) All() iter.Seq2[string, string] {
	return func(yield func(a, b string) bool) {
		for _, p := range m.list {
			if !yield(p[0].String(), p[1].String()) {
				return
			}
		}
	}
}

// First returns the first n merges, or all where there are fewer.
func (m *Merges) First(n int) *Merges {
	if n >= len(m.list) {
		return m
	}
	return newMerges(m.list[:max(n, 0)], m.apart)
}

// MarshalText returns the list as [Parse] reads it. The error is always nil.
func (m *Merges) MarshalText() ([]byte, error) {
	var b bytes.Buffer
	version := "0.2"
	if m.apart {
		version = "0.1"
	}
	b.WriteString(header + version + "\n")
	for left, right := range m.All() {
		b.WriteString(left + " " + right + "\n")
	}
	return b.Bytes(), nil
}

// UnmarshalText is [Parse].
func (m *Merges) UnmarshalText(text []byte) error {
	parsed, err := Parse(text)
	if err == nil {
		*m = *parsed
	}
	return err
}

// SyntaxError says what is wrong with a list of merges.
type SyntaxError struct {
	Line   int // from 1
	Detail string
}

func (e *SyntaxError) Error() string { return fmt.Sprintf("line %d: %s", e.Line, e.Detail) }

// Parse reads a list of merges in UTF-8, as subword-nmt writes it: a first line
//
//	#version: 0.2
//
// and then a merge a line, its two pieces with a space between, </w> behind a piece that
// ends its word:
//
//	e r
//	t h
//	th e</w>
//
// Version 0.1, in which the end of a word is the piece </w> by itself, is read too; a
// list without the first line is of that version. The error is a *SyntaxError.
func Parse(text []byte) (*Merges, error) {
	var list [][2]symbol
	apart, n := true, 0
	for line := range bytes.Lines(bytes.TrimRight(text, "\r\n")) {
		n++
		fail := func(format string, args ...any) (*Merges, error) {
			return nil, &SyntaxError{n, fmt.Sprintf(format, args...)}
		}
		if !utf8.Valid(line) {
			return fail("%.60q is not UTF-8", line)
		}
		fields := strings.Split(strings.Trim(string(line), "\r\n "), " ")
		if n == 1 && strings.HasPrefix(string(line), strings.TrimSpace(header)) {
			switch version := fields[len(fields)-1]; version {
			case "0.1":
			case "0.2":
				apart = false
			default:
				return fail("it is of version %.20q, want 0.1 or 0.2", version)
			}
			continue
		}
		if len(fields) != 2 || fields[0] == "" || fields[1] == "" {
			return fail("%.60q, want two pieces with one space between", bytes.TrimRight(line, "\r\n"))
		}
		a, b := readSymbol(fields[0]), readSymbol(fields[1])
		switch {
		case a.end:
			return fail("%.60q ends its word, so that nothing comes behind it", fields[0])
		case b.text == "" && !apart:
			return fail("%s by itself is a piece in version 0.1 alone", wordEnd)
		}
		list = append(list, [2]symbol{a, b})
	}
	if n == 0 {
		return nil, &SyntaxError{1, "there is nothing in it"}
	}
	return newMerges(list, apart), nil
}
