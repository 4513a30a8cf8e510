package data

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"optimus/data/source"
)

// pictureFile is one picture of a class folder. There may be millions, so it does not
// hold what its folder says.
type pictureFile struct {
	name  string
	label int32
	stamp source.Stamp
}

// classFolders are the folders of dir, one a class, and the pictures in them.
type classFolders struct {
	dir     source.Path
	classes []string
	files   []pictureFile
}

func (l *classFolders) path(i int) source.Path {
	f := &l.files[i]
	return l.dir.Join(l.classes[f.label], f.name)
}

// read decodes a picture.
func (l *classFolders) read(i int) (*raster, error) { return readPicture(l.path(i), l.files[i].stamp) }

// listClasses lists the folders in dir and their pictures, both in the order of
// their names' bytes, whatever the system's language. A picture is a file whose
// name ends in .jpg, .jpeg or .png, in either case. All else is left out: names
// that begin with a dot, other files, folders inside of a class, and links to a
// folder in which there is no picture (they may lead back here). A folder without
// pictures is a class without examples and keeps its label.
//
// A picture of no bytes is a fault here, before any training. Where faults may be left
// out, all pictures are read, and those that cannot be are.
func listClasses(f *faults, dir source.Path, do string) (*classFolders, error) {
	op := f.op
	entries, err := dir.ReadDir()
	if err != nil {
		return nil, systemError(op, dir.String(), err, do)
	}
	var folders []fs.DirEntry
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), ".") && (e.IsDir() || isLink(e) && dir.Join(e.Name()).IsDir()) {
			folders = append(folders, e)
		}
	}
	listings := make([]listing, len(folders))
	err = inParallel(dir.Width(), len(folders), func(i int) (err error) {
		listings[i], err = listPictures(op, dir.Join(folders[i].Name()), do)
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
		return nil, &Error{Op: op, Path: dir.String(), Kind: Empty, Detail: fmt.Sprintf("there are %d class folders and no picture (.jpg, .jpeg, .png) in any", len(l.classes)), Do: do}
	}
	return l, nil
}

func isLink(e fs.DirEntry) bool { return e.Type()&fs.ModeSymlink != 0 }

// verify reads all pictures and leaves out those that cannot be read.
func (l *classFolders) verify(f *faults) error {
	var kept []pictureFile
	err := f.verify(l.dir.Width(), len(l.files), func(i int) error {
		_, err := l.read(i)
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
func listPictures(op string, dir source.Path, do string) (l listing, err error) {
	entries, err := dir.ReadDir()
	if err != nil {
		return l, systemError(op, dir.String(), err, do)
	}
	for _, e := range entries {
		if !isPicture(e.Name()) || e.IsDir() {
			continue
		}
		info, err := e.Info()
		if isLink(e) {
			info, err = dir.Join(e.Name()).Stat()
		}
		switch {
		case err != nil:
			l.wrong = append(l.wrong, systemError(op, dir.Join(e.Name()).String(), err, doPicture))
		case !info.Mode().IsRegular():
		case info.Size() == 0:
			l.wrong = append(l.wrong, &Error{Op: op, Path: dir.Join(e.Name()).String(), Kind: Empty, Detail: "the file has 0 bytes", Do: doPicture})
		default:
			l.files = append(l.files, pictureFile{name: e.Name(), stamp: source.StampOf(info)})
		}
	}
	return l, nil
}

// isPicture goes by a file's name.
func isPicture(name string) bool {
	return !strings.HasPrefix(name, ".") && slices.Contains([]string{".jpg", ".jpeg", ".png"}, strings.ToLower(path.Ext(name)))
}

// gallery returns the pictures, each made by fit out of what is in its file.
func (l *classFolders) gallery(o PictureOptions, planes, side int, fit func(r *raster) *raster) *gallery {
	labels := make([]int32, len(l.files))
	for i, f := range l.files {
		labels[i] = f.label
	}
	load := func(i int) ([]byte, error) {
		r, err := l.read(i)
		if err != nil {
			return nil, err
		}
		return fit(r).pixels, nil
	}
	identity := func(i int) string {
		f := l.files[i]
		id := fmt.Sprintf("%s/%s %d", l.classes[f.label], f.name, f.stamp.Size)
		if f.stamp.Version != 0 {
			id += fmt.Sprintf(" %x", f.stamp.Version)
		}
		return id
	}
	return newGallery(o, planes, side, labels, l.dir.Width(), load, identity)
}

// colourSquare fits a picture for the models of coloured squares.
func colourSquare(side int) func(r *raster) *raster {
	return func(r *raster) *raster { return r.square(side).colour() }
}
