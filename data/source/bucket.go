package source

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"gocloud.dev/blob"
)

// Options of a bucket; the zero value is ready for use.
type Options struct {
	// Deadline is how long the store may send nothing before a read fails; 0 is a
	// minute. Requests are made anew in this time.
	Deadline time.Duration
	// CacheBytes bounds the cache on the local disk; 0 is 8 GiB, a negative number is
	// for none.
	CacheBytes int64
	// CacheDir is the folder of the cache; "" is optimus in the user's folder for
	// caches.
	CacheDir string
}

const (
	standardDeadline = time.Minute
	bucketWidth      = 32
	pageSize         = 1000 // what stores answer at most
)

// bucket is the objects below a prefix, as an fs.FS: a name's parts are parted by
// slashes, and a folder is there if an object lies below it.
type bucket struct {
	blobs    *blob.Bucket
	location string // of the root, for errors
	folder   string // the root's key, "" for all of the bucket
	patience time.Duration
	cache    *cache
	ctx      context.Context
	stop     context.CancelFunc
	idle     func() // closes connections that wait for use
}

// Bucket is the tree of a bucket of package gocloud.dev/blob, below a folder in it, ""
// for all. The tree closes the bucket. The location is what errors show before a
// file's name, and what the cache knows the bucket by.
func Bucket(ctx context.Context, blobs *blob.Bucket, location, folder string, o Options) (*Tree, error) {
	b := &bucket{blobs: blobs, location: location, folder: strings.Trim(folder, "/"), idle: func() {}}
	tree, err := b.open(ctx, location, o)
	return tree, pathError("open", location, err)
}

// open makes the tree; the cache knows it by a name.
func (b *bucket) open(ctx context.Context, name string, o Options) (tree *Tree, err error) {
	if o.Deadline < 0 {
		return nil, &Fault{Err: fmt.Errorf("a deadline of %v", o.Deadline), Do: "give a positive one, or 0 for the standard"}
	}
	b.patience = cmp.Or(o.Deadline, standardDeadline)
	if b.cache, err = openCache(o, name); err != nil {
		return nil, err
	}
	b.ctx, b.stop = context.WithCancel(ctx)
	return &Tree{files: b, location: b.location, width: bucketWidth, close: b.close}, nil
}

func (b *bucket) close() error {
	b.stop()
	err := b.blobs.Close()
	b.idle()
	return errors.Join(err, b.cache.close())
}

func (b *bucket) path(name string) string { return locate(b.location, name) }

// key is the key of an object. The root may be one as well.
func (b *bucket) key(name string) string {
	if name == "." {
		return b.folder
	}
	return path.Join(b.folder, name)
}

// Stat asks for an object, then for a folder, of the name.
func (b *bucket) Stat(name string) (fs.FileInfo, error) {
	info, err := b.statObject(name)
	if errors.Is(err, fs.ErrNotExist) {
		var page []fs.DirEntry // of two, as the first may stand for the folder itself
		if page, _, err = b.list(name, blob.FirstPageToken, 2); err == nil && len(page) == 0 {
			err = fs.ErrNotExist
		}
		info = &entry{name: path.Base(name), folder: true}
	}
	if err != nil {
		return nil, pathError("stat", b.path(name), err)
	}
	return info, nil
}

func (b *bucket) statObject(name string) (*entry, error) {
	if b.key(name) == "" {
		return nil, fs.ErrNotExist
	}
	var found *blob.Attributes
	err := b.try("ask for the size", func(ctx context.Context, _ func()) (err error) {
		found, err = b.blobs.Attributes(ctx, b.key(name))
		return err
	})
	if err != nil {
		return nil, err
	}
	var head s3.HeadObjectOutput
	e := &entry{name: path.Base(name), modified: found.ModTime, stamp: Stamp{found.Size, timeVersion(found.ModTime)}}
	if found.As(&head) {
		e.stamp.Version = tagVersion(aws.ToString(head.ETag))
	}
	return e, nil
}

// ReadDir lists the objects and folders right below a folder.
func (b *bucket) ReadDir(name string) ([]fs.DirEntry, error) {
	var all []fs.DirEntry
	for token := blob.FirstPageToken; len(token) > 0; {
		page, next, err := b.list(name, token, pageSize)
		if err != nil {
			return nil, pathError("list", b.path(name), err)
		}
		all, token = append(all, page...), next
	}
	if len(all) == 0 && name != "." {
		return nil, pathError("list", b.path(name), fs.ErrNotExist)
	}
	return sortEntries(all), nil
}

