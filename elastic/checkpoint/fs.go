package checkpoint

import (
	"errors"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// FS is what the package needs of a file system. [OS] is the real one; tests use
// one that fails, stops and loses what was not synced. The types that its
// methods return are unnamed, so an implementation need not import this package.
type FS interface {
	MkdirAll(dir string) error
	Create(name string) (WriteFile, error) // empty, replacing what was there
	Open(name string) (ReadFile, error)
	ReadDir(dir string) ([]fs.DirEntry, error) // sorted by name
	Rename(from, to string) error
	Remove(name string) error // a file or an empty folder
	SyncDir(dir string) error // makes creations, renames and removals in dir durable
	// Free is how many bytes may still be written under dir, or an error where
	// that is not known. It only serves messages.
	Free(dir string) (int64, error)
}

// WriteFile is a file being written.
type WriteFile = interface {
	io.Writer
	io.Closer
	Sync() error
}

// ReadFile is a file being read.
type ReadFile = interface {
	io.ReaderAt
	io.Closer
	Stat() (fs.FileInfo, error)
}

// OS is the operating system's file system.
type OS struct{}

// MkdirAll makes a folder and its parents.
func (OS) MkdirAll(dir string) error { return os.MkdirAll(dir, 0o755) }

// Create makes an empty file.
func (OS) Create(name string) (WriteFile, error) { return os.Create(name) }

// Open opens a file for reading.
func (OS) Open(name string) (ReadFile, error) { return os.Open(name) }

// ReadDir lists a folder.
func (OS) ReadDir(dir string) ([]fs.DirEntry, error) { return os.ReadDir(dir) }

// Rename moves a file over another.
func (OS) Rename(from, to string) error { return os.Rename(from, to) }

// Remove deletes a file or an empty folder.
func (OS) Remove(name string) error { return os.Remove(name) }

// SyncDir makes a folder's entries durable.
func (OS) SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Free asks the file system for the space open to this user.
func (OS) Free(dir string) (int64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, err
	}
	return int64(s.Bavail) * int64(s.Bsize), nil
}
