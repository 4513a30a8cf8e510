package data

import (
	"bufio"
	"bytes"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"optimus/internal/shared"
)

// record makes a record of one colour.
func record(label, r, g, b byte) string {
	plane := func(v byte) string { return strings.Repeat(string([]byte{v}), cifarPlane) }
	return string([]byte{label}) + plane(r) + plane(g) + plane(b)
}

func TestOpenCIFAR10(t *testing.T) {
	dir := put(t,
		"data_batch_2.bin", record(9, 0, 7, 30),
		"data_batch_1.bin", record(3, 100, 7, 10)+record(0, 200, 7, 20),
		cifarTest, record(5, 100, 8, 10))
	s, err := OpenCIFAR10(dir)
	if err != nil {
		t.Fatal(err)
	}
	var b Batch
	if err := s.Train.Fill([]int{0, 1, 2}, &b); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]int32{3, 0, 9}, b.Inputs[1].I); d != "" {
		t.Error("files are out of order: ", d)
	}
	if d := cmp.Diff([]int{3, 3, 32, 32}, b.Inputs[0].Shape); d != "" {
		t.Error(d)
	}
	std := math.Sqrt(20000.0 / 3) // of 100, 200, 0; mean 100
	for i, want := range []float64{0, 100 / std, -100 / std} {
		if got := b.Inputs[0].F[i*cifarPixels]; math.Abs(float64(got)-want) > 1e-6 {
			t.Errorf("red of %d: %v, want %v", i, got, want)
		}
		if got := b.Inputs[0].F[i*cifarPixels+cifarPlane]; got != 0 {
			t.Errorf("green, the same everywhere, of %d: %v", i, got)
		}
	}
	if s.Valid.Len() != 1 || s.Classes[9] != "truck" {
		t.Errorf("%d to validate, classes %v", s.Valid.Len(), s.Classes)
	}
}

func TestOpenCIFAR10Real(t *testing.T) {
	s, err := OpenCIFAR10(shared.Dir(t, "sets", "cifar10"))
	if err != nil {
		t.Fatal(err)
	}
	if s.Train.Len() != 2600 || s.Valid.Len() != 600 {
		t.Errorf("%d + %d pictures", s.Train.Len(), s.Valid.Len())
	}
	var b Batch
	if err := s.Train.Fill(ids(2600), &b); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]int32{6, 9, 9, 4, 1, 1, 2, 7, 8, 3}, b.Inputs[1].I[:10]); d != "" {
		t.Error(d)
	}
	for c := range 3 {
		var sum, squares float64
		for i := range 2600 {
			for _, v := range b.Inputs[0].F[i*cifarPixels+c*cifarPlane:][:cifarPlane] {
				sum += float64(v)
				squares += float64(v) * float64(v)
			}
		}
		n := float64(2600 * cifarPlane)
		if mean, variance := sum/n, squares/n; math.Abs(mean) > 1e-4 || math.Abs(variance-1) > 1e-3 {
			t.Errorf("channel %d: mean %v, variance %v", c, mean, variance)
		}
	}

	dir := filepath.Join(t.TempDir(), "copy")
	if err := WriteCIFAR10(dir, s); err != nil {
		t.Fatal(err)
	}
	again, err := OpenCIFAR10(dir)
	if err != nil {
		t.Fatal(err)
	}
	if s.Fingerprint() != again.Fingerprint() {
		t.Error("writing and reading changed the set")
	}
}

