package data

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"optimus/internal/rng"
)

const (
	opSpeech      = "open LibriSpeech"
	doSpeech      = "unpack the archives of LibriSpeech (Panayotov et al., 2015) and give the folder LibriSpeech"
	speechFolder  = "LibriSpeech"
	speechList    = ".trans.txt"
	speechSeconds = 60 // of the longest recording; those of the real set have up to 35
	speechLetters = 1000
	speechLimit   = 64 << 20 // bytes of a file

	// Blank is the class of no letter, 0.
	Blank = "<blank>"
)

// alphabet are the letters of transcripts, from 1 on.
const alphabet = " 'ABCDEFGHIJKLMNOPQRSTUVWXYZ"

// OpenLibriSpeech reads recordings of books with what is said in them: folders
// SPEAKER/CHAPTER with files *.flac (16 kHz, one channel of 16 bits) and one
// *.trans.txt, a line "NAME TEXT" for each. They lie in dir, dir/LibriSpeech or
// folders like train-clean-100 in it. Training is on all of train-*, validation on
// all of dev-*; where there is no folder dev-*, the recordings of a quarter of the
// speakers, drawn by the seed, are for validation.
//
// Inputs of a batch, as long as its longest recording and transcript: [N] int32 how
// many windows a recording has; [N,T,161] float32, the spectrogram: the logarithm of the
// power at 0, 50, …, 8000 Hz in windows of 20 ms, every 10 ms, of mean 0 and variance 1
// over the recording; [N,U] int32 letters; [N] int32 how many they are. Padding is 0.
// The vocabulary is Blank, space, apostrophe, A to Z. Recordings are read when they are
// asked for.
func OpenLibriSpeech(dir string, o Options) (*Set, error) {
	dir, err := folder(opSpeech, dir, speechFolder, doSpeech)
	if err != nil {
		return nil, err
	}
	s := &library{}
	if err := filepath.WalkDir(dir, s.visit); err != nil {
		if KindOf(err) != "" {
			return nil, err
		}
		return nil, systemError(opSpeech, dir, err, doSpeech)
	}
	train, valid := s.divide(dir, o.Seed)
	if len(train) == 0 || len(valid) == 0 {
		return nil, &Error{Op: opSpeech, Path: dir, Kind: Empty, Detail: fmt.Sprintf("%d recordings to train on and %d to validate on", len(train), len(valid)), Do: doSpeech}
	}
	return newSpeech("LibriSpeech", &s.speech, s.read, train, valid), nil
}

// library are the recordings of a folder.
type library struct {
	speech
	files    []string
	speakers []string
}

// visit reads a list of transcripts.
func (s *library) visit(path string, d fs.DirEntry, err error) error {
	if err != nil || d.IsDir() || !strings.HasSuffix(path, speechList) {
		return err
	}
	text, err := readAll(opSpeech, path, 1<<20, doSpeech)
	if err != nil {
		return err
	}
	for line := range bytes.Lines(text) {
		name, words, _ := strings.Cut(strings.TrimSpace(string(line)), " ")
		if name == "" {
			continue
		}
		if err := s.say(words); err != nil {
			return &Error{Op: opSpeech, Path: path, Kind: BadFormat, Detail: fmt.Sprintf("%s: %v", name, err), Do: doSpeech}
		}
		file := filepath.Join(filepath.Dir(path), name+".flac")
		samples, err := measureFLAC(file)
		if err != nil {
			return err
		}
		s.frames = append(s.frames, int32(soundFrames(samples)))
		s.files = append(s.files, file)
		s.speakers = append(s.speakers, filepath.Base(filepath.Dir(filepath.Dir(path))))
	}
	return nil
}

// measureFLAC returns how many samples a file has, without decoding it.
func measureFLAC(path string) (int, error) {
	f, _, err := openSized(opSpeech, path, speechLimit, doSpeech)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	head := make([]byte, flacHeader)
	n, err := io.ReadFull(f, head)
	info, wrong := readFLACInfo(head[:n])
	fail := func(kind Kind, format string, args ...any) (int, error) {
		return 0, &Error{Op: opSpeech, Path: path, Kind: kind, Detail: fmt.Sprintf(format, args...), Do: "fetch it again, or convert it to FLAC of 16 kHz, one channel, 16 bits", Err: err}
	}
	switch {
	case wrong != nil:
		return fail(BadFormat, "%v", wrong)
	case info.rate != soundRate || info.channels != 1 || info.depth != 16:
		return fail(BadFormat, "%d Hz, %d channels, %d bits; want %d, 1, 16", info.rate, info.channels, info.depth, soundRate)
	case info.samples < soundWindow:
		return fail(Empty, "%d samples, want %d or more", info.samples, soundWindow)
	case info.samples > soundRate*speechSeconds:
		return fail(TooLarge, "%d samples, at most %d are read", info.samples, soundRate*speechSeconds)
	}
	return int(info.samples), nil
}

// read decodes recording i.
func (s *library) read(i int) ([]float32, error) {
	stream, err := os.ReadFile(s.files[i])
	if err != nil {
		return nil, systemError("read recording", s.files[i], err, "check the disk, or fetch the file again")
	}
	samples, err := decodeFLAC(stream)
	if err == nil && soundFrames(len(samples)) != int(s.frames[i]) {
		err = fmt.Errorf("%d samples, which is not what it had when the set was opened", len(samples))
	}
	if err != nil {
		return nil, &Error{Op: "read recording", Path: s.files[i], Kind: BadFormat, Detail: err.Error(), Do: "fetch it again", Err: err}
	}
	out := make([]float32, len(samples))
	for j, v := range samples {
		out[j] = float32(v) / (1 << 15)
	}
	return out, nil
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
