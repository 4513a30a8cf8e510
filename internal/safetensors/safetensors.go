// Package safetensors reads and writes tensors in the safetensors format.
//
// # Format
//
// A file is an 8-byte little-endian header length N, N bytes of JSON, and the
// tensors' bytes, row-major and little-endian, one after the other without holes
// or overlaps. The header maps each name to
//
//	{"dtype":"F32","shape":[2,3],"data_offsets":[begin,end]}
//
// with offsets counted from the end of the header; the key "__metadata__" may map
// strings to strings. The header begins with "{" and may end with spaces.
//
// # Trust
//
// A header is input from outside. [Open] checks all of it against the file's
// size before any tensor is read: lengths, types, shapes (the product of
// dimensions may not overflow), ranges, and that the ranges tile the data exactly.
// Nothing is allocated by a number that the file merely claims. [NewWriter]
// refuses what Open would refuse, so everything written can be read back, here and
// by the reference implementation, whose limit on headers it keeps.
//
// Both sides stream: neither holds more than the header in memory.
package safetensors

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"

	"optimus/internal/failure"
)

// MaxHeader is the largest header in bytes, the reference implementation's limit.
const MaxHeader = 100_000_000

// MaxRank is the largest number of dimensions.
const MaxRank = 64

// DType is an element type, by its name in the format.
type DType string

// The element types. [Reader.ReadFloat32] reads F32; the rest are reached as bytes.
const (
	BOOL   DType = "BOOL"
	U8     DType = "U8"
	I8     DType = "I8"
	F8E5M2 DType = "F8_E5M2"
	F8E4M3 DType = "F8_E4M3"
	U16    DType = "U16"
	I16    DType = "I16"
	F16    DType = "F16"
	BF16   DType = "BF16"
	U32    DType = "U32"
	I32    DType = "I32"
	F32    DType = "F32"
	U64    DType = "U64"
	I64    DType = "I64"
	F64    DType = "F64"
)

// Size is the bytes of one element, or 0 for an unknown type.
func (d DType) Size() int {
	switch d {
	case BOOL, U8, I8, F8E5M2, F8E4M3:
		return 1
	case U16, I16, F16, BF16:
		return 2
	case U32, I32, F32:
		return 4
	case U64, I64, F64:
		return 8
	}
	return 0
}

// Tensor is one entry of the header. Begin and End are bytes from the start of
// the data; a writer sets them.
type Tensor struct {
	Name       string
	DType      DType
	Shape      []int64
	Begin, End int64
}

// Bytes is the size that type and shape give, checked for overflow.
func (t *Tensor) Bytes() (int64, error) {
	n := uint64(t.DType.Size())
	if n == 0 {
		return 0, fmt.Errorf("unknown dtype %q", t.DType)
	}
	if len(t.Shape) > MaxRank {
		return 0, fmt.Errorf("%d dimensions; the most is %d", len(t.Shape), MaxRank)
	}
	overflow, zero := false, false
	for _, d := range t.Shape {
		if d < 0 {
			return 0, fmt.Errorf("dimension %d in shape %v is negative", d, t.Shape)
		}
		if d == 0 {
			zero = true
			continue
		}
		hi, lo := bits.Mul64(n, uint64(d))
		overflow = overflow || hi != 0 || lo > 1<<63-1
		n = lo
	}
	switch {
	case overflow:
		return 0, fmt.Errorf("shape %v of %s overflows 64 bits", t.Shape, t.DType)
	case zero:
		return 0, nil
	}
	return int64(n), nil
}

// Error says what is wrong with a file. Tensor is empty where the fault is not
// in one tensor's entry.
type Error struct {
	File   string
	Tensor string
	Err    error
}

func (e *Error) Error() string {
	if e.Tensor == "" {
		return fmt.Sprintf("safetensors %s: %v", e.File, e.Err)
	}
	return fmt.Sprintf("safetensors %s: tensor %q: %v", e.File, e.Tensor, e.Err)
}

// Kind is the failure's kind in the project's closed list: the cause's where it
// has one, else "corrupt", since what Open refuses was not written by NewWriter.
func (e *Error) Kind() string {
	if k := failure.KindOf(e.Err); k != failure.Internal {
		return string(k)
	}
	return string(failure.Corrupt)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// checkTiling checks sizes against ranges and that the ranges, in any order,
// cover 0…size exactly.
func checkTiling(file string, tensors []Tensor, size int64) error {
	order := make([]*Tensor, len(tensors))
	for i := range tensors {
		t := &tensors[i]
		order[i] = t
		fail := func(format string, args ...any) error {
			return &Error{File: file, Tensor: t.Name, Err: fmt.Errorf(format, args...)}
		}
		want, err := t.Bytes()
		switch {
		case err != nil:
			return fail("%w", err)
		case t.Begin < 0 || t.End < t.Begin:
			return fail("range [%d, %d) is not a range", t.Begin, t.End)
		case t.End > size:
			return fail("range [%d, %d) ends beyond the file's %d data bytes; the file is cut or damaged", t.Begin, t.End, size)
		case t.End-t.Begin != want:
			return fail("range [%d, %d) has %d bytes, %s %v needs %d", t.Begin, t.End, t.End-t.Begin, t.DType, t.Shape, want)
		}
	}
	slices.SortStableFunc(order, func(a, b *Tensor) int {
		if a.Begin != b.Begin {
			return cmp.Compare(a.Begin, b.Begin)
		}
		return cmp.Compare(a.End, b.End)
	})
	at, last := int64(0), ""
	for _, t := range order {
		switch {
		case t.Begin < at:
			return &Error{file, t.Name, fmt.Errorf("range [%d, %d) overlaps tensor %q, which ends at %d", t.Begin, t.End, last, at)}
		case t.Begin > at:
			return &Error{file, t.Name, fmt.Errorf("%d bytes before range [%d, %d) belong to no tensor", t.Begin-at, t.Begin, t.End)}
		}
		at, last = t.End, t.Name
	}
	if at != size {
		return &Error{file, last, fmt.Errorf("%d bytes after it belong to no tensor", size-at)}
	}
	return nil
}
