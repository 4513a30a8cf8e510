package data

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"

	"optimus/data/bpe"
	"optimus/data/source"
)

// PairOptions of a set of sentence pairs; the zero value is ready for use.
type PairOptions struct {
	Words    int // in the vocabulary of each side, with the special ones; 0 is 4000
	MaxWords int // of a sentence; 0 is 60
	// Merges, if not 0, makes the words pieces of words, by so many merges of a
	// byte-pair encoding that both languages share.
	Merges int
}

// Special words of both vocabularies, behind Padding.
const (
	Unknown = "<unk>" // stands for words outside the vocabulary
	Begin   = "<s>"   // comes before the first word of a target
	End     = "</s>"  // comes behind the last
)

// The numbers of these words.
const (
	PaddingToken = iota
	UnknownToken
	BeginToken
	EndToken
	specials
)

const (
	opWMT17    = "open WMT17"
	doWMT17    = "give a folder with train*.de, train*.en and newstest*.de, newstest*.en (WMT17 German and English, a sentence a line) or newstest*-src.de.sgm, newstest*-ref.en.sgm"
	wmtLimit   = 2 << 30 // bytes of a file
	wmtWords   = 4000
	wmtLongest = 60

	wmtTokenised = ".tok" // at the end of a base
)

// wmtLanguages returns source and target.
func wmtLanguages() [2]string { return [2]string{"de", "en"} }

// What the names of files to train and to validate on begin with.
func wmtNames() [2][]string {
	return [2][]string{
		{"train", "europarl", "commoncrawl", "news-commentary", "rapid"},
		{"newstest", "newsdev", "valid", "dev"},
	}
}

// OpenWMT17 reads German sentences with their English translations, one a line, line i
// of BASE.de belonging to line i of BASE.en, in dir or dir/wmt17. To train on are all
// bases that begin with train, europarl, commoncrawl, news-commentary or rapid, in
// order, the parts of WMT17's parallel data; to validate on is the first that begins
// with newstest, newsdev, valid or dev. Where there are bases that end in .tok, which
// are tokenised, no other is read. Where there is no text to validate on, it is the
// first BASE-src.de.sgm with BASE-ref.en.sgm, as WMT publishes its test sets; their
// sentences are not tokenised, so those to train on must not be either.
//
// Words are what white space parts, and only \n ends a line. Each language's vocabulary
// is Padding, Unknown, Begin and End and then the most frequent words of its training
// text. Pairs with more than 60 words on a side, or none, are left out; Set.LeftOut says
// how many.
//
// With [PairOptions].Merges the words are pieces as package bpe cuts them. Its merges
// are learned from both languages' training text, so every worker that opens the same
// files learns the same; or they are the first so many of the file bpe.codes beside
// the text, where there is one. [Set.Merges] returns them.
//
// Inputs of a batch, as long as its longest sentences: [N,S] int32 words of the
// source, [N] int32 how many they are, [N,T] int32 Begin and the words of the target,
// [N,T] int32 these words and End. Padding is 0.
func OpenWMT17(dir string, o PairOptions) (*Set, error) {
	return openAt(opWMT17, dir, func(dir source.Path) (*Set, error) { return openWMT17(dir, o, &faults{}) })
}

func openWMT17(dir source.Path, o PairOptions, f *faults) (*Set, error) {
	if o.Words < 0 || o.MaxWords < 0 || o.Merges < 0 || o.Words > 0 && o.Words <= specials {
		return nil, &Error{Op: opWMT17, Kind: BadOption, Detail: fmt.Sprintf("%+v", o), Do: fmt.Sprintf("give more than %d words and some merges, or 0 for the defaults", specials)}
	}
	dir, err := folder(opWMT17, dir, "wmt17", doWMT17)
	if err != nil {
		return nil, err
	}
	train, err := wmtBases(dir, wmtNames()[0], "."+wmtLanguages()[0])
	if err != nil {
		return nil, err
	}
	var texts [2]parallel
	for _, base := range train {
		if err := f.need(texts[0].read(base)); err != nil {
			return nil, err
		}
	}
	read, err := wmtValidation(dir, train[0])
	if err != nil {
		return nil, err
	}
	if err := f.need(read(&texts[1])); err != nil {
		return nil, err
	}
	if err := f.whole(); err != nil {
		return nil, err
	}
	return newWMT17(dir, "WMT17", texts, o)
}