func TestBO31_PartialDownload(t *testing.T) {
	const full = 10000 * cifarRecord
	for _, c := range []struct {
		name   string
		size   int64
		change func(f *os.File)
		kind   Kind
		say    []string
	}{
		{"full", full, nil, "", nil},
		{"cut by 1000", full - 1000, nil, Truncated, []string{"30729000", "30730000", "record 9999", "30726927", "2073 of 3073"}},
		{"cut at a record", full - cifarRecord, nil, "", nil}, // the format promises no count
		{"label 12", full, func(f *os.File) { f.WriteAt([]byte{12}, 7*cifarRecord) }, BadLabel, []string{"record 7", "21511", "label 12"}},
		{"empty", 0, nil, Empty, []string{"0 bytes"}},
		{"CIFAR-100", 100 * (cifarRecord + 1), nil, BadFormat, []string{"307400", "CIFAR-100", "3074"}},
		{"tar.gz", full, func(f *os.File) { f.WriteAt([]byte("\x1f\x8b\x08"), 0) }, BadFormat, []string{"gzip"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := put(t, cifarTest, record(1, 2, 3, 4))
			f, err := os.Create(filepath.Join(dir, "data_batch_1.bin"))
			if err != nil {
				t.Fatal(err)
			}
			if err := f.Truncate(c.size); err != nil { // zeros: black pictures of class 0
				t.Fatal(err)
			}
			if c.change != nil {
				c.change(f)
			}
			f.Close()
			s, err := OpenCIFAR10(dir)
			if c.kind != "" {
				wantError(t, err, c.kind, append(c.say, "data_batch_1.bin")...)
				return
			}
			if err != nil || int64(s.Train.Len()) != c.size/cifarRecord {
				t.Errorf("%v, %v", s, err)
			}
		})
	}
}

func TestCIFAR10Errors(t *testing.T) {
	good := record(1, 2, 3, 4)
	for _, c := range []struct {
		name string
		dir  string
		kind Kind
		say  []string
	}{
		{"no folder", filepath.Join(t.TempDir(), "nowhere"), NotFound, []string{"nowhere", "unpack"}},
		{"no files", t.TempDir(), NotFound, []string{"data_batch_1.bin"}},
		{"a gap", put(t, "data_batch_1.bin", good, "data_batch_3.bin", good), NotFound, []string{"data_batch_2.bin", "there is data_batch_3.bin"}},
		{"no test", put(t, "data_batch_1.bin", good), NotFound, []string{cifarTest}},
		{"the archive", filepath.Join(put(t, "c.tar.gz", "\x1f\x8b\x08"), "c.tar.gz"), BadFormat, []string{"c.tar.gz", "gzip"}},
		{"names", put(t, "data_batch_1.bin", good, cifarTest, good, cifarMeta, "cat\ndog\n"), BadFormat, []string{cifarMeta, "2 class names"}},
		{"test cut", put(t, "data_batch_1.bin", good, cifarTest, good[:99]), Truncated, []string{cifarTest, "99 of 3073"}},
	} {
		_, err := OpenCIFAR10(c.dir)
		t.Run(c.name, func(t *testing.T) { wantError(t, err, c.kind, c.say...) })
	}
	mr, err := GenerateMR(4, 1)
	if err != nil {
		t.Fatal(err)
	}
	wantError(t, WriteCIFAR10(t.TempDir(), mr), BadOption)
}

func TestErrorStaysOneLine(t *testing.T) {
	_, err := OpenCIFAR10("no\nsuch")
	wantError(t, err, NotFound, `no\nsuch`)
}

// FuzzPictures reads files that begin with head and hold zeros up to their
// size, and may change while they are read.
func FuzzPictures(f *testing.F) {
	f.Add([]byte{9}, uint16(cifarRecord), false)
	f.Add([]byte{12}, uint16(2*cifarRecord), false)
	f.Add([]byte{1}, uint16(cifarRecord), true)
	f.Add([]byte("\x1f\x8b\x08"), uint16(99), false)
	f.Fuzz(func(t *testing.T, head []byte, size uint16, shrinks bool) {
		b := append(bytes.Clone(head), make([]byte, size)...)[:size]
		promised := int64(size)
		if shrinks {
			promised += cifarRecord
		}
		p := newCIFAR10()
		err := parsePictures("f", bufio.NewReader(bytes.NewReader(b)), promised, p)
		if err != nil {
			wantError(t, err, KindOf(err), "f")
		} else if shrinks || len(p.labels)*cifarRecord != int(size) || len(p.pixels) != len(p.labels)*cifarPixels {
			t.Errorf("%d bytes gave %d labels and %d pixels", size, len(p.labels), len(p.pixels))
		}
		for _, l := range p.labels {
			if l >= cifarClasses {
				t.Errorf("label %d", l)
			}
		}
	})
}
