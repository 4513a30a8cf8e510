package data

import (
	"bytes"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"optimus/data/source"
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
	return openAt(opSpeech, dir, func(dir source.Path) (*Set, error) { return openLibriSpeech(dir, o, &faults{}) })
}

func openLibriSpeech(dir source.Path, o Options, f *faults) (*Set, error) {
	f.op, f.limit = opSpeech, max(f.limit, o.Skip)
	if err := checkSkip(opSpeech, o.Skip); err != nil {
		return nil, err
	}
	dir, err := folder(opSpeech, dir, speechFolder, doSpeech)
	if err != nil {
		return nil, err
	}
	s := &library{faults: f, dir: dir}
	if err := s.walk(dir); err != nil {
		return nil, err
	}
	if f.verifies() {
		if err := s.verify(); err != nil {
			return nil, err
		}
	}
	train, valid := s.divide(o.Seed)
	if len(train) == 0 || len(valid) == 0 {
		return nil, &Error{Op: opSpeech, Path: dir.String(), Kind: Empty, Detail: fmt.Sprintf("%d recordings to train on and %d to validate on", len(train), len(valid)), Do: doSpeech}
	}
	return newSpeech("LibriSpeech", &s.speech, dir.Width(), s.read, train, valid).without(f), nil
}

// recordingFile is one recording of a library.
type recordingFile struct {
	path  source.Path
	stamp source.Stamp
}

// library are the recordings of a folder.
type library struct {
	speech
	faults   *faults
	dir      source.Path
	files    []recordingFile
	speakers []string
}

// walk reads the folders below dir, in the order of their names.
func (s *library) walk(dir source.Path) error {
	entries, err := dir.ReadDir()
	if err != nil {
		return systemError(opSpeech, dir.String(), err, doSpeech)
	}
	var lists []source.Path
	recordings := map[string]recordingFile{} // by name without its end
	for _, e := range entries {
		name, file := e.Name(), dir.Join(e.Name())
		stem := strings.TrimSuffix(name, path.Ext(name))
		var err error
		switch {
		case strings.HasPrefix(name, "."):
		case e.IsDir():
			err = s.walk(file)
		case strings.HasSuffix(name, speechList):
			lists = append(lists, file)
		case !isRecording(name):
		case recordings[stem] != recordingFile{}:
			err = s.faults.tell(&Error{Op: opSpeech, Path: file.String(), Kind: BadFormat, Detail: "there is " + recordings[stem].path.Base() + " as well", Do: "remove one of them"})
		default:
			recordings[stem], err = stampRecording(file, e)
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
		if err := s.faults.tell(&Error{Op: opSpeech, Path: recordings[name].path.String(), Kind: NotFound, Detail: "no *" + speechList + " beside it has a line for " + name, Do: doSpeech}); err != nil {
			return err
		}
	}
	return nil
}

// stampRecording notes what a recording is as it is listed.
func stampRecording(file source.Path, e fs.DirEntry) (r recordingFile, err error) {
	info, err := e.Info()
	if err == nil && isLink(e) {
		info, err = file.Stat()
	}
	if err != nil {
		return r, systemError(opSpeech, file.String(), err, doSpeech)
	}
	return recordingFile{file, source.StampOf(info)}, nil
}

// readList reads a list of transcripts, and takes the recordings that it names from
// those of its folder.
func (s *library) readList(path source.Path, recordings map[string]recordingFile) error {
	text, err := readSized(opSpeech, path, speechListLimit, doSpeech)
	if err == nil {
		text, err = plainText(opSpeech, path.String(), text)
	}
	if err != nil {
		return s.faults.tell(err)
	}
	n := 0
	var said []transcribed
	for line := range bytes.Lines(text) {
		n++
		words := strings.Fields(string(line))
		if len(words) == 0 {
			continue
		}
		file, ok := recordings[words[0]]
		delete(recordings, words[0])
		fail := func(kind Kind, format string, args ...any) error {
			return s.faults.tell(&Error{Op: opSpeech, Path: path.String(), Kind: kind, Detail: fmt.Sprintf("line %d: ", n) + fmt.Sprintf(format, args...), Do: doSpeech})
		}
		if !ok {
			if err := fail(NotFound, "there is no file %s.flac or .wav beside it that no line before has", words[0]); err != nil {
				return err
			}
			continue
		}
		letters, err := spellOut(strings.Join(words[1:], " "))
		if err != nil {
			if err := fail(BadFormat, "%s has %v", file.path.Base(), err); err != nil {
				return err
			}
			if s.faults.limit == unlimited { // that is one fault; the recording may have another
				_, err := readRecording(file)
				if err := s.faults.need(err); err != nil {
					return err
				}
			}
			continue
		}
		said = append(said, transcribed{recordingFile: file, letters: letters})
	}
	err = inParallel(path.Width(), len(said), func(i int) error {
		u := &said[i]
		u.samples, u.wrong = measureRecording(u.recordingFile)
		return nil
	})
	for _, u := range said {
		if u.wrong == nil {
			u.wrong = s.add(u.recordingFile, u.letters, u.samples)
		}
		if err := s.faults.tell(u.wrong); err != nil {
			return err
		}
	}
	return err
}

// transcribed is a recording with what is said in it.
type transcribed struct {
	recordingFile
	letters []int32
	samples int
	wrong   error // why the recording has no number of samples
}

// add adds a recording of so many samples and its text.
func (s *library) add(file recordingFile, letters []int32, samples int) error {
	frames := soundFrames(samples)
	if least := leastFrames(letters); frames < least {
		return &Error{Op: opSpeech, Path: file.path.String(), Kind: BadFormat, Detail: fmt.Sprintf("%d windows of sound, and a text that takes %d or more", frames, least), Do: "compare the recording with its text"}
	}
	s.keep(file, letters, frames)
	return nil
}

func (s *library) keep(file recordingFile, letters []int32, frames int) {
	s.say(letters, frames)
	s.files = append(s.files, file)
	s.versions = append(s.versions, file.stamp.Version)
	s.speakers = append(s.speakers, file.path.Dir().Dir().Base())
}

// read decodes recording i.
func (s *library) read(i int) ([]float32, error) {
	sound, err := readRecording(s.files[i])
	if err != nil {
		return nil, err
	}
	if soundFrames(int(sound.Samples)) != int(s.frames[i]) {
		return nil, badRecording(opRecording, s.files[i].path, fmt.Errorf("%d samples, which is not what it had when the set was opened", sound.Samples))
	}
	return sound.Floats(), nil
}

// verify decodes all recordings and leaves out those that cannot be.
func (s *library) verify() error {
	kept := &library{faults: s.faults, dir: s.dir}
	err := s.faults.verify(s.dir.Width(), len(s.files), func(i int) error {
		_, err := s.read(i)
		return err
	}, func(i int) {
		kept.keep(s.files[i], s.letters.at(i), int(s.frames[i]))
	})
	*s = *kept
	return err
}

// divide returns the recordings to train and to validate on.
func (s *library) divide(seed uint64) (train, valid []int32) {
	people := slices.Clone(s.speakers)
	slices.Sort(people)
	people = slices.Compact(people)
	held := map[string]bool{}
	for _, p := range shuffled(len(people), rng.NewKey(seed, 'p', 'a', 'r', 't'))[:(len(people)+3)/4] {
		held[people[p]] = true
	}
	named := false
	in := func(i int, set string) bool {
		below, ok := s.files[i].path.Below(s.dir)
		return ok && strings.HasPrefix(below, set)
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
