package checkpoint

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"path/filepath"
	"slices"
	"strconv"

	"optimus/internal/safetensors"
)

// Keys of a shard's "__metadata__".
const (
	metaFormat   = "format"
	metaSequence = "sequence"
	metaStep     = "step"
	metaServer   = "server"
)

// shardFormat is the value of metaFormat.
const shardFormat = "optimus-checkpoint-1"

// shardName is the file of one server.
func shardName(server int) string { return fmt.Sprintf("server-%d.safetensors", server) }

// tensorName is `block@offset`, or `block@offset/slot` for optimizer state.
func tensorName(block, offset int, slot string) string {
	name := strconv.Itoa(block) + "@" + strconv.Itoa(offset)
	if slot != "" {
		name += "/" + slot
	}
	return name
}

func (s Stamp) metadata(server int) map[string]string {
	return map[string]string{
		metaFormat:   shardFormat,
		metaSequence: strconv.FormatInt(s.Sequence, 10),
		metaStep:     strconv.FormatInt(s.Step, 10),
		metaServer:   strconv.Itoa(server),
	}
}

// WriteShard writes the file of one server into a save's folder, which it makes,
// and returns what the manifest must say of it. It holds no copy of the shard in
// memory. When it returns without error the file is on disk.
//
// A full disk gives an error of fault [Full] with path, need and free space, and
// leaves nothing behind; earlier checkpoints are never touched.
func WriteShard(fs FS, dir string, stamp Stamp, s Shard) (ShardFile, error) {
	path := filepath.Join(dir, shardName(s.Server))
	tensors, err := declare(path, stamp.Slots, s.Pieces)
	if err != nil {
		return ShardFile{}, err
	}
	metadata := stamp.metadata(s.Server)
	size, err := safetensors.FileSize(path, tensors, metadata)
	if err != nil {
		return ShardFile{}, fault(Invalid, "save", path, "%w", err)
	}
	if err := makeDir(fs, dir); err != nil {
		return ShardFile{}, err
	}
	file := ShardFile{Name: shardName(s.Server), Server: s.Server, Size: size}
	sum, crc := sha256.New(), crc32.New(crc32.MakeTable(crc32.Castagnoli))
	err = writeFile(fs, path, size, func(w io.Writer) error {
		out, err := safetensors.NewWriter(io.MultiWriter(w, sum, crc), path, tensors, metadata)
		if err != nil {
			return err
		}
		file.Pieces, err = writePieces(out, crc, s.Pieces)
		return err
	})
	if err != nil {
		return ShardFile{}, err
	}
	file.SHA256 = hex.EncodeToString(sum.Sum(nil))
	return file, nil
}

// declare checks the pieces and lists their tensors in the order of writing.
func declare(path string, slots []string, pieces []PieceState) ([]safetensors.Tensor, error) {
	var tensors []safetensors.Tensor
	for _, p := range pieces {
		switch {
		case p.Block < 0 || p.Offset < 0 || p.Size < 0 || len(p.Params) != p.Size:
			return nil, fault(Invalid, "save", path, "piece %d@%d of size %d has %d parameters", p.Block, p.Offset, p.Size, len(p.Params))
		case len(p.Slots) > len(slots):
			return nil, fault(Invalid, "save", path, "piece %d@%d has %d slots, the stamp names %d", p.Block, p.Offset, len(p.Slots), len(slots))
		}
		shape := []int64{int64(p.Size)}
		tensors = append(tensors, safetensors.Tensor{Name: tensorName(p.Block, p.Offset, ""), DType: safetensors.F32, Shape: shape})
		for i, x := range p.Slots {
			if slots[i] == "" || len(x) != p.Size {
				return nil, fault(Invalid, "save", path, "slot %d (%q) of piece %d@%d has %d elements, not %d", i, slots[i], p.Block, p.Offset, len(x), p.Size)
			}
			tensors = append(tensors, safetensors.Tensor{Name: tensorName(p.Block, p.Offset, slots[i]), DType: safetensors.F32, Shape: shape})
		}
	}
	return tensors, nil
}

// writePieces writes all elements and returns the pieces with their checksums.
// All that out writes passes through crc.
func writePieces(out *safetensors.Writer, crc hash.Hash32, pieces []PieceState) ([]Piece, error) {
	written := make([]Piece, 0, len(pieces))
	for _, p := range pieces {
		entry := Piece{Block: p.Block, Offset: p.Offset, Size: p.Size, Updates: p.Updates}
		for _, x := range slices.Concat([][]float32{p.Params}, p.Slots) {
			crc.Reset()
			if err := out.WriteFloat32(x); err != nil {
				return nil, err
			}
			entry.CRC32C = append(entry.CRC32C, crc.Sum32())
		}
		written = append(written, entry)
	}
	return written, out.Close()
}
