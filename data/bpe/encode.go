package bpe

import (
	"bytes"
	"unicode"
	"unicode/utf8"
)

// cached is how many words an encoder remembers; then it forgets all of them. It is
// more than the distinct words of most texts.
const cached = 1 << 20

// Encoder cuts the words of texts into pieces. It remembers words, so it must not be
// used by two goroutines at once; each may have its own.
type Encoder struct {
	merges *Merges
	cache  map[string]string
	// Of the stretch of a word that is cut at present: the pieces, -1 for one that no
	// merge knows, and where each ends.
	ids  []int32
	ends []int
}

// NewEncoder returns an encoder.
func (m *Merges) NewEncoder() *Encoder { return &Encoder{merges: m, cache: map[string]string{}} }

// Append appends the text to dst with its words in pieces. White space stays as it is,
// and words are what white space parts.
//
// Of the merges that a word allows, the first of the list is made wherever it can be,
// from the left, and so on until none is left. A word of more than 128 letters is cut
// in stretches of as many, each for itself.
func (e *Encoder) Append(dst, text []byte) []byte {
	for len(text) > 0 {
		n := bytes.IndexFunc(text, unicode.IsSpace)
		if n < 0 {
			n = len(text)
		}
		if n > 0 {
			dst = e.appendWord(dst, text[:n])
			text = text[n:]
		}
		_, n = utf8.DecodeRune(text) // white space, if anything
		dst, text = append(dst, text[:n]...), text[n:]
	}
	return dst
}

func (e *Encoder) appendWord(dst, word []byte) []byte {
	if known, ok := e.cache[string(word)]; ok {
		return append(dst, known...)
	}
	from := len(dst)
	rest := word
	for len(rest) > 0 {
		n := stretch(rest)
		dst = e.appendPieces(dst, rest[:n], n == len(rest))
		rest = rest[n:]
	}
	if len(word) <= longest {
		if len(e.cache) == cached {
			clear(e.cache)
		}
		e.cache[string(word)] = string(dst[from:])
	}
	return dst
}

// stretch returns the bytes of the first letters of a word.
func stretch(word []byte) int {
	n := 0
	for range longest {
		_, size := utf8.DecodeRune(word[n:]) // 0 at the end
		n += size
	}
	return n
}

// appendPieces cuts a stretch, which may be the last of its word.
func (e *Encoder) appendPieces(dst, part []byte, last bool) []byte {
	e.letters(part, last)
	for e.mergeFirst() {
	}
	if n := len(e.ends); last && n > 1 && e.ends[n-1] == e.ends[n-2] {
		e.ends = e.ends[:n-1] // the end of the word by itself, of version 0.1
	}
	from := 0
	for _, end := range e.ends {
		dst = append(dst, part[from:end]...)
		if end < len(part) || !last {
			dst = append(append(dst, Mark...), ' ')
		} else if bytes.HasSuffix(part[from:], []byte(Mark)) {
			// Such a piece would seem to go on: its last letter stands alone.
			dst = append(append(dst[:len(dst)-1], Mark...), " @"...)
		}
		from = end
	}
	return dst
}

// letters begins with a piece for each letter.
func (e *Encoder) letters(part []byte, last bool) {
	e.ids, e.ends = e.ids[:0], e.ends[:0]
	for from := 0; from < len(part); {
		_, size := utf8.DecodeRune(part[from:])
		letter := symbol{string(part[from : from+size]), last && from+size == len(part) && !e.merges.apart}
		from += size
		e.push(letter, from)
	}
	if last && e.merges.apart {
		e.push(symbol{end: true}, len(part))
	}
}

func (e *Encoder) push(s symbol, end int) {
	id, ok := e.merges.ids[s]
	if !ok {
		id = -1
	}
	e.ids, e.ends = append(e.ids, id), append(e.ends, end)
}

// mergeFirst makes the merge that is the first in the list, wherever it can be made.
func (e *Encoder) mergeFirst() bool {
	var pair [2]int32
	best, found := rule{}, false
	for i := range len(e.ids) - 1 {
		here := [2]int32{e.ids[i], e.ids[i+1]}
		if r, ok := e.merges.rules[here]; ok && (!found || r.rank < best.rank) {
			pair, best, found = here, r, true
		}
	}
	if !found {
		return false
	}
	n := 0
	for i := 0; i < len(e.ids); i++ {
		id, end := e.ids[i], e.ends[i]
		if i+1 < len(e.ids) && pair == [2]int32{id, e.ids[i+1]} {
			i++
			id, end = best.product, e.ends[i]
		}
		e.ids[n], e.ends[n] = id, end
		n++
	}
	e.ids, e.ends = e.ids[:n], e.ends[:n]
	return true
}

// Decode joins the pieces of a text to words: it takes out each mark with the space
// behind it, and one at the end of a line. It is the inverse of [Encoder.Append].
func Decode(text []byte) []byte {
	out := make([]byte, 0, len(text))
	for {
		n := bytes.Index(text, []byte(Mark))
		if n < 0 {
			return append(out, text...)
		}
		out, text = append(out, text[:n]...), text[n:]
		switch behind := text[len(Mark):]; {
		case len(behind) > 0 && behind[0] == ' ':
			text = behind[1:]
		case len(behind) == 0 || behind[0] == '\n':
			text = behind
		default: // the text's own
			out, text = append(out, text[0]), text[1:]
		}
	}
}