// list asks for a page of a folder's entries.
func (b *bucket) list(name string, token []byte, size int) (page []fs.DirEntry, next []byte, err error) {
	prefix := b.key(name)
	if prefix != "" {
		prefix += "/"
	}
	var objects []*blob.ListObject
	err = b.try("list the folder", func(ctx context.Context, _ func()) (err error) {
		objects, next, err = b.blobs.ListPage(ctx, token, size, &blob.ListOptions{Prefix: prefix, Delimiter: "/"})
		return err
	})
	for _, o := range objects {
		name := strings.TrimSuffix(strings.TrimPrefix(o.Key, prefix), "/")
		if name == "" { // the object that some programs make to stand for the folder
			continue
		}
		e := &entry{name: name, folder: o.IsDir || strings.HasSuffix(o.Key, "/"), modified: o.ModTime, stamp: Stamp{o.Size, timeVersion(o.ModTime)}}
		var object types.Object
		if o.As(&object) {
			e.stamp.Version = tagVersion(aws.ToString(object.ETag))
		}
		page = append(page, e)
	}
	return page, next, err
}

// Open opens an object; it asks for the size first.
func (b *bucket) Open(name string) (fs.File, error) {
	e, err := b.statObject(name)
	if err != nil {
		return nil, pathError("open", b.path(name), err)
	}
	return &object{bucket: b, name: name, entry: e}, nil
}

// OpenStamped opens an object without a request.
func (b *bucket) OpenStamped(name string, s Stamp) (fs.File, error) {
	return &object{bucket: b, name: name, entry: &entry{name: path.Base(name), stamp: s}}, nil
}

// entry describes an object or a folder.
type entry struct {
	name     string
	folder   bool
	modified time.Time
	stamp    Stamp
}

func (e *entry) Name() string               { return e.name }
func (e *entry) Size() int64                { return e.stamp.Size }
func (e *entry) ModTime() time.Time         { return e.modified }
func (e *entry) IsDir() bool                { return e.folder }
func (e *entry) Sys() any                   { return e.stamp }
func (e *entry) Type() fs.FileMode          { return e.Mode().Type() }
func (e *entry) Info() (fs.FileInfo, error) { return e, nil }
func (e *entry) String() string             { return fs.FormatDirEntry(e) }

func (e *entry) Mode() fs.FileMode {
	if e.folder {
		return fs.ModeDir | 0o555
	}
	return 0o444
}

// tagVersion is the version of a store's ETag.
func tagVersion(tag string) uint64 {
	sum := sha256.Sum256([]byte(strings.Trim(tag, `"`)))
	return binary.LittleEndian.Uint64(sum[:])
}

// timeVersion is the version of an object of a store without ETags.
func timeVersion(t time.Time) uint64 { return uint64(t.UnixNano()) }

// fetch reads the bytes of an object from an offset on into p, in as many requests as
// it takes.
func (b *bucket) fetch(name string, want Stamp, p []byte, offset int64) error {
	got := 0
	what := fmt.Sprintf("read bytes %d to %d", offset, offset+int64(len(p))-1)
	return b.try(what, func(ctx context.Context, alive func()) error {
		from, n := offset+int64(got), int64(len(p)-got)
		r, err := b.blobs.NewRangeReader(ctx, b.key(name), from, n, nil)
		if statusOf(err) == 416 { // it is shorter now
			return changed(want, "a shorter one")
		}
		if err != nil {
			return err
		}
		defer r.Close()
		if err := compare(r, want, from, n); err != nil {
			return err
		}
		for got < len(p) {
			k, err := r.Read(p[got:])
			if got += k; k > 0 {
				alive()
			}
			if err == io.EOF && got < len(p) {
				err = io.ErrUnexpectedEOF
			}
			if err != nil && got < len(p) {
				return err
			}
		}
		return nil
	})
}

func changed(was Stamp, now string) error {
	return &Fault{Err: fmt.Errorf("the object has changed since it was listed: in place of its %d bytes there is %s", was.Size, now),
		Do: "let nobody write to a set that is in use, and start anew"}
}

// compare reports an answer of another version of the object, and one with other bytes
// than were asked for.
func compare(r *blob.Reader, want Stamp, from, n int64) error {
	found := Stamp{r.Size(), timeVersion(r.ModTime())}
	var answer s3.GetObjectOutput
	isS3 := r.As(&answer)
	if isS3 {
		found.Version = tagVersion(aws.ToString(answer.ETag))
	}
	if found.Version != want.Version {
		return changed(want, fmt.Sprintf("one of %d", found.Size))
	}
	part := fmt.Sprintf("bytes %d-%d/%d", from, from+n-1, want.Size)
	whole := from == 0 && n == want.Size && aws.ToString(answer.ContentRange) == "" && aws.ToInt64(answer.ContentLength) == n
	if isS3 && aws.ToString(answer.ContentRange) != part && !whole {
		return fmt.Errorf("the store sent %q, asked for %q", aws.ToString(answer.ContentRange), part)
	}
	return nil
}
