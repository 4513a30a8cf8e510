package baseline_test

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"optimus/data/baseline"
	"optimus/internal/shared"
)

// same fails unless image/jpeg decodes b to the same picture.
func same(t interface{ Fatalf(string, ...any) }, name string, b []byte, got image.Image) {
	want, err := jpeg.Decode(bytes.NewReader(b))
	if err != nil {
		t.Fatalf("%s: image/jpeg refuses it: %v", name, err)
	}
	if got.Bounds() != want.Bounds() || got.ColorModel() != want.ColorModel() {
		t.Fatalf("%s: %v in %T, want %v in %T", name, got.Bounds(), got, want.Bounds(), want)
	}
	planes := func(m image.Image) ([][]byte, []int) {
		if g, ok := m.(*image.Gray); ok {
			return [][]byte{g.Pix}, []int{g.Stride}
		}
		y := m.(*image.YCbCr)
		return [][]byte{y.Y, y.Cb, y.Cr}, []int{y.YStride, y.CStride, int(y.SubsampleRatio)}
	}
	gotPlanes, gotStrides := planes(got)
	wantPlanes, wantStrides := planes(want)
	if fmt.Sprint(gotStrides) != fmt.Sprint(wantStrides) {
		t.Fatalf("%s: strides and subsampling are %v, want %v", name, gotStrides, wantStrides)
	}
	for i := range wantPlanes {
		if !bytes.Equal(gotPlanes[i], wantPlanes[i]) {
			t.Fatalf("%s: plane %d differs", name, i)
		}
	}
}

// TestRealPictures: cameras' and encoders' files are decoded as by image/jpeg, and all
// that are baseline are.
func TestRealPictures(t *testing.T) {
	taken, left := 0, 0
	for _, set := range []string{"imagenet", "caltech101", "caltech256", "ndsb1"} {
		err := filepath.WalkDir(shared.Dir(t, "sets", set), func(path string, e fs.DirEntry, err error) error {
			if err != nil || !strings.HasPrefix(strings.ToLower(filepath.Ext(path)), ".jp") {
				return err
			}
			if (taken+left)%4 != 0 && set == "ndsb1" && testing.Short() {
				return nil
			}
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			got, ok := baseline.Decode(b)
			if !ok {
				if !bytes.Contains(b, []byte{0xff, 0xc2, 0, 17, 8}) { // a progressive frame of three components
					t.Errorf("%s is left to image/jpeg", path)
				}
				left++
				return nil
			}
			taken++
			same(t, path, b, got)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if taken < 100 || left > taken/20 {
		t.Errorf("%d taken and %d left", taken, left)
	}
}

// picture is an encoded picture of noise and plain parts.
func picture(t *rapid.T) []byte {
	w, h := rapid.IntRange(1, 70).Draw(t, "w"), rapid.IntRange(1, 70).Draw(t, "h")
	noise := rapid.SliceOfN(rapid.Byte(), 1, 300).Draw(t, "noise")
	var m interface {
		image.Image
		Set(x, y int, c color.Color)
	} = image.NewRGBA(image.Rect(0, 0, w, h))
	if rapid.Bool().Draw(t, "grey") {
		m = image.NewGray(image.Rect(0, 0, w, h))
	}
	for y := range h {
		for x := range w {
			v := noise[(x*y+x/9+7*(y/9))%len(noise)]
			m.Set(x, y, color.RGBA{v, byte(x * 3), noise[(y/8)%len(noise)], 255})
		}
	}
	var b bytes.Buffer
	if err := jpeg.Encode(&b, m, &jpeg.Options{Quality: rapid.IntRange(1, 100).Draw(t, "quality")}); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestEncoded: whatever image/jpeg writes is taken, and gives its pixels.
func TestEncoded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := picture(t)
		got, ok := baseline.Decode(b)
		if !ok {
			t.Fatalf("not taken")
		}
		same(t, "encoded", b, got)
	})
}

// TestDamaged: what is taken of a damaged file is what image/jpeg makes of it.
func TestDamaged(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := picture(t)
		for range rapid.IntRange(1, 4).Draw(t, "damages") {
			at := rapid.IntRange(0, len(b)-1).Draw(t, "at")
			switch rapid.IntRange(0, 2).Draw(t, "kind") {
			case 0:
				b[at] = rapid.Byte().Draw(t, "byte")
			case 1:
				b = slices.Concat(b[:at], b[at+1:], []byte{0})
			case 2:
				b = b[:at+1]
			}
		}
		if got, ok := baseline.Decode(b); ok {
			same(t, "damaged", b, got)
		}
	})
}

// FuzzDecode: no input makes it panic, or differ from image/jpeg.
func FuzzDecode(f *testing.F) {
	var b bytes.Buffer
	m := image.NewYCbCr(image.Rect(0, 0, 33, 17), image.YCbCrSubsampleRatio420)
	for i := range m.Y {
		m.Y[i] = byte(i * i)
	}
	if err := jpeg.Encode(&b, m, nil); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Fuzz(func(t *testing.T, b []byte) {
		if head, err := jpeg.DecodeConfig(bytes.NewReader(b)); err == nil && head.Width*head.Height > 1<<20 {
			return
		}
		if got, ok := baseline.Decode(b); ok {
			same(t, "fuzzed", b, got)
		}
	})
}

func BenchmarkDecode(b *testing.B) {
	path := filepath.Join(shared.Dir(b, "sets", "caltech101"), "101_ObjectCategories")
	files, err := filepath.Glob(path + "/*/image_0001.jpg")
	if err != nil || len(files) == 0 {
		b.Fatal(files, err)
	}
	var all [][]byte
	for _, f := range files {
		content, err := os.ReadFile(f)
		if err != nil {
			b.Fatal(err)
		}
		all = append(all, content)
	}
	b.Run("ours", func(b *testing.B) {
		for b.Loop() {
			for _, f := range all {
				if _, ok := baseline.Decode(f); !ok {
					b.Fatal("not taken")
				}
			}
		}
	})
	b.Run("image-jpeg", func(b *testing.B) {
		for b.Loop() {
			for _, f := range all {
				if _, err := jpeg.Decode(bytes.NewReader(f)); err != nil {
					b.Fatal(err)
				}
			}
		}
	})
}
