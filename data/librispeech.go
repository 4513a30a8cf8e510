package data

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"optimus/internal/rng"
)

const (
	opSpeech        = "open LibriSpeech"
	doSpeech        = "unpack the archives of LibriSpeech (Panayotov et al., 2015) and give the folder LibriSpeech"
	speechFolder    = "LibriSpeech"
	speechList      = ".trans.txt"
	speechListLimit = 16 << 20

	// Blank is the class of no letter, 0.
	Blank = "<blank>"
)

// alphabet are the letters of transcripts, from 1 on.
const alphabet = " 'ABCDEFGHIJKLMNOPQRSTUVWXYZ"

// OpenLibriSpeech reads recordings of books with what is said in them: folders
// SPEAKER/CHAPTER with files *.flac or *.wav (16 kHz, one channel, of any number of
// bits) and one *.trans.txt, a line "NAME TEXT" for each. They lie in dir,
// dir/LibriSpeech or folders like train-clean-100 in it. Training is on all of train-*,
// validation on all of dev-*; where there is no folder dev-*, the recordings of a
// quarter of the speakers, drawn by the seed, are for validation.
//
// A transcript is made upper case, with single spaces. A recording without a transcript
// or the other way round, of another rate, shorter than a window or than its text, or
// with other letters than A to Z and apostrophe, is refused, or left out as far as
// o.Skip allows.
//
// Inputs of a batch, as long as its longest recording and transcript: [N] int32 how
// many windows a recording has; [N,T,161] float32, the spectrogram: the logarithm of the
// power at 0, 50, …, 8000 Hz in windows of 20 ms, every 10 ms, of mean 0 and variance 1
// over the recording; [N,U] int32 letters; [N] int32 how many they are. Padding is 0.
// The vocabulary is Blank, space, apostrophe, A to Z. Recordings are read when they are
// asked for.
func OpenLibriSpeech(dir string, o Options) (*Set, error) {
	return openLibriSpeech(dir, o, &faults{})
}

func openLibriSpeech(dir string, o Options, f *faults) (*Set, error) {
	f.op, f.limit = opSpeech, max(f.limit, o.Skip)
	if err := checkSkip(opSpeech, o.Skip); err != nil {
		return nil, err
	}
	dir, err := folder(opSpeech, dir, speechFolder, doSpeech)
	if err != nil {
		return nil, err
	}
	s := &library{faults: f}
	if err := s.walk(dir); err != nil {
		return nil, err
	}
	if f.verifies() {
		if err := s.verify(); err != nil {
			return nil, err
		}
	}
	train, valid := s.divide(dir, o.Seed)
	if len(train) == 0 || len(valid) == 0 {
		return nil, &Error{Op: opSpeech, Path: dir, Kind: Empty, Detail: fmt.Sprintf("%d recordings to train on and %d to validate on", len(train), len(valid)), Do: doSpeech}
	}
	return newSpeech("LibriSpeech", &s.speech, s.read, train, valid).without(f), nil
}

// library are the recordings of a folder.
type library struct {
	speech
	faults   *faults
	files    []string
	speakers []string
}

// walk reads the folders below dir, in the order of their names.
func (s *library) walk(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return systemError(opSpeech, dir, err, doSpeech)
	}
	var lists []string
	recordings := map[string]string{} // file by name without its end
	for _, e := range entries {
		name, path := e.Name(), filepath.Join(dir, e.Name())
		stem := strings.TrimSuffix(name, filepath.Ext(name))
		var err error
		switch {
		case strings.HasPrefix(name, "."):
		case e.IsDir():
			err = s.walk(path)
		case strings.HasSuffix(name, speechList):
			lists = append(lists, path)
		case !isRecording(name):
		case recordings[stem] != "":
			err = s.faults.tell(&Error{Op: opSpeech, Path: path, Kind: BadFormat, Detail: "there is " + filepath.Base(recordings[stem]) + " as well", Do: "remove one of them"})
		default:
			recordings[stem] = path
		}
		if err != nil {
			return err
		}
	}
	for _, list := range lists {
		if err := s.readList(list, recordings); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(recordings)) {
		if err := s.faults.tell(&Error{Op: opSpeech, Path: recordings[name], Kind: NotFound, Detail: "no *" + speechList + " beside it has a line for " + name, Do: doSpeech}); err != nil {
			return err
		}
	}
	return nil
}

