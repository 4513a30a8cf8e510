// Package source is where the files of data sets lie: in a local folder, or below a
// URL in an object store.
//
// The idea: a reader of a set asks for files by their names below one root, and must
// not care what the root is. So everything is a [Path], a name in an io/fs.FS, and
// what differs between stores is behind that one interface of the standard library: a
// local folder is read by the operating system's calls and nothing else; a bucket of
// an object store by ranged requests, which are repeated when they fail, checked for
// an object that has changed, and kept in a bounded cache on the local disk. Another
// store is another fs.FS whose files have ReadAt.
//
// [Open] knows these locations:
//
//	path/to/folder, /path/to/folder, file:///path/to/folder
//	s3://BUCKET/FOLDER?region=…&endpoint=…   Amazon S3 and what speaks its protocol
//	gs://BUCKET/FOLDER                       Google Cloud Storage
//
// and every scheme that the program has registered with gocloud.dev/blob, such as
// mem://. Credentials are never part of a location: they come from the environment
// and the usual files of the store's own tools, so a location may be printed, kept in
// a checkpoint and handed to other processes. docs/formats/sources.md has the
// parameters of a URL, what is kept in the cache, and what happens when a store fails.
//
// Errors are those of io/fs: *fs.PathError, wrapping fs.ErrNotExist where there is no
// such file. What is wrong with a store, and not with a file in it, is a [*Fault]
// inside of it.
package source

import (
	"context"
	"io"
	"io/fs"
	"net/url"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// Tree is an open location. It is safe for concurrent use.
type Tree struct {
	files    fs.FS
	location string // without the parameters of a URL
	width    int
	close    func() error
}

// Open opens a location. It reads nothing yet of a local folder; of a store it looks
// for the credentials. The context ends all that is read from the tree, besides Close.
func Open(ctx context.Context, location string) (*Tree, error) {
	if !IsURL(location) {
		return Local(location), nil
	}
	u, err := url.Parse(location)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: location, Err: &Fault{Err: err, Do: "give a folder, or a URL such as s3://bucket/folder"}}
	}
	tree, err := openURL(ctx, u)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: plainURL(u, u.Path), Err: err}
	}
	return tree, nil
}

// Of is a tree of any file system whose regular files implement io.ReaderAt. The
// location is what errors show before a file's name.
func Of(files fs.FS, location string) *Tree {
	return &Tree{files: files, location: location, width: runtime.GOMAXPROCS(0), close: func() error { return nil }}
}

// Close ends what is being read, and gives up connections. Files must not be read
// after it.
func (t *Tree) Close() error { return t.close() }

// Root is the path of the location itself.
func (t *Tree) Root() Path { return Path{t, "."} }

// IsURL reports whether a location is a URL, and not a path of the file system.
func IsURL(location string) bool {
	scheme, _, ok := strings.Cut(location, "://")
	return ok && scheme != "" && strings.Trim(scheme, "abcdefghijklmnopqrstuvwxyz0123456789+-.") == ""
}

// Absolute is a location that means the same in every folder.
func Absolute(location string) (string, error) {
	if IsURL(location) {
		return location, nil
	}
	return filepath.Abs(location)
}

// Path is a file or folder of a tree. It is a small value; the zero Path is none.
type Path struct {
	tree *Tree
	name string // as io/fs has it: below the root, "." for the root itself
}

// String is the whole path or URL, for errors.
func (p Path) String() string {
	if p.tree == nil {
		return ""
	}
	return locate(p.tree.location, p.name)
}

// locate is the whole path or URL of a name below a location.
func locate(location, name string) string {
	if name == "." {
		return location
	}
	return strings.TrimSuffix(location, "/") + "/" + name
}

// Join is the path of a name below p.
func (p Path) Join(elem ...string) Path {
	return Path{p.tree, path.Join(p.name, path.Join(elem...))}
}

// Append is the path, not the root, with more at the end of its name, such as ".gz".
func (p Path) Append(end string) Path { return Path{p.tree, p.name + end} }

