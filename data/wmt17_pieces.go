package data

import (
	"optimus/data/bpe"
	"optimus/data/source"
)

const (
	codesFile  = "bpe.codes" // merges, beside the text
	codesLimit = 64 << 20    // bytes
	doCodes    = "fetch or learn it again, or take it away to have the merges learned here"
)

// Merges returns the byte-pair encoding by which the words of a set of sentence pairs
// are pieces: it cuts new sentences as those of the set were. It is nil where words are
// whole, and for other sets.
func (s *Set) Merges() *bpe.Merges {
	if p, ok := s.Train.(*pairSplit); ok {
		return p.merges
	}
	return nil
}

// cutWords replaces the words of all texts by their pieces, and returns the merges
// that made them: n at most, of the file in dir or learned from the texts to train on.
func cutWords(dir source.Path, texts *[2]parallel, n int) (*bpe.Merges, error) {
	merges, err := mergesFor(dir, texts[0], n)
	if err != nil {
		return nil, err
	}
	return merges, inParallel(processors(), len(texts[0]), func(side int) error {
		e := merges.NewEncoder()
		for i := range texts {
			// Pieces take about a third more room than their words.
			texts[i][side] = e.Append(make([]byte, 0, len(texts[i][side])*4/3), texts[i][side])
		}
		return nil
	})
}

func mergesFor(dir source.Path, train parallel, n int) (*bpe.Merges, error) {
	path := dir.Join(codesFile)
	if dir == (source.Path{}) || !path.Exists() {
		var words bpe.Counts
		for _, text := range train {
			words.Add(text)
		}
		return bpe.Learn(&words, n), nil
	}
	text, err := readAll(opWMT17, path, codesLimit, doCodes)
	if err != nil {
		return nil, err
	}
	merges, err := bpe.Parse(text)
	if err != nil {
		return nil, &Error{Op: opWMT17, Path: path.String(), Kind: BadFormat, Detail: err.Error(), Do: doCodes, Err: err}
	}
	return merges.First(n), nil
}
