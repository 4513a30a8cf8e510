package data

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// folder returns dir, or its only sensible subfolder sub where the files are
// not in dir itself: archives unpack into a folder of their own, and users give
// either.
func folder(op, dir, sub, do string) (string, error) {
	info, err := os.Stat(dir)
	if err != nil {
		return "", systemError(op, dir, err, do)
	}
	if !info.IsDir() {
		return "", &Error{Op: op, Path: dir, Kind: BadFormat, Detail: "it is " + describeFile(dir) + ", want a folder", Do: do}
	}
	if inner, err := os.Stat(filepath.Join(dir, sub)); err == nil && inner.IsDir() {
		return filepath.Join(dir, sub), nil
	}
	return dir, nil
}

// openSized opens a regular file of 1 to limit bytes and returns its size.
func openSized(op, path string, limit int64, do string) (*os.File, int64, error) {
	info, err := os.Stat(path) // before Open, which would wait on a pipe
	if err != nil {
		return nil, 0, systemError(op, path, err, do)
	}
	fail := func(kind Kind, format string, args ...any) (*os.File, int64, error) {
		return nil, 0, &Error{Op: op, Path: path, Kind: kind, Detail: fmt.Sprintf(format, args...), Do: do}
	}
	switch size := info.Size(); {
	case !info.Mode().IsRegular():
		return fail(BadFormat, "it is not a regular file")
	case size == 0:
		return fail(Empty, "the file has 0 bytes")
	case size > limit:
		return fail(TooLarge, "the file has %d bytes, at most %d are read", size, limit)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, 0, systemError(op, path, err, do)
	}
	return f, info.Size(), nil
}

// readSized returns the content of a regular file of 1 to limit bytes.
func readSized(op, path string, limit int64, do string) ([]byte, error) {
	f, size, err := openSized(op, path, limit, do)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	content := make([]byte, size)
	if _, err := io.ReadFull(f, content); err != nil {
		return nil, systemError(op, path, err, "check the disk, or fetch the file again")
	}
	return content, nil
}

// describeFile names what a file is by its first bytes.
func describeFile(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return "a file"
	}
	defer f.Close()
	head := make([]byte, 8)
	n, _ := io.ReadFull(f, head)
	if what := knownFormat(head[:n]); what != "" {
		return what
	}
	return "a file"
}

// knownFormat names the formats that are given by mistake for others.
func knownFormat(head []byte) string {
	for _, m := range []struct{ magic, name string }{
		{"\x1f\x8b", "a gzip file (begins with 1f 8b)"},
		{"PK\x03\x04", "a zip file (begins with PK)"},
		{"\x80\x02", "a Python pickle (begins with 80 02)"},
		{"\x80\x03", "a Python pickle (begins with 80 03)"},
		{"\x80\x04", "a Python pickle (begins with 80 04)"},
		{"\xff\xfe", "UTF-16 text (begins with ff fe)"},
		{"\xfe\xff", "UTF-16 text (begins with fe ff)"},
	} {
		if len(head) >= len(m.magic) && string(head[:len(m.magic)]) == m.magic {
			return m.name
		}
	}
	return ""
}

// writeFile writes a file through a buffer by the given function.
func writeFile(op, path string, write func(w *bufio.Writer) error) error {
	const do = "check that the folder may be written and the disk is not full"
	f, err := os.Create(path)
	if err != nil {
		return systemError(op, path, err, do)
	}
	w := bufio.NewWriterSize(f, 1<<16)
	err = write(w)
	if err == nil {
		err = w.Flush()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil || KindOf(err) != "" {
		return err
	}
	return systemError(op, path, err, do)
}
