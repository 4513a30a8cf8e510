package data

// span is a part of a picture's side.
type span struct{ from, size int }

// taps say how one pixel of a scaled row is made: the sum of weight[i] times
// pixel from+i. The weights add up to one, 1<<16.
type taps struct {
	from   int
	weight []uint32
}

const one = 1 << 16

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
	weights := make([]uint32, len(raw))
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
	for p := range r.planes {
		for y := range ys.size {
			row := r.pixels[(p*r.height+ys.from+y)*r.width:][:r.width]
			for x, t := range across {
				sum := uint32(1 << 7)
				for i, w := range t.weight {
					sum += w * uint32(row[t.from+i])
				}
				rows[y*width+x] = uint16(sum >> 8)
			}
		}
		for y, t := range down {
			for x := range sums {
				sums[x] = 1 << 23
			}
			for i, w := range t.weight {
				for x, v := range rows[(t.from-ys.from+i)*width:][:width] {
					sums[x] += w * uint32(v)
				}
			}
			dst := out.pixels[(p*height+y)*width:][:width]
			for x, sum := range sums {
				dst[x] = byte(sum >> 24)
			}
		}
	}
	return out
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
