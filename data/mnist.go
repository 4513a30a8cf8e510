package data

import (
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"optimus/data/source"
)

const (
	opMNIST      = "open MNIST"
	doMNIST      = "give the folder of train-images-idx3-ubyte, train-labels-idx1-ubyte, t10k-images-idx3-ubyte and t10k-labels-idx1-ubyte (MNIST, LeCun et al. 1998), each as it is or as .gz"
	mnistSide    = 28
	mnistArea    = mnistSide * mnistSide
	mnistClasses = 10
	mnistLimit   = 1 << 30 // bytes of one file, unpacked; the largest real one has 47,040,016

	idxLabels = 2049 // bytes, one dimension
	idxImages = 2051 // bytes, three dimensions
)

// OpenMNIST reads the handwritten digits of LeCun, Cortes and Burges (1998), or a set
// of the same format such as Fashion-MNIST: train-images-idx3-ubyte and
// train-labels-idx1-ubyte to train on, t10k-… to validate, in dir, dir/mnist or
// dir/MNIST/raw. Each may be gzip, named .gz; the name may have a dot in place of
// its second hyphen, as some programs unpack it. The classes are 0 to 9.
//
// Inputs of a batch: [N,1,28,28] float32, [N] int32 labels. A pixel value v becomes
// (v - mean)/std over all training pixels, from exact integer counts.
func OpenMNIST(dir string) (*Set, error) {
	return openAt(opMNIST, dir, func(dir source.Path) (*Set, error) { return openMNIST(dir, &faults{}) })
}

func openMNIST(dir source.Path, f *faults) (*Set, error) {
	for _, sub := range []string{"mnist", path.Join("MNIST", "raw")} {
		var err error
		if dir, err = folder(opMNIST, dir, sub, doMNIST); err != nil {
			return nil, err
		}
	}
	train, valid := newMNIST(), newMNIST()
	for _, part := range []struct {
		name string
		dst  *pictures
	}{{"train", train}, {"t10k", valid}} {
		images, labels := mnistFile(dir, part.name+"-images-idx3-ubyte"), mnistFile(dir, part.name+"-labels-idx1-ubyte")
		if err := readDigits(images, labels, part.dst, f); err != nil {
			return nil, err
		}
	}
	if err := f.whole(); err != nil {
		return nil, err
	}
	return newBytePictures("MNIST", train, valid, strings.Split("0123456789", "")), nil
}

func newMNIST() *pictures { return &pictures{planes: 1, side: mnistSide} }

// mnistFile returns the path of a file in the form in which it is there.
func mnistFile(dir source.Path, name string) source.Path {
	for _, base := range []string{name, strings.Replace(name, "-idx", ".idx", 1)} {
		for _, end := range []string{"", ".gz"} {
			if path := dir.Join(base + end); path.Exists() {
				return path
			}
		}
	}
	return dir.Join(name)
}

// readDigits appends the pictures of one file and their labels of another.
func readDigits(images, labels source.Path, dst *pictures, f *faults) error {
	pixels, errImages := readIDX(images, idxImages)
	if err := f.need(errImages); err != nil {
		return err
	}
	classes, errLabels := readIDX(labels, idxLabels)
	if err := f.need(errLabels); err != nil {
		return err
	}
	if errors.Join(errImages, errLabels) != nil {
		return nil
	}
	if n := len(pixels) / mnistArea; n != len(classes) {
		return f.need(&Error{Op: opMNIST, Path: labels.String(), Kind: BadFormat, Detail: fmt.Sprintf("%d labels, and %s has %d pictures", len(classes), images.Base(), n), Do: "fetch both files again"})
	}
	for i, label := range classes {
		if label >= mnistClasses {
			return f.need(&Error{Op: opMNIST, Path: labels.String(), Kind: BadLabel, Detail: fmt.Sprintf("label %d at byte offset %d is %d, want 0..%d", i, i+8, label, mnistClasses-1), Do: "fetch it again"})
		}
	}
	dst.pixels, dst.labels = append(dst.pixels, pixels...), append(dst.labels, classes...)
	return nil
}

// readIDX reads the bytes of a file whose first number is magic.
func readIDX(path source.Path, magic uint32) (values []byte, err error) {
	err = withFile(opMNIST, path, mnistLimit, doMNIST, func(f fileReader, size int64) (err error) {
		values, err = parseIDX(path.String(), f, size, magic)
		return err
	})
	return values, err
}

// parseIDX reads what follows the head of a file of size bytes: magic, then the size
// of each dimension, as 32 bits each, the high byte first. What the head claims is
// compared with the size before any room is made for it.
func parseIDX(path string, file io.Reader, size int64, magic uint32) ([]byte, error) {
	fail := func(kind Kind, format string, args ...any) ([]byte, error) {
		return nil, &Error{Op: opMNIST, Path: path, Kind: kind, Detail: fmt.Sprintf(format, args...), Do: "fetch it again"}
	}
	r := file
	most := size
	if strings.HasSuffix(path, ".gz") {
		unpacked, err := gzip.NewReader(file)
		if err != nil {
			return fail(BadFormat, "it is not the gzip file that its name says: %v", err)
		}
		defer unpacked.Close()
		r, most = unpacked, size*deflateMost
	}
	head := make([]byte, 4*(1+magic&0xff))
	if n, err := io.ReadFull(r, head); err != nil {
		return fail(Truncated, "inside its head, after %d of %d bytes: %v", n, len(head), err)
	}
	switch found := binary.BigEndian.Uint32(head); {
	case binary.LittleEndian.Uint32(head) == magic:
		return fail(BadFormat, "its numbers have the low byte first, want the high one first")
	case found != magic:
		return fail(BadFormat, "its magic number is %d, want %d%s", found, magic, idxName(found))
	}
	n := int64(binary.BigEndian.Uint32(head[4:]))
	if magic == idxImages {
		rows, columns := binary.BigEndian.Uint32(head[8:]), binary.BigEndian.Uint32(head[12:])
		if rows != mnistSide || columns != mnistSide {
			return fail(BadFormat, "pictures of %d×%d, want %d×%d", rows, columns, mnistSide, mnistSide)
		}
		n *= mnistArea
	}
	switch {
	case n == 0:
		return fail(Empty, "its head says that there is nothing in it")
	case n > min(most, mnistLimit):
		return fail(Truncated, "its head claims %d bytes, and the file has %d", n, size)
	}
	body := make([]byte, n)
	if got, err := io.ReadFull(r, body); err != nil {
		return fail(Truncated, "%d of %d bytes behind its head: %v", got, n, err)
	}
	// Reads the end, where gzip has its checksum.
	if extra, err := io.Copy(io.Discard, io.LimitReader(r, 1)); err != nil || extra > 0 {
		if err == nil {
			err = fmt.Errorf("there is more than the %d bytes that its head claims", n)
		}
		return fail(BadFormat, "%v", err)
	}
	return body, nil
}

// idxName says what else a file is.
func idxName(magic uint32) string {
	switch magic {
	case idxImages:
		return ": it holds pictures, not labels"
	case idxLabels:
		return ": it holds labels, not pictures"
	}
	return ""
}

// checkIDX reads one file of the format, by its name, and returns how many examples
// it has.
func checkIDX(path source.Path) (int, error) {
	magic, size := uint32(idxLabels), 1
	if strings.Contains(path.Base(), "idx3") {
		magic, size = idxImages, mnistArea
	}
	b, err := readIDX(path, magic)
	return len(b) / size, err
}