// readList reads a list of transcripts, and takes the recordings that it names from
// those of its folder.
func (s *library) readList(path string, recordings map[string]string) error {
	text, err := readSized(opSpeech, path, speechListLimit, doSpeech)
	if err == nil {
		text, err = plainText(opSpeech, path, text)
	}
	if err != nil {
		return s.faults.tell(err)
	}
	n := 0
	for line := range bytes.Lines(text) {
		n++
		words := strings.Fields(string(line))
		if len(words) == 0 {
			continue
		}
		file, ok := recordings[words[0]]
		delete(recordings, words[0])
		fail := func(kind Kind, format string, args ...any) error {
			return s.faults.tell(&Error{Op: opSpeech, Path: path, Kind: kind, Detail: fmt.Sprintf("line %d: ", n) + fmt.Sprintf(format, args...), Do: doSpeech})
		}
		if !ok {
			if err := fail(NotFound, "there is no file %s.flac or .wav beside it that no line before has", words[0]); err != nil {
				return err
			}
			continue
		}
		letters, err := spellOut(strings.Join(words[1:], " "))
		if err != nil {
			if err := fail(BadFormat, "%s has %v", filepath.Base(file), err); err != nil {
				return err
			}
			if s.faults.limit == unlimited { // that is one fault; the recording may have another
				_, err := readRecording(file)
				s.faults.need(err)
			}
			continue
		}
		if err := s.faults.tell(s.add(file, letters)); err != nil {
			return err
		}
	}
	return nil
}

// add adds a recording and its text.
func (s *library) add(file string, letters []int32) error {
	samples, err := measureRecording(file)
	if err != nil {
		return err
	}
	frames := soundFrames(samples)
	if least := leastFrames(letters); frames < least {
		return &Error{Op: opSpeech, Path: file, Kind: BadFormat, Detail: fmt.Sprintf("%d windows of sound, and a text that takes %d or more", frames, least), Do: "compare the recording with its text"}
	}
	s.say(letters, frames)
	s.files = append(s.files, file)
	s.speakers = append(s.speakers, filepath.Base(filepath.Dir(filepath.Dir(file))))
	return nil
}

// read decodes recording i.
func (s *library) read(i int) ([]float32, error) {
	sound, err := readRecording(s.files[i])
	if err != nil {
		return nil, err
	}
	if soundFrames(int(sound.Samples)) != int(s.frames[i]) {
		return nil, badRecording(opRecording, s.files[i], fmt.Errorf("%d samples, which is not what it had when the set was opened", sound.Samples))
	}
	return sound.Floats(), nil
}

// verify decodes all recordings and leaves out those that cannot be.
func (s *library) verify() error {
	kept := &library{faults: s.faults}
	err := s.faults.verify(len(s.files), func(i int) error {
		_, err := s.read(i)
		return err
	}, func(i int) {
		kept.say(s.letters.at(i), int(s.frames[i]))
		kept.files, kept.speakers = append(kept.files, s.files[i]), append(kept.speakers, s.speakers[i])
	})
	*s = *kept
	return err
}

// divide returns the recordings to train and to validate on.
func (s *library) divide(dir string, seed uint64) (train, valid []int32) {
	people := slices.Clone(s.speakers)
	slices.Sort(people)
	people = slices.Compact(people)
	held := map[string]bool{}
	for _, p := range shuffled(len(people), rng.NewKey(seed, 'p', 'a', 'r', 't'))[:(len(people)+3)/4] {
		held[people[p]] = true
	}
	named := false
	in := func(i int, set string) bool {
		below, err := filepath.Rel(dir, s.files[i])
		return err == nil && strings.HasPrefix(below, set)
	}
	for i := range s.files {
		named = named || in(i, "dev-")
	}
	for i := range s.files {
		switch {
		case named && in(i, "dev-"), !named && held[s.speakers[i]]:
			valid = append(valid, int32(i))
		case !named || in(i, "train-"):
			train = append(train, int32(i))
		}
	}
	return train, valid
}
