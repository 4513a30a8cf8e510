package wire

import (
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"net"
	"slices"
)

// Encoder turns frames into buffers for a vectored write. It is not safe for
// concurrent use.
type Encoder struct {
	// NoBodySum leaves the checksum over rows, values and text out: for streams
	// that never leave the machine. Any decoder reads both.
	NoBodySum bool

	max  int64
	swap bool // the machine is big-endian
	head [HeaderSize]byte
	bufs [4][]byte
}

// NewEncoder returns an encoder that refuses frames of more than max bytes;
// 0 stands for DefaultMaxFrame.
func NewEncoder(max int64) *Encoder {
	return &Encoder{max: orDefault(max), swap: !littleEndian()}
}

// Encode returns the bytes of f in up to four pieces: header, rows, values, text.
// They refer to f's own memory and to the encoder's, so they are valid until f
// changes or Encode is called again. The error wraps ErrTooLarge or ErrInvalid;
// then nothing was encoded.
func (e *Encoder) Encode(f *Frame) (net.Buffers, error) {
	if err := f.Check(e.max); err != nil {
		return nil, err
	}
	rows, values := f.Rows, f.Values
	if e.swap {
		rows, values = slices.Clone(rows), slices.Clone(values)
		swapWords(rows)
		swapWords(values)
	}
	bufs := append(e.bufs[:0], e.head[:])
	for _, part := range [...][]byte{bytesOf(rows), bytesOf(values), []byte(f.Text)} {
		if len(part) > 0 {
			bufs = append(bufs, part)
		}
	}
	sum := uint32(noSum)
	if !e.NoBodySum {
		for _, part := range bufs[1:] {
			sum = crc32.Update(sum, sumTable(), part)
		}
		sum = sent(sum)
	}
	putHeader(&e.head, &f.Header, extent{
		rows:   uint64(len(f.Rows)),
		values: uint64(len(f.Values)),
		text:   uint16(len(f.Text)),
		sum:    sum,
	})
	return bufs, nil
}

// WriteTo writes f to w, by one vectored write where w is a network connection.
func (e *Encoder) WriteTo(w io.Writer, f *Frame) (int64, error) {
	bufs, err := e.Encode(f)
	if err != nil {
		return 0, err
	}
	n, err := bufs.WriteTo(w)
	if err != nil {
		return n, fmt.Errorf("write %s frame: %w", f.Kind, err)
	}
	return n, nil
}

func orDefault(max int64) int64 {
	if max <= 0 {
		return DefaultMaxFrame
	}
	return min(max, math.MaxInt)
}

func tooLarge(op string, h *Header, size string, max int64) error {
	return fmt.Errorf("%s %s frame of block %d, offset %d: %w: %s bytes, limit %d; raise MaxFrame on both sides or cut smaller pieces",
		op, h.Kind, h.Block, h.Offset, ErrTooLarge, size, max)
}
