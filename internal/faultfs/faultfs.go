// Package faultfs is a file system in memory that fails on purpose: at a chosen
// operation, as a killed process does, as a full disk does, and as a machine does
// that loses power before everything was synced.
//
// # Model
//
// A file has two contents: what processes see, and what is on the disk. Sync
// makes them equal. A folder has two sets of entries in the same way; SyncDir
// makes them equal. Renaming, creating and removing change only what is seen. So
// a file whose bytes were synced is still lost if its folder was not, and a name
// that was made durable may lead to bytes that were not: the two mistakes that
// programs make when they save.
//
// Every operation that changes something counts ([FS.Ops]): MkdirAll, Create,
// each Write, Sync, Rename, Remove, SyncDir. [FS.KillAt] stops the process at the
// n-th; a Write it stops is half done. [FS.Crash] cuts the power. A test runs a
// save once to count its operations, then once for each n, and looks at what is
// left.
//
// The type has the methods of the file system interface of package
// elastic/checkpoint without importing it.
package faultfs

import (
	"errors"
	"io"
	"io/fs"
	"maps"
	"math"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// ErrKilled is what every operation returns once the process was stopped.
var ErrKilled = errors.New("faultfs: the process was killed")

// FS is the file system. Create it with [New]. Its methods may be called from
// several goroutines.
type FS struct {
	mu    sync.Mutex
	root  *node
	ops   int
	fault func(op int) error // of operation op; nil: none
	dead  bool
	limit int64 // bytes; MaxInt64: none
}

// node is a file or, where seen is not nil, a folder.
type node struct {
	name          string
	data, disk    []byte           // a file's contents: seen, durable
	seen, durable map[string]*node // a folder's entries
}

func newDir(name string) *node {
	return &node{name: name, seen: map[string]*node{}, durable: map[string]*node{}}
}

// New returns an empty file system.
func New() *FS { return &FS{root: newDir("/"), limit: math.MaxInt64} }

// Ops is how many changing operations were asked for so far.
func (f *FS) Ops() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.ops
}

// KillAt stops the process at the n-th changing operation from now (the first is
// 1): it fails with [ErrKilled], and so do all after it, until [FS.Restart].
func (f *FS) KillAt(n int) {
	f.setFault(n, func(now, at int) error {
		if now >= at {
			f.dead = true
			return ErrKilled
		}
		return nil
	})
}

// FailAt lets only the n-th changing operation from now fail, with err.
func (f *FS) FailAt(n int, err error) {
	f.setFault(n, func(now, at int) error {
		if now == at {
			return err
		}
		return nil
	})
}

func (f *FS) setFault(n int, fault func(now, at int) error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	at := f.ops + n
	f.fault = func(now int) error { return fault(now, at) }
}

// Limit makes writes beyond a total of n bytes fail with ENOSPC, after writing
// what still fits.
func (f *FS) Limit(n int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.limit = n
}

// Restart starts a new process on the same files: no fault is pending.
func (f *FS) Restart() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.dead, f.fault = false, nil
}

// begin counts a changing operation and asks for its fault.
func (f *FS) begin() error {
	f.ops++
	if f.dead {
		return ErrKilled
	}
	if f.fault != nil {
		return f.fault(f.ops)
	}
	return nil
}

func pathError(op, name string, err error) error {
	return &fs.PathError{Op: op, Path: name, Err: err}
}

// lookup finds a node by its path.
func (f *FS) lookup(name string) (*node, error) {
	n := f.root
	for _, part := range split(name) {
		if n.seen == nil {
			return nil, syscall.ENOTDIR
		}
		next, ok := n.seen[part]
		if !ok {
			return nil, fs.ErrNotExist
		}
		n = next
	}
	return n, nil
}

// parent finds the folder that a path's last element lies in.
func (f *FS) parent(name string) (*node, string, error) {
	dir, base := path.Split(path.Clean("/" + filepath.ToSlash(name)))
	n, err := f.lookup(dir)
	if err == nil && n.seen == nil {
		err = syscall.ENOTDIR
	}
	if err == nil && base == "" {
		err = fs.ErrInvalid
	}
	return n, base, err
}

func split(name string) []string {
	return strings.FieldsFunc(path.Clean("/"+filepath.ToSlash(name)), func(r rune) bool { return r == '/' })
}

