package data

import (
	"crypto/md5"
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
)

// flacHeader is how many bytes the marker and the stream's description take.
const flacHeader = 42

// flacInfo is the description of a FLAC stream (RFC 9639, §8.2).
type flacInfo struct {
	rate, channels, depth int
	samples               int64 // 0 if unknown
	sum                   [md5.Size]byte
}

// readFLACInfo reads a stream's first bytes.
func readFLACInfo(head []byte) (info flacInfo, err error) {
	if len(head) < flacHeader || string(head[:4]) != "fLaC" || head[4]&0x7f != 0 {
		return info, errors.New("it does not begin as a FLAC stream does")
	}
	v := binary.BigEndian.Uint64(head[18:])
	info = flacInfo{rate: int(v >> 44), channels: int(v>>41&7) + 1, depth: int(v>>36&31) + 1, samples: int64(v & (1<<36 - 1))}
	copy(info.sum[:], head[26:])
	return info, nil
}

// decodeFLAC returns the samples of a FLAC stream of one channel of 16 bits, and
// checks them by the stream's MD5 where it has one.
func decodeFLAC(stream []byte) ([]int16, error) {
	info, err := readFLACInfo(stream)
	if err != nil {
		return nil, err
	}
	if info.channels != 1 || info.depth != 16 {
		return nil, fmt.Errorf("%d channels of %d bits, want 1 of 16", info.channels, info.depth)
	}
	at := 4
	for last := false; !last; {
		if len(stream) < at+4 {
			return nil, errShort
		}
		last = stream[at]&0x80 != 0
		at += 4 + int(binary.BigEndian.Uint32(stream[at:])&0xffffff)
	}
	if at > len(stream) {
		return nil, errShort
	}
	r := &bitReader{data: stream[at:]}
	var out []int16
	for r.left() > 0 && (info.samples == 0 || int64(len(out)) < info.samples) {
		if out, err = r.frame(out); err != nil {
			return nil, fmt.Errorf("after %d samples: %w", len(out), err)
		}
	}
	if info.samples != 0 && int64(len(out)) != info.samples {
		return nil, fmt.Errorf("%d samples, and its head says %d", len(out), info.samples)
	}
	if info.sum != [md5.Size]byte{} && md5.Sum(littleEndian(out)) != info.sum {
		return nil, errors.New("the samples' MD5 is not that in its head")
	}
	return out, nil
}

func littleEndian(samples []int16) []byte {
	b := make([]byte, 0, 2*len(samples))
	for _, v := range samples {
		b = binary.LittleEndian.AppendUint16(b, uint16(v))
	}
	return b
}

var (
	errShort    = errors.New("the stream ends inside a frame")
	errReserved = errors.New("a code that the format reserves")
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

// uint reads n bits, at most 57.
func (r *bitReader) uint(n int) uint64 {
	v := r.window() >> (64 - n)
	r.at += n
	r.short = r.short || r.at > len(r.data)*8
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
			r.at += zeros + 1
			r.short = r.short || r.at > len(r.data)*8
			return n + zeros
		}
		r.at += 57
		n += 57
		r.short = r.at > len(r.data)*8
	}
	return n
}

