package data

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// pictureFile is one picture of a class folder.
type pictureFile struct {
	path  string
	label int32
	size  int64 // bytes
}

// classFolders are the folders of dir, one a class, and the pictures in them.
type classFolders struct {
	dir     string
	classes []string
	files   []pictureFile
}

// listClasses lists the folders in dir and their pictures, both in the order of
// their names' bytes, whatever the system's language. A picture is a file whose
// name ends in .jpg, .jpeg or .png, in either case. All else is left out: names
// that begin with a dot, other files, folders inside of a class, and links to a
// folder in which there is no picture (they may lead back here). A folder without
// pictures is a class without examples and keeps its label.
//
// A picture of no bytes is a fault here, before any training. Where faults may be left
// out, all pictures are read, and those that cannot be are.
func listClasses(f *faults, dir, do string) (*classFolders, error) {
	op := f.op
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, systemError(op, dir, err, do)
	}
	l := &classFolders{dir: dir}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		link := e.Type()&os.ModeSymlink != 0
		if strings.HasPrefix(e.Name(), ".") || !(e.IsDir() || link && isFolder(path)) {
			continue
		}
		files, err := listPictures(f, path, do)
		if err != nil {
			return nil, err
		}
		if link && len(files) == 0 {
			continue
		}
		for i := range files {
			files[i].label = int32(len(l.classes))
		}
		l.classes, l.files = append(l.classes, e.Name()), append(l.files, files...)
	}
	if f.verifies() {
		if err := l.verify(f); err != nil {
			return nil, err
		}
	}
	if len(l.files) == 0 {
		return nil, &Error{Op: op, Path: dir, Kind: Empty, Detail: fmt.Sprintf("there are %d class folders and no picture (.jpg, .jpeg, .png) in any", len(l.classes)), Do: do}
	}
	return l, nil
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// verify reads all pictures and leaves out those that cannot be read.
func (l *classFolders) verify(f *faults) error {
	var kept []pictureFile
	err := f.verify(len(l.files), func(i int) error {
		_, err := readPicture(l.files[i].path)
		return err
	}, func(i int) { kept = append(kept, l.files[i]) })
	l.files = kept
	return err
}

// listPictures lists the pictures of one folder.
func listPictures(f *faults, dir, do string) (files []pictureFile, err error) {
	op := f.op
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, systemError(op, dir, err, do)
	}
	for _, e := range entries {
		if !isPicture(e.Name()) || e.IsDir() {
			continue
		}
		path := filepath.Join(dir, e.Name())
		info, err := os.Stat(path)
		if err != nil {
			if err := f.tell(systemError(op, path, err, doPicture)); err != nil {
				return nil, err
			}
			continue
		}
		if !info.Mode().IsRegular() {
			continue
		}
		if info.Size() == 0 {
			if err := f.tell(&Error{Op: op, Path: path, Kind: Empty, Detail: "the file has 0 bytes", Do: doPicture}); err != nil {
				return nil, err
			}
			continue
		}
		files = append(files, pictureFile{path: path, size: info.Size()})
	}
	return files, nil
}

// isPicture goes by a file's name.
func isPicture(name string) bool {
	return !strings.HasPrefix(name, ".") && slices.Contains([]string{".jpg", ".jpeg", ".png"}, strings.ToLower(filepath.Ext(name)))
}

// gallery returns the pictures, each made by fit out of what is in its file.
func (l *classFolders) gallery(planes, side int, fit func(r *raster) *raster) *gallery {
	labels := make([]int32, len(l.files))
	for i, f := range l.files {
		labels[i] = f.label
	}
	load := func(i int) ([]byte, error) {
		r, err := readPicture(l.files[i].path)
		if err != nil {
			return nil, err
		}
		return fit(r).pixels, nil
	}
	identity := func(i int) string {
		f := l.files[i]
		return fmt.Sprintf("%s/%s %d", l.classes[f.label], filepath.Base(f.path), f.size)
	}
	return newGallery(planes, side, labels, load, identity)
}

// colourSquare fits a picture for the models of coloured squares.
func colourSquare(side int) func(r *raster) *raster {
	return func(r *raster) *raster { return r.square(side).colour() }
}
