package data

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"optimus/data/audio"
	"optimus/data/source"
)

const (
	opRecording    = "read recording"
	doRecording    = "fetch it again"
	recordingLimit = 64 << 20       // bytes of a file
	longestSound   = soundRate * 60 // samples; the longest of LibriSpeech has 35 s
)

// isRecording goes by a file's name.
func isRecording(name string) bool {
	return slices.Contains([]string{".flac", ".wav"}, strings.ToLower(path.Ext(name)))
}

// measureRecording returns how many samples a file has, from its head where that says
// it.
func measureRecording(file recordingFile) (int, error) {
	path := file.path
	f, err := path.OpenStamped(file.stamp)
	if err != nil {
		return 0, openError(opSpeech, path, err, doSpeech)
	}
	var info audio.Info
	err = readFile(opSpeech, path, f, recordingLimit, doSpeech, func(f fileReader, size int64) (err error) {
		if info, err = audio.Measure(f, size); err != nil {
			return badRecording(opSpeech, path, err)
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	fail := func(kind Kind, format string, args ...any) (int, error) {
		return 0, &Error{Op: opSpeech, Path: path.String(), Kind: kind, Detail: fmt.Sprintf(format, args...), Do: "convert it to one channel of 16 kHz, or fetch it again"}
	}
	if info.Rate != soundRate || info.Channels != 1 {
		return fail(BadFormat, "%d Hz, channels: %d; want %d, 1", info.Rate, info.Channels, soundRate)
	}
	if info.Samples < 0 { // written to a pipe
		s, err := readRecording(file)
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
func readRecording(file recordingFile) (*audio.Sound, error) {
	content, err := readStamped(opRecording, file.path, file.stamp, recordingLimit, doRecording)
	if err != nil {
		return nil, err
	}
	sound, err := audio.Decode(content, longestSound)
	if err != nil {
		return nil, badRecording(opRecording, file.path, err)
	}
	return sound, nil
}

func badRecording(op string, path source.Path, err error) error {
	e := &Error{Op: op, Path: path.String(), Kind: BadFormat, Detail: err.Error(), Do: doRecording, Err: err}
	if errors.Is(err, audio.ErrTruncated) {
		e.Kind = Truncated
	}
	return e
}
