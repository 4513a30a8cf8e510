package data

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"io"
	"math"
)

// digester is a Split that can hash its own compact form, which is quicker
// than to hash what Fill makes of it.
type digester interface{ digest(w io.Writer) }

// Fingerprint returns the sha256, in hex, of all that training depends on: the
// classes, the vocabularies, and the examples of both splits in their order. A
// checkpoint keeps it, so that a job which resumes on other data is refused.
// It reads the whole set: call it once.
func (s *Set) Fingerprint() string {
	h := sha256.New()
	writeStrings(h, s.Classes)
	writeStrings(h, s.Vocabulary)
	if len(s.Target) > 0 {
		writeStrings(h, s.Target)
	}
	writeInts(h, s.SequenceLength)
	for _, split := range []Split{s.Train, s.Valid} {
		writeInts(h, split.Len())
		if d, ok := split.(digester); ok {
			d.digest(h)
		} else {
			digestByFill(h, split)
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}

// digestByFill hashes what Fill gives for every example in turn.
func digestByFill(w io.Writer, split Split) {
	var b Batch
	for i := range split.Len() {
		if err := split.Fill([]int{i}, &b); err != nil {
			writeStrings(w, []string{err.Error()})
			continue
		}
		for _, in := range b.Inputs {
			writeInts(w, in.Shape...)
			for _, v := range in.F {
				writeUint32(w, math.Float32bits(v))
			}
			writeInt32s(w, in.I)
		}
	}
}

func writeStrings(w io.Writer, list []string) {
	writeInts(w, len(list))
	for _, s := range list {
		writeInts(w, len(s))
		io.WriteString(w, s)
	}
}

func writeInts(w io.Writer, list ...int) {
	for _, v := range list {
		w.Write(binary.LittleEndian.AppendUint64(nil, uint64(v)))
	}
}

func writeInt32s(w io.Writer, list []int32) {
	buf := make([]byte, 0, 4096)
	for _, v := range list {
		if buf = binary.LittleEndian.AppendUint32(buf, uint32(v)); len(buf) == cap(buf) {
			w.Write(buf)
			buf = buf[:0]
		}
	}
	w.Write(buf)
}

func writeUint32(w io.Writer, v uint32) {
	w.Write(binary.LittleEndian.AppendUint32(nil, v))
}
