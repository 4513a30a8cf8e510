package data

// span is a part of a picture's side.
type span struct{ from, size int }

// taps say how one pixel of a scaled row is made: the sum of weight[i] times
// pixel from+i. The weights add up to one, 1<<16; zeros behind them make their number
// a multiple of tapGroup, and may reach over the end of the row.
type taps struct {
	from   int
	weight []uint32
}

const (
	one      = 1 << 16
	tapGroup = 4
)

// scaling returns the taps that scale a part of a side to n pixels by a triangle
// filter: linear interpolation when it grows, and when it shrinks a weighted mean
// over two pixels of the result, so that fine texture does not alias. All is in
// integers, so that a picture has the same bytes on every machine.
//
// In units of 1/(2n) of a pixel: pixel i of the result has its centre at
// (2i+1)·size, pixel j of the part at (2j+1)·n, and the filter reaches 2·max(size,n).
func scaling(part span, n int) []taps {
	reach := 2 * max(part.size, n)
	all := make([]taps, n)
	for i := range all {
		centre := (2*i + 1) * part.size
		first := max((centre-reach)/(2*n)-1, 0)
		var raw []int
		sum := 0
		from := first
		for j := first; j < part.size; j++ {
			w := reach - max(centre-(2*j+1)*n, (2*j+1)*n-centre)
			if w <= 0 {
				if sum > 0 {
					break
				}
				from = j + 1
				continue
			}
			raw, sum = append(raw, w), sum+w
		}
		all[i] = taps{part.from + from, normalised(raw, sum)}
	}
	return all
}

// normalised scales weights to the sum one; what rounding leaves goes to the largest.
func normalised(raw []int, sum int) []uint32 {
	weights := make([]uint32, (len(raw)+tapGroup-1)/tapGroup*tapGroup)
	rest, top := one, 0
	for i, w := range raw {
		weights[i] = uint32((w*one + sum/2) / sum)
		rest -= int(weights[i])
		if w > raw[top] {
			top = i
		}
	}
	weights[top] = uint32(int(weights[top]) + rest)
	return weights
}

// scaled returns the part xs × ys of the picture at width × height: rows first,
// into 16 bits, then columns.
func (r *raster) scaled(xs, ys span, width, height int) *raster {
	across, down := scaling(xs, width), scaling(ys, height)
	out := &raster{r.planes, width, height, make([]byte, r.planes*width*height)}
	rows, sums := make([]uint16, ys.size*width), make([]uint32, width)
	pair := make([]uint64, r.width+tapGroup) // with zeros behind
	for p := range r.planes {
		for y := 0; y < ys.size; y += 2 {
			below := min(y+1, ys.size-1)
			from := r.pixels[(p*r.height+ys.from)*r.width:]
			pack(pair, from[y*r.width:][:r.width], from[below*r.width:][:r.width])
			scalePair(rows[y*width:][:width], rows[below*width:][:width], pair, across)
		}
		for y, t := range down {
			for x := range sums {
				sums[x] = 1 << 23
			}
			for i := 0; i < len(t.weight); i += tapGroup {
				var from [tapGroup][]uint16
				for k := range from { // a row over the end has the weight 0: any will do
					from[k] = rows[min(t.from-ys.from+i+k, ys.size-1)*width:][:width]
				}
				addRows(sums, (*[tapGroup]uint32)(t.weight[i:]), &from)
			}
			dst := out.pixels[(p*height+y)*width:][:width]
			for x, sum := range sums {
				dst[x] = byte(sum >> 24)
			}
		}
	}
	return out
}

// pack puts two rows into one, as the halves of words, which no sum overflows: a
// multiplication then serves both.
func pack(dst []uint64, a, b []byte) {
	b, dst = b[:len(a)], dst[:len(a)]
	for x, v := range a {
		dst[x] = uint64(v) | uint64(b[x])<<32
	}
}

// scalePair scales two packed rows to as many pixels as there are taps.
func scalePair(a, b []uint16, pair []uint64, across []taps) {
	a, b = a[:len(across)], b[:len(across)]
	for x := range across {
		t := &across[x]
		sum := uint64(1<<7 | 1<<39)
		from := pair[t.from:]
		for w := t.weight; len(w) >= tapGroup && len(from) >= tapGroup; from, w = from[tapGroup:], w[tapGroup:] {
			sum += uint64(w[0])*from[0] + uint64(w[1])*from[1] + uint64(w[2])*from[2] + uint64(w[3])*from[3]
		}
		a[x], b[x] = uint16(sum>>8), uint16(sum>>40)
	}
}

// addRows adds rows, each by its weight.
func addRows(sums []uint32, w *[tapGroup]uint32, from *[tapGroup][]uint16) {
	a, b, c, d := from[0][:len(sums)], from[1][:len(sums)], from[2][:len(sums)], from[3][:len(sums)]
	for x := range sums {
		sums[x] += w[0]*uint32(a[x]) + w[1]*uint32(b[x]) + w[2]*uint32(c[x]) + w[3]*uint32(d[x])
	}
}

// square returns the middle of the picture, as wide as its shorter side, at
// side × side: the same as scaling the shorter side and cutting the middle out,
// but a picture of 1 × 700 takes no more memory than any other.
func (r *raster) square(side int) *raster {
	short := min(r.width, r.height)
	return r.scaled(span{(r.width - short) / 2, short}, span{(r.height - short) / 2, short}, side, side)
}

// squeezed returns the whole picture at side × side, whatever its proportions.
func (r *raster) squeezed(side int) *raster {
	return r.scaled(span{0, r.width}, span{0, r.height}, side, side)
}
