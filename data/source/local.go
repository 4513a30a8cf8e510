package source

import (
	"io/fs"
	"os"
	"path/filepath"
)

// Local is a folder of the file system. Its files are *os.File.
func Local(folder string) *Tree { return Of(local(folder), folder) }

// local is like os.DirFS, but that its root may be a file, that errors name the whole
// path, and that nothing but a regular file is opened: to open a pipe would wait.
type local string

func (l local) path(name string) string {
	if name == "." {
		return string(l)
	}
	return filepath.Join(string(l), filepath.FromSlash(name))
}

func (l local) Stat(name string) (fs.FileInfo, error) { return os.Stat(l.path(name)) }

func (l local) ReadDir(name string) ([]fs.DirEntry, error) { return os.ReadDir(l.path(name)) }

func (l local) Open(name string) (fs.File, error) {
	path := l.path(name)
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: path, Err: ErrNotRegular}
	}
	if err != nil {
		return nil, err
	}
	return os.Open(path)
}
