package graph

import (
	"compress/gzip"
	"encoding/binary"
	"io"
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"optimus/internal/shared"
)

// idx reads a file of MNIST: whole numbers in big-endian order say what it is and
// how many there are of what size, then come the bytes.
func idx(t *testing.T, path string, numbers int) (header []uint32, data []byte) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	header = make([]uint32, numbers)
	if err := binary.Read(z, binary.BigEndian, header); err != nil {
		t.Fatal(err)
	}
	if data, err = io.ReadAll(z); err != nil {
		t.Fatal(err)
	}
	return header, data
}

// digits returns up to n training pictures, then all test pictures.
func digits(t *testing.T, n int) (s set, validation int) {
	t.Helper()
	dir := shared.Dir(t, "sets", "mnist")
	s.classes = 10
	read := func(name string, most int) int {
		size, pixels := idx(t, filepath.Join(dir, name+"-images-idx3-ubyte.gz"), 4)
		_, labels := idx(t, filepath.Join(dir, name+"-labels-idx1-ubyte.gz"), 2)
		area := int(size[2] * size[3])
		most = min(most, len(labels))
		for i := range most {
			x := make([]float32, area)
			for j := range x {
				x[j] = float32(pixels[i*area+j]) / 255
			}
			s.x, s.labels = append(s.x, x), append(s.labels, int(labels[i]))
		}
		return most
	}
	read("train", n)
	return s, read("t10k", 1<<20)
}

// TestMNIST trains a perceptron on digits with two servers and two workers, then
// with one and three.
func TestMNIST(t *testing.T) {
	defer goleak.VerifyNone(t)
	s, validation := digits(t, 6000)
	c := config(s, mlp(784, 32, 10), 50, validation)
	c.Optimizer.Momentum = 0.9
	j := job(2, 2, 0)
	j.Epochs = 3
	r := run(t, wrap(t, c), j, t.TempDir(), 1, 3)
	t.Logf("%d steps, accuracy %v of %d, loss %v, %.1f s", r.Steps, r.Metric.Value, validation, r.Loss, r.WallS)
	if r.Servers != 1 || r.Workers != 3 || r.Metric.Value < 0.85 {
		t.Errorf("%d servers, %d workers, accuracy %v; want 1, 3, at least 0.85", r.Servers, r.Workers, r.Metric.Value)
	}
}
