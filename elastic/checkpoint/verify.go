package checkpoint

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"path/filepath"

	"optimus/internal/safetensors"
)

// Verify reads a whole checkpoint and checks every byte of it. The error names
// the file and, where the damage lies in data, the tensor.
func Verify(fs FS, dir string) (err error) {
	m, err := readManifest(fs, dir)
	if err != nil {
		return err
	}
	for i := range m.Shards {
		if err := verifyShard(fs, dir, m, &m.Shards[i]); err != nil {
			return err
		}
	}
	r, err := newReader(fs, dir, m)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	digest, err := r.ParamsSHA256()
	if err != nil {
		return err
	}
	if digest != m.ParamsSHA256 {
		return fault(Corrupt, "verify", dir, "the parameters' SHA-256 is %s, the manifest's %s", digest, m.ParamsSHA256)
	}
	return nil
}

// verifyShard checks a shard's bytes against the manifest and, where they
// differ, looks for the place.
func verifyShard(fs FS, dir string, m *Manifest, s *ShardFile) error {
	one := *m
	one.Shards = []ShardFile{*s}
	r, err := newReader(fs, dir, &one) // size and header
	if err != nil {
		return err
	}
	path := filepath.Join(dir, s.Name)
	sum := sha256.New()
	_, err = io.Copy(sum, io.NewSectionReader(r.files[0], 0, s.Size))
	switch {
	case err != nil:
		err = ioFault("verify", path, err)
	case hex.EncodeToString(sum.Sum(nil)) != s.SHA256:
		err = r.locate(path)
	}
	return errors.Join(err, r.Close())
}

// locate names the first tensor of a damaged shard whose checksum is wrong, or
// the header where all are right.
func (r *Reader) locate(path string) error {
	for _, pieces := range r.pieces {
		for _, p := range pieces {
			for i, want := range p.CRC32C {
				name := r.tensorName(p.Piece, i)
				got, err := checksum(p.shard, name)
				if err == nil && got == want {
					continue
				}
				if err == nil {
					err = fmt.Errorf("its CRC-32C is %08x, written was %08x", got, want)
				}
				return &Error{Fault: Corrupt, Op: "verify", Path: path, Tensor: name, Err: err, Do: useOther}
			}
		}
	}
	return fault(Corrupt, "verify", path, "its SHA-256 differs and all tensors are whole: the header is damaged")
}

// checksum is the CRC-32C of a tensor's bytes.
func checksum(shard *safetensors.Reader, name string) (uint32, error) {
	t, _ := shard.Lookup(name)
	table := crc32.MakeTable(crc32.Castagnoli)
	buf := make([]byte, 256<<10)
	sum := uint32(0)
	for at, size := int64(0), t.End-t.Begin; at < size; at += int64(len(buf)) {
		part := buf[:min(int64(len(buf)), size-at)]
		if err := shard.ReadAt(name, part, at); err != nil {
			return 0, err
		}
		sum = crc32.Update(sum, table, part)
	}
	return sum, nil
}
