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

	"golang.org/x/image/webp"

	"optimus/data/source"
)

const (
	opPicture     = "read picture"
	doPicture     = "fetch the file again, or remove it from its class folder"
	pictureBytes  = 128 << 20 // of one file
	picturePixels = 1 << 26   // of one picture, decoded: some 200 MB of a JPEG
	webpPixels    = 1 << 24   // of a WebP, in which any number of equal pixels takes no room
	deflateMost   = 1032      // bytes that one byte can hold in a PNG
)

// raster is a picture as bytes in planes: red, green, blue, or grey alone.
type raster struct {
	planes, width, height int
	pixels                []byte
}

// readPicture decodes a JPEG, PNG or WebP, whichever it is, whatever its name. Grey
// pictures have one plane, others three. Transparency is dropped: the stored
// colours count. Orientation in EXIF data is ignored: the stored pixels count.
func readPicture(path source.Path, s source.Stamp) (*raster, error) {
	content, err := readStamped(opPicture, path, s, pictureBytes, doPicture)
	if err != nil {
		return nil, err
	}
	return decodePicture(path.String(), content)
}

// decodePicture decodes a file's content; path is for errors.
func decodePicture(path string, content []byte) (*raster, error) {
	fail := func(kind Kind, err error, format string, args ...any) (*raster, error) {
		return nil, &Error{Op: opPicture, Path: path, Kind: kind, Detail: fmt.Sprintf(format, args...), Do: doPicture, Err: err}
	}
	codec := codecOf(content)
	if codec == nil {
		return fail(BadFormat, nil, "it is %s, want a JPEG, PNG or WebP", pictureFormat(content))
	}
	head, err := codec.config(content)
	var img image.Image
	if err == nil {
		if head.Width < 1 || head.Height < 1 || head.Width > codec.pixels/head.Height {
			return fail(TooLarge, nil, "its header claims %d×%d pixels, want 1 to %d", head.Width, head.Height, codec.pixels)
		}
		img, err = codec.decode(content)
	}
	var known *Error
	switch {
	case errors.As(err, &known):
		return fail(known.Kind, nil, "%s", known.Detail)
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF), err == jpeg.FormatError("short Huffman data"), err == png.FormatError("not enough pixel data"):
		return fail(Truncated, err, "its %d bytes end inside the picture", len(content))
	case err != nil:
		return fail(BadFormat, err, "%v", err)
	}
	return planesOf(img), nil
}

// codec reads one format of pictures. config answers from the header alone, and
// refuses one that claims more than the file can hold.
type codec struct {
	config func(content []byte) (image.Config, error)
	decode func(content []byte) (image.Image, error)
	pixels int // at most
}

// codecOf goes by a file's first bytes.
func codecOf(content []byte) *codec {
	switch {
	case bytes.HasPrefix(content, []byte("\xff\xd8")):
		return &codec{configJPEG, decodeJPEG, picturePixels}
	case bytes.HasPrefix(content, []byte("\x89PNG")):
		decode := func(b []byte) (image.Image, error) { return png.Decode(bytes.NewReader(b)) }
		return &codec{configPNG, decode, picturePixels}
	case len(content) >= 12 && string(content[:4]) == "RIFF" && string(content[8:12]) == "WEBP":
		config := func(b []byte) (image.Config, error) { return webp.DecodeConfig(bytes.NewReader(b)) }
		decode := func(b []byte) (image.Image, error) { return webp.Decode(bytes.NewReader(b)) }
		return &codec{config, decode, webpPixels}
	}
	return nil
}

func configPNG(content []byte) (image.Config, error) {
	head, err := png.DecodeConfig(bytes.NewReader(content))
	if err != nil {
		return head, err
	}
	bits := int(content[24]) * [8]int{1, 1, 3, 1, 2, 1, 4, 1}[content[25]&7] // depth, channels by kind
	if head.Width < picturePixels && head.Height*(head.Width*bits/8) > deflateMost*len(content) {
		err = tooDense(head, len(content))
	}
	return head, err
}

func tooDense(head image.Config, bytes int) error {
	return &Error{Kind: TooLarge, Detail: fmt.Sprintf("its header claims %d×%d pixels, more than %d bytes can hold", head.Width, head.Height, bytes)}
}

// pictureFormat names what is given by mistake for a picture.
func pictureFormat(head []byte) string {
	text := strings.ToLower(strings.TrimSpace(string(head[:min(len(head), 64)])))
	switch {
	case strings.HasPrefix(text, "<"):
		return "a web page or other markup"
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
	if m, ok := img.(*image.YCbCr); ok {
		r.fill(m)
		return r
	}
	for y := range r.height {
		row := r.pixels[y*r.width:]
		for x := range r.width { // without regard to transparency
			c := color.NRGBAModel.Convert(img.At(b.Min.X+x, b.Min.Y+y)).(color.NRGBA)
			if row[x] = c.R; r.planes == 3 {
				row[area+x], row[2*area+x] = c.G, c.B
			}
		}
	}
	return r
}

func isGrey(img image.Image) bool {
	m := img.ColorModel()
	return m == color.GrayModel || m == color.Gray16Model
}

// fill takes the pixels of a picture of the same size.
func (r *raster) fill(m *image.YCbCr) {
	area, left := r.width*r.height, m.Rect.Min.X
	shift := 0 // 1<<shift pixels of a row share their chroma
	switch m.SubsampleRatio {
	case image.YCbCrSubsampleRatio422, image.YCbCrSubsampleRatio420:
		shift = 1
	case image.YCbCrSubsampleRatio411, image.YCbCrSubsampleRatio410:
		shift = 2
	}
	for y := range r.height {
		red, green, blue := r.pixels[y*r.width:][:r.width], r.pixels[area+y*r.width:][:r.width], r.pixels[2*area+y*r.width:][:r.width]
		luma := m.Y[m.YOffset(left, m.Rect.Min.Y+y):][:r.width]
		chroma := m.COffset(left, m.Rect.Min.Y+y) - left>>shift
		cb, cr := m.Cb, m.Cr
		for x, v := range luma {
			c := chroma + (left+x)>>shift
			red[x], green[x], blue[x] = fromYCbCr(v, cb[c], cr[c])
		}
	}
}

// fromYCbCr is JFIF's conversion, each colour rounded to the nearest as libjpeg does it.
// That of image/color is up to half a level darker where it is dark and lighter where it
// is light.
func fromYCbCr(y, cb, cr byte) (red, green, blue byte) {
	level, b, r := int32(y), int32(cb)-128, int32(cr)-128
	clamp := func(v int32) byte { return byte(min(max(v, 0), 255)) }
	return clamp(level + (91881*r+1<<15)>>16), // 1.402, in 1/65536
		clamp(level + (-22554*b-46802*r+1<<15)>>16), // 0.34414, 0.71414
		clamp(level + (116130*b+1<<15)>>16) // 1.772
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