// Dir is the folder that p lies in; that of the root is the root.
func (p Path) Dir() Path { return Path{p.tree, path.Dir(p.name)} }

// Base is the last element of the path, that of the location for the root.
func (p Path) Base() string {
	if p.name == "." {
		return filepath.Base(p.tree.location)
	}
	return path.Base(p.name)
}

// Below returns the name of p below a folder; ok is false if it does not lie there.
func (p Path) Below(folder Path) (name string, ok bool) {
	if folder.name == "." {
		return p.name, true
	}
	return strings.CutPrefix(p.name, folder.name+"/")
}

// Width is how many files of the tree should be read at once: as many as there are
// processors, or more where a store lets each wait.
func (p Path) Width() int { return p.tree.width }

// Stat describes what is there; a link is what it leads to. A folder of a store is
// there if an object is in it.
func (p Path) Stat() (fs.FileInfo, error) { return fs.Stat(p.tree.files, p.name) }

// IsDir reports whether there is a folder. If the store is at fault it says so too:
// the fault is then met by what is read next.
func (p Path) IsDir() bool {
	info, err := p.Stat()
	return err == nil && info.IsDir() || IsFault(err)
}

// Exists reports whether anything is there; see IsDir for faults.
func (p Path) Exists() bool {
	_, err := p.Stat()
	return err == nil || IsFault(err)
}

// ReadDir lists a folder in the order of the names' bytes.
func (p Path) ReadDir() ([]fs.DirEntry, error) { return fs.ReadDir(p.tree.files, p.name) }

// Matches reports whether a path below p matches one of the patterns, as path.Match
// has them. It lists no more folders than it needs to find the first; see IsDir for
// faults.
func (p Path) Matches(patterns ...string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool { return p.matches(strings.Split(pattern, "/")) })
}

func (p Path) matches(elems []string) bool {
	first, rest := elems[0], elems[1:]
	if !strings.ContainsAny(first, `*?[\`) {
		if p = p.Join(first); len(rest) > 0 {
			return p.matches(rest)
		}
		return p.Exists()
	}
	entries, err := p.ReadDir()
	if err != nil {
		return IsFault(err)
	}
	return slices.ContainsFunc(entries, func(e fs.DirEntry) bool {
		ok, err := path.Match(first, e.Name())
		return ok && err == nil && (len(rest) == 0 || p.Join(e.Name()).matches(rest))
	})
}

// File is an open file.
type File interface {
	fs.File
	io.ReaderAt
}

// Open opens a regular file.
func (p Path) Open() (File, error) { return p.asFile(p.tree.files.Open(p.name)) }

// OpenStamped opens a file that has been listed. In a store it saves the request for
// its size, and what has another stamp by now is a [*Fault] when it is read.
func (p Path) OpenStamped(s Stamp) (File, error) {
	if known, ok := p.tree.files.(interface {
		OpenStamped(name string, s Stamp) (fs.File, error)
	}); ok {
		return p.asFile(known.OpenStamped(p.name, s))
	}
	return p.Open()
}

func (p Path) asFile(f fs.File, err error) (File, error) {
	if err != nil {
		return nil, err
	}
	file, ok := f.(File)
	if !ok {
		f.Close()
		return nil, &fs.PathError{Op: "open", Path: p.String(), Err: fs.ErrInvalid}
	}
	return file, nil
}

// Stamp tells versions of a file's content from each other: one version has one
// stamp, another version most probably has another.
type Stamp struct {
	Size    int64
	Version uint64 // made of a store's ETag; 0 for a local file, of which the size alone counts
}

// StampOf returns the stamp of a file that was listed or opened.
func StampOf(info fs.FileInfo) Stamp {
	if s, ok := info.Sys().(Stamp); ok {
		return s
	}
	return Stamp{Size: info.Size()}
}

// sortEntries puts entries into the order of their names' bytes, and drops a name that
// comes twice: a store may have an object and a folder of one name.
func sortEntries(entries []fs.DirEntry) []fs.DirEntry {
	slices.SortStableFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return slices.CompactFunc(entries, func(a, b fs.DirEntry) bool { return a.Name() == b.Name() })
}
