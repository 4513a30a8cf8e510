package data

import (
	"fmt"
	"strings"

	"optimus/internal/rng"
)

// The words that carry the polarity of a generated sentence.
const (
	praise  = "good great fine warm clever funny fresh moving superb witty"
	blame   = "bad dull flat cold stupid boring stale hollow clumsy awful"
	negator = "not"
	amplify = "very"

	neutralWords = 500
	shortest     = 5
	longest      = 50
)

// GenerateMR makes n sentences (a tenth of them for validation) with the shape
// of [OpenMR]'s set. A sentence is 5 to 50 words: neutral words of a Zipf law,
// and among them one opinion for every seven words or so, all of the sentence's
// polarity. An opinion is a word of praise or blame; or, one in seven times,
// the contrary word after "not" or "not very".
//
// Counting words finds the plain opinions and gets most sentences right; only
// one who reads three words in a row gets all. The same n and seed always make
// the same set.
func GenerateMR(n int, seed uint64) (*Set, error) {
	if err := checkCount("generate MR", n); err != nil {
		return nil, err
	}
	g := &writer{zipf: newZipf(neutralWords), lex: newLexicon(), all: &sentences{}}
	g.words[0], g.words[1] = strings.Fields(blame), strings.Fields(praise)
	for i := range n {
		g.key, g.drawn = rng.NewKey(seed, 'm', 'r', uint64(i)), 0
		g.sentence(int32(i % 2))
	}
	s := newMR("MR (generated)", g.all, g.lex, seed)
	s.Generated = true
	return s, nil
}

// writer makes sentences.
type writer struct {
	words [2][]string // opinion words by polarity
	zipf  []float64
	lex   *lexicon
	all   *sentences

	key   rng.Key // of the sentence
	drawn uint64
}

// draw returns a number in 0..n-1.
func (g *writer) draw(n int) int {
	g.drawn++
	return g.key.Intn(g.drawn, n)
}

func (g *writer) say(words ...string) {
	for _, w := range words {
		g.all.tokens = append(g.all.tokens, g.lex.add(w))
	}
}

// sentence writes one: opinions with about equal runs of neutral words before,
// between and after them.
func (g *writer) sentence(polarity int32) {
	length := shortest + g.draw(longest-shortest+1)
	opinions := 1 + length/7
	from := len(g.all.tokens)
	for k := range opinions {
		room := length - 3*(opinions-k) - (len(g.all.tokens) - from)
		for range g.draw(max(2*room/(opinions-k+1), 0) + 1) {
			g.say(g.neutral())
		}
		g.opinion(polarity)
	}
	for len(g.all.tokens)-from < length {
		g.say(g.neutral())
	}
	g.all.end(polarity)
}

// opinion writes one to three words.
func (g *writer) opinion(polarity int32) {
	pick := func(p int32) string { return g.words[p][g.draw(len(g.words[p]))] }
	switch g.draw(20) {
	case 0, 1:
		g.say(negator, pick(1-polarity))
	case 2:
		g.say(negator, amplify, pick(1-polarity))
	case 3, 4:
		g.say(amplify, pick(polarity))
	default:
		g.say(pick(polarity))
	}
}

// neutral returns word r with probability in proportion to 1/(r+1).
func (g *writer) neutral() string {
	g.drawn++
	return spell(search(g.zipf, g.key.Float64(g.drawn)))
}

// newZipf returns the cumulative probabilities of ranks 1..n with exponent 1.
func newZipf(n int) []float64 {
	cum := make([]float64, n)
	sum := 0.0
	for i := range cum {
		sum += 1 / float64(i+1)
		cum[i] = sum
	}
	for i := range cum {
		cum[i] /= sum
	}
	return cum
}

// search returns the first i with u < cum[i].
func search(cum []float64, u float64) int {
	lo, hi := 0, len(cum)-1
	for lo < hi {
		if mid := (lo + hi) / 2; u < cum[mid] {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	return lo
}

// spell writes a number as a word of its own, of consonants and vowels.
func spell(n int) string {
	const consonants, vowels = "bdfgklmnprstvz", "aeiou"
	var b strings.Builder
	for first := true; first || n > 0; first = false {
		b.WriteByte(consonants[n%len(consonants)])
		n /= len(consonants)
		b.WriteByte(vowels[n%len(vowels)])
		n /= len(vowels)
	}
	return b.String()
}

// checkCount refuses sets too small to be parted or too large to be held.
func checkCount(op string, n int) error { return checkMost(op, n, 1<<20) }

func checkMost(op string, n, most int) error {
	if n >= 2 && n <= most {
		return nil
	}
	return &Error{Op: op, Kind: BadOption, Detail: fmt.Sprintf("%d examples", n), Do: fmt.Sprintf("ask for 2 to %d", most)}
}
