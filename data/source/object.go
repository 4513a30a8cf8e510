package source

import (
	"io"
	"io/fs"
	"sync"
)

const (
	// blockSize is how many bytes of an object are kept and fetched together, at least.
	blockSize = slotSize - headerSize
	// longestFetch bounds a request, and so the memory of a read.
	longestFetch = 256 * blockSize // 8 MB
)

// object is an open object. What is read block after block is fetched ahead, twice as
// much each time, so that a large file takes few requests and a look at a file's head
// takes a small one.
type object struct {
	*bucket
	name  string
	entry *entry

	mu     sync.Mutex
	offset int64  // of Read
	run    []byte // bytes that were fetched last
	runAt  int64
	ahead  int
}

func (o *object) Stat() (fs.FileInfo, error) { return o.entry, nil }

func (o *object) Close() error { return nil }

func (o *object) Read(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(p) == 0 {
		return 0, nil
	}
	n, err := o.read(p, o.offset)
	o.offset += int64(n)
	if n > 0 && err == io.EOF {
		err = nil
	}
	return n, err
}

func (o *object) ReadAt(p []byte, offset int64) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if offset < 0 {
		return 0, pathError("read", o.path(o.name), fs.ErrInvalid)
	}
	return o.read(p, offset)
}

func (o *object) read(p []byte, offset int64) (n int, err error) {
	for n < len(p) {
		at := offset + int64(n)
		if at >= o.entry.stamp.Size {
			return n, io.EOF
		}
		if at < o.runAt || at >= o.runAt+int64(len(o.run)) {
			if err := o.load(at, len(p)-n); err != nil {
				return n, pathError("read", o.path(o.name), err)
			}
		}
		n += copy(p[n:], o.run[at-o.runAt:])
	}
	return n, nil
}

// load makes the run hold the byte at an offset: a block from the cache, or as many
// from the store as are wanted and, where reading goes on behind the last run, ahead.
func (o *object) load(at int64, want int) error {
	if at == o.runAt+int64(len(o.run)) && at > 0 {
		o.ahead = min(max(2*o.ahead, blockSize), longestFetch)
	} else {
		o.ahead = 0
	}
	size := o.entry.stamp.Size
	first := at / blockSize
	from := first * blockSize
	if block := resized(o.run, int(min(blockSize, size-from))); o.cache.get(o.name, first, o.entry.stamp.Version, block) {
		o.run, o.runAt = block, from
		return nil
	}
	end := min(at+int64(max(want, o.ahead)), from+longestFetch, size)
	blocks := (end - from + blockSize - 1) / blockSize
	run := resized(o.run, int(min(blocks*blockSize, size-from)))
	o.run = nil // it may have been overwritten if this fails
	if err := o.fetch(o.name, o.entry.stamp, run, from); err != nil {
		return err
	}
	o.run, o.runAt = run, from
	for i := range blocks {
		o.cache.put(o.name, first+i, o.entry.stamp.Version, run[i*blockSize:min((i+1)*blockSize, int64(len(run)))])
	}
	return nil
}

func resized(b []byte, n int) []byte {
	if cap(b) >= n {
		return b[:n]
	}
	return make([]byte, n)
}
