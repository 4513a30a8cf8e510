package data

import (
	"fmt"
	"io"
	"math"
	"path/filepath"
	"strings"

	"optimus/internal/rng"
)

const (
	opText8    = "open text8"
	doText8    = "unzip text8.zip (Mahoney's Large Text Compression Benchmark) and give its folder"
	text8File  = "text8"
	text8Limit = 256 << 20 // bytes; the real file has 100 MB

	trigramWord   = 10 // letters of the longest word that is kept: as many trigrams as a word has at most
	contextReach  = 2  // words before and behind
	negatives     = 4
	negativeCount = 5 // how often a word occurs that is drawn as a negative
)

// OpenText8 reads the first 100 MB of a cleaned Wikipedia: the file text8 in dir or
// dir/text8, words of the letters a to z between spaces. It is made ready for
// word vectors of letter trigrams, as MXNet's example nce-loss/wordvec_subwords
// does it: words of more than 10 letters are left out of the text, and a word is the
// bag of the trigrams of "#word#".
//
// An example is a word with the two before and the two behind it. Inputs of a batch:
// [N,40] int32, the trigrams of the 4 words around; [N,50] int32, the trigrams of
// the word and of 4 others, drawn in proportion to count^0.75 among the words that
// occur 5 times or more (Mikolov et al., 2013), keyed by seed, epoch and example; see
// InEpoch. Each word takes 10 places, those left over hold
// len(Vocabulary). The vocabulary is the trigrams, the most frequent first; there
// is no padding in it. Validation is the last tenth of the text.
func OpenText8(dir string, o Options) (*Set, error) {
	dir, err := folder(opText8, dir, "text8", doText8)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, text8File)
	text, err := readAll(opText8, path, text8Limit, doText8)
	if err != nil {
		return nil, err
	}
	lex := newLexicon()
	var tokens []int32
	for word := range strings.FieldsSeq(string(text)) {
		if i := strings.IndexFunc(word, func(r rune) bool { return r < 'a' || r > 'z' }); i >= 0 {
			return nil, &Error{Op: opText8, Path: path, Kind: BadFormat, Detail: fmt.Sprintf("the word %.20q has other characters than a to z", word), Do: doText8}
		}
		if len(word) <= trigramWord {
			tokens = append(tokens, lex.add(word))
		}
	}
	if least := 20 * contextReach; len(tokens) < least {
		return nil, &Error{Op: opText8, Path: path, Kind: Empty, Detail: fmt.Sprintf("%d words, want %d or more", len(tokens), least), Do: doText8}
	}
	return newText8("text8", lex, tokens, len(tokens)-len(tokens)/10, o.Seed), nil
}

// newText8 makes the set of a text, of which words from cut on are for validation.
func newText8(name string, lex *lexicon, tokens []int32, cut int, seed uint64) *Set {
	c := newContexts(lex)
	s := &Set{Name: name, Trigrams: trigramWord}
	s.Vocabulary = c.nameTrigrams(lex)
	s.Train = &contextSplit{c, tokens[:cut], rng.NewKey(seed, 'n', 'e', 'g')}
	s.Valid = &contextSplit{c, tokens[cut:], rng.NewKey(seed, 'n', 'e', 'g', 'v')}
	return s
}

// contexts knows the words of a text.
type contexts struct {
	trigrams []int32 // trigramWord for each word
	padding  int32   // behind the last trigram
	drawn    []int32 // words that are drawn as negatives
	share    []float64
}

// newContexts prepares the draw of negatives.
func newContexts(lex *lexicon) *contexts {
	c := &contexts{}
	sum, least := 0.0, negativeCount
	for len(c.drawn) == 0 { // a short text may repeat no word so often
		for w, count := range lex.counts {
			if count >= least {
				root := math.Sqrt(float64(count)) // exactly rounded, as no power is: count^(1/2+1/4)
				sum += float64(root * math.Sqrt(root))
				c.drawn, c.share = append(c.drawn, int32(w)), append(c.share, sum)
			}
		}
		least--
	}
	for i := range c.share {
		c.share[i] /= sum
	}
	return c
}

// nameTrigrams numbers the trigrams of all words and returns them.
func (c *contexts) nameTrigrams(lex *lexicon) []string {
	parts := newLexicon()
	for _, word := range lex.words {
		for wrapped, i := "#"+word+"#", 0; i+3 <= len(wrapped); i++ {
			c.trigrams = append(c.trigrams, parts.add(wrapped[i:i+3]))
		}
	}
	numbered := c.trigrams
	names := parts.vocabulary(numbered)[1:]
	c.trigrams, c.padding = make([]int32, 0, len(lex.words)*trigramWord), int32(len(names))
	for _, word := range lex.words {
		for i := range trigramWord {
			t := c.padding
			if i < len(word) { // as many trigrams as letters
				t, numbered = numbered[0]-1, numbered[1:]
			}
			c.trigrams = append(c.trigrams, t)
		}
	}
	return names
}

// contextSplit is a text whose words are examples, but for those at its ends.
type contextSplit struct {
	*contexts
	tokens []int32
	key    rng.Key
}

// InEpoch returns the split with negatives drawn anew.
func (s *contextSplit) InEpoch(epoch int) Split {
	return &contextSplit{s.contexts, s.tokens, rng.NewKey(uint64(s.key), uint64(epoch))}
}

func (s *contextSplit) Len() int { return max(0, len(s.tokens)-2*contextReach) }

func (s *contextSplit) Fill(ids []int, b *Batch) error {
	b.resize(len(ids), 2)
	around := b.Inputs[0].ints(len(ids), 2*contextReach*trigramWord)[:0]
	candidates := b.Inputs[1].ints(len(ids), (1+negatives)*trigramWord)[:0]
	for _, id := range ids {
		if err := checkID("read word", id, s.Len()); err != nil {
			return err
		}
		at := id + contextReach
		for i := -contextReach; i <= contextReach; i++ {
			if i != 0 {
				around = s.append(around, s.tokens[at+i])
			}
		}
		candidates = s.append(candidates, s.tokens[at])
		for i := range negatives {
			candidates = s.append(candidates, s.drawn[search(s.share, s.key.Float64(uint64(id*negatives+i)))])
		}
	}
	return nil
}

// append appends the trigrams of a word.
func (s *contextSplit) append(list []int32, word int32) []int32 {
	return append(list, s.trigrams[int(word)*trigramWord:(int(word)+1)*trigramWord]...)
}

func (s *contextSplit) digest(w io.Writer) {
	writeInts(w, int(s.key))
	writeInt32s(w, s.trigrams)
	writeInt32s(w, s.tokens)
}
