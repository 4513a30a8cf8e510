package audio

import (
	"errors"
	"fmt"
	"math/bits"
	"slices"
)

// flacDecoder decodes the frames of a stream.
type flacDecoder struct {
	bitReader
	info    Info
	most    int
	samples int // of each channel so far
	out     []int32
	blocks  [8][]int64 // of a frame, by channel
}

// Ways in which two channels may be coded (§9.1.3).
const (
	independent = iota
	leftSide
	sideRight
	midSide
)

// frameHead is what a frame says of itself (§9.1).
type frameHead struct {
	size, rate, channels, coding, bits int
}

// frame appends the samples of a frame.
func (d *flacDecoder) frame() error {
	err := d.decodeFrame()
	if d.short { // whatever else seems to be wrong: it was read out of zeros
		return errFrame
	}
	return err
}

func (d *flacDecoder) decodeFrame() error {
	start := d.at / 8
	h, err := d.head(start)
	if err != nil {
		return err
	}
	if d.samples+h.size > d.most {
		return tooLong(int64(d.samples+h.size), d.most)
	}
	for c := range h.channels {
		d.blocks[c] = slices.Grow(d.blocks[c][:0], h.size)[:h.size]
		depth := h.bits
		if h.coding == leftSide && c == 1 || h.coding == sideRight && c == 0 || h.coding == midSide && c == 1 {
			depth++ // a difference
		}
		if err := d.subframe(d.blocks[c], depth); err != nil || d.short {
			return err
		}
	}
	d.at = (d.at + 7) / 8 * 8
	end := d.at / 8
	sum := uint16(d.uint(16))
	if d.short {
		return errFrame
	}
	if sum != crc16(d.data[start:end]) {
		return errors.New("a frame's CRC-16 is wrong: the file is damaged")
	}
	d.joinChannels(h)
	return d.append(h)
}

// head reads a frame's head, which begins at byte start.
func (d *flacDecoder) head(start int) (h frameHead, err error) {
	if d.uint(15) != 0x7ffc {
		return h, errors.New("no frame begins here")
	}
	d.skip(1) // whether all blocks have one size
	size, rate, channels, depth := int(d.uint(4)), int(d.uint(4)), int(d.uint(4)), int(d.uint(3))
	if d.uint(1) != 0 || size == 0 || rate == 15 || channels > 10 || depth == 3 {
		return h, errReserved
	}
	for more := bits.LeadingZeros8(^uint8(d.uint(8))); more > 1; more-- { // its number, coded as UTF-8 is
		d.skip(8)
	}
	h.size, h.rate = d.blockSize(size), d.sampleRate(rate)
	h.channels, h.coding = channels+1, independent
	if channels > 7 {
		h.channels, h.coding = 2, channels-7
	}
	h.bits = [8]int{d.info.Bits, 8, 12, 0, 16, 20, 24, 32}[depth]
	end := d.at / 8
	if sum := byte(d.uint(8)); !d.short && sum != crc8(d.data[start:end]) {
		return h, errors.New("the CRC-8 of a frame's head is wrong: the file is damaged")
	}
	if h.rate != d.info.Rate || h.channels != d.info.Channels || h.bits != d.info.Bits {
		return h, fmt.Errorf("a frame of %d Hz, %d channels, %d bits in a stream of %d, %d, %d", h.rate, h.channels, h.bits, d.info.Rate, d.info.Channels, d.info.Bits)
	}
	return h, nil
}

func (d *flacDecoder) blockSize(code int) int {
	switch {
	case code == 1:
		return 192
	case code <= 5:
		return 144 << code
	case code == 6:
		return int(d.uint(8)) + 1
	case code == 7:
		return int(d.uint(16)) + 1
	}
	return 1 << code
}

func (d *flacDecoder) sampleRate(code int) int {
	switch code {
	case 0:
		return d.info.Rate
	case 12:
		return int(d.uint(8)) * 1000
	case 13:
		return int(d.uint(16))
	case 14:
		return int(d.uint(16)) * 10
	}
	return [12]int{1: 88200, 2: 176400, 3: 192000, 4: 8000, 5: 16000, 6: 22050, 7: 24000, 8: 32000, 9: 44100, 10: 48000, 11: 96000}[code]
}

