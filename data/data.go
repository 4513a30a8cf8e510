// Package data reads and makes the example sets that models train on.
//
// The idea: a [Set] is two [Split]s, one to train on and one to validate on,
// and a Split is nothing but a numbered list of examples. Which numbers form a
// step is decided elsewhere (package order), so a Split has no cursor, no
// shuffle and no state: any worker may fill any ids at any time and gets the
// same bytes. That is what lets a job change its number of workers between two
// steps without an example lost or repeated.
//
// A set lies in a folder, or below a URL of an object store: wherever a reader asks for
// a dir, it takes what package source opens. Readers take the on-disk formats of the original publications ([OpenMR],
// [OpenCIFAR10], [OpenMNIST], [OpenNDSB1], [OpenCaltech], [OpenImageNet], [OpenPTB],
// [OpenText8], [OpenWMT17], [OpenLibriSpeech]); generators ([GenerateMR],
// [GenerateCIFAR10], [GeneratePTB] and others, one for each) make sets of the same
// shape with a structure that can be learned, for use without a download. [Make] writes
// generated sets to disk in the original formats, [Check] reads a folder whole and
// lists all that is wrong in it.
//
// Nothing is ever dropped or guessed in silence: a file that is cut, empty, of
// another format, or holds a label out of range gives an [*Error] of one line
// that names the file, what was found, what was wanted, and what to do. Where an
// option allows so many bad examples to be left out, [Set].Skipped lists them.
package data

import (
	"slices"

	"optimus/data/source"
)

// Array is one input of a model for a whole batch, row-major. The first
// dimension of Shape is the batch. Exactly one of F and I is in use; it holds
// as many elements as the product of Shape.
type Array struct {
	Shape []int
	F     []float32
	I     []int32
}

// Batch is N examples side by side: Inputs[k] is the k-th input of the model,
// by convention the labels last. The zero Batch is ready for use.
type Batch struct {
	N      int
	Inputs []Array
}

// Split is a numbered list of examples. It is safe for concurrent use.
type Split interface {
	// Len returns the number of examples; ids run from 0 to Len()-1.
	Len() int
	// Fill overwrites b with the examples ids, in that order (an id may come
	// twice). It reuses b's memory and allocates only where that is too small.
	// An id out of range is an *Error of kind [BadID] and leaves b unspecified.
	Fill(ids []int, b *Batch) error
}

// InEpoch returns the split as training sees it in an epoch (from 0). It is another
// only for a split that has something to draw anew in each, by its own method of
// this name.
func InEpoch(s Split, epoch int) Split {
	if changing, ok := s.(interface{ InEpoch(epoch int) Split }); ok {
		return changing.InEpoch(epoch)
	}
	return s
}

// Set is a training set with its validation set.
type Set struct {
	Name           string
	Train, Valid   Split
	Classes        []string // class names by label, where there are classes
	Vocabulary     []string // words by token, where there are words; 0 is padding unless sequences need none
	Target         []string // words of the other language, where sentences have translations
	SequenceLength int      // tokens per sentence with padding, or time steps of the longest recording; 0 for pictures
	Pitches        int      // values per time step of a recording, whose letters the vocabulary is; else 0
	Letters        int      // letters of the longest transcript of a recording
	Trigrams       int      // letter trigrams per word with padding, where the vocabulary is trigrams; else 0
	Picture        []int    // channels, height and width of a picture, nil for text
	Skipped        []error  // what was wrong with the examples that were left out, as the options allowed
	LeftOut        int      // pairs of sentences that a rule of the format leaves out
	Generated      bool     // made by a generator, not read from real data

	files *source.Tree // that examples are read from; nil of a set that is made
}

// Close gives up what examples are read from: connections to an object store. No
// example may be asked for after it. A set of a local folder needs no Close.
func (s *Set) Close() error {
	if s.files == nil {
		return nil
	}
	return s.files.Close()
}

// resize gives b n examples and k inputs, keeping the inputs' memory.
func (b *Batch) resize(n, k int) {
	b.N = n
	b.Inputs = slices.Grow(b.Inputs[:0], k)[:k]
}

// floats makes a a float32 array of the given shape; its contents are old.
func (a *Array) floats(shape ...int) []float32 {
	a.F, a.I = resized(a.F, a.reshape(shape)), a.I[:0]
	return a.F
}

// ints makes a an int32 array of the given shape; its contents are old.
func (a *Array) ints(shape ...int) []int32 {
	a.I, a.F = resized(a.I, a.reshape(shape)), a.F[:0]
	return a.I
}

func (a *Array) reshape(shape []int) int {
	a.Shape = append(a.Shape[:0], shape...)
	n := 1
	for _, d := range shape {
		n *= d
	}
	return n
}

func resized[T any](s []T, n int) []T { return slices.Grow(s[:0], n)[:n] }
