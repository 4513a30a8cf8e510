package wire

import (
	"bufio"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
)

const (
	readBuffer = 64 << 10  // for headers and small bodies; larger reads go past it
	readChunk  = 256 << 10 // summed right after it was read, while it is in the cache
)

// Decoder reads frames from a stream. It is not safe for concurrent use.
type Decoder struct {
	r    *bufio.Reader
	max  int64
	pool *Pool
	swap bool // the machine is big-endian
	head [HeaderSize]byte
}

// NewDecoder returns a decoder of the frames in r that refuses frames of more
// than max bytes, before it allocates for them; 0 stands for DefaultMaxFrame.
// The frames' memory comes from pool; nil allocates each.
func NewDecoder(r io.Reader, max int64, pool *Pool) *Decoder {
	return &Decoder{r: bufio.NewReaderSize(r, readBuffer), max: orDefault(max), pool: pool, swap: !littleEndian()}
}

// Decode returns the next frame, whose Values are aligned to 64 bytes. The error
// is io.EOF where the stream ends between two frames; it wraps
// io.ErrUnexpectedEOF where it ends within one, one of this package's errors
// where the bytes are no acceptable frame, and else the stream's error. After an
// error the stream cannot be read further.
func (d *Decoder) Decode() (*Frame, error) {
	h, e, err := d.header()
	if err == io.EOF {
		return nil, err
	}
	if err != nil {
		return nil, fmt.Errorf("read frame: %w", err)
	}
	if _, ok := e.length(d.max); !ok {
		return nil, tooLarge("read", &h, fmt.Sprintf("%d rows, %d values and %d text", e.rows, e.values, e.text), d.max)
	}
	f := &Frame{Header: h}
	if err := d.body(f, e); err != nil {
		f.Release()
		return nil, fmt.Errorf("read %s frame of block %d, offset %d: %w", h.Kind, h.Block, h.Offset, err)
	}
	return f, nil
}

// header reads a header. Magic and version are looked at first, so that a peer
// that speaks something else is refused although it may never send 128 bytes.
func (d *Decoder) header() (Header, extent, error) {
	start, err := d.r.Peek(atVersion + 1)
	if err != nil {
		if err == io.EOF && len(start) > 0 {
			err = io.ErrUnexpectedEOF
		}
		return Header{}, extent{}, err
	}
	if err := checkStart(start); err != nil {
		return Header{}, extent{}, err
	}
	if _, err := io.ReadFull(d.r, d.head[:]); err != nil {
		return Header{}, extent{}, err
	}
	return parseHeader(&d.head)
}

// body reads what follows the header into f.
func (d *Decoder) body(f *Frame, e extent) error {
	rows, values := int(e.rows), int(e.values)
	if rows+values > 0 {
		at := (rows + alignWords - 1) / alignWords * alignWords
		f.mem = d.pool.get(at + values)
		words := f.mem.words
		if rows > 0 {
			f.Rows = wordsOf[int32](words[:rows:rows])
		}
		if values > 0 {
			f.Values = words[at : at+values : at+values]
		}
	}
	text := make([]byte, e.text)
	var sum uint32
	for _, part := range [...][]byte{bytesOf(f.Rows), bytesOf(f.Values), text} {
		for len(part) > 0 {
			n, err := d.r.Read(part[:min(len(part), readChunk)])
			if e.sum != noSum {
				sum = crc32.Update(sum, sumTable(), part[:n])
			}
			part = part[n:]
			if err != nil && len(part) > 0 {
				return unexpected(err)
			}
		}
	}
	if e.sum != noSum && sent(sum) != e.sum {
		return ErrChecksum
	}
	if d.swap {
		swapWords(f.Rows)
		swapWords(f.Values)
	}
	f.Text = string(text)
	return nil
}

// unexpected turns the end of a stream into the error of an end within a frame.
func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