// joinChannels turns sums and differences into left and right (§4.2).
func (d *flacDecoder) joinChannels(h frameHead) {
	a, b := d.blocks[0], d.blocks[1]
	switch h.coding {
	case leftSide:
		for i, left := range a {
			b[i] = left - b[i]
		}
	case sideRight:
		for i, right := range b {
			a[i] += right
		}
	case midSide:
		for i, side := range b {
			mid := a[i]<<1 | side&1
			a[i], b[i] = (mid+side)>>1, (mid-side)>>1
		}
	}
}

// append puts the channels in turn.
func (d *flacDecoder) append(h frameHead) error {
	least, most := -int64(1)<<(h.bits-1), int64(1)<<(h.bits-1)-1
	from := len(d.out)
	d.out = slices.Grow(d.out, h.size*h.channels)[:from+h.size*h.channels]
	for c, block := range d.blocks[:h.channels] {
		for i, v := range block {
			if v < least || v > most {
				return fmt.Errorf("a sample is %d, and has %d bits", v, h.bits)
			}
			d.out[from+i*h.channels+c] = int32(v)
		}
	}
	d.samples += h.size
	return nil
}

// subframe reads a channel's block (§9.2).
func (d *flacDecoder) subframe(block []int64, depth int) error {
	if d.uint(1) != 0 {
		return errReserved
	}
	kind, wasted := int(d.uint(6)), 0
	if d.uint(1) == 1 {
		wasted = d.unary() + 1
	}
	if depth -= wasted; depth < 1 {
		return errReserved
	}
	var err error
	switch {
	case kind == 0: // constant
		v := d.int(depth)
		for i := range block {
			block[i] = v
		}
	case kind == 1: // verbatim
		for i := range block {
			block[i] = d.int(depth)
		}
	case kind >= 8 && kind <= 12:
		err = d.fixed(block, depth, kind-8)
	case kind >= 32:
		err = d.linear(block, depth, kind-31)
	default:
		err = errReserved
	}
	if wasted > 0 {
		for i := range block {
			block[i] <<= wasted
		}
	}
	return err
}

// fixedPredictors are the factors by order, of the last sample first.
var fixedPredictors = [5][]int64{{}, {1}, {2, -1}, {3, -3, 1}, {4, -6, 4, -1}}

// fixed reads a block with a predictor of the format's own (§9.2.5).
func (d *flacDecoder) fixed(block []int64, depth, order int) error {
	if err := d.warmUp(block, depth, order); err != nil {
		return err
	}
	return d.residual(block, fixedPredictors[order], 0)
}

// linear reads a block with a predictor that it brings (§9.2.6).
func (d *flacDecoder) linear(block []int64, depth, order int) error {
	if err := d.warmUp(block, depth, order); err != nil {
		return err
	}
	precision, shift := int(d.uint(4))+1, d.int(5)
	if precision == 16 || shift < 0 {
		return errReserved
	}
	var factors [32]int64
	for i := range order {
		factors[i] = d.int(precision)
	}
	return d.residual(block, factors[:order], uint(shift))
}

// warmUp reads the samples that come before a predictor's first.
func (d *flacDecoder) warmUp(block []int64, depth, order int) error {
	if order > len(block) {
		return errReserved
	}
	for i := range order {
		block[i] = d.int(depth)
	}
	return nil
}

// residual reads what the predictor of the last samples leaves, in Rice codes
// (§9.2.7).
func (d *flacDecoder) residual(block, factors []int64, shift uint) error {
	method := d.uint(2)
	if method > 1 {
		return errReserved
	}
	width := 4 + int(method)
	parts := 1 << d.uint(4)
	if len(block)%parts != 0 || len(block)/parts < len(factors) {
		return errReserved
	}
	at := len(factors)
	for part := range parts {
		k, raw := int(d.uint(width)), -1
		if k == 1<<width-1 { // not in Rice codes
			raw = int(d.uint(5))
		}
		for ; at < (part+1)*len(block)/parts; at++ {
			var e int64
			if raw >= 0 {
				e = d.int(raw)
			} else {
				u := uint64(d.unary())<<k | d.uint(k)
				e = int64(u>>1) ^ -int64(u&1)
			}
			sum := int64(0)
			for j, f := range factors {
				sum += f * block[at-1-j]
			}
			block[at] = e + sum>>shift
		}
		if d.short {
			break
		}
	}
	return nil
}
