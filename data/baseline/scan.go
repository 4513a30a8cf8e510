package baseline

import "encoding/binary"

// bits are those of a scan, the next at the top of word.
type bits struct {
	b    []byte
	at   int    // the byte behind those in word
	word uint64 // n bits, and behind them maybe some of the next
	n    int
	past int // how many of the n are zeros behind the end
}

// fill makes n at least 57. Up to a marker it takes bytes, behind it zeros.
func (r *bits) fill() {
	if r.at+8 <= len(r.b) {
		v := binary.BigEndian.Uint64(r.b[r.at:])
		const ones, tops = 0x0101010101010101, 0x8080808080808080
		if (^v-ones)&v&tops == 0 { // no byte is ff
			r.word |= v >> r.n
			k := (63 - r.n) >> 3
			r.at, r.n = r.at+k, r.n+8*k
			return
		}
	}
	for ; r.n <= 56; r.n += 8 {
		switch {
		case r.at < len(r.b) && r.b[r.at] != 0xff:
			r.word |= uint64(r.b[r.at]) << (56 - r.n)
			r.at++
		case r.at+1 < len(r.b) && r.b[r.at+1] == 0:
			r.word |= 0xff << (56 - r.n)
			r.at += 2
		default:
			r.past += 8
		}
	}
}

// whole reports whether all bits were there, and all bytes used.
func (r *bits) whole() bool {
	left := r.n - r.past
	return left >= 0 && left < 8
}

// skip takes n bits off.
func (r *bits) skip(n int) {
	r.word <<= n
	r.n -= n
}

// take takes the next n bits, at most 16.
func (r *bits) take(n int) int32 {
	v := int32(r.word >> (64 - n))
	r.skip(n)
	return v
}

// mark takes a marker that follows the bits.
func (r *bits) mark(m byte) bool {
	if !r.whole() || r.at+2 > len(r.b) || r.b[r.at] != 0xff || r.b[r.at+1] != m {
		return false
	}
	*r = bits{b: r.b, at: r.at + 2}
	return true
}

// scan reads all MCUs and the end of the picture.
func (d *decoder) scan(b []byte, across, down int) bool {
	r := &bits{b: b}
	n := 0
	for y := range down {
		if r.past > r.n {
			return false // no need to go on with zeros
		}
		for x := range across {
			if d.restart > 0 && n > 0 && n%d.restart == 0 {
				if !r.mark(markRST0 + byte(n/d.restart-1)&7) {
					return false
				}
				for i := range d.components {
					d.components[i].last = 0
				}
			}
			n++
			for i := range d.components {
				c := &d.components[i]
				for v := range c.v {
					for h := range c.h {
						if !d.block(r, c, c.pixels[8*((y*c.v+v)*c.stride+x*c.h+h):]) {
							return false
						}
					}
				}
			}
		}
	}
	return r.mark(markEOI)
}

// block reads a block and writes its pixels.
func (d *decoder) block(r *bits, c *component, dst []byte) bool {
	var f [64]int32 // coefficients, in natural order
	q := d.quant[c.table]
	size, ok := r.symbol(d.huffman[0][c.dc])
	if !ok || size > 15 {
		return false
	}
	if size > 0 {
		c.last += extend(r.take(int(size)), int(size))
	}
	f[0] = c.last * q[0]
	rows, ok := r.details(d.huffman[1][c.ac], q, &f)
	if !ok {
		return false
	}
	if rows == 0 {
		topRow(&f, dst, c.stride)
	} else {
		inverse(&f, rows, dst, c.stride)
	}
	return true
}

// symbol reads one of a table.
func (r *bits) symbol(t *table) (byte, bool) {
	if r.n < 32 {
		r.fill()
	}
	if e := t.codes[r.word>>(64-look)]; e.bits > 0 {
		r.skip(int(e.bits))
		return e.run, true
	}
	symbol, length := t.long(uint32(r.word >> 48))
	if length > 16 {
		return 0, false
	}
	r.skip(length)
	return symbol, true
}

// details reads the coefficients behind the first, multiplied, and reports in which
// rows but the top one there are any: a bit for each.
func (r *bits) details(t *table, q *[64]int32, f *[64]int32) (rows uint8, ok bool) {
	for k := 1; k < 64; k++ {
		if r.n < 32 {
			r.fill()
		}
		e := t.codes[r.word>>(64-look)]
		value := int32(e.value)
		if value != 0 {
			r.skip(int(e.bits))
			k += int(e.run)
		} else {
			symbol := e.run
			if e.bits > 0 {
				r.skip(int(e.bits))
			} else {
				var length int
				if symbol, length = t.long(uint32(r.word >> 48)); length > 16 {
					return 0, false
				}
				r.skip(length)
			}
			size := int(symbol & 15)
			switch {
			case symbol == 0: // no more
				return rows &^ 1, true
			case symbol == 0xf0:
				k += 15
				continue
			case size == 0:
				return 0, false
			}
			k += int(symbol >> 4)
			value = extend(r.take(size), size)
		}
		if k > 63 {
			return 0, false
		}
		at := natural[k]
		f[at&63] = value * q[k]
		rows |= 1 << (at >> 3)
	}
	return rows &^ 1, true
}

// natural is where a coefficient of the zigzag order lies.
var natural = [64]uint8{
	0, 1, 8, 16, 9, 2, 3, 10,
	17, 24, 32, 25, 18, 11, 4, 5,
	12, 19, 26, 33, 40, 48, 41, 34,
	27, 20, 13, 6, 7, 14, 21, 28,
	35, 42, 49, 56, 57, 50, 43, 36,
	29, 22, 15, 23, 30, 37, 44, 51,
	58, 59, 52, 45, 38, 31, 39, 46,
	53, 60, 61, 54, 47, 55, 62, 63,
}
