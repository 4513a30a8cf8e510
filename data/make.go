package data

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const (
	opMake = "make"
	doMake = "check that the folder may be written and the disk is not full"
)

// Formats returns the names of the sets that [Make] can write.
func Formats() []string {
	var names []string
	for _, f := range formats() {
		names = append(names, f.name)
	}
	slices.Sort(names)
	return names
}

// Make writes a generated set of n examples to the folder dir, in the files of the
// original, so that its reader takes it; name is one of [Formats]. What there is to be
// learned in it the generator of the name says; the pictures of class folders come in
// JPEG of many sizes and qualities, 5 % of them grey, in classes of uneven size. (3 % of
// ImageNet's are progressive; none are here, as the library does not write them.)
//
// The folder must be new or empty. It appears when all is written: after an error, and
// when the context ends, nothing is left behind. The same n and seed make the same
// bytes, with the same version of Go and kind of processor.
func Make(ctx context.Context, name, dir string, n int, seed uint64) error {
	list := formats()
	i := slices.IndexFunc(list, func(f format) bool { return f.name == name })
	if i < 0 {
		return &Error{Op: opMake, Kind: BadOption, Detail: fmt.Sprintf("there is no set %q", name), Do: "choose one of " + strings.Join(Formats(), ", ")}
	}
	f := list[i]
	if n < f.least || n > f.most {
		return &Error{Op: opMake, Kind: BadOption, Detail: fmt.Sprintf("%d examples of %s", n, f.title), Do: fmt.Sprintf("ask for %d to %d", f.least, f.most)}
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return systemError(opMake, dir, err, doMake)
	}
	if err := checkNew(dir); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return systemError(opMake, filepath.Dir(dir), err, doMake)
	}
	partial, err := os.MkdirTemp(filepath.Dir(dir), "."+filepath.Base(dir)+".partial-")
	if err != nil {
		return systemError(opMake, filepath.Dir(dir), err, doMake)
	}
	defer os.RemoveAll(partial) // nothing, once it is renamed
	err = f.write(&maker{ctx, partial, n, seed})
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return err
	}
	return publish(partial, dir)
}

// checkNew refuses a folder in which something is.
func checkNew(dir string) error {
	entries, err := os.ReadDir(dir)
	if err == nil && len(entries) == 0 || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return systemError(opMake, dir, err, "give a new folder")
	}
	return &Error{Op: opMake, Path: dir, Kind: BadOption, Detail: fmt.Sprintf("the folder is not empty (%s)", entries[0].Name()), Do: "give a new folder, or remove what is in it"}
}

// publish gives a folder that is complete its name.
func publish(partial, dir string) error {
	if err := os.Chmod(partial, 0o755); err != nil {
		return systemError(opMake, dir, err, doMake)
	}
	// An empty folder of that name goes; one that is no longer empty stays, and fails.
	if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return systemError(opMake, dir, err, "give a new folder")
	}
	if err := os.Rename(partial, dir); err != nil {
		return systemError(opMake, dir, err, doMake)
	}
	return nil
}

// maker writes the files of a set.
type maker struct {
	ctx  context.Context
	dir  string
	n    int
	seed uint64
}

// put writes one file, and the folders above it.
func (m *maker) put(content []byte, elem ...string) error {
	if m.ctx.Err() != nil {
		return context.Cause(m.ctx)
	}
	path := filepath.Join(append([]string{m.dir}, elem...)...)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return systemError(opMake, path, err, doMake)
	}
	return writeFile(opMake, path, func(w *bufio.Writer) error {
		_, err := w.Write(content)
		return err
	})
}
