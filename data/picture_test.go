package data

import (
	"bytes"
	"image"
	"image/color"
	"image/jpeg"
	"math"
	"os"
	"path/filepath"
	"testing"

	"pgregory.net/rapid"
)

// at returns the colour of a pixel.
func (r *raster) at(x, y int) (c [3]int) {
	for p := range c {
		c[p] = int(r.pixels[(p%r.planes*r.height+y)*r.width+x])
	}
	return c
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
			for tap.weight[len(tap.weight)-1] == 0 { // what fills the group up
				tap.weight = tap.weight[:len(tap.weight)-1]
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

// A JPEG that is cut is never taken, unless all that lacks is the mark of its end and
// bits that say nothing.
func TestCutJPEG(t *testing.T) {
	whole := encoded(t, noisy(image.NewRGBA(image.Rect(0, 0, 24, 24)), 5), asJPEG)
	want, err := decodePicture("whole", whole)
	if err != nil {
		t.Fatal(err)
	}
	for n := range whole {
		r, err := decodePicture("cut", whole[:n])
		switch {
		case err == nil && !bytes.Equal(r.pixels, want.pixels):
			t.Fatalf("%d of %d bytes are another picture", n, len(whole))
		case err == nil && n < len(whole)-3:
			t.Errorf("%d of %d bytes are a picture", n, len(whole))
		case err != nil && n == len(whole)-2:
			t.Errorf("without the mark of its end: %v", err)
		}
	}
	for kind, say := range map[byte]string{0xc3: "lossless", 0xc5: "hierarchical", 0xc9: "arithmetic", 0xcb: "lossless", 0xcf: "lossless"} {
		other := bytes.Clone(whole)
		other[bytes.Index(other, []byte{0xff, 0xc0})+1] = kind
		_, err := decodePicture("other", other)
		wantError(t, err, BadFormat, "other", say)
	}
}
