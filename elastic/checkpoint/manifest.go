package checkpoint

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"math/bits"
	"path/filepath"
	"slices"
	"unicode/utf8"
)

// manifestName is the file that makes a folder a checkpoint.
const manifestName = "manifest.json"

// maxManifest bounds what a reader loads: a manifest of a million pieces.
const maxManifest = 1 << 30

// The manifest's file is one JSON object of exactly this form, in which SUM is
// the SHA-256 of the bytes MANIFEST. Nothing else is accepted, not even other
// white space, so a flipped byte anywhere in the file is found.
//
//	{"sha256":"SUM","manifest":MANIFEST}⏎
const (
	sealOpen   = `{"sha256":"`
	sealMiddle = `","manifest":`
	sealClose  = "}\n"
)

func seal(body []byte) []byte {
	sum := sha256.Sum256(body)
	out := append([]byte(sealOpen), hex.EncodeToString(sum[:])...)
	out = append(append(out, sealMiddle...), body...)
	return append(out, sealClose...)
}

// unseal returns the manifest's bytes if the file is as seal made it.
func unseal(file []byte) ([]byte, error) {
	head := len(sealOpen) + 2*sha256.Size + len(sealMiddle)
	if len(file) < head+len(sealClose) {
		return nil, fmt.Errorf("%d bytes are too few", len(file))
	}
	body := file[head : len(file)-len(sealClose)]
	if !bytes.Equal(file, seal(body)) {
		return nil, errors.New("its SHA-256 is not the one it carries")
	}
	return body, nil
}

// Commit completes a checkpoint by writing its manifest, last. All shards that m
// lists must be in the folder, carry m's sequence and step, and together hold
// each array exactly once. Where ParamsSHA256 is empty, Commit reads the
// parameters back to compute it. When it returns without error the checkpoint
// survives a crash of the machine.
func Commit(fs FS, dir string, m Manifest) error {
	m.Format = FormatVersion
	path := filepath.Join(dir, manifestName)
	if err := m.check(Invalid, "save", path); err != nil {
		return err
	}
	r, err := newReader(fs, dir, &m)
	if err != nil {
		return err
	}
	if m.ParamsSHA256 == "" {
		m.ParamsSHA256, err = r.ParamsSHA256()
	}
	if err := errors.Join(err, r.Close()); err != nil {
		return err
	}
	body, err := json.Marshal(&m)
	if err != nil {
		return fault(Invalid, "save", path, "%w", err)
	}
	file := seal(body)
	if err := makeDir(fs, dir); err != nil {
		return err
	}
	return writeFile(fs, path, int64(len(file)), func(w io.Writer) error {
		_, err := w.Write(file)
		return err
	})
}

// readManifest reads and checks the manifest of a folder.
func readManifest(fsys FS, dir string) (*Manifest, error) {
	const op = "read"
	path := filepath.Join(dir, manifestName)
	file, err := readAll(fsys, path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fault(Incomplete, op, dir, "it has no %s, its save did not finish", manifestName)
	case err != nil:
		return nil, ioFault(op, path, err)
	}
	body, err := unseal(file)
	if err != nil {
		return nil, fault(Corrupt, op, path, "%w", err)
	}
	// The format first: the fields of a newer one may have other types.
	var head struct {
		Format int `json:"format"`
	}
	if err := json.Unmarshal(body, &head); err != nil {
		return nil, fault(Corrupt, op, path, "%w", err)
	}
	if head.Format != FormatVersion {
		return nil, &Error{Fault: Version, Op: op, Path: path,
			Err: fmt.Errorf("its format is %d, this program reads %d", head.Format, FormatVersion), Do: "use a newer optimus"}
	}
	m := new(Manifest)
	if err := json.Unmarshal(body, m); err != nil {
		return nil, fault(Corrupt, op, path, "%w", err)
	}
	return m, m.check(Corrupt, op, path)
}

func readAll(fsys FS, path string) (data []byte, err error) {
	f, err := fsys.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() > maxManifest {
		return nil, fault(Corrupt, "read", path, "%d bytes are more than any manifest has", info.Size())
	}
	return io.ReadAll(io.NewSectionReader(f, 0, info.Size()))
}

// check reports, as fault f, what makes a manifest unusable: the sizes of arrays,
// text that JSON cannot carry, names of shards, and pieces that do not hold every array exactly once.
func (m *Manifest) check(f Fault, op, path string) error {
	fail := func(format string, args ...any) error { return fault(f, op, path, format, args...) }
	if m.Sequence < 0 || m.Step < 0 {
		return fail("sequence %d or step %d is negative", m.Sequence, m.Step)
	}
	if err := m.checkArrays(fail); err != nil {
		return err
	}
	for _, s := range slices.Concat(m.Vocabulary, m.Target, []string{m.Merges}, m.Classes) {
		if !utf8.ValidString(s) {
			return fail("word, merge or class %.80q is not UTF-8 and would not be read back as it is", s)
		}
	}
	names := map[string]bool{}
	for _, s := range m.Shards {
		if s.Name != shardName(s.Server) || s.Server < 0 || names[s.Name] {
			return fail("shard %q of server %d is listed twice or has a wrong name", s.Name, s.Server)
		}
		names[s.Name] = true
	}
	return m.checkTiling(fail)
}

// checkArrays checks sizes and order.
func (m *Manifest) checkArrays(fail func(string, ...any) error) error {
	aux := false
	for i, a := range m.Arrays {
		n := uint64(1)
		for _, d := range a.Shape {
			hi, lo := bits.Mul64(n, uint64(max(d, 0)))
			if d < 0 || hi != 0 || lo > math.MaxInt/8 {
				return fail("array %d %s has no valid size", i, a)
			}
			n = lo
		}
		if aux && !a.Aux {
			return fail("array %d %s comes after an auxiliary one", i, a)
		}
		aux = a.Aux
	}
	return nil
}

// checkTiling checks that the pieces hold each array exactly once.
func (m *Manifest) checkTiling(fail func(string, ...any) error) error {
	var pieces []Piece
	for _, s := range m.Shards {
		pieces = append(pieces, s.Pieces...)
	}
	sortPieces(pieces)
	block, at := 0, 0
	for _, p := range pieces {
		if p.Block < 0 || p.Block >= len(m.Arrays) || p.Offset < 0 || p.Size < 0 ||
			p.Size > m.Arrays[p.Block].Size()-p.Offset || len(p.CRC32C) < 1 || len(p.CRC32C) > 1+len(m.Slots) {
			return fail("piece %d@%d of size %d with %d checksums fits no array", p.Block, p.Offset, p.Size, len(p.CRC32C))
		}
		for ; block < p.Block; block, at = block+1, 0 {
			if at != m.Arrays[block].Size() {
				return fail("array %d %s is held only to element %d", block, m.Arrays[block], at)
			}
		}
		if p.Offset != at {
			return fail("piece %d@%d leaves a hole or overlap at element %d of array %s", p.Block, p.Offset, at, m.Arrays[block])
		}
		at += p.Size
	}
	for ; block < len(m.Arrays); block, at = block+1, 0 {
		if at != m.Arrays[block].Size() {
			return fail("array %d %s is held only to element %d", block, m.Arrays[block], at)
		}
	}
	return nil
}

func sortPieces(pieces []Piece) {
	slices.SortFunc(pieces, func(a, b Piece) int {
		return cmp.Or(cmp.Compare(a.Block, b.Block), cmp.Compare(a.Offset, b.Offset), cmp.Compare(a.Size, b.Size))
	})
}
