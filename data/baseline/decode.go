// Package baseline decodes the JPEGs that data sets are made of, faster than the
// standard library and to the same bytes.
//
// The idea: nearly all pictures of a data set are of one kind: baseline, in Huffman
// coding, grey or YCbCr, in a single scan. A decoder of that kind alone can keep the
// whole file in memory, read 64 bits at a time and take most coefficients from one
// look-up. [Decode] is such a decoder. Of everything else, and of everything that
// looks wrong, it says nothing but that image/jpeg should be asked, so what is taken,
// what is refused and with which error is the standard library's to say, alone.
//
// The inverse cosine transform is that of Go 1.26's image/jpeg, in the same integers,
// so that it makes no difference which of the two decodes a picture.
package baseline

import (
	"encoding/binary"
	"image"
)

// Markers of JPEG (ITU-T T.81, table B.1).
const (
	markSOF0 = 0xc0
	markSOF1 = 0xc1
	markDHT  = 0xc4
	markRST0 = 0xd0
	markSOI  = 0xd8
	markEOI  = 0xd9
	markSOS  = 0xda
	markDQT  = 0xdb
	markDRI  = 0xdd
	markAPP0 = 0xe0
	markAPPE = 0xee
	markAPPF = 0xef
	markCOM  = 0xfe
)

// component is a plane of the picture.
type component struct {
	id     byte
	h, v   int    // blocks of an MCU
	table  byte   // of quant
	dc, ac byte   // tables of the scan
	pixels []byte // of whole blocks
	stride int
	last   int32 // the mean of the block before
}

// decoder is what the segments before the scan say.
type decoder struct {
	width, height int
	components    []component
	quant         [4]*[64]int32 // in zigzag order
	huffman       [2][2]*table  // of means, of details
	restart       int           // MCUs from one restart marker to the next; 0: none
	jfif, rgb     bool
}

// Decode decodes a JPEG to an *image.Gray or *image.YCbCr. It reports false for a file
// that it leaves to image/jpeg, which may take it or refuse it; b is not changed.
func Decode(b []byte) (image.Image, bool) {
	if len(b) < 4 || b[0] != 0xff || b[1] != markSOI {
		return nil, false
	}
	d := &decoder{}
	for at := 2; at+4 <= len(b); {
		if b[at] != 0xff {
			return nil, false
		}
		mark := b[at+1]
		if mark == 0xff { // a fill byte
			at++
			continue
		}
		end := at + 2 + int(binary.BigEndian.Uint16(b[at+2:]))
		if end < at+4 || end > len(b) {
			return nil, false
		}
		body := b[at+4 : end]
		if mark == markSOS {
			return d.picture(body, b[end:])
		}
		if !d.segment(mark, body) {
			return nil, false
		}
		at = end
	}
	return nil, false
}

// segment reads one segment before the scan.
func (d *decoder) segment(mark byte, body []byte) bool {
	switch {
	case mark == markSOF0 || mark == markSOF1:
		return d.frame(body)
	case mark == markDHT:
		return d.huffmanTables(body)
	case mark == markDQT:
		return d.quantTables(body)
	case mark == markDRI:
		if len(body) != 2 {
			return false
		}
		d.restart = int(binary.BigEndian.Uint16(body))
	case mark == markAPP0:
		if len(body) >= 5 {
			d.jfif = string(body[:5]) == "JFIF\x00"
		}
	case mark == markAPPE:
		if len(body) >= 12 && string(body[:5]) == "Adobe" {
			d.rgb = body[11] == 0
		}
	case mark > markAPP0 && mark <= markAPPF, mark == markCOM:
	default:
		return false
	}
	return true
}

