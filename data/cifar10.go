package data

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"optimus/data/source"
)

const (
	opCIFAR     = "open CIFAR-10"
	doCIFAR     = "unpack cifar-10-binary.tar.gz (CIFAR-10 binary version, Krizhevsky 2009) and give the folder cifar-10-batches-bin"
	doRefetch   = "fetch and unpack cifar-10-binary.tar.gz again"
	cifarFolder = "cifar-10-batches-bin"
	cifarTest   = "test_batch.bin"
	cifarMeta   = "batches.meta.txt"

	cifarSide    = 32
	cifarPlane   = cifarSide * cifarSide
	cifarPixels  = 3 * cifarPlane
	cifarRecord  = 1 + cifarPixels
	cifarClasses = 10
	cifarLimit   = 1 << 30 // bytes of one file; the real ones have 30,730,000
)

// OpenCIFAR10 reads the binary version of CIFAR-10 (Krizhevsky 2009) from dir
// or dir/cifar-10-batches-bin: data_batch_1.bin, data_batch_2.bin and so on
// without a gap to train on, test_batch.bin to validate. A file is records of
// 3,073 bytes: the label, then 32 rows of 32 pixels in red, in green, in blue.
// Class names come from batches.meta.txt where that exists. The format promises
// no number of records, so a file that was cut between two records is taken.
//
// Inputs of a batch: [N,3,32,32] float32, [N] int32 labels. A pixel value v of
// channel c becomes (v - mean_c)/std_c over all training pixels, from exact
// integer counts, so that it is the same everywhere. Pixels are held as bytes.
func OpenCIFAR10(dir string) (*Set, error) {
	return openAt(opCIFAR, dir, func(dir source.Path) (*Set, error) { return openCIFAR10(dir, &faults{}) })
}

func openCIFAR10(dir source.Path, f *faults) (*Set, error) {
	dir, err := folder(opCIFAR, dir, cifarFolder, doCIFAR)
	if err != nil {
		return nil, err
	}
	files, err := cifarBatches(dir)
	if err != nil {
		return nil, err
	}
	train, valid := newCIFAR10(), newCIFAR10()
	for _, path := range files {
		if err := f.need(readPictures(path, train)); err != nil {
			return nil, err
		}
	}
	if err := f.need(readPictures(dir.Join(cifarTest), valid)); err != nil {
		return nil, err
	}
	classes, err := cifarNames(dir.Join(cifarMeta))
	if err := f.need(err); err != nil {
		return nil, err
	}
	if err := f.whole(); err != nil {
		return nil, err
	}
	return newBytePictures("CIFAR-10", train, valid, classes), nil
}

// cifarBatches returns the paths of the training files in numeric order.
func cifarBatches(dir source.Path) ([]source.Path, error) {
	entries, err := dir.ReadDir()
	if err != nil {
		return nil, systemError(opCIFAR, dir.String(), err, doCIFAR)
	}
	var numbers []int
	for _, e := range entries {
		text, ok := strings.CutPrefix(e.Name(), "data_batch_")
		text, bin := strings.CutSuffix(text, ".bin")
		n, err := strconv.Atoi(text)
		switch {
		case !ok || err != nil || strconv.Itoa(n) != text:
		case bin:
			numbers = append(numbers, n)
		case len(numbers) == 0 && !dir.Join(e.Name()+".bin").Exists():
			path := dir.Join(e.Name())
			return nil, &Error{Op: opCIFAR, Path: path.String(), Kind: BadFormat, Detail: "it is " + describeFile(path) + ", not a .bin file: this is the Python version of the set", Do: doCIFAR}
		}
	}
	slices.Sort(numbers)
	paths := make([]source.Path, max(len(numbers), 1))
	for i := range paths {
		paths[i] = dir.Join(fmt.Sprintf("data_batch_%d.bin", i+1))
		if i < len(numbers) && numbers[i] == i+1 {
			continue
		}
		detail := "no such file"
		if len(numbers) > 0 {
			detail += fmt.Sprintf(", though there is data_batch_%d.bin", numbers[len(numbers)-1])
		}
		return nil, &Error{Op: opCIFAR, Path: paths[i].String(), Kind: NotFound, Detail: detail, Do: doCIFAR}
	}
	return paths, nil
}

// cifarNames reads the ten class names; without the file they are the
// publication's.
func cifarNames(path source.Path) ([]string, error) {
	if !path.Exists() {
		return strings.Fields("airplane automobile bird cat deer dog frog horse ship truck"), nil
	}
	text, err := readSized(opCIFAR, path, 1<<16, doRefetch)
	if err != nil {
		return nil, err
	}
	names := strings.Fields(string(text))
	if len(names) != cifarClasses {
		return nil, &Error{Op: opCIFAR, Path: path.String(), Kind: BadFormat, Detail: fmt.Sprintf("%d class names, want %d", len(names), cifarClasses), Do: doRefetch}
	}
	return names, nil
}

func newCIFAR10() *pictures { return &pictures{planes: 3, side: cifarSide} }

// readPictures appends a file's records.
func readPictures(path source.Path, dst *pictures) error {
	return withFile(opCIFAR, path, cifarLimit, doRefetch, func(f fileReader, size int64) error {
		return parsePictures(path.String(), bufio.NewReaderSize(f, 1<<16), size, dst)
	})
}

// parsePictures appends the records of a file of size bytes. It reads nothing
// of a file whose size or first bytes cannot be right.
func parsePictures(path string, r *bufio.Reader, size int64, dst *pictures) error {
	fail := func(kind Kind, format string, args ...any) error {
		return &Error{Op: opCIFAR, Path: path, Kind: kind, Detail: fmt.Sprintf(format, args...), Do: doRefetch}
	}
	records, rest := size/cifarRecord, size%cifarRecord
	head, _ := r.Peek(4)
	switch what := knownFormat(head); {
	case what != "": // no label begins so
		e := fail(BadFormat, "it is %s of %d bytes, want records of %d bytes", what, size, cifarRecord).(*Error)
		e.Do = doCIFAR
		return e
	case size == 0:
		return fail(Empty, "the file has 0 bytes")
	case rest != 0 && size%(cifarRecord+1) == 0:
		return fail(BadFormat, "%d bytes are %d records of %d bytes, as of CIFAR-100, and no multiple of %d", size, size/(cifarRecord+1), cifarRecord+1, cifarRecord)
	case rest != 0:
		return fail(Truncated, "%d bytes, want a multiple of %d such as %d: record %d at byte offset %d has %d of %d bytes",
			size, cifarRecord, (records+1)*cifarRecord, records, records*cifarRecord, rest, cifarRecord)
	}
	dst.pixels = slices.Grow(dst.pixels, int(records)*cifarPixels)
	dst.labels = slices.Grow(dst.labels, int(records))
	for i := range records {
		label, err := r.ReadByte()
		if err == nil {
			n := len(dst.pixels)
			dst.pixels = dst.pixels[:n+cifarPixels]
			_, err = io.ReadFull(r, dst.pixels[n:])
		}
		if err != nil {
			return fail(Truncated, "reading record %d at byte offset %d of %d bytes: %v", i, i*cifarRecord, size, err)
		}
		if label >= cifarClasses {
			return fail(BadLabel, "record %d at byte offset %d has label %d, want 0..%d", i, i*cifarRecord, label, cifarClasses-1)
		}
		dst.labels = append(dst.labels, label)
	}
	return nil
}