// wmtBases returns the paths, less the given end, of the files of the source that begin
// with one of the names.
func wmtBases(dir source.Path, names []string, end string) ([]source.Path, error) {
	entries, err := dir.ReadDir()
	if err != nil {
		return nil, systemError(opWMT17, dir.String(), err, doWMT17)
	}
	var bases, tokenised []source.Path
	for _, e := range entries {
		base, ok := strings.CutSuffix(e.Name(), end)
		if !ok || !slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(base, name) }) {
			continue
		}
		bases = append(bases, dir.Join(base))
		if strings.HasSuffix(base, wmtTokenised) {
			tokenised = append(tokenised, dir.Join(base))
		}
	}
	switch {
	case len(tokenised) > 0:
		return tokenised, nil
	case len(bases) > 0:
		return bases, nil
	}
	return nil, &Error{Op: opWMT17, Path: dir.String(), Kind: NotFound, Detail: fmt.Sprintf("there is no file %s*%s", names[0], end), Do: doWMT17}
}

// wmtValidation returns what reads the text to validate on; train is one of the bases
// to train on.
func wmtValidation(dir, train source.Path) (read func(p *parallel) error, err error) {
	names := wmtNames()[1]
	bases, none := wmtBases(dir, names, "."+wmtLanguages()[0])
	if none == nil {
		return func(p *parallel) error { return p.read(bases[0]) }, nil
	}
	sets, err := wmtBases(dir, names, sgmEnds()[0])
	switch {
	case err != nil:
		return nil, none
	case strings.HasSuffix(train.Base(), wmtTokenised):
		return nil, &Error{Op: opWMT17, Path: sets[0].Append(sgmEnds()[0]).String(), Kind: BadFormat,
			Detail: "its sentences are not tokenised, and those of " + train.Base() + "." + wmtLanguages()[0] + " are",
			Do:     "tokenise it in the same way and write a sentence a line to " + sets[0].Base() + wmtTokenised + ".de and .en"}
	}
	return func(p *parallel) error { return p.readSGM(sets[0]) }, nil
}

// parallel are sentences by language, those of a line of one belonging to those of the
// same line of the other.
type parallel [2][]byte

// read appends the two files of a base.
func (p *parallel) read(base source.Path) error {
	var lines [2]int
	for side, language := range wmtLanguages() {
		text, err := readAll(opWMT17, base.Append("."+language), wmtLimit, doWMT17)
		if err != nil {
			return err
		}
		if !bytes.HasSuffix(text, []byte{'\n'}) {
			text = append(text, '\n')
		}
		lines[side] = bytes.Count(text, []byte{'\n'})
		p[side] = append(p[side], text...)
	}
	if lines[0] != lines[1] {
		return &Error{Op: opWMT17, Path: base.Append("." + wmtLanguages()[0]).String(), Kind: BadFormat,
			Detail: fmt.Sprintf("%d lines, and %s has %d", lines[0], base.Base()+"."+wmtLanguages()[1], lines[1]),
			Do:     "fetch both files again: line i of one belongs to line i of the other"}
	}
	return nil
}