// frame reads the size and the components: one, or three with chroma of one block an
// MCU.
func (d *decoder) frame(body []byte) bool {
	if len(d.components) > 0 || len(body) < 6 || body[0] != 8 {
		return false
	}
	d.height, d.width = int(binary.BigEndian.Uint16(body[1:])), int(binary.BigEndian.Uint16(body[3:]))
	n := int(body[5])
	if d.width < 1 || d.height < 1 || n != 1 && n != 3 || len(body) != 6+3*n {
		return false
	}
	for i := range n {
		part := body[6+3*i:]
		c := component{id: part[0], h: int(part[1] >> 4), v: int(part[1] & 15), table: part[2]}
		for _, other := range d.components {
			if other.id == c.id {
				return false
			}
		}
		switch {
		case c.table > 3 || c.h < 1 || c.h > 4 || c.h == 3 || c.v < 1 || c.v > 4 || c.v == 3:
			return false
		case n == 1:
			c.h, c.v = 1, 1 // a single component has no MCUs
		case i == 0 && c.v == 4, i > 0 && (c.h != 1 || c.v != 1):
			return false
		}
		d.components = append(d.components, c)
	}
	return true
}

// quantTables reads what coefficients are multiplied by.
func (d *decoder) quantTables(body []byte) bool {
	for len(body) > 0 {
		wide, to := int(body[0]>>4), body[0]&15
		size := 64 << wide
		if wide > 1 || to > 3 || len(body) < 1+size {
			return false
		}
		q := &[64]int32{}
		for i := range q {
			if wide == 0 {
				q[i] = int32(body[1+i])
			} else {
				q[i] = int32(binary.BigEndian.Uint16(body[1+2*i:]))
			}
		}
		d.quant[to], body = q, body[1+size:]
	}
	return true
}

// picture reads the head of the scan, then the scan and the end of the file.
func (d *decoder) picture(head, b []byte) (image.Image, bool) {
	n := len(d.components)
	if n == 0 || len(head) != 4+2*n || int(head[0]) != n {
		return nil, false
	}
	for i := range d.components {
		c, part := &d.components[i], head[1+2*i:]
		c.dc, c.ac = part[1]>>4, part[1]&15
		if part[0] != c.id || c.dc > 1 || c.ac > 1 || d.huffman[0][c.dc] == nil || d.huffman[1][c.ac] == nil || d.quant[c.table] == nil {
			return nil, false
		}
	}
	if n == 3 && !d.jfif && (d.rgb || string([]byte{d.components[0].id, d.components[1].id, d.components[2].id}) == "RGB") {
		return nil, false
	}
	wide, high := 8*d.components[0].h, 8*d.components[0].v
	across, down := (d.width+wide-1)/wide, (d.height+high-1)/high
	img := d.image(across, down)
	return img, d.scan(b, across, down)
}

// image makes the picture of so many MCUs, whose planes the components fill.
func (d *decoder) image(across, down int) image.Image {
	visible := image.Rect(0, 0, d.width, d.height)
	y := &d.components[0]
	if len(d.components) == 1 {
		m := image.NewGray(image.Rect(0, 0, 8*across, 8*down))
		y.pixels, y.stride = m.Pix, m.Stride
		return m.SubImage(visible)
	}
	ratio := map[[2]int]image.YCbCrSubsampleRatio{
		{1, 1}: image.YCbCrSubsampleRatio444, {1, 2}: image.YCbCrSubsampleRatio440, {2, 1}: image.YCbCrSubsampleRatio422,
		{2, 2}: image.YCbCrSubsampleRatio420, {4, 1}: image.YCbCrSubsampleRatio411, {4, 2}: image.YCbCrSubsampleRatio410,
	}[[2]int{y.h, y.v}]
	m := image.NewYCbCr(image.Rect(0, 0, 8*y.h*across, 8*y.v*down), ratio)
	y.pixels, y.stride = m.Y, m.YStride
	d.components[1].pixels, d.components[1].stride = m.Cb, m.CStride
	d.components[2].pixels, d.components[2].stride = m.Cr, m.CStride
	return m.SubImage(visible)
}
