// Package audio reads and writes recordings: FLAC (RFC 9639) and RIFF WAVE.
//
// What a file is, its first bytes say, not its name. [Measure] reads a head alone and
// tells how long a recording is; [Decode] returns its samples, whole numbers as they
// were recorded. Both refuse what they do not know by its name, and what is damaged:
// of a FLAC stream every checksum is verified, that of each frame's head, that of each
// frame, and the MD5 of all samples. Neither allocates more than the caller allows,
// whatever a head claims.
//
// The FLAC decoder knows all of the format but streams within Ogg and streams whose
// rate, channels or bits change on the way. [EncodeFLAC] writes samples without
// compression.
package audio

import (
	"bytes"
	"errors"
	"fmt"
	"io"
)

// ErrTruncated is in the chain of an error about a recording that ends too early.
var ErrTruncated = errors.New("it ends too early")

// Info describes a recording.
type Info struct {
	Format   string // "FLAC" or "WAVE"
	Rate     int    // samples a second of each channel
	Channels int
	Bits     int   // of a sample, 4 to 32
	Samples  int64 // of each channel; -1 if its head does not say
}

// Sound is a recording.
type Sound struct {
	Info
	// Data has Samples times Channels whole numbers, the channels in turn, each from
	// -2^(Bits-1) to 2^(Bits-1)-1.
	Data []int32
}

// Floats returns the samples as numbers from -1 to 1: divided by 2^(Bits-1).
func (s *Sound) Floats() []float32 {
	scale := 1 / float64(int64(1)<<(s.Bits-1))
	out := make([]float32, len(s.Data))
	for i, v := range s.Data {
		out[i] = float32(float64(v) * scale)
	}
	return out
}

// Measure reads the head of a recording of size bytes.
func Measure(r io.ReaderAt, size int64) (Info, error) {
	info, _, err := measure(r, size)
	return info, err
}

// measure also returns where the frames of a FLAC stream, or the samples of a WAVE
// file, lie.
func measure(r io.ReaderAt, size int64) (Info, section, error) {
	start, err := skipID3(r, size)
	if err != nil {
		return Info{}, section{}, err
	}
	head := make([]byte, min(12, max(size-start, 0)))
	if _, err := r.ReadAt(head, start); err != nil && err != io.EOF {
		return Info{}, section{}, err
	}
	switch {
	case bytes.HasPrefix(head, []byte("fLaC")):
		return measureFLAC(r, start, size)
	case len(head) == 12 && string(head[:4]) == "RIFF" && string(head[8:]) == "WAVE":
		return measureWAVE(r, start+12, size)
	}
	return Info{}, section{}, fmt.Errorf("it is %s, want FLAC or WAVE", formatOf(head))
}

// section is a part of a file, and the MD5 that its samples should have.
type section struct {
	from, to int64
	sum      [16]byte
}

// skipID3 returns where a recording begins behind an ID3v2 tag, which some programs
// put before any format.
func skipID3(r io.ReaderAt, size int64) (int64, error) {
	head := make([]byte, 10)
	if size < 10 {
		return 0, nil
	}
	if _, err := r.ReadAt(head, 0); err != nil {
		return 0, err
	}
	if string(head[:3]) != "ID3" {
		return 0, nil
	}
	start := int64(10)
	for i, b := range head[6:] { // its length, seven bits a byte
		start += int64(b&0x7f) << (7 * (3 - i))
	}
	if head[5]&0x10 != 0 { // it has a foot
		start += 10
	}
	if start >= size {
		return 0, fmt.Errorf("its ID3 tag: %w", ErrTruncated)
	}
	return start, nil
}

// formatOf names what is given by mistake for a recording.
func formatOf(head []byte) string {
	for _, f := range []struct{ magic, name string }{
		{"OggS", "an Ogg file"},
		{"RIFX", "a RIFF file with the high byte first"},
		{"RF64", "an RF64 file"},
		{"RIFF", "a RIFF file of another kind"},
		{"FORM", "an AIFF file"},
		{"\xff\xfb", "an MP3 file"},
		{"\x1f\x8b", "a gzip file"},
		{"PK\x03\x04", "a zip file"},
		{"<", "a web page or other markup"},
	} {
		if bytes.HasPrefix(head, []byte(f.magic)) {
			return f.name
		}
	}
	return fmt.Sprintf("of no known format (begins with % x)", head[:min(len(head), 4)])
}

// Decode returns the samples of a recording of at most most samples a channel.
func Decode(file []byte, most int) (*Sound, error) {
	info, part, err := measure(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		return nil, err
	}
	if info.Samples > int64(most) {
		return nil, tooLong(info.Samples, most)
	}
	s := &Sound{Info: info}
	if info.Format == "FLAC" {
		err = s.decodeFLAC(file[part.from:part.to], part, most)
	} else {
		s.decodeWAVE(file[part.from:part.to])
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

func tooLong(samples int64, most int) error {
	return fmt.Errorf("%d samples or more, at most %d are read", samples, most)
}
