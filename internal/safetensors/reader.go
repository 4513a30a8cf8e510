package safetensors

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
)

// Reader reads tensors of one file by range. Its methods may be called from
// several goroutines if the underlying ReaderAt allows it.
type Reader struct {
	r        io.ReaderAt
	file     string
	base     int64 // where the data begins
	tensors  []Tensor
	index    map[string]int
	metadata map[string]string
}

// Open reads and checks the header of a file of size bytes. file names it in
// errors, all of which are of type *[Error].
func Open(r io.ReaderAt, size int64, file string) (*Reader, error) {
	fail := func(format string, args ...any) (*Reader, error) {
		return nil, &Error{File: file, Err: fmt.Errorf(format, args...)}
	}
	var length [8]byte
	if size < int64(len(length)) {
		return fail("%d bytes are too few for a header; the file is cut", size)
	}
	if err := readFull(r, length[:], 0); err != nil {
		return fail("read the header's length: %w", err)
	}
	n := binary.LittleEndian.Uint64(length[:])
	switch {
	case n > MaxHeader:
		return fail("the header claims %d bytes, the most is %d", n, MaxHeader)
	case int64(n) > size-8:
		return fail("the header claims %d bytes, the file has %d left; the file is cut or damaged", n, size-8)
	}
	raw := make([]byte, n)
	if err := readFull(r, raw, 8); err != nil {
		return fail("read the header: %w", err)
	}
	h, err := parseHeader(file, raw)
	if err != nil {
		return nil, err
	}
	base := 8 + int64(n)
	if err := checkTiling(file, h.tensors, size-base); err != nil {
		return nil, err
	}
	return &Reader{r: r, file: file, base: base, tensors: h.tensors, index: h.index, metadata: h.metadata}, nil
}

// Tensors lists the entries in the header's order. It must not be changed.
func (r *Reader) Tensors() []Tensor { return r.tensors }

// Metadata is the "__metadata__" object, nil if there is none. It must not be
// changed.
func (r *Reader) Metadata() map[string]string { return r.metadata }

// DataStart is the offset in the file at which the data begins.
func (r *Reader) DataStart() int64 { return r.base }

// Lookup finds a tensor by its name.
func (r *Reader) Lookup(name string) (Tensor, bool) {
	i, ok := r.index[name]
	if !ok {
		return Tensor{}, false
	}
	return r.tensors[i], true
}

// ReadAt fills p with the bytes of a tensor that begin offset bytes into it.
func (r *Reader) ReadAt(name string, p []byte, offset int64) error {
	t, ok := r.Lookup(name)
	if !ok {
		return &Error{File: r.file, Tensor: name, Err: errors.New("the file has no such tensor")}
	}
	if n := t.End - t.Begin; offset < 0 || offset > n || int64(len(p)) > n-offset {
		return &Error{File: r.file, Tensor: name, Err: fmt.Errorf("%d bytes at %d are beyond its %d bytes", len(p), offset, n)}
	}
	if err := readFull(r.r, p, r.base+t.Begin+offset); err != nil {
		return &Error{File: r.file, Tensor: name, Err: err}
	}
	return nil
}

// ReadFloat32 fills x with the elements of an F32 tensor that begin at element
// offset in row-major order.
func (r *Reader) ReadFloat32(name string, x []float32, offset int64) error {
	if t, ok := r.Lookup(name); ok && t.DType != F32 {
		return &Error{File: r.file, Tensor: name, Err: fmt.Errorf("its dtype is %s, not F32", t.DType)}
	}
	if offset < 0 || offset > math.MaxInt64/4 {
		return &Error{File: r.file, Tensor: name, Err: fmt.Errorf("element offset %d is out of range", offset)}
	}
	const chunk = 16 << 10 // elements
	buf := make([]byte, 4*min(len(x), chunk))
	for at := offset * 4; ; {
		n := min(len(x), chunk)
		if err := r.ReadAt(name, buf[:4*n], at); err != nil {
			return err
		}
		for i := range n {
			x[i] = math.Float32frombits(binary.LittleEndian.Uint32(buf[4*i:]))
		}
		if x = x[n:]; len(x) == 0 {
			return nil
		}
		at += int64(4 * n)
	}
}

// readFull is io.ReadFull for a ReaderAt: a short read is an error.
func readFull(r io.ReaderAt, p []byte, at int64) error {
	n, err := r.ReadAt(p, at)
	switch {
	case n == len(p):
		return nil
	case err == nil || errors.Is(err, io.EOF):
		return io.ErrUnexpectedEOF
	}
	return err
}
