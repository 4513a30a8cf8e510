package data

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"optimus/data/audio"
	"optimus/data/source"
	"optimus/internal/shared"
)

// TestRealSets reads all of every real set: all pictures are decoded, all MD5s of
// recordings compared, all lines read. Counts are those of the sets' description.
func TestRealSets(t *testing.T) {
	for _, c := range []struct {
		folder, format string
		train, valid   int
		classes        int
		labels         map[int32]int // examples, of some classes
	}{
		{"mr", "MR", 7677, 853, 2, map[int32]int{0: 4265, 1: 4265}},
		{"ptb", "PTB", 26559, 2107, 0, nil},
		{"text8", "text8", 63698, 7074, 0, nil},
		{"cifar10", "CIFAR-10", 2600, 600, 10, nil},
		{"mnist", "MNIST", 8000, 2000, 10, nil},
		{"imagenet", "ImageNet", 75, 18, 20, nil},
		{"caltech101", "Caltech-101", 400, 100, 20, map[int32]int{0: 25, 7: 25, 19: 25}},
		{"caltech256", "Caltech-256", 25, 6, 4, nil},
		{"ndsb1", "NDSB1", 1929, 643, 121, nil},
		{"wmt17", "WMT17", 8000, 2928, 0, nil},
		{"librispeech", "LibriSpeech", 0, 0, 0, nil}, // the speakers' shares are of the seed
	} {
		t.Run(c.folder, func(t *testing.T) {
			r, err := Check(t.Context(), shared.Dir(t, "sets", c.folder))
			if err != nil || len(r.Faults) > 0 || r.Format != c.format {
				t.Fatalf("%+v, %v", r, err)
			}
			s := r.Set
			switch {
			case c.folder == "librispeech":
				if r.Examples != 56 {
					t.Errorf("%d recordings, want 56", r.Examples)
				}
			case s.Train.Len() != c.train || s.Valid.Len() != c.valid || len(s.Classes) != c.classes:
				t.Errorf("%d + %d examples, %d classes; want %d + %d, %d", s.Train.Len(), s.Valid.Len(), len(s.Classes), c.train, c.valid, c.classes)
			}
			count := labelCounts(s)
			for label, want := range c.labels {
				if count[label] != want {
					t.Errorf("%d examples of class %d, want %d", count[label], label, want)
				}
			}
			if c.classes > 0 && c.folder != "imagenet" && len(count) != c.classes {
				t.Errorf("%d classes have examples, want %d", len(count), c.classes)
			}
		})
	}
	// 8,000 and 3,000 pairs, of which some have more than 60 words.
	if s, err := OpenWMT17(shared.Dir(t, "sets", "wmt17"), PairOptions{}); err != nil || s.Train.Len()+s.Valid.Len()+s.LeftOut != 11000 {
		t.Errorf("WMT17: %+v, %v", s, err)
	}
}

// labelCounts counts examples by label where pictures or sentences have one.
func labelCounts(s *Set) map[int32]int {
	count := map[int32]int{}
	for _, split := range []Split{s.Train, s.Valid} {
		for i := range split.Len() {
			switch p := split.(type) {
			case *gallerySplit:
				count[p.from.labels[p.ids[i]]]++
			case *pictureSplit:
				count[int32(p.from.labels[i])]++
			case *sentenceSplit:
				count[p.from.labels[p.ids[i]]]++
			}
		}
	}
	return count
}

// TestSumsOfRealSets compares every file with the list of sums.
func TestSumsOfRealSets(t *testing.T) {
	root := shared.Dir(t, "sets")
	want := map[string]string{}
	for line := range strings.Lines(read(t, filepath.Join(root, "SHA256SUMS"))) {
		sum, name, ok := strings.Cut(strings.TrimSpace(line), "  ")
		if !ok {
			t.Fatalf("a line is %q", line)
		}
		want[filepath.Clean(strings.TrimPrefix(name, "*"))] = sum
	}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		name, _ := filepath.Rel(root, path)
		if err != nil || d.IsDir() || name == "SHA256SUMS" || name == "README.md" {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		sum := sha256.Sum256(content)
		if got := hex.EncodeToString(sum[:]); got != want[name] {
			t.Errorf("%s: sha256 %s, want %s", name, got, want[name])
		}
		delete(want, name)
		return nil
	})
	delete(want, "README.md")
	if err != nil || len(want) > 0 {
		t.Errorf("%v; not there: %v", err, want)
	}
}