// frame appends the samples of a frame (§9).
func (r *bitReader) frame(out []int16) ([]int16, error) {
	if r.uint(15) != 0x7ffc {
		return out, errors.New("a frame does not begin where one should")
	}
	r.uint(1)
	size, rate, channels, depth := int(r.uint(4)), r.uint(4), r.uint(4), r.uint(3)
	r.uint(1)
	for more := bits.LeadingZeros8(^uint8(r.uint(8))); more > 1; more-- { // its number, coded as UTF-8 is
		r.uint(8)
	}
	switch {
	case size == 0:
		return out, errReserved
	case size == 1:
		size = 192
	case size <= 5:
		size = 144 << size
	case size == 6:
		size = int(r.uint(8)) + 1
	case size == 7:
		size = int(r.uint(16)) + 1
	default:
		size = 1 << size
	}
	switch rate {
	case 12:
		r.uint(8)
	case 13, 14:
		r.uint(16)
	}
	r.uint(8) // its checksum: the samples have a better one
	if channels != 0 || depth != 0 && depth != 4 {
		return out, errors.New("a frame is not of one channel of 16 bits")
	}
	from := len(out)
	block := make([]int64, size)
	if err := r.subframe(block); err != nil {
		return out, err
	}
	r.at = (r.at+7)/8*8 + 16
	if r.short || r.left() < 0 {
		return out, errShort
	}
	for _, v := range block {
		if v != int64(int16(v)) {
			return out[:from], errors.New("a sample has more than 16 bits")
		}
		out = append(out, int16(v))
	}
	return out, nil
}

// subframe reads a block (§9.2).
func (r *bitReader) subframe(block []int64) error {
	if r.uint(1) != 0 {
		return errReserved
	}
	kind, wasted := int(r.uint(6)), 0
	if r.uint(1) == 1 {
		wasted = r.unary() + 1
	}
	depth := 16 - wasted
	if depth < 1 {
		return errReserved
	}
	var err error
	switch {
	case kind == 0:
		v := r.int(depth)
		for i := range block {
			block[i] = v
		}
	case kind == 1:
		for i := range block {
			block[i] = r.int(depth)
		}
	case kind >= 8 && kind <= 12:
		err = r.predicted(block, depth, kind-8, fixedPredictors()[kind-8], 0)
	case kind >= 32:
		err = r.linear(block, depth, kind-31)
	default:
		err = errReserved
	}
	for i := range block {
		block[i] <<= wasted
	}
	return err
}

// fixedPredictors are the coefficients by order, of the last sample first.
func fixedPredictors() [5][]int64 {
	return [5][]int64{{}, {1}, {2, -1}, {3, -3, 1}, {4, -6, 4, -1}}
}

// linear reads a block with a predictor of its own (§9.2.6).
func (r *bitReader) linear(block []int64, depth, order int) error {
	if order > len(block) {
		return errReserved
	}
	for i := range order {
		block[i] = r.int(depth)
	}
	precision, shift := int(r.uint(4))+1, r.int(5)
	if precision == 16 || shift < 0 {
		return errReserved
	}
	factors := make([]int64, order)
	for i := range factors {
		factors[i] = r.int(precision)
	}
	return r.residual(block, order, factors, uint(shift))
}

// predicted reads a block's first samples and then what a fixed predictor leaves.
func (r *bitReader) predicted(block []int64, depth, order int, factors []int64, shift uint) error {
	if order > len(block) {
		return errReserved
	}
	for i := range order {
		block[i] = r.int(depth)
	}
	return r.residual(block, order, factors, shift)
}

// residual reads what the predictor of the last samples leaves, in Rice codes
// (§9.2.7).
func (r *bitReader) residual(block []int64, order int, factors []int64, shift uint) error {
	method := r.uint(2)
	if method > 1 {
		return errReserved
	}
	width := 4 + int(method)
	parts := 1 << r.uint(4)
	if len(block)%parts != 0 || len(block)/parts < order {
		return errReserved
	}
	at := order
	for part := range parts {
		k := int(r.uint(width))
		raw := -1
		if k == 1<<width-1 {
			raw = int(r.uint(5))
		}
		for ; at < (part+1)*len(block)/parts; at++ {
			var e int64
			if raw >= 0 {
				e = r.int(raw)
			} else {
				u := uint64(r.unary())<<k | r.uint(k)
				e = int64(u>>1) ^ -int64(u&1)
			}
			sum := int64(0)
			for j, f := range factors {
				sum += f * block[at-1-j]
			}
			block[at] = e + sum>>shift
		}
		if r.short {
			return errShort
		}
	}
	return nil
}
