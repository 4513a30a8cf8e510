package data

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"optimus/data/source"
)

// openAt opens the set at a location: a folder, or a URL that package source knows.
func openAt(op, location string, open func(dir source.Path) (*Set, error)) (*Set, error) {
	tree, err := openTree(context.Background(), op, location)
	if err != nil {
		return nil, err
	}
	set, err := open(tree.Root())
	if err != nil {
		tree.Close()
		return nil, err
	}
	set.files = tree
	return set, nil
}

func openTree(ctx context.Context, op, location string) (*source.Tree, error) {
	tree, err := source.Open(ctx, location)
	if err == nil {
		return tree, nil
	}
	if pe, ok := errors.AsType[*fs.PathError](err); ok { // without a URL's parameters
		location = pe.Path
	}
	return nil, systemError(op, location, err, "check the location")
}

// folder returns dir, or its only sensible subfolder sub where the files are
// not in dir itself: archives unpack into a folder of their own, and users give
// either.
func folder(op string, dir source.Path, sub, do string) (source.Path, error) {
	info, err := dir.Stat()
	if err != nil {
		return dir, systemError(op, dir.String(), err, do)
	}
	if !info.IsDir() {
		return dir, &Error{Op: op, Path: dir.String(), Kind: BadFormat, Detail: "it is " + describeFile(dir) + ", want a folder", Do: do}
	}
	if inner := dir.Join(sub); sub != "" && inner.IsDir() {
		return inner, nil
	}
	return dir, nil
}

// fileReader is what a reader sees of a file.
type fileReader interface {
	io.Reader
	io.ReaderAt
}

// withFile reads a regular file of 1 to limit bytes by a function that is told its
// size. Where the file could not be read, that is the error, whatever the function
// made of it.
func withFile(op string, path source.Path, limit int64, do string, read func(f fileReader, size int64) error) error {
	f, err := path.Open()
	if err != nil {
		return openError(op, path, err, do)
	}
	return readFile(op, path, f, limit, do, read)
}

func openError(op string, path source.Path, err error, do string) error {
	if errors.Is(err, source.ErrNotRegular) {
		return &Error{Op: op, Path: path.String(), Kind: BadFormat, Detail: source.ErrNotRegular.Error(), Do: do}
	}
	return systemError(op, path.String(), err, do)
}

// readFile is withFile for a file that is open already, and closes it.
func readFile(op string, path source.Path, f source.File, limit int64, do string, read func(f fileReader, size int64) error) error {
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return systemError(op, path.String(), err, do)
	}
	fail := func(kind Kind, format string, args ...any) error {
		return &Error{Op: op, Path: path.String(), Kind: kind, Detail: fmt.Sprintf(format, args...), Do: do}
	}
	switch size := info.Size(); {
	case size == 0:
		return fail(Empty, "the file has 0 bytes")
	case size > limit:
		return fail(TooLarge, "the file has %d bytes, at most %d are read", size, limit)
	}
	watched := &watched{file: f}
	err = read(watched, info.Size())
	if watched.err != nil {
		return systemError(op, path.String(), watched.err, "check the disk, or fetch the file again")
	}
	return err
}

// watched notes why a file could not be read: a parser may take that for the file's
// end.
type watched struct {
	file source.File
	err  error
}

func (w *watched) Read(p []byte) (int, error) {
	n, err := w.file.Read(p)
	return n, w.note(err)
}

func (w *watched) ReadAt(p []byte, at int64) (int, error) {
	n, err := w.file.ReadAt(p, at)
	return n, w.note(err)
}

func (w *watched) note(err error) error {
	if err != nil && err != io.EOF {
		w.err = err
	}
	return err
}

// readSized returns the content of a regular file of 1 to limit bytes.
func readSized(op string, path source.Path, limit int64, do string) (content []byte, err error) {
	err = withFile(op, path, limit, do, whole(op, path, &content))
	return content, err
}

// readStamped is readSized of a file that has been listed.
func readStamped(op string, path source.Path, s source.Stamp, limit int64, do string) (content []byte, err error) {
	f, err := path.OpenStamped(s)
	if err != nil {
		return nil, openError(op, path, err, do)
	}
	err = readFile(op, path, f, limit, do, whole(op, path, &content))
	return content, err
}

// whole returns a function that reads a file into memory.
func whole(op string, path source.Path, content *[]byte) func(f fileReader, size int64) error {
	return func(f fileReader, size int64) error {
		*content = make([]byte, size)
		if _, err := io.ReadFull(f, *content); err != nil {
			return systemError(op, path.String(), err, "check the disk, or fetch the file again")
		}
		return nil
	}
}

// describeFile names what a file is by its first bytes.
func describeFile(path source.Path) string {
	f, err := path.Open()
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
