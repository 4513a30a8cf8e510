package data

import (
	"fmt"
	"io"
	"strings"
)

// speech is what is said in recordings, and how long they are.
type speech struct {
	letters sentences
	frames  []int32
}

// say adds a transcript.
func (s *speech) say(text string) error {
	if len(text) == 0 || len(text) > speechLetters {
		return fmt.Errorf("a transcript of %d letters, want 1 to %d", len(text), speechLetters)
	}
	for _, c := range text {
		i := strings.IndexRune(alphabet, c)
		if i < 0 {
			return fmt.Errorf("the letter %q, want A to Z, ' and spaces", c)
		}
		s.letters.tokens = append(s.letters.tokens, int32(i+1))
	}
	s.letters.end(0)
	return nil
}

// newSpeech makes a set of recordings, whose samples read returns.
func newSpeech(name string, s *speech, read func(i int) ([]float32, error), train, valid []int32) *Set {
	set := &Set{Name: name, Vocabulary: append([]string{Blank}, strings.Split(alphabet, "")...), Pitches: soundPitches}
	for _, ids := range [][]int32{train, valid} {
		for _, i := range ids {
			set.SequenceLength = max(set.SequenceLength, int(s.frames[i]))
			set.Letters = max(set.Letters, len(s.letters.at(int(i))))
		}
	}
	w := newWaves()
	set.Train, set.Valid = &speechSplit{s, w, read, train}, &speechSplit{s, w, read, valid}
	return set
}

// speechSplit is some of the recordings.
type speechSplit struct {
	*speech
	waves *waves
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
	return inParallel(len(ids), func(j int) error {
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
		writeInt32s(w, text)
	}
}
