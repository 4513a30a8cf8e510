package audio

import (
	"bytes"
	"crypto/md5"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// flacInfoSize is how many bytes describe a stream (RFC 9639, §8.2).
const flacInfoSize = 34

var (
	errReserved = errors.New("a code that the format reserves")
	errFrame    = fmt.Errorf("inside a frame, %w", ErrTruncated)
)

// measureFLAC reads the description of a stream that begins at offset at, and finds
// the frames behind its other blocks.
func measureFLAC(r io.ReaderAt, at, size int64) (info Info, part section, err error) {
	at += 4
	head := make([]byte, 4+flacInfoSize)
	for first, last := true, false; !last; first = false {
		need := head[:4]
		if first {
			need = head
		}
		if n, err := r.ReadAt(need, at); n < len(need) {
			if err == io.EOF {
				err = fmt.Errorf("inside its head, %w", ErrTruncated)
			}
			return info, part, err
		}
		length := int64(binary.BigEndian.Uint32(need) & 0xffffff)
		last = need[0]&0x80 != 0
		if first {
			if need[0]&0x7f != 0 || length != flacInfoSize {
				return info, part, errors.New("its head does not begin with the description of the stream")
			}
			info, part.sum = readFLACInfo(head[4:])
		}
		if at += 4 + length; at > size {
			return info, part, fmt.Errorf("inside its head, %w", ErrTruncated)
		}
	}
	if info.Rate == 0 || info.Bits < 4 {
		return info, part, fmt.Errorf("its head says %d Hz and %d bits", info.Rate, info.Bits)
	}
	part.from, part.to = at, size
	return info, part, nil
}

func readFLACInfo(b []byte) (info Info, sum [md5.Size]byte) {
	v := binary.BigEndian.Uint64(b[10:])
	info = Info{Format: "FLAC", Rate: int(v >> 44), Channels: int(v>>41&7) + 1, Bits: int(v>>36&31) + 1, Samples: int64(v & (1<<36 - 1))}
	if info.Samples == 0 {
		info.Samples = -1
	}
	copy(sum[:], b[18:])
	return info, sum
}

// decodeFLAC reads frames up to the number of samples that the head says, or to the
// end.
func (s *Sound) decodeFLAC(stream []byte, part section, most int) error {
	d := &flacDecoder{bitReader: bitReader{data: stream}, info: s.Info, most: most}
	for d.left() > 0 && (s.Samples < 0 || int64(d.samples) < s.Samples) {
		at := d.at / 8
		if err := d.frame(); err != nil {
			return fmt.Errorf("after %d samples, at offset %d: %w", d.samples, part.from+int64(at), err)
		}
	}
	if s.Samples >= 0 && int64(d.samples) != s.Samples {
		err := fmt.Errorf("%d samples, and its head says %d", d.samples, s.Samples)
		if int64(d.samples) < s.Samples {
			err = fmt.Errorf("%w: %w", err, ErrTruncated)
		}
		return err
	}
	s.Samples, s.Data = int64(d.samples), d.out
	if part.sum != [md5.Size]byte{} && s.md5() != part.sum {
		return errors.New("the samples' MD5 is not that in its head")
	}
	return nil
}

// md5 is over the samples as bytes, the low one first.
func (s *Sound) md5() (sum [md5.Size]byte) {
	h, width := md5.New(), (s.Bits+7)/8
	var b bytes.Buffer
	for i, v := range s.Data {
		for k := range width {
			b.WriteByte(byte(v >> (8 * k)))
		}
		if b.Len() > 1<<15 || i == len(s.Data)-1 {
			h.Write(b.Bytes())
			b.Reset()
		}
	}
	return [md5.Size]byte(h.Sum(nil))
}

// EncodeFLAC returns a stream of one channel of 16 bits, without compression.
func EncodeFLAC(rate int, samples []int16) []byte {
	const block = 4096
	s := Sound{Info: Info{Bits: 16}, Data: make([]int32, len(samples))}
	for i, v := range samples {
		s.Data[i] = int32(v)
	}
	sum := s.md5()
	b := []byte("fLaC\x80\x00\x00\x22")
	b = binary.BigEndian.AppendUint16(b, block)
	b = binary.BigEndian.AppendUint16(b, block)
	b = append(b, 0, 0, 0, 0, 0, 0) // sizes of frames, not said
	b = binary.BigEndian.AppendUint64(b, uint64(rate)<<44|15<<36|uint64(len(samples)))
	b = append(b, sum[:]...)
	for number := 0; number*block < len(samples); number++ {
		part := samples[number*block : min((number+1)*block, len(samples))]
		start := len(b)
		b = append(b, 0xff, 0xf8, 0x70, 0x08)  // 16 bits of block size follow; one channel; 16 bits
		b = append(b, string(rune(number))...) // at most 1<<21 blocks, two days
		b = binary.BigEndian.AppendUint16(b, uint16(len(part)-1))
		b = append(b, crc8(b[start:]), 0x02) // verbatim
		for _, v := range part {
			b = binary.BigEndian.AppendUint16(b, uint16(v))
		}
		b = binary.BigEndian.AppendUint16(b, crc16(b[start:]))
	}
	return b
}
