package audio

import (
	"encoding/binary"
	"fmt"
	"io"
)

// Format codes of RIFF WAVE.
const (
	wavePCM        = 1
	waveExtensible = 0xfffe
	// Programs that write to a pipe claim this many bytes, or all ones.
	waveUnknown = 0x7ffff000
)

// measureWAVE walks the chunks from offset at on, up to the one of samples.
func measureWAVE(r io.ReaderAt, at, size int64) (info Info, part section, err error) {
	head := make([]byte, 8)
	for {
		if at+8 > size {
			return info, part, fmt.Errorf("there is no data chunk: %w", ErrTruncated)
		}
		if _, err := r.ReadAt(head, at); err != nil {
			return info, part, err
		}
		name, length := string(head[:4]), int64(binary.LittleEndian.Uint32(head[4:]))
		at += 8
		switch {
		case name == "data" && info.Rate == 0:
			return info, part, fmt.Errorf("there is no fmt chunk before the samples")
		case name == "data":
			part, err = dataChunk(&info, at, length, size)
			return info, part, err
		case at+length > size:
			return info, part, fmt.Errorf("chunk %q of %d bytes at offset %d of %d: %w", name, length, at-8, size, ErrTruncated)
		case name == "fmt ":
			format := make([]byte, min(length, 40))
			if _, err := r.ReadAt(format, at); err != nil {
				return info, part, err
			}
			if info, err = readWAVEFormat(format); err != nil {
				return info, part, err
			}
		}
		at += length + length%2
	}
}

// dataChunk places the samples.
func dataChunk(info *Info, at, length, size int64) (section, error) {
	if length >= waveUnknown { // of a stream: all that is there
		length = size - at
	}
	if at+length > size {
		return section{}, fmt.Errorf("%d of %d bytes of samples: %w", size-at, length, ErrTruncated)
	}
	frame := int64(info.Channels * info.Bits / 8)
	if length%frame != 0 {
		return section{}, fmt.Errorf("%d bytes of samples, want a multiple of %d: %w", length, frame, ErrTruncated)
	}
	info.Samples = length / frame
	return section{from: at, to: at + length}, nil
}

// readWAVEFormat reads a chunk fmt.
func readWAVEFormat(b []byte) (Info, error) {
	if len(b) < 16 {
		return Info{}, fmt.Errorf("its fmt chunk has %d bytes, want 16 or more", len(b))
	}
	code := binary.LittleEndian.Uint16(b)
	info := Info{
		Format:   "WAVE",
		Channels: int(binary.LittleEndian.Uint16(b[2:])),
		Rate:     int(binary.LittleEndian.Uint32(b[4:])),
		Bits:     int(binary.LittleEndian.Uint16(b[14:])),
	}
	if code == waveExtensible && len(b) >= 26 {
		code = binary.LittleEndian.Uint16(b[24:]) // the sub-format's
	}
	if code != wavePCM {
		return Info{}, fmt.Errorf("its format code is %d%s, at %d Hz; want %d, whole numbers (PCM)", code, waveCode(code), info.Rate, wavePCM)
	}
	frame := int(binary.LittleEndian.Uint16(b[12:]))
	if info.Channels < 1 || info.Rate < 1 || info.Bits < 8 || info.Bits > 32 || info.Bits%8 != 0 || frame != info.Channels*info.Bits/8 {
		return Info{}, fmt.Errorf("%d channels, %d Hz, %d bits, %d bytes for a sample of all channels, which no such file has", info.Channels, info.Rate, info.Bits, frame)
	}
	return info, nil
}

// waveCode names format codes other than PCM.
func waveCode(code uint16) string {
	switch code {
	case 2:
		return " (ADPCM)"
	case 3:
		return " (floating point)"
	case 6:
		return " (A-law)"
	case 7:
		return " (mu-law)"
	case 0x55:
		return " (MP3)"
	}
	return ""
}

// decodeWAVE reads whole numbers, the low byte first; those of one byte have no sign.
func (s *Sound) decodeWAVE(b []byte) {
	width := s.Bits / 8
	s.Data = make([]int32, len(b)/width)
	for i := range s.Data {
		v := int32(0)
		for k, c := range b[i*width : (i+1)*width] {
			v |= int32(c) << (32 - s.Bits + 8*k)
		}
		if width == 1 {
			v ^= -1 << 31
		}
		s.Data[i] = v >> (32 - s.Bits)
	}
}
