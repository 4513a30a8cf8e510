package data

import (
	"bytes"
	"encoding/json"
	"image"
	"image/color"
	"image/jpeg"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"optimus/internal/shared"
)

// at returns the colour of a pixel.
func (r *raster) at(x, y int) (c [3]int) {
	for p := range c {
		c[p] = int(r.pixels[(p%r.planes*r.height+y)*r.width+x])
	}
	return c
}

// The files made for this, each by the outcome that stands beside it.
func TestOddPictures(t *testing.T) {
	root := shared.Dir(t, "bad")
	var cases map[string]struct {
		Expect        string
		AcceptError   bool     `json:"accept_error"`
		MustName      []string `json:"must_name"`
		Width, Height int
		Pixels        []json.RawMessage
	}
	if err := json.Unmarshal([]byte(read(t, filepath.Join(root, "expected.json"))), &cases); err != nil {
		t.Fatal(err)
	}
	kinds := map[string]Kind{"header_only.JPEG": Truncated, "html.JPEG": BadFormat, "huge_dims.JPEG": TooLarge, "huge_dims.png": TooLarge,
		"leading_bytes.JPEG": BadFormat, "precision12.JPEG": BadFormat, "truncated.JPEG": Truncated, "truncated.png": Truncated,
		"webp_named.JPEG": BadFormat, "zero.JPEG": Empty, "arithmetic.JPEG": BadFormat, "bad_crc.png": BadFormat}
	seen := 0
	for name, c := range cases {
		base, ok := strings.CutPrefix(name, "images/")
		if !ok {
			continue
		}
		seen++
		r, err := readPicture(filepath.Join(root, name))
		if err != nil {
			if c.Expect != "error" && !c.AcceptError {
				t.Errorf("%s: %v, want a picture", base, err)
			}
			if kind, ok := kinds[base]; ok {
				wantError(t, err, kind, append(c.MustName, base)...)
			}
			continue
		}
		if c.Expect != "decode" || r.width != c.Width || r.height != c.Height {
			t.Errorf("%s: %d×%d, want %s %d×%d", base, r.width, r.height, c.Expect, c.Width, c.Height)
			continue
		}
		for _, raw := range c.Pixels {
			var x, y, tolerance int
			var want [3]int
			if err := json.Unmarshal(raw, &[]any{&x, &y, &want, &tolerance}); err != nil {
				t.Fatal(err)
			}
			for p, v := range r.at(x, y) {
				if v < want[p]-tolerance || v > want[p]+tolerance {
					t.Errorf("%s: pixel %d,%d is %v, want %v ± %d", base, x, y, r.at(x, y), want, tolerance)
					break
				}
			}
		}
		for _, side := range []int{1, 48, 224} { // one pixel, and 700 to 1, too
			if n := len(r.square(side).colour().pixels); n != 3*side*side {
				t.Errorf("%s: %d bytes of a square of %d", base, n, side)
			}
		}
	}
	if seen != 32 {
		t.Errorf("%d cases, want 32", seen)
	}
}

// TestHugePicture: what a header claims takes no memory.
func TestHugePicture(t *testing.T) {
	path := shared.Dir(t, "bad", "images", "huge_dims.JPEG")
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := readPicture(path)
	runtime.ReadMemStats(&after)
	wantError(t, err, TooLarge, "65000×65000")
	if n := after.TotalAlloc - before.TotalAlloc; n > 1<<20 {
		t.Errorf("%d bytes to find that out", n)
	}
}

