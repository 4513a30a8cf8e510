package data

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"unicode/utf8"

	"optimus/data/source"
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
// dir/text8, or text8.zip in which it comes. It is made ready for word vectors of
// letter trigrams, as MXNet's example nce-loss/wordvec_subwords does it: words of more
// than 10 letters are left out of the text, and a word is the bag of the trigrams of
// "#word#". A word is what white space parts, as it stands: the real file has but a to
// z, others may have capitals, digits and other letters too.
//
// An example is a word with the two before and the two behind it. Inputs of a batch:
// [N,40] int32, the trigrams of the 4 words around; [N,50] int32, the trigrams of
// the word and of 4 others, drawn in proportion to count^0.75 among the words that
// occur 5 times or more (Mikolov et al., 2013), keyed by seed, epoch and example; see
// InEpoch. Each word takes 10 places, those left over hold
// len(Vocabulary). The vocabulary is the trigrams, the most frequent first; there
// is no padding in it. Validation is the last tenth of the text.
func OpenText8(dir string, o Options) (*Set, error) {
	return openAt(opText8, dir, func(dir source.Path) (*Set, error) { return openText8(dir, o, &faults{}) })
}

func openText8(dir source.Path, o Options, f *faults) (*Set, error) {
	if file := dir.Join(text8File); !file.Exists() || file.IsDir() {
		var err error
		if dir, err = folder(opText8, dir, text8File, doText8); err != nil {
			return nil, err
		}
	}
	path := dir.Join(text8File)
	if archive := path.Append(".zip"); !path.Exists() && archive.Exists() {
		path = archive
	}
	lex, tokens, err := readText8(path)
	if err := f.need(err); err != nil {
		return nil, err
	}
	if err := f.whole(); err != nil {
		return nil, err
	}
	return newText8("text8", lex, tokens, len(tokens)-len(tokens)/10, o.Seed), nil
}

// readText8 reads the words of the file, which may be in its archive.
func readText8(path source.Path) (*lexicon, []int32, error) {
	read := func() ([]byte, error) { return readAll(opText8, path, text8Limit, doText8) }
	if strings.HasSuffix(path.Base(), ".zip") {
		read = func() ([]byte, error) { return unzipText8(path) }
	}
	text, err := read()
	if err != nil {
		return nil, nil, err
	}
	lex, tokens := text8Words(text)
	if least := 20 * contextReach; len(tokens) < least {
		return nil, nil, &Error{Op: opText8, Path: path.String(), Kind: Empty, Detail: fmt.Sprintf("%d words, want %d or more", len(tokens), least), Do: doText8}
	}
	return lex, tokens, nil
}

// text8Words numbers the words of a text but for long ones.
func text8Words(text []byte) (lex *lexicon, tokens []int32) {
	lex = newLexicon()
	for word := range bytes.FieldsSeq(text) {
		if utf8.RuneCount(word) <= trigramWord {
			tokens = append(tokens, lex.add(string(word)))
		}
	}
	return lex, tokens
}

// unzipText8 reads the one file of text8.zip, and verifies its checksum.
func unzipText8(path source.Path) (text []byte, err error) {
	err = withFile(opText8, path, text8Limit, doText8, func(f fileReader, size int64) (err error) {
		text, err = unzip(path.String(), f, size)
		return err
	})
	if err != nil {
		return nil, err
	}
	return unicodeText(opText8, path.String(), text)
}

func unzip(path string, f io.ReaderAt, size int64) ([]byte, error) {
	fail := func(kind Kind, format string, args ...any) ([]byte, error) {
		return nil, &Error{Op: opText8, Path: path, Kind: kind, Detail: fmt.Sprintf(format, args...), Do: "fetch text8.zip again (31,344,016 bytes)"}
	}
	archive, err := zip.NewReader(f, size)
	switch {
	case errors.Is(err, zip.ErrFormat):
		return fail(Truncated, "its %d bytes are no zip file, or one that was cut: there is no list of files at its end", size)
	case err != nil:
		return fail(BadFormat, "%v", err)
	}
	for _, entry := range archive.File {
		if entry.Name != text8File {
			continue
		}
		if claim := entry.UncompressedSize64; claim > text8Limit || int64(claim) > size*deflateMost {
			return fail(TooLarge, "it claims that text8 has %d bytes", claim)
		}
		r, err := entry.Open()
		if err != nil {
			return fail(BadFormat, "%v", err)
		}
		defer r.Close()
		text, err := io.ReadAll(r)
		if err != nil {
			return fail(BadFormat, "after %d of %d bytes: %v", len(text), entry.UncompressedSize64, err)
		}
		return text, nil
	}
	return fail(NotFound, "there is no file text8 in it")
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
		wrapped := []rune("#" + word + "#")
		for i := range len(wrapped) - 2 {
			c.trigrams = append(c.trigrams, parts.add(string(wrapped[i:i+3])))
		}
	}
	numbered := c.trigrams
	names := parts.vocabulary(numbered)[1:]
	c.trigrams, c.padding = make([]int32, 0, len(lex.words)*trigramWord), int32(len(names))
	for _, word := range lex.words {
		letters := utf8.RuneCountInString(word)
		for i := range trigramWord {
			t := c.padding
			if i < letters { // as many trigrams as letters
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
