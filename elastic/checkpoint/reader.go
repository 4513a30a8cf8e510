package checkpoint

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"

	"optimus/internal/safetensors"
)

// Reader reads the state of one checkpoint by range. Its methods may be called
// from several goroutines.
type Reader struct {
	dir      string
	manifest *Manifest
	files    []ReadFile
	pieces   [][]located // by block, by offset, without empty ones
}

// located is a piece and the shard that holds it.
type located struct {
	Piece
	path  string
	shard *safetensors.Reader
}

// Load opens a checkpoint by its folder. It makes the cheap checks: the
// manifest's own SHA-256, that the pieces hold every array exactly once, and of
// each shard its size, its header and that it belongs to this save. [Verify]
// also reads the data.
func Load(fs FS, dir string) (*Reader, error) {
	m, err := readManifest(fs, dir)
	if err != nil {
		return nil, err
	}
	return newReader(fs, dir, m)
}

func newReader(fs FS, dir string, m *Manifest) (*Reader, error) {
	r := &Reader{dir: dir, manifest: m, pieces: make([][]located, len(m.Arrays))}
	for i := range m.Shards {
		if err := r.open(fs, &m.Shards[i]); err != nil {
			return nil, errors.Join(err, r.Close())
		}
	}
	for _, pieces := range r.pieces {
		slices.SortFunc(pieces, func(a, b located) int { return cmp.Compare(a.Offset, b.Offset) })
	}
	return r, nil
}

// open adds one shard.
func (r *Reader) open(fsys FS, s *ShardFile) error {
	const op = "load"
	path := filepath.Join(r.dir, s.Name)
	f, err := fsys.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return fault(Missing, op, path, "the manifest lists this shard and it is not there")
	}
	if err != nil {
		return ioFault(op, path, err)
	}
	r.files = append(r.files, f)
	info, err := f.Stat()
	if err != nil {
		return ioFault(op, path, err)
	}
	if info.Size() != s.Size {
		return fault(Truncated, op, path, "it has %d bytes, %d were written", info.Size(), s.Size)
	}
	shard, err := safetensors.Open(f, s.Size, s.Name)
	if err != nil {
		return tensorFault(Corrupt, op, path, err)
	}
	stamp := Stamp{Sequence: r.manifest.Sequence, Step: r.manifest.Step}
	for key, want := range stamp.metadata(s.Server) {
		if got := shard.Metadata()[key]; got != want {
			return fault(Corrupt, op, path, "its %s is %q, the manifest's %q: the files are of different saves", key, got, want)
		}
	}
	return r.add(path, shard, s.Pieces)
}

// add indexes the pieces of a shard whose tensors must be exactly theirs.
func (r *Reader) add(path string, shard *safetensors.Reader, pieces []Piece) error {
	count := 0
	for _, p := range pieces {
		for i := range p.CRC32C {
			name := r.tensorName(p, i)
			t, ok := shard.Lookup(name)
			if !ok || t.DType != safetensors.F32 || len(t.Shape) != 1 || t.Shape[0] != int64(p.Size) {
				e := fault(Corrupt, "load", path, "it is not there as F32 [%d]", p.Size)
				e.Tensor = name
				return e
			}
			count++
		}
		if p.Size > 0 {
			r.pieces[p.Block] = append(r.pieces[p.Block], located{Piece: p, path: path, shard: shard})
		}
	}
	if n := len(shard.Tensors()); n != count {
		return fault(Corrupt, "load", path, "it has %d tensors, the manifest lists %d", n, count)
	}
	return nil
}

// tensorName is the name of a piece's i-th tensor: its parameters, then slots.
func (r *Reader) tensorName(p Piece, i int) string {
	if i == 0 {
		return tensorName(p.Block, p.Offset, "")
	}
	return tensorName(p.Block, p.Offset, r.manifest.Slots[i-1])
}

// Manifest describes the checkpoint. It must not be changed.
func (r *Reader) Manifest() *Manifest { return r.manifest }

// Close closes the files.
func (r *Reader) Close() error {
	var errs []error
	for _, f := range r.files {
		errs = append(errs, f.Close())
	}
	r.files = nil
	return errors.Join(errs...)
}

// Read fills params with the elements of array block from offset on, and slots
// with the optimizer state of the same elements; params, slots and single slots
// may be nil to leave them out, all others have one length. The range may be cut
// in any way across the saved pieces. It returns the largest count of updates
// among those pieces; under bsp they are all equal.
func (r *Reader) Read(block, offset int, params []float32, slots [][]float32) (updates int64, err error) {
	into := slices.Concat([][]float32{params}, slots)
	n := -1
	for _, x := range into {
		if x != nil && n >= 0 && len(x) != n {
			return 0, fault(Invalid, "read", r.dir, "buffers of %d and %d elements for one range of block %d", n, len(x), block)
		}
		if x != nil {
			n = len(x)
		}
	}
	n = max(n, 0)
	if block < 0 || block >= len(r.pieces) || offset < 0 || n > r.manifest.Arrays[block].Size()-offset {
		return 0, fault(Invalid, "read", r.dir, "range %d@%d of %d elements is beyond the checkpoint's arrays", block, offset, n)
	}
	pieces := r.pieces[block]
	first, found := slices.BinarySearchFunc(pieces, offset, func(p located, at int) int { return cmp.Compare(p.Offset, at) })
	if !found {
		first-- // the piece before reaches in: pieces begin at 0 and have no holes
	}
	for done := 0; done < n; first++ {
		p := pieces[first]
		from := offset + done - p.Offset
		count := min(n-done, p.Size-from)
		if err := r.readPiece(p, from, done, count, into); err != nil {
			return 0, err
		}
		updates = max(updates, p.Updates)
		done += count
	}
	return updates, nil
}

// readPiece reads count elements, from element from of the piece, into element
// at of each buffer.
func (r *Reader) readPiece(p located, from, at, count int, into [][]float32) error {
	for i, x := range into {
		if x == nil {
			continue
		}
		if i >= len(p.CRC32C) {
			return fault(Invalid, "read", p.path, "piece %d@%d was saved with %d slots, slot %d was asked for",
				p.Block, p.Offset, len(p.CRC32C)-1, i-1)
		}
		name := r.tensorName(p.Piece, i)
		if err := p.shard.ReadFloat32(name, x[at:at+count], int64(from)); err != nil {
			return ioFault("read", p.path, err)
		}
	}
	return nil
}

// ParamsSHA256 is the digest of all parameters in block order, little-endian
// float32, without auxiliary arrays: it does not depend on the cut.
func (r *Reader) ParamsSHA256() (string, error) {
	sum := sha256.New()
	x := make([]float32, 64<<10)
	var buf []byte
	for block, a := range r.manifest.Arrays {
		if a.Aux {
			break // auxiliary arrays are last
		}
		for at, size := 0, a.Size(); at < size; at += len(x) {
			part := x[:min(len(x), size-at)]
			if _, err := r.Read(block, at, part, nil); err != nil {
				return "", err
			}
			buf = safetensors.AppendFloat32(buf[:0], part)
			sum.Write(buf) // never fails
		}
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// ParamsSHA256 computes the digest of a checkpoint's parameters from its files.
func ParamsSHA256(fs FS, dir string) (digest string, err error) {
	r, err := Load(fs, dir)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	return r.ParamsSHA256()
}
