package data

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	"image/jpeg"
	"io"

	"optimus/data/baseline"
)

// Markers of JPEG (ITU-T T.81, table B.1).
const (
	markSOF0 = 0xc0 // baseline; the frame's kind is the marker less this
	markDHT  = 0xc4
	markJPG  = 0xc8
	markDAC  = 0xcc
	markSOF  = 0xcf // the last of the frames
	markRST0 = 0xd0
	markEOI  = 0xd9
	markSOS  = 0xda
)

// jpegFrame is what a JPEG says of itself before its first scan.
type jpegFrame struct {
	kind, bits                int
	width, height, components int
	scanned                   int // components in the first scan
}

// readJPEGFrame walks the segments up to the first scan; ok if it comes to one.
func readJPEGFrame(b []byte) (f jpegFrame, ok bool) {
	for at := 2; at+4 <= len(b); {
		switch mark := b[at+1]; {
		case b[at] != 0xff: // stray bytes, which decoders pass over
			at++
			continue
		case mark == 0xff || mark == 0:
			at++
			continue
		case mark >= markRST0 && mark <= markEOI:
			at += 2
			continue
		}
		length := int(binary.BigEndian.Uint16(b[at+2:]))
		end := at + 2 + length
		if length < 2 || end > len(b) {
			return f, false
		}
		switch mark, body := b[at+1], b[at+4:end]; {
		case mark == markSOS:
			if len(body) > 0 {
				f.scanned = int(body[0])
			}
			return f, true
		case mark >= markSOF0 && mark <= markSOF && mark != markDHT && mark != markJPG && mark != markDAC:
			if len(body) < 6 {
				return f, false
			}
			f.kind, f.bits, f.components = int(mark-markSOF0), int(body[0]), int(body[5])
			f.height, f.width = int(binary.BigEndian.Uint16(body[1:])), int(binary.BigEndian.Uint16(body[3:]))
		}
		at = end
	}
	return f, false
}

// unsupported names what this decoder does not know in a frame, or is empty.
func (f *jpegFrame) unsupported() string {
	switch {
	case f.kind == 3 || f.kind == 7 || f.kind >= 11 && f.kind != 13 && f.kind != 14:
		return "a lossless JPEG"
	case f.kind >= 9:
		return "a JPEG in arithmetic coding"
	case f.kind > 2:
		return "a hierarchical JPEG"
	case f.bits != 8:
		return fmt.Sprintf("a JPEG with samples of %d bits", f.bits)
	}
	return ""
}

// densest is how many pixels a byte of a JPEG can hold: a block of 64 takes no less
// than the bit that its mean has, if no detail follows.
const densest = 8 * 64

func configJPEG(content []byte) (image.Config, error) {
	f, ok := readJPEGFrame(content)
	if what := f.unsupported(); ok && what != "" {
		return image.Config{}, &Error{Kind: BadFormat, Detail: "it is " + what + ", want 8 bits, baseline or progressive, in Huffman coding"}
	}
	head, err := jpeg.DecodeConfig(bytes.NewReader(content))
	if err == nil && head.Width*head.Height > densest*len(content) {
		err = tooDense(head, len(content))
	}
	return head, err
}

// decodeJPEG decodes a picture. Where only the mark of its end is missing and its one
// scan is whole, it is taken: some cameras and programs leave the mark out.
func decodeJPEG(content []byte) (image.Image, error) {
	if img, ok := baseline.Decode(content); ok {
		return img, nil
	}
	img, err := jpeg.Decode(bytes.NewReader(content))
	if f, ok := readJPEGFrame(content); ok && errors.Is(err, io.ErrUnexpectedEOF) && f.kind < 2 && f.scanned == f.components {
		closed := append(content[:len(content):len(content)], 0xff, markEOI)
		if img, again := jpeg.Decode(bytes.NewReader(closed)); again == nil {
			return img, nil
		}
	}
	return img, err
}
