package conv

// tap is one term of a gather: where its inputs and weights lie, in bytes from
// those of the tile, and which pixel of the tile it leaves out. The assembly
// knows its shape.
type tap struct {
	x, w int
	skip int
}

// The pixels of a tile that a tap may leave out.
const (
	skipNone = iota
	skipFirst
	skipLast
)

// segment is a run of equal tiles in a row of outputs.
type segment struct {
	from, tiles, width int
	taps               [][]tap // by class of rows
}

// reach is one filter row or column as a gather sees it: output p reads input
// p·stride + shift, of which those in [0,size) are not padding.
type reach struct{ shift, stride, size int }

func (r reach) of(p int) int { return p*r.stride + r.shift }

func (r reach) inside(p int) bool {
	q := r.of(p)
	return q >= 0 && q < r.size
}

// span is the range of outputs, of n, that read no padding.
func (r reach) span(n int) (lo, hi int) {
	lo = max(0, (-r.shift+r.stride-1)/r.stride)
	hi = min(n, (r.size-r.shift+r.stride-1)/r.stride)
	return min(lo, n), max(hi, min(lo, n))
}

// skip is what a tile of the given outputs may leave out of a tap: a pixel, or all
// if it returns false.
func (r reach) skip(from, width int) (kind int, needed bool) {
	lo, hi := r.span(from + width)
	switch {
	case max(lo, from) >= hi:
		return 0, false
	case width > 1 && !r.inside(from):
		return skipFirst, true
	case width > 1 && !r.inside(from+width-1):
		return skipLast, true
	}
	return skipNone, true
}
