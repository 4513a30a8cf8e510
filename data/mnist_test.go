package data

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"
)

// idxFile makes a file of MNIST's format.
func idxFile(body []byte, head ...uint32) string {
	var b []byte
	for _, v := range head {
		b = binary.BigEndian.AppendUint32(b, v)
	}
	return string(append(b, body...))
}

func zipped(t *testing.T, text string) string {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	w.Write([]byte(text))
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestOpenMNIST(t *testing.T) {
	two, one := idxFile(bytes.Repeat([]byte{0, 200}, mnistArea), idxImages, 2, 28, 28), idxFile(make([]byte, mnistArea), idxImages, 1, 28, 28)
	labels, label := idxFile([]byte{7, 0}, idxLabels, 2), idxFile([]byte{9}, idxLabels, 1)
	files := []string{"train-images-idx3-ubyte.gz", zipped(t, two), "train-labels.idx1-ubyte", labels, "t10k-images.idx3-ubyte", one, "t10k-labels-idx1-ubyte.gz", zipped(t, label)}
	inner := put(t, files...)
	outer := filepath.Join(t.TempDir(), "MNIST")
	if err := os.Mkdir(outer, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(inner, filepath.Join(outer, "raw")); err != nil {
		t.Fatal(err)
	}
	s, err := OpenMNIST(filepath.Dir(outer))
	if err != nil {
		t.Fatal(err)
	}
	var b Batch
	if err := s.Train.Fill([]int{1, 0}, &b); err != nil {
		t.Fatal(err)
	}
	if b.Inputs[1].I[0] != 0 || b.Inputs[1].I[1] != 7 || b.Inputs[0].F[0] != -1 || b.Inputs[0].F[1] != 1 || s.Valid.Len() != 1 || s.Classes[7] != "7" || s.Picture[0] != 1 {
		t.Errorf("labels %v, pixels %v, set %+v", b.Inputs[1].I, b.Inputs[0].F[:2], s)
	}

	good := []string{"train-images-idx3-ubyte", two, "train-labels-idx1-ubyte", labels, "t10k-images-idx3-ubyte", one, "t10k-labels-idx1-ubyte", label}
	for name, c := range map[string]struct {
		file int
		text string
		kind Kind
		say  string
	}{
		"label 10":    {3, idxFile([]byte{7, 10}, idxLabels, 2), BadLabel, "offset 9 is 10"},
		"more":        {1, two + "x", BadFormat, "more than the 1568 bytes"},
		"none":        {1, idxFile(nil, idxImages, 0, 28, 28), Empty, "nothing in it"},
		"another":     {1, idxFile(nil, idxImages, 1, 32, 32), BadFormat, "32×32"},
		"no head":     {3, "\x00\x00\x08", Truncated, "3 of 8 bytes"},
		"less":        {3, labels[:9], Truncated, "1 of 2 bytes"},
		"three, two":  {3, idxFile([]byte{1, 2, 3}, idxLabels, 3), BadFormat, "3 labels, and train-images-idx3-ubyte has 2 pictures"},
		"a text file": {3, "0 1 2 3 4 5 6", BadFormat, "magic number"},
	} {
		t.Run(name, func(t *testing.T) {
			files := append([]string{}, good...)
			files[c.file] = c.text
			_, err := OpenMNIST(put(t, files...))
			wantError(t, err, c.kind, files[c.file-1], c.say)
		})
	}
	_, err = OpenMNIST(put(t, good[:6]...))
	wantError(t, err, NotFound, "t10k-labels-idx1-ubyte")
	_, err = OpenMNIST(put(t, "train-images-idx3-ubyte.gz", two))
	wantError(t, err, BadFormat, "train-images-idx3-ubyte.gz", "gzip")
}

// A linear model gets most of the generated digits, as it does of the real ones.
func TestGenerateMNISTCanBeLearned(t *testing.T) {
	s, err := GenerateMNIST(1400, 1)
	if err != nil {
		t.Fatal(err)
	}
	got := linear(t, s, mnistClasses, mnistArea, 0.002, func(b *Batch, x []float64) {
		for i, v := range b.Inputs[0].F {
			x[i] = float64(v)
		}
	})
	t.Logf("linear %.3f", got)
	if s.Train.Len() != 1200 || got < 0.6 || got > 0.97 {
		t.Errorf("%d to train on; a linear model gets %v, want 0.6 to 0.97", s.Train.Len(), got)
	}
}
