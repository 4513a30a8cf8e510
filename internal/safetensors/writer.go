package safetensors

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"unicode/utf8"
)

// Writer writes one file as a stream: the header at once, then the tensors'
// elements in the order in which they were declared.
type Writer struct {
	w       io.Writer
	file    string
	tensors []Tensor
	size    int64  // of the data
	at      int64  // data bytes written
	buf     []byte // for converting elements
	err     error
}

// NewWriter checks the tensors and writes the header. file names the file in
// errors. The tensors lie in the file in the given order; put wide types first
// where alignment matters.
func NewWriter(w io.Writer, file string, tensors []Tensor, metadata map[string]string) (*Writer, error) {
	laid, size, err := layOut(file, tensors)
	if err != nil {
		return nil, err
	}
	header, err := encodeHeader(file, laid, metadata)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(header); err != nil {
		return nil, &Error{File: file, Err: err}
	}
	return &Writer{w: w, file: file, tensors: laid, size: size}, nil
}

// FileSize is the size in bytes of the file that NewWriter would write.
func FileSize(file string, tensors []Tensor, metadata map[string]string) (int64, error) {
	laid, size, err := layOut(file, tensors)
	if err != nil {
		return 0, err
	}
	header, err := encodeHeader(file, laid, metadata)
	return size + int64(len(header)), err
}

// layOut returns the tensors with their ranges, one after the other.
func layOut(file string, tensors []Tensor) ([]Tensor, int64, error) {
	laid := make([]Tensor, len(tensors))
	names := make(map[string]bool, len(tensors))
	at := int64(0)
	for i, t := range tensors {
		n, err := t.Bytes()
		switch {
		case t.Name == metadataKey:
			err = errors.New("the name is reserved")
		case !utf8.ValidString(t.Name):
			err = errors.New("the name is not UTF-8")
		case names[t.Name]:
			err = errors.New("the name is declared twice")
		case err == nil && n > math.MaxInt64-MaxHeader-8-at:
			err = errors.New("the file would exceed 64-bit offsets")
		}
		if err != nil {
			return nil, 0, &Error{File: file, Tensor: t.Name, Err: err}
		}
		names[t.Name] = true
		t.Begin, t.End = at, at+n
		laid[i], at = t, t.End
	}
	return laid, at, nil
}

const metadataKey = "__metadata__"

// encodeHeader returns length and header, padded with spaces so that the data
// begins at a multiple of 8 bytes.
func encodeHeader(file string, tensors []Tensor, metadata map[string]string) ([]byte, error) {
	b := make([]byte, 8, 8+64*(len(tensors)+1))
	b = append(b, '{')
	if len(metadata) > 0 {
		for k, v := range metadata {
			if !utf8.ValidString(k) || !utf8.ValidString(v) {
				return nil, &Error{File: file, Err: fmt.Errorf("metadata %q is not UTF-8", k)}
			}
		}
		m, err := json.Marshal(metadata)
		if err != nil {
			return nil, &Error{File: file, Err: err}
		}
		b = append(append(b, `"`+metadataKey+`":`...), m...)
	}
	for i := range tensors {
		if len(b) > 9 {
			b = append(b, ',')
		}
		b = appendEntry(b, &tensors[i])
	}
	b = append(b, '}')
	for len(b)%8 != 0 {
		b = append(b, ' ')
	}
	if n := len(b) - 8; n > MaxHeader {
		return nil, &Error{File: file, Err: fmt.Errorf(
			"%d tensors need a header of %d bytes, readers accept %d; write them to several files", len(tensors), n, MaxHeader)}
	}
	binary.LittleEndian.PutUint64(b, uint64(len(b)-8))
	return b, nil
}

func appendEntry(b []byte, t *Tensor) []byte {
	name, _ := json.Marshal(t.Name) // strings always encode
	b = append(b, name...)
	b = append(b, `:{"dtype":"`...)
	b = append(b, t.DType...)
	b = append(b, `","shape":[`...)
	for i, d := range t.Shape {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, d, 10)
	}
	b = append(b, `],"data_offsets":[`...)
	b = strconv.AppendInt(b, t.Begin, 10)
	b = append(b, ',')
	b = strconv.AppendInt(b, t.End, 10)
	return append(b, "]}"...)
}

// Write appends raw data bytes, little-endian elements of the declared tensors.
func (w *Writer) Write(p []byte) (int, error) {
	if w.err != nil {
		return 0, w.err
	}
	if int64(len(p)) > w.size-w.at {
		w.err = &Error{File: w.file, Err: fmt.Errorf("%d bytes follow, the declared tensors have %d left", len(p), w.size-w.at)}
		return 0, w.err
	}
	n, err := w.w.Write(p)
	w.at += int64(n)
	if err != nil {
		w.err = &Error{File: w.file, Tensor: w.current(), Err: err}
	}
	return n, w.err
}

// WriteFloat32 appends elements of F32 tensors.
func (w *Writer) WriteFloat32(x []float32) error {
	const chunk = 16 << 10 // elements
	for len(x) > 0 {
		n := min(len(x), chunk)
		w.buf = AppendFloat32(w.buf[:0], x[:n])
		if _, err := w.Write(w.buf); err != nil {
			return err
		}
		x = x[n:]
	}
	return nil
}

// Close checks that all declared bytes were written. The underlying writer stays
// open.
func (w *Writer) Close() error {
	if w.err == nil && w.at != w.size {
		w.err = &Error{File: w.file, Tensor: w.current(), Err: fmt.Errorf("%d of %d data bytes were written", w.at, w.size)}
	}
	return w.err
}

// current is the tensor that the next byte belongs to.
func (w *Writer) current() string {
	for i := range w.tensors {
		if w.tensors[i].End > w.at {
			return w.tensors[i].Name
		}
	}
	return ""
}

// AppendFloat32 appends the little-endian bytes of x.
func AppendFloat32(b []byte, x []float32) []byte {
	for _, v := range x {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	}
	return b
}
