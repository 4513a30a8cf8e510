package wire

import (
	"math/bits"
	"unsafe"
)

// This file holds all of the package's reinterpretation of memory.

// word is an element of a frame's body: four bytes.
type word interface{ ~int32 | ~uint32 | ~float32 }

// littleEndian reports whether words lie in this machine's memory as they do on
// the wire.
func littleEndian() bool {
	one := uint16(1)
	return *(*byte)(unsafe.Pointer(&one)) == 1
}

// bytesOf returns the memory of s as bytes.
func bytesOf[T word](s []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), 4*len(s))
}

// wordsOf returns the memory of s as words of another type.
func wordsOf[To, From word](s []From) []To {
	return unsafe.Slice((*To)(unsafe.Pointer(unsafe.SliceData(s))), len(s))
}

// swapWords reverses the bytes of each word: from or to the wire's order on a
// big-endian machine.
func swapWords[T word](s []T) {
	w := wordsOf[uint32](s)
	for i, v := range w {
		w[i] = bits.ReverseBytes32(v)
	}
}

// misalignment returns by how many bytes the start of s lies past a multiple of
// align.
func misalignment(s []float32) int {
	return int(uintptr(unsafe.Pointer(unsafe.SliceData(s))) % align)
}