// golden calls f for each line of a file in testdata: a path and the rest.
func golden(t *testing.T, name string, f func(path, rest string)) {
	t.Helper()
	file, err := os.Open(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	n := 0
	for lines := bufio.NewScanner(file); lines.Scan(); n++ {
		path, rest, ok := strings.Cut(lines.Text(), "\t")
		if !ok {
			t.Fatalf("%s: line %q", name, lines.Text())
		}
		f(path, rest)
	}
	if n < 50 {
		t.Errorf("%s has %d lines", name, n)
	}
}

// JPEG decoders differ by rounding: in a mean over a ninth of a picture by up to 0.04, and
// the reference has one decimal.
const pictureTolerance = 0.15

// Sizes, channels and means of cells as libjpeg has them (benchmarks/golden/data).
func TestPicturesAreThoseOfTheReference(t *testing.T) {
	root := shared.Dir(t, "sets")
	worst := 0.0
	golden(t, "pictures.tsv", func(path, rest string) {
		r, err := readPicture(at(root).Join(path), source.Stamp{})
		if err != nil {
			t.Error(err)
			return
		}
		fields := strings.Fields(rest)
		if size := fmt.Sprint(r.width, r.height, r.planes); size != strings.Join(fields[:3], " ") || len(fields) != 3+9*r.planes {
			t.Errorf("%s: %s, want %v", path, size, fields[:3])
			return
		}
		for i, text := range fields[3:] {
			var want float64
			if _, err := fmt.Sscan(text, &want); err != nil {
				t.Fatal(err)
			}
			got := r.cellMean(i/r.planes%3, i/r.planes/3, i%r.planes)
			worst = max(worst, math.Abs(got-want))
			if math.Abs(got-want) > pictureTolerance {
				t.Errorf("%s: mean %d is %.2f, want %.1f", path, i, got, want)
			}
		}
	})
	t.Logf("means differ by up to %.2f of 255", worst)
}

// cellMean is that of one of 3 by 3 cells.
func (r *raster) cellMean(cx, cy, plane int) float64 {
	sum, n := 0, 0
	for y := r.height * cy / 3; y < r.height*(cy+1)/3; y++ {
		for _, v := range r.pixels[(plane*r.height+y)*r.width:][r.width*cx/3 : r.width*(cx+1)/3] {
			sum, n = sum+int(v), n+1
		}
	}
	return float64(sum) / float64(n)
}

// Samples as the reference decoder has them.
func TestRecordingsAreThoseOfTheReference(t *testing.T) {
	root := shared.Dir(t, "sets")
	var seconds float64
	golden(t, "recordings.tsv", func(path, rest string) {
		s, err := readRecording(recordingFile{path: at(root).Join(path)})
		if err != nil {
			t.Error(err)
			return
		}
		h := sha256.New()
		for _, v := range s.Data {
			h.Write([]byte{byte(v), byte(v >> 8)})
		}
		if got := fmt.Sprintf("%d %x", s.Samples, h.Sum(nil)); got != rest || s.Info != (audio.Info{Format: "FLAC", Rate: soundRate, Channels: 1, Bits: 16, Samples: s.Samples}) {
			t.Errorf("%s: %s of %+v, want %s", path, got, s.Info, rest)
		}
		seconds += float64(s.Samples) / soundRate
	})
	if math.Abs(seconds-298) > 1 {
		t.Errorf("%v s, want 298", seconds)
	}
}

// The labels of MNIST's first digits are known.
func TestOpenMNISTReal(t *testing.T) {
	s, err := OpenMNIST(shared.Dir(t, "sets", "mnist"))
	if err != nil {
		t.Fatal(err)
	}
	var b Batch
	if err := s.Train.Fill(ids(s.Train.Len()), &b); err != nil {
		t.Fatal(err)
	}
	if got := b.Inputs[1].I[:10]; !slices.Equal(got, []int32{5, 0, 4, 1, 9, 2, 1, 3, 1, 4}) || !slices.Equal(b.Inputs[0].Shape, []int{8000, 1, 28, 28}) {
		t.Errorf("labels %v, shape %v", got, b.Inputs[0].Shape)
	}
	var sum, squares float64
	for _, v := range b.Inputs[0].F {
		sum += float64(v)
		squares += float64(v) * float64(v)
	}
	n := float64(len(b.Inputs[0].F))
	if math.Abs(sum/n) > 1e-4 || math.Abs(squares/n-1) > 1e-3 {
		t.Errorf("mean %v, mean square %v", sum/n, squares/n)
	}
}
