package data

import (
	"bytes"
	"fmt"
	"io"

	"optimus/data/source"
	"optimus/internal/rng"
)

// Options of a reader; the zero value is ready for use.
type Options struct {
	// Seed of the shuffle that parts training from validation.
	Seed uint64
	// MaxWords cuts sentences longer than that; 0 is 256. The longest of the
	// real set has 59. One line of a damaged file must not set the length, and
	// so the memory and time, of every sentence.
	MaxWords int
	// Skip is how many recordings that cannot be used are left out and listed in
	// Set.Skipped; see PictureOptions.
	Skip int
}

const (
	opMR      = "open MR"
	doMR      = "unpack rt-polaritydata.tar.gz (sentence polarity dataset v1.0, Pang and Lee 2005) and give its folder"
	mrLimit   = 64 << 20 // bytes; the real files have 0.6 MB
	mrFolder  = "rt-polaritydata"
	mrNeg     = "rt-polarity.neg"
	mrPos     = "rt-polarity.pos"
	mrWords   = 256
	mrWindow  = 5 // the widest filter of the CNN on this set: no sentence may be shorter
	mrHoldout = 10
)

// mrFiles returns the files' names by label.
func mrFiles() [2]string { return [2]string{mrNeg, mrPos} }

// OpenMR reads the sentence polarity set of Pang and Lee (2005), as CNN-rand
// is trained on it (Kim 2014): rt-polarity.neg (label 0) and rt-polarity.pos
// (label 1) in dir or in dir/rt-polaritydata, one sentence a line, each ended by a
// newline.
//
// Inputs of a batch: [N,T] int32 tokens, [N] int32 labels. T is the longest
// sentence of the whole set, at least 5; shorter ones are padded with 0 at the
// end. Validation is a tenth of the sentences after a shuffle by the seed.
//
// A line that is valid UTF-8 is read as such, any other as cp1252, which is
// what the original is in (a line of cp1252 with a letter beyond ASCII is
// practically never valid UTF-8); a byte-order mark is skipped. Words are what
// white space parts, in lower case: the set comes tokenised. The vocabulary is
// every word of the set, the most frequent first.
func OpenMR(dir string, o Options) (*Set, error) {
	return openAt(opMR, dir, func(dir source.Path) (*Set, error) { return openMR(dir, o, &faults{}) })
}

func openMR(dir source.Path, o Options, f *faults) (*Set, error) {
	if o.MaxWords < 0 {
		return nil, &Error{Op: opMR, Kind: BadOption, Detail: fmt.Sprintf("at most %d words a sentence", o.MaxWords), Do: "give 1 or more, or 0 for the default"}
	}
	if o.MaxWords == 0 {
		o.MaxWords = mrWords
	}
	dir, err := folder(opMR, dir, mrFolder, doMR)
	if err != nil {
		return nil, err
	}
	lex, all := newLexicon(), &sentences{}
	for label, name := range mrFiles() {
		if err := f.need(readText(opMR, dir.Join(name), int32(label), o.MaxWords, lex, all)); err != nil {
			return nil, err
		}
	}
	if err := f.whole(); err != nil {
		return nil, err
	}
	return newMR("MR", all, lex, o.Seed), nil
}

func readText(op string, path source.Path, label int32, limit int, lex *lexicon, dst *sentences) error {
	text, err := readSized(op, path, mrLimit, doMR)
	if err != nil {
		return err
	}
	if err := parseText(op, path.String(), text, label, limit, lex, dst); err != nil {
		return err
	}
	if !bytes.HasSuffix(text, []byte{'\n'}) { // half a sentence looks like a whole one
		return &Error{Op: op, Path: path.String(), Kind: Truncated, Detail: fmt.Sprintf("line %d, the last, does not end with a newline", bytes.Count(text, []byte{'\n'})+1),
			Do: "the file was cut: fetch it again; or end the line if it is whole"}
	}
	return nil
}

// newMR makes the set of all sentences.
func newMR(name string, all *sentences, lex *lexicon, seed uint64) *Set {
	s := &Set{
		Name:           name,
		Classes:        []string{"negative", "positive"},
		Vocabulary:     lex.vocabulary(all.tokens),
		SequenceLength: max(all.longest(), mrWindow),
	}
	train, valid := part(all.len(), mrHoldout, seed)
	s.Train = &sentenceSplit{all, train, s.SequenceLength}
	s.Valid = &sentenceSplit{all, valid, s.SequenceLength}
	return s
}

// part shuffles 0..n-1 and parts off the last of every holdout of them, rounded
// down but at least one where there are two.
func part(n, holdout int, seed uint64) (train, valid []int32) {
	ids := shuffled(n, rng.NewKey(seed, 'p', 'a', 'r', 't'))
	cut := n - n/holdout
	if n > 1 {
		cut = min(cut, n-1)
	}
	return ids[:cut], ids[cut:]
}

// sentenceSplit is some of the sentences, padded to length words.
type sentenceSplit struct {
	from   *sentences
	ids    []int32
	length int
}

func (s *sentenceSplit) Len() int { return len(s.ids) }

func (s *sentenceSplit) Fill(ids []int, b *Batch) error {
	b.resize(len(ids), 2)
	tokens := b.Inputs[0].ints(len(ids), s.length)
	labels := b.Inputs[1].ints(len(ids))
	for i, id := range ids {
		if err := checkID("read sentence", id, len(s.ids)); err != nil {
			return err
		}
		row := tokens[i*s.length : (i+1)*s.length]
		clear(row[copy(row, s.from.at(int(s.ids[id]))):])
		labels[i] = s.from.labels[s.ids[id]]
	}
	return nil
}

func (s *sentenceSplit) digest(w io.Writer) {
	for _, id := range s.ids {
		sentence := s.from.at(int(id))
		writeInts(w, len(sentence), int(s.from.labels[id]))
		writeInt32s(w, sentence)
	}
}
