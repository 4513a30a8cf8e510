package data

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"io"
	"strings"
)

const (
	opPicture     = "read picture"
	doPicture     = "fetch the file again, or remove it from its class folder"
	pictureBytes  = 128 << 20 // of one file
	picturePixels = 1 << 26   // of one picture, decoded: some 200 MB of a JPEG
)

// raster is a picture as bytes in planes: red, green, blue, or grey alone.
type raster struct {
	planes, width, height int
	pixels                []byte
}

// readPicture decodes a JPEG or PNG, whichever it is, whatever its name. Grey
// pictures have one plane, others three. Transparency is dropped: the stored
// colours count. Orientation in EXIF data is ignored: the stored pixels count.
func readPicture(path string) (*raster, error) {
	f, size, err := openSized(opPicture, path, pictureBytes, doPicture)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, size))
	if err != nil {
		return nil, systemError(opPicture, path, err, "check the disk, or fetch the file again")
	}
	return decodePicture(path, content)
}

// decodePicture decodes a file's content; path is for errors.
func decodePicture(path string, content []byte) (*raster, error) {
	fail := func(kind Kind, err error, format string, args ...any) (*raster, error) {
		return nil, &Error{Op: opPicture, Path: path, Kind: kind, Detail: fmt.Sprintf(format, args...), Do: doPicture, Err: err}
	}
	config, decode := jpeg.DecodeConfig, jpeg.Decode
	switch {
	case bytes.HasPrefix(content, []byte("\x89PNG")):
		config, decode = png.DecodeConfig, png.Decode
	case !bytes.HasPrefix(content, []byte("\xff\xd8")):
		return fail(BadFormat, nil, "it is %s, want a JPEG or PNG", pictureFormat(content))
	}
	head, err := config(bytes.NewReader(content))
	var img image.Image
	if err == nil {
		if head.Width < 1 || head.Height < 1 || head.Width > picturePixels/head.Height {
			return fail(TooLarge, nil, "its header claims %d×%d pixels, want 1 to %d", head.Width, head.Height, picturePixels)
		}
		img, err = decode(bytes.NewReader(content))
	}
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF), err == jpeg.FormatError("short Huffman data"), err == png.FormatError("not enough pixel data"):
		return fail(Truncated, err, "its %d bytes end inside the picture", len(content))
	case err != nil:
		return fail(BadFormat, err, "%v", err)
	}
	return planesOf(img), nil
}

// pictureFormat names what is given by mistake for a picture.
func pictureFormat(head []byte) string {
	text := strings.ToLower(strings.TrimSpace(string(head[:min(len(head), 64)])))
	switch {
	case strings.HasPrefix(text, "<"):
		return "a web page or other markup"
	case strings.HasPrefix(text, "riff") && strings.Contains(text, "webp"):
		return "a WebP picture"
	case strings.HasPrefix(text, "gif8"):
		return "a GIF picture"
	case strings.HasPrefix(text, "bm"):
		return "a BMP picture"
	}
	if what := knownFormat(head); what != "" {
		return what
	}
	return fmt.Sprintf("no picture that is known (begins with % x)", head[:min(len(head), 4)])
}

func planesOf(img image.Image) *raster {
	b := img.Bounds()
	r := &raster{planes: 3, width: b.Dx(), height: b.Dy()}
	if isGrey(img) {
		r.planes = 1
	}
	area := r.width * r.height
	r.pixels = make([]byte, r.planes*area)
	if gray, ok := img.(*image.Gray); ok {
		for y := range r.height {
			copy(r.pixels[y*r.width:(y+1)*r.width], gray.Pix[y*gray.Stride:])
		}
		return r
	}
	at := colourAt(img)
	for y := range r.height {
		for x := range r.width {
			red, green, blue := at(b.Min.X+x, b.Min.Y+y)
			i := y*r.width + x
			r.pixels[i] = red
			if r.planes == 3 {
				r.pixels[area+i], r.pixels[2*area+i] = green, blue
			}
		}
	}
	return r
}

func isGrey(img image.Image) bool {
	m := img.ColorModel()
	return m == color.GrayModel || m == color.Gray16Model
}

// colourAt returns how to read a pixel's colour without regard to transparency.
func colourAt(img image.Image) func(x, y int) (red, green, blue byte) {
	if m, ok := img.(*image.YCbCr); ok {
		return func(x, y int) (byte, byte, byte) {
			c := m.COffset(x, y)
			return color.YCbCrToRGB(m.Y[m.YOffset(x, y)], m.Cb[c], m.Cr[c])
		}
	}
	return func(x, y int) (byte, byte, byte) {
		c := color.NRGBAModel.Convert(img.At(x, y)).(color.NRGBA)
		return c.R, c.G, c.B
	}
}

// grey returns the picture in one plane, by the luma of BT.601 that JPEG uses.
func (r *raster) grey() *raster {
	if r.planes == 1 {
		return r
	}
	area := r.width * r.height
	g := &raster{1, r.width, r.height, make([]byte, area)}
	for i := range area {
		red, green, blue := uint32(r.pixels[i]), uint32(r.pixels[area+i]), uint32(r.pixels[2*area+i])
		g.pixels[i] = byte((19595*red + 38470*green + 7471*blue + 1<<15) >> 16)
	}
	return g
}

// colour returns the picture in three planes.
func (r *raster) colour() *raster {
	if r.planes == 3 {
		return r
	}
	return &raster{3, r.width, r.height, bytes.Repeat(r.pixels, 3)}
}