// newWMT17 makes the set of texts to train and to validate on.
func newWMT17(dir source.Path, name string, texts [2]parallel, o PairOptions) (*Set, error) {
	if o.Words == 0 {
		o.Words = wmtWords
	}
	if o.MaxWords == 0 {
		o.MaxWords = wmtLongest
	}
	var merges *bpe.Merges
	if o.Merges > 0 {
		var err error
		if merges, err = cutWords(dir, &texts, o.Merges); err != nil {
			return nil, err
		}
	}
	s := &Set{Name: name, SequenceLength: o.MaxWords}
	var sides [2][2]*sentences
	for side, vocabulary := range []*[]string{&s.Vocabulary, &s.Target} {
		number := rankWords(texts[0][side], o.Words, vocabulary)
		for i := range texts {
			sides[i][side] = numberWords(texts[i][side], number)
		}
	}
	for i, split := range []*Split{&s.Train, &s.Valid} {
		p := &pairSplit{source: sides[i][0], target: sides[i][1], merges: merges}
		for i := range p.source.len() {
			if a, b := len(p.source.at(i)), len(p.target.at(i)); min(a, b) > 0 && max(a, b) <= o.MaxWords {
				p.ids = append(p.ids, int32(i))
			}
		}
		if len(p.ids) == 0 {
			return nil, &Error{Op: opWMT17, Path: dir.String(), Kind: Empty, Detail: fmt.Sprintf("no pair of sentences of 1 to %d words", o.MaxWords), Do: doWMT17}
		}
		s.LeftOut += p.source.len() - len(p.ids)
		*split = p
	}
	return s, nil
}

// rankWords makes the vocabulary of a text and returns the numbers of its words.
func rankWords(text []byte, limit int, vocabulary *[]string) map[string]int32 {
	lex := newLexicon()
	for word := range bytes.FieldsSeq(text) {
		lex.add(string(word))
	}
	ranked := lex.vocabulary(nil)[1:]
	*vocabulary = append([]string{Padding, Unknown, Begin, End}, ranked[:min(len(ranked), limit-specials)]...)
	number := map[string]int32{}
	for i, word := range (*vocabulary)[specials:] {
		number[word] = int32(i + specials)
	}
	return number
}

// numberWords reads a sentence a line.
func numberWords(text []byte, number map[string]int32) *sentences {
	s := &sentences{}
	for line := range bytes.Lines(text) {
		for word := range bytes.FieldsSeq(line) {
			n, ok := number[string(word)]
			if !ok {
				n = UnknownToken
			}
			s.tokens = append(s.tokens, n)
		}
		s.end(0)
	}
	return s
}

// pairSplit is some of the pairs of sentences.
type pairSplit struct {
	source, target *sentences
	ids            []int32
	merges         *bpe.Merges // by which words were cut to pieces; nil: they are whole
}

func (p *pairSplit) Len() int { return len(p.ids) }

func (p *pairSplit) Fill(ids []int, b *Batch) error {
	from, to := 1, 1
	for _, id := range ids {
		if err := checkID("read pair", id, len(p.ids)); err != nil {
			return err
		}
		i := int(p.ids[id])
		from, to = max(from, len(p.source.at(i))), max(to, len(p.target.at(i))+1)
	}
	b.resize(len(ids), 4)
	source, lengths := b.Inputs[0].ints(len(ids), from), b.Inputs[1].ints(len(ids))
	before, next := b.Inputs[2].ints(len(ids), to), b.Inputs[3].ints(len(ids), to)
	clear(source)
	clear(before)
	clear(next)
	for j, id := range ids {
		i := int(p.ids[id])
		lengths[j] = int32(copy(source[j*from:], p.source.at(i)))
		before[j*to] = BeginToken
		n := copy(before[j*to+1:], p.target.at(i))
		copy(next[j*to:], p.target.at(i))
		next[j*to+n] = EndToken
	}
	return nil
}

func (p *pairSplit) digest(w io.Writer) {
	for _, id := range p.ids {
		for _, side := range []*sentences{p.source, p.target} {
			writeInts(w, len(side.at(int(id))))
			writeInt32s(w, side.at(int(id)))
		}
	}
}
