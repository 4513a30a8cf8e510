package checkpoint

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
)

// FormatVersion is the Manifest.Format that this package writes and reads.
const FormatVersion = 1

// PieceState is the state of a contiguous range of one array: the elements
// Offset … Offset+Size−1 of array Block in row-major order. Block counts the
// manifest's arrays: first the model's blocks, then the auxiliary arrays (such
// as batch-norm statistics), so a Block ≥ the number of blocks is auxiliary.
type PieceState struct {
	Block, Offset, Size int
	Params              []float32   // Size elements
	Slots               [][]float32 // optimizer state, one array of Size per slot, in the order of Stamp.Slots; none for auxiliary arrays
	Updates             int64       // how many updates were applied (Adam's t)
}

// Shard is all that one server saves.
type Shard struct {
	Server int
	Pieces []PieceState
}

// Stamp ties the shards of one save together. Slots names the optimizer's state
// arrays, such as "momentum" or "m", "v".
type Stamp struct {
	Sequence, Step int64
	Slots          []string
}

// Array is one parameter array, or an auxiliary one, with its global shape.
type Array struct {
	Name  string `json:"name"`
	Shape []int  `json:"shape"`
	Aux   bool   `json:"aux,omitempty"`
}

// Size is the number of elements.
func (a Array) Size() int {
	n := 1
	for _, d := range a.Shape {
		n *= d
	}
	return n
}

// Piece is what the manifest says of one saved piece. CRC32C has a checksum for
// the parameters and one per slot, over the little-endian bytes.
type Piece struct {
	Block   int      `json:"block"`
	Offset  int      `json:"offset"`
	Size    int      `json:"size"`
	Updates int64    `json:"updates"`
	CRC32C  []uint32 `json:"crc32c"`
}

// ShardFile is what the manifest says of one shard; [WriteShard] returns it.
type ShardFile struct {
	Name   string  `json:"name"`
	Server int     `json:"server"`
	Size   int64   `json:"size"`
	SHA256 string  `json:"sha256"`
	Pieces []Piece `json:"pieces"`
}

// Manifest describes one checkpoint whole. [Commit] sets Format and, where it is
// empty, ParamsSHA256.
type Manifest struct {
	Format     int    `json:"format"`
	Sequence   int64  `json:"sequence"` // of the save; decides which is the newest
	Step       int64  `json:"step"`
	Epoch      int    `json:"epoch"`
	Generation int    `json:"generation"`
	Workload   string `json:"workload"`
	Mode       string `json:"mode"`
	Seed       uint64 `json:"seed"`
	Batch      int    `json:"batch"`
	Workers    int    `json:"workers"`

	Optimizer json.RawMessage `json:"optimizer,omitempty"`
	Slots     []string        `json:"slots"`  // names of the optimizer's state arrays
	Arrays    []Array         `json:"arrays"` // model order, auxiliary arrays last
	Shards    []ShardFile     `json:"shards"`

	Vocabulary      []string        `json:"vocabulary,omitempty"`
	Target          []string        `json:"target,omitempty"` // vocabulary of the other language
	Merges          string          `json:"merges,omitempty"` // that cut words to pieces, as subword-nmt has them in text
	Classes         []string        `json:"classes,omitempty"`
	DataFingerprint string          `json:"data_fingerprint,omitempty"`
	Cursor          json.RawMessage `json:"cursor,omitempty"` // the data's position
	// State holds what else travels with a job, by name: residuals, the schedule.
	State        map[string]json.RawMessage `json:"state,omitempty"`
	ParamsSHA256 string                     `json:"params_sha256"`
	Created      string                     `json:"created,omitempty"` // RFC 3339
	Spec         json.RawMessage            `json:"spec,omitempty"`
}

// Bytes is the size of all shards.
func (m *Manifest) Bytes() int64 {
	var n int64
	for _, s := range m.Shards {
		n += s.Size
	}
	return n
}

// CheckModel reports, as an error of fault [WrongModel], the first array in which
// the checkpoint and a model differ.
func (m *Manifest) CheckModel(arrays []Array) error {
	for i := range max(len(m.Arrays), len(arrays)) {
		switch {
		case i >= len(m.Arrays):
			return wrongModel("the model has array %d %q, the checkpoint has only %d", i, arrays[i].Name, len(m.Arrays))
		case i >= len(arrays):
			return wrongModel("the checkpoint has array %d %q, the model has only %d", i, m.Arrays[i].Name, len(arrays))
		}
		if a, b := m.Arrays[i], arrays[i]; a.Name != b.Name || a.Aux != b.Aux || !slices.Equal(a.Shape, b.Shape) {
			return wrongModel("array %d is %s in the checkpoint and %s in the model", i, a, b)
		}
	}
	return nil
}

// String is the array's name and shape, as errors show it.
func (a Array) String() string {
	if a.Aux {
		return fmt.Sprintf("%q %v (auxiliary)", a.Name, a.Shape)
	}
	return fmt.Sprintf("%q %v", a.Name, a.Shape)
}

// Dir is the folder of one save under a root.
func Dir(root string, sequence, step int64) string {
	return filepath.Join(root, fmt.Sprintf("%06d-step%d", sequence, step))
}

var dirName = regexp.MustCompile(`^(\d{1,18})-step(\d{1,18})$`)

// parseDir reads a folder's name; other names are strays.
func parseDir(name string) (sequence, step int64, ok bool) {
	m := dirName.FindStringSubmatch(name)
	if m == nil {
		return 0, 0, false
	}
	sequence, _ = strconv.ParseInt(m[1], 10, 64) // 18 digits always fit
	step, _ = strconv.ParseInt(m[2], 10, 64)
	return sequence, step, true
}

func wrongModel(format string, args ...any) error {
	return &Error{Fault: WrongModel, Op: "compare the checkpoint with the model", Err: fmt.Errorf(format, args...),
		Do: "use the workload and options that it was saved with"}
}