// MkdirAll makes a folder and its parents.
func (f *FS) MkdirAll(dir string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.begin(); err != nil {
		return pathError("mkdir", dir, err)
	}
	n := f.root
	for _, part := range split(dir) {
		next, ok := n.seen[part]
		switch {
		case !ok:
			next = newDir(part)
			n.seen[part] = next
		case next.seen == nil:
			return pathError("mkdir", dir, syscall.ENOTDIR)
		}
		n = next
	}
	return nil
}

// Create makes an empty file in place of what was there.
func (f *FS) Create(name string) (interface {
	io.Writer
	io.Closer
	Sync() error
}, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.begin(); err != nil {
		return nil, pathError("create", name, err)
	}
	dir, base, err := f.parent(name)
	if err != nil {
		return nil, pathError("create", name, err)
	}
	n := &node{name: base}
	dir.seen[base] = n
	return &writer{fs: f, node: n, path: name}, nil
}

// Rename moves a file over another.
func (f *FS) Rename(from, to string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.begin(); err != nil {
		return pathError("rename", from, err)
	}
	source, old, err := f.parent(from)
	if err != nil {
		return pathError("rename", from, err)
	}
	target, name, err := f.parent(to)
	if err != nil {
		return pathError("rename", to, err)
	}
	n, ok := source.seen[old]
	if !ok {
		return pathError("rename", from, fs.ErrNotExist)
	}
	delete(source.seen, old)
	n.name = name
	target.seen[name] = n
	return nil
}

// Remove deletes a file or an empty folder.
func (f *FS) Remove(name string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.begin(); err != nil {
		return pathError("remove", name, err)
	}
	dir, base, err := f.parent(name)
	if err != nil {
		return pathError("remove", name, err)
	}
	switch n, ok := dir.seen[base]; {
	case !ok:
		return pathError("remove", name, fs.ErrNotExist)
	case len(n.seen) > 0:
		return pathError("remove", name, syscall.ENOTEMPTY)
	}
	delete(dir.seen, base)
	return nil
}

// SyncDir makes a folder's entries durable.
func (f *FS) SyncDir(dir string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.begin(); err != nil {
		return pathError("sync", dir, err)
	}
	n, err := f.lookup(dir)
	if err == nil && n.seen == nil {
		err = syscall.ENOTDIR
	}
	if err != nil {
		return pathError("sync", dir, err)
	}
	n.durable = maps.Clone(n.seen)
	return nil
}

// Free is the space left under the limit.
func (f *FS) Free(string) (int64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return max(f.limit-f.root.bytes(), 0), nil
}

// ReadDir lists a folder by name.
func (f *FS) ReadDir(dir string) ([]fs.DirEntry, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n, err := f.lookup(dir)
	if err == nil && n.seen == nil {
		err = syscall.ENOTDIR
	}
	if err != nil {
		return nil, pathError("readdir", dir, err)
	}
	var entries []fs.DirEntry
	for _, child := range n.seen {
		entries = append(entries, fs.FileInfoToDirEntry(child.info()))
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries, nil
}

// Open opens a file for reading.
func (f *FS) Open(name string) (interface {
	io.ReaderAt
	io.Closer
	Stat() (fs.FileInfo, error)
}, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.dead {
		return nil, pathError("open", name, ErrKilled)
	}
	n, err := f.lookup(name)
	if err == nil && n.seen != nil {
		err = syscall.EISDIR
	}
	if err != nil {
		return nil, pathError("open", name, err)
	}
	return &reader{fs: f, node: n}, nil
}

func (n *node) info() info {
	return info{name: n.name, size: int64(len(n.data)), dir: n.seen != nil}
}

// bytes is the size of all files seen below a node.
func (n *node) bytes() int64 {
	total := int64(len(n.data))
	for _, child := range n.seen {
		total += child.bytes()
	}
	return total
}

type info struct {
	name string
	size int64
	dir  bool
}

func (i info) Name() string { return i.name }
func (i info) Size() int64  { return i.size }
func (i info) Mode() fs.FileMode {
	if i.dir {
		return fs.ModeDir | 0o755
	}
	return 0o644
}
func (i info) ModTime() time.Time { return time.Time{} }
func (i info) IsDir() bool        { return i.dir }
func (i info) Sys() any           { return nil }
