package audio

import (
	"encoding/binary"
	"math/bits"
)

// bitReader reads bits, the most significant first. Behind the end it reads zeros and
// sets short.
type bitReader struct {
	data  []byte
	at    int // bits
	short bool
}

func (r *bitReader) left() int { return len(r.data)*8 - r.at }

// window returns the next 57 bits or more, at the top.
func (r *bitReader) window() uint64 {
	i := r.at / 8
	var v uint64
	if i+8 <= len(r.data) {
		v = binary.BigEndian.Uint64(r.data[i:])
	} else {
		for k := range 8 {
			v <<= 8
			if i+k < len(r.data) {
				v |= uint64(r.data[i+k])
			}
		}
	}
	return v << (r.at % 8)
}

func (r *bitReader) skip(n int) {
	r.at += n
	r.short = r.short || r.at > len(r.data)*8
}

// uint reads n bits, at most 57.
func (r *bitReader) uint(n int) uint64 {
	v := r.window() >> (64 - n)
	r.skip(n)
	return v
}

// int reads a number of n bits in two's complement.
func (r *bitReader) int(n int) int64 {
	if n == 0 {
		return 0
	}
	return int64(r.uint(n)<<(64-n)) >> (64 - n)
}

// unary reads zeros up to a one and counts them.
func (r *bitReader) unary() int {
	n := 0
	for !r.short {
		if w := r.window() & ^uint64(127); w != 0 {
			zeros := bits.LeadingZeros64(w)
			r.skip(zeros + 1)
			return n + zeros
		}
		r.skip(57)
		n += 57
	}
	return n
}

// crc8 is the checksum of a frame's head: x⁸+x²+x+1.
func crc8(b []byte) (sum byte) {
	for _, c := range b {
		sum ^= c
		for range 8 {
			high := sum >> 7
			sum = sum<<1 ^ high*0x07
		}
	}
	return sum
}

// crc16Table is for a byte at once.
var crc16Table = func() (table [256]uint16) {
	for i := range table {
		sum := uint16(i) << 8
		for range 8 {
			high := sum >> 15
			sum = sum<<1 ^ high*0x8005
		}
		table[i] = sum
	}
	return table
}()

// crc16 is the checksum of a frame: x¹⁶+x¹⁵+x²+1.
func crc16(b []byte) (sum uint16) {
	for _, c := range b {
		sum = sum<<8 ^ crc16Table[byte(sum>>8)^c]
	}
	return sum
}
