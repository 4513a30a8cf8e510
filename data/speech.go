package data

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// speechLetters is the most that a transcript may have.
const speechLetters = 1000

// speech is what is said in recordings, and how long they are.
type speech struct {
	letters  sentences
	frames   []int32
	versions []uint64 // of the files in a store, where there are files
}

// spellOut returns the letters of a transcript, which is made upper case, with single
// spaces.
func spellOut(text string) ([]int32, error) {
	if !utf8.ValidString(text) {
		return nil, fmt.Errorf("a transcript that is not in UTF-8: %.40q", text)
	}
	text = strings.ToUpper(strings.Join(strings.Fields(text), " "))
	if len(text) == 0 || len(text) > speechLetters {
		return nil, fmt.Errorf("a transcript of %d letters, want 1 to %d", len(text), speechLetters)
	}
	letters := make([]int32, 0, len(text))
	for _, c := range text {
		i := strings.IndexRune(alphabet, c)
		if i < 0 {
			return nil, fmt.Errorf("the letter %q, want A to Z, ' and spaces", c)
		}
		letters = append(letters, int32(i+1))
	}
	return letters, nil
}

// leastFrames is how many windows a text takes at least: one a letter, and one between
// equal ones (Graves et al., 2006).
func leastFrames(letters []int32) int {
	n := len(letters)
	for i := 1; i < len(letters); i++ {
		if letters[i] == letters[i-1] {
			n++
		}
	}
	return n
}

// say adds a recording of so many windows.
func (s *speech) say(letters []int32, frames int) {
	s.letters.tokens = append(s.letters.tokens, letters...)
	s.letters.end(0)
	s.frames = append(s.frames, int32(frames))
}

// newSpeech makes a set of recordings, whose samples read returns; width are read at
// once.
func newSpeech(name string, s *speech, width int, read func(i int) ([]float32, error), train, valid []int32) *Set {
	set := &Set{Name: name, Vocabulary: append([]string{Blank}, strings.Split(alphabet, "")...), Pitches: soundPitches}
	for _, ids := range [][]int32{train, valid} {
		for _, i := range ids {
			set.SequenceLength = max(set.SequenceLength, int(s.frames[i]))
			set.Letters = max(set.Letters, len(s.letters.at(int(i))))
		}
	}
	w := newWaves()
	set.Train, set.Valid = &speechSplit{s, w, width, read, train}, &speechSplit{s, w, width, read, valid}
	return set
}

// speechSplit is some of the recordings.
type speechSplit struct {
	*speech
	waves *waves
	width int
	read  func(i int) ([]float32, error)
	ids   []int32
}

func (s *speechSplit) Len() int { return len(s.ids) }

func (s *speechSplit) Fill(ids []int, b *Batch) error {
	steps, most := 1, 1
	for _, id := range ids {
		if err := checkID("read recording", id, len(s.ids)); err != nil {
			return err
		}
		i := s.ids[id]
		steps, most = max(steps, int(s.frames[i])), max(most, len(s.letters.at(int(i))))
	}
	b.resize(len(ids), 4)
	lengths, sound := b.Inputs[0].ints(len(ids)), b.Inputs[1].floats(len(ids), steps, soundPitches)
	letters, counts := b.Inputs[2].ints(len(ids), most), b.Inputs[3].ints(len(ids))
	clear(sound)
	clear(letters)
	for j, id := range ids {
		i := int(s.ids[id])
		counts[j], lengths[j] = int32(copy(letters[j*most:], s.letters.at(i))), s.frames[i]
	}
	return inParallel(s.width, len(ids), func(j int) error {
		samples, err := s.read(int(s.ids[ids[j]]))
		if err == nil {
			s.waves.spectrogram(sound[j*steps*soundPitches:][:int(lengths[j])*soundPitches], samples)
		}
		return err
	})
}

// digest hashes transcripts and lengths; to decode all recordings would take hours.
func (s *speechSplit) digest(w io.Writer) {
	for _, id := range s.ids {
		text := s.letters.at(int(id))
		writeInts(w, int(s.frames[id]), len(text))
		if s.versions != nil && s.versions[id] != 0 {
			writeInts(w, int(s.versions[id]))
		}
		writeInt32s(w, text)
	}
}
