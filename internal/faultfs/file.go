package faultfs

import (
	"io"
	"io/fs"
	"syscall"
)

type writer struct {
	fs   *FS
	node *node
	path string
}

// Write appends. Where it is stopped, half of p has landed; where the disk is
// full, what fitted.
func (w *writer) Write(p []byte) (int, error) {
	w.fs.mu.Lock()
	defer w.fs.mu.Unlock()
	wasDead := w.fs.dead
	if err := w.fs.begin(); err != nil {
		n := len(p) / 2
		if wasDead {
			n = 0
		}
		w.node.data = append(w.node.data, p[:n]...)
		return n, pathError("write", w.path, err)
	}
	if free := w.fs.limit - w.fs.root.bytes(); int64(len(p)) > free {
		n := max(free, 0)
		w.node.data = append(w.node.data, p[:n]...)
		return int(n), pathError("write", w.path, syscall.ENOSPC)
	}
	w.node.data = append(w.node.data, p...)
	return len(p), nil
}

// Sync makes the bytes durable.
func (w *writer) Sync() error {
	w.fs.mu.Lock()
	defer w.fs.mu.Unlock()
	if err := w.fs.begin(); err != nil {
		return pathError("sync", w.path, err)
	}
	w.node.disk = append([]byte(nil), w.node.data...)
	return nil
}

func (w *writer) Close() error { return nil }

type reader struct {
	fs   *FS
	node *node
}

func (r *reader) ReadAt(p []byte, offset int64) (int, error) {
	r.fs.mu.Lock()
	defer r.fs.mu.Unlock()
	if offset < 0 {
		return 0, fs.ErrInvalid
	}
	if offset >= int64(len(r.node.data)) {
		return 0, io.EOF
	}
	n := copy(p, r.node.data[offset:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (r *reader) Stat() (fs.FileInfo, error) {
	r.fs.mu.Lock()
	defer r.fs.mu.Unlock()
	return r.node.info(), nil
}

func (r *reader) Close() error { return nil }
