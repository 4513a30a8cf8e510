package baseline

// look is how many bits are looked up at once.
const look = 10

// code is what the next bits of a scan mean. Where value is not 0 it is a whole
// coefficient, behind run zeros, and bits counts the bits of its value too. Else
// symbol run takes so many bits; 0 bits stand for a symbol longer than look.
type code struct {
	value int16
	run   uint8
	bits  uint8
}

// table is a Huffman table (T.81, annex C).
type table struct {
	codes  [1 << look]code
	values []byte
	// Of each length from 1 on: the first code behind those of that length, at the
	// top of 16 bits, and what added to a code gives its place in values.
	limit  [18]uint32
	offset [17]int32
}

// huffmanTables reads a segment of tables.
func (d *decoder) huffmanTables(body []byte) bool {
	for len(body) > 0 {
		if len(body) < 17 {
			return false
		}
		class, to := body[0]>>4, body[0]&15
		n := 0
		for _, k := range body[1:17] {
			n += int(k)
		}
		if class > 1 || to > 1 || n == 0 || n > 256 || len(body) < 17+n {
			return false
		}
		t, ok := newTable(body[1:17], body[17:17+n], class == 1)
		if !ok {
			return false
		}
		d.huffman[class][to], body = t, body[17+n:]
	}
	return true
}

// newTable makes the table of so many codes of each length; it refuses more than can
// be told apart. Those of details hold whole coefficients.
func newTable(counts, values []byte, details bool) (*table, bool) {
	t := &table{values: values}
	next, place := 0, 0
	for length := 1; length <= 16; length++ {
		t.offset[length] = int32(place - next)
		for range counts[length-1] {
			if next >= 1<<length {
				return nil, false
			}
			if length <= look {
				t.enter(next, length, values[place], details)
			}
			next, place = next+1, place+1
		}
		t.limit[length] = uint32(next) << (16 - length)
		next <<= 1
	}
	t.limit[17] = 1 << 16
	return t, true
}

// enter writes a code to all places that begin with it.
func (t *table) enter(bits, length int, symbol byte, details bool) {
	free := look - length
	size := int(symbol & 15)
	for rest := range 1 << free {
		c := code{run: symbol, bits: uint8(length)}
		if details && size > 0 && size <= free {
			c = code{value: int16(extend(int32(rest>>(free-size)), size)), run: symbol >> 4, bits: uint8(length + size)}
		}
		t.codes[bits<<free|rest] = c
	}
}

// extend gives a value of so many bits its sign (T.81, F.2.2.1).
func extend(v int32, size int) int32 {
	if v < 1<<size>>1 {
		v += -1<<size + 1
	}
	return v
}

// long finds a symbol of more than look bits at the top of 16; its length is 17 where
// there is none.
func (t *table) long(next uint32) (symbol byte, length int) {
	for length = look + 1; next >= t.limit[length]; length++ {
		if length == 16 {
			return 0, 17
		}
	}
	return t.values[int32(next>>(16-length))+t.offset[length]], length
}