// TestScalingIsATriangle compares with the definition in float64.
func TestScalingIsATriangle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size, n, from := rapid.IntRange(1, 300).Draw(t, "size"), rapid.IntRange(1, 300).Draw(t, "n"), rapid.IntRange(0, 9).Draw(t, "from")
		for i, tap := range scaling(span{from, size}, n) {
			scale := float64(size) / float64(n)
			centre, reach := (float64(i)+0.5)*scale, math.Max(scale, 1)
			sum, want := 0.0, make([]float64, size)
			for j := range want {
				want[j] = math.Max(0, 1-math.Abs(float64(j)+0.5-centre)/reach)
				sum += want[j]
			}
			total := uint32(0)
			for j := range want {
				got := uint32(0)
				if k := from + j - tap.from; k >= 0 && k < len(tap.weight) {
					got = tap.weight[k]
				}
				total += got
				// Rounding, and what it leaves over at the largest weight.
				if d := math.Abs(float64(got)/one - want[j]/sum); d > float64(size)/one {
					t.Fatalf("%d to %d: weight %d of pixel %d is off by %v", size, n, j, i, d)
				}
			}
			if total != one || tap.from < from || tap.from+len(tap.weight) > from+size {
				t.Fatalf("%d to %d: taps %+v, of sum %d", size, n, tap, total)
			}
		}
	})
}

func TestScaled(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, h, side := rapid.IntRange(1, 40).Draw(t, "w"), rapid.IntRange(1, 40).Draw(t, "h"), rapid.IntRange(1, 40).Draw(t, "side")
		flat := rapid.Byte().Draw(t, "value")
		r := &raster{1, w, h, bytes.Repeat([]byte{flat}, w*h)}
		for _, s := range []*raster{r.square(side), r.squeezed(side)} {
			if !bytes.Equal(s.pixels, bytes.Repeat([]byte{flat}, side*side)) {
				t.Fatalf("a picture of %d became %v", flat, s.pixels)
			}
		}
	})
	ramp := &raster{1, 4, 2, []byte{0, 80, 160, 240, 0, 80, 160, 240}}
	if got := ramp.square(2).pixels; !bytes.Equal(got, []byte{80, 160, 80, 160}) {
		t.Errorf("the middle is %v", got)
	}
	// Stripes of one pixel become grey, not wider stripes.
	stripes := &raster{1, 64, 64, bytes.Repeat([]byte{0, 255}, 32*64)}
	for _, v := range stripes.squeezed(16).pixels {
		if v < 100 || v > 155 {
			t.Fatalf("a value of %d in what should be grey", v)
		}
	}
}

func TestGreyIsLuma(t *testing.T) {
	r := &raster{3, 2, 1, []byte{255, 10, 255, 10, 255, 10}}
	if g := r.grey(); !bytes.Equal(g.pixels, []byte{255, 10}) || g.colour().at(1, 0) != [3]int{10, 10, 10} {
		t.Errorf("%v", g.pixels)
	}
	if g := (&raster{3, 1, 1, []byte{200, 100, 50}}).grey(); g.pixels[0] != 124 { // 0.299·200 + 0.587·100 + 0.114·50
		t.Errorf("%v, want 124", g.pixels)
	}
}

// savePicture writes a JPEG of one colour.
func savePicture(t testing.TB, path string, c color.Color, w, h int) {
	t.Helper()
	m := image.NewRGBA(image.Rect(0, 0, w, h))
	for i := range w * h {
		m.Set(i%w, i/w, c)
	}
	var b bytes.Buffer
	if err := jpeg.Encode(&b, m, nil); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

func FuzzDecodePicture(f *testing.F) {
	var b bytes.Buffer
	if err := jpeg.Encode(&b, image.NewGray(image.Rect(0, 0, 9, 5)), nil); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Add([]byte("\x89PNG\r\n\x1a\n"))
	f.Add([]byte("<html>"))
	f.Fuzz(func(t *testing.T, content []byte) {
		r, err := decodePicture("f", content)
		if err != nil {
			wantError(t, err, KindOf(err), "f")
			return
		}
		if len(r.pixels) != r.planes*r.width*r.height || len(r.square(7).pixels) != r.planes*49 {
			t.Errorf("%d bytes of %d×%d×%d", len(r.pixels), r.planes, r.width, r.height)
		}
	})
}
