package data

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"optimus/data/audio"
)

const (
	opRecording    = "read recording"
	doRecording    = "fetch it again"
	recordingLimit = 64 << 20       // bytes of a file
	longestSound   = soundRate * 60 // samples; the longest of LibriSpeech has 35 s
)

// isRecording goes by a file's name.
func isRecording(name string) bool {
	return slices.Contains([]string{".flac", ".wav"}, strings.ToLower(filepath.Ext(name)))
}

// measureRecording returns how many samples a file has, from its head where that says
// it.
func measureRecording(path string) (int, error) {
	f, size, err := openSized(opSpeech, path, recordingLimit, doSpeech)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	info, err := audio.Measure(f, size)
	if err != nil {
		return 0, badRecording(opSpeech, path, err)
	}
	fail := func(kind Kind, format string, args ...any) (int, error) {
		return 0, &Error{Op: opSpeech, Path: path, Kind: kind, Detail: fmt.Sprintf(format, args...), Do: "convert it to one channel of 16 kHz, or fetch it again"}
	}
	if info.Rate != soundRate || info.Channels != 1 {
		return fail(BadFormat, "%d Hz, channels: %d; want %d, 1", info.Rate, info.Channels, soundRate)
	}
	if info.Samples < 0 { // written to a pipe
		s, err := readRecording(path)
		if err != nil {
			return 0, err
		}
		info.Samples = s.Samples
	}
	switch {
	case info.Samples < soundWindow:
		return fail(Empty, "%d samples, want %d or more, which is a window", info.Samples, soundWindow)
	case info.Samples > longestSound:
		return fail(TooLarge, "%d samples, at most %d are read", info.Samples, longestSound)
	}
	return int(info.Samples), nil
}

// readRecording decodes a file.
func readRecording(path string) (*audio.Sound, error) {
	file, err := readSized(opRecording, path, recordingLimit, doRecording)
	if err != nil {
		return nil, err
	}
	sound, err := audio.Decode(file, longestSound)
	if err != nil {
		return nil, badRecording(opRecording, path, err)
	}
	return sound, nil
}

func badRecording(op, path string, err error) error {
	e := &Error{Op: op, Path: path, Kind: BadFormat, Detail: err.Error(), Do: doRecording, Err: err}
	if errors.Is(err, audio.ErrTruncated) {
		e.Kind = Truncated
	}
	return e
}
