package data

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// pictureFile is one picture of a class folder. There may be millions, so it does not
// hold what its folder says.
type pictureFile struct {
	name  string
	label int32
	size  int64 // bytes
}

// classFolders are the folders of dir, one a class, and the pictures in them.
type classFolders struct {
	dir     string
	classes []string
	files   []pictureFile
}

func (l *classFolders) path(i int) string {
	f := &l.files[i]
	return filepath.Join(l.dir, l.classes[f.label], f.name)
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
	var folders []fs.DirEntry
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), ".") && (e.IsDir() || isLink(e) && isFolder(filepath.Join(dir, e.Name()))) {
			folders = append(folders, e)
		}
	}
	listings := make([]listing, len(folders))
	err = inParallel(len(folders), func(i int) (err error) {
		listings[i], err = listPictures(op, filepath.Join(dir, folders[i].Name()), do)
		return err
	})
	if err != nil {
		return nil, err
	}
	l := &classFolders{dir: dir}
	for i, e := range folders {
		if err := f.tellAll(listings[i].wrong); err != nil {
			return nil, err
		}
		files := listings[i].files
		if isLink(e) && len(files) == 0 {
			continue
		}
		for k := range files {
			files[k].label = int32(len(l.classes))
		}
		l.classes, l.files = append(l.classes, e.Name()), append(l.files, files...)
		listings[i].files = nil
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

func isLink(e fs.DirEntry) bool { return e.Type()&fs.ModeSymlink != 0 }

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// verify reads all pictures and leaves out those that cannot be read.
func (l *classFolders) verify(f *faults) error {
	var kept []pictureFile
	err := f.verify(len(l.files), func(i int) error {
		_, err := readPicture(l.path(i))
		return err
	}, func(i int) { kept = append(kept, l.files[i]) })
	l.files = kept
	return err
}

// listing is what a folder holds: pictures, and what is wrong with others.
type listing struct {
	files []pictureFile
	wrong []error
}

// listPictures lists the pictures of one folder.
func listPictures(op, dir, do string) (l listing, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return l, systemError(op, dir, err, do)
	}
	for _, e := range entries {
		if !isPicture(e.Name()) || e.IsDir() {
			continue
		}
		path := filepath.Join(dir, e.Name())
		info, err := e.Info()
		if isLink(e) {
			info, err = os.Stat(path)
		}
		switch {
		case err != nil:
			l.wrong = append(l.wrong, systemError(op, path, err, doPicture))
		case !info.Mode().IsRegular():
		case info.Size() == 0:
			l.wrong = append(l.wrong, &Error{Op: op, Path: path, Kind: Empty, Detail: "the file has 0 bytes", Do: doPicture})
		default:
			l.files = append(l.files, pictureFile{name: e.Name(), size: info.Size()})
		}
	}
	return l, nil
}

// isPicture goes by a file's name.
func isPicture(name string) bool {
	return !strings.HasPrefix(name, ".") && slices.Contains([]string{".jpg", ".jpeg", ".png"}, strings.ToLower(filepath.Ext(name)))
}

// gallery returns the pictures, each made by fit out of what is in its file.
func (l *classFolders) gallery(o PictureOptions, planes, side int, fit func(r *raster) *raster) *gallery {
	labels := make([]int32, len(l.files))
	for i, f := range l.files {
		labels[i] = f.label
	}
	load := func(i int) ([]byte, error) {
		r, err := readPicture(l.path(i))
		if err != nil {
			return nil, err
		}
		return fit(r).pixels, nil
	}
	identity := func(i int) string {
		f := l.files[i]
		return fmt.Sprintf("%s/%s %d", l.classes[f.label], f.name, f.size)
	}
	return newGallery(o, planes, side, labels, load, identity)
}

// colourSquare fits a picture for the models of coloured squares.
func colourSquare(side int) func(r *raster) *raster {
	return func(r *raster) *raster { return r.square(side).colour() }
}
