package checkpoint_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"optimus/elastic/checkpoint"
	"optimus/internal/faultfs"
)

// minimal reads a safetensors file by the format's description alone.
func minimal(t *testing.T, path string) map[string][]float32 {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	n := binary.LittleEndian.Uint64(b)
	var header map[string]json.RawMessage
	if err := json.Unmarshal(b[8:8+n], &header); err != nil {
		t.Fatal(err)
	}
	data := b[8+n:]
	out := map[string][]float32{}
	for name, raw := range header {
		if name == "__metadata__" {
			continue
		}
		var e struct {
			DType   string `json:"dtype"`
			Offsets [2]int `json:"data_offsets"`
		}
		if err := json.Unmarshal(raw, &e); err != nil || e.DType != "F32" {
			t.Fatalf("%s: %s: %v", name, raw, err)
		}
		x := make([]float32, (e.Offsets[1]-e.Offsets[0])/4)
		if err := binary.Read(bytes.NewReader(data[e.Offsets[0]:e.Offsets[1]]), binary.LittleEndian, x); err != nil {
			t.Fatal(err)
		}
		out[name] = x
	}
	return out
}

func TestBO19_RestoreOntoAnyNumberOfServers(t *testing.T) {
	s := newState(19, []string{"momentum"},
		checkpoint.Array{Name: "table", Shape: []int{100003, 17}},
		checkpoint.Array{Name: "bias", Shape: []int{17}},
		checkpoint.Array{Name: "mean", Shape: []int{17}, Aux: true})
	root := t.TempDir()
	dir := mustSave(t, s, checkpoint.OS{}, root, 1, 100, 3)
	if err := checkpoint.Verify(checkpoint.OS{}, dir); err != nil {
		t.Fatal(err)
	}
	r, err := checkpoint.Load(checkpoint.OS{}, dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for _, p := range []int{1, 2, 3, 4, 7} {
		if err := s.equals(r, p); err != nil {
			t.Errorf("onto %d servers: %v", p, err)
		}
	}

	// The files by an independent reader: tensors in the order of their offsets
	// are the arrays.
	sum := sha256.New()
	tensors := map[string][]float32{}
	for i := range 3 {
		for name, x := range minimal(t, filepath.Join(dir, fmt.Sprintf("server-%d.safetensors", i))) {
			tensors[name] = x
		}
	}
	for block := range s.params {
		for _, slot := range []string{"", "/momentum"} {
			var whole []float32
			for len(whole) < len(s.params[block]) {
				part, ok := tensors[fmt.Sprintf("%d@%d%s", block, len(whole), slot)]
				if !ok {
					break
				}
				whole = append(whole, part...)
			}
			want := s.params[block]
			if slot != "" {
				want = s.moment[0][block]
			}
			if len(whole) != len(want) {
				t.Fatalf("block %d%s: %d elements, want %d", block, slot, len(whole), len(want))
			}
			if err := sameBits(whole, want); err != nil {
				t.Errorf("block %d%s: %v", block, slot, err)
			}
			if slot == "" && !s.arrays[block].Aux {
				for _, v := range whole {
					var b [4]byte
					binary.LittleEndian.PutUint32(b[:], math.Float32bits(v))
					sum.Write(b[:])
				}
			}
		}
	}
	want := hex.EncodeToString(sum.Sum(nil))
	if got, err := checkpoint.ParamsSHA256(checkpoint.OS{}, dir); err != nil || got != want || r.Manifest().ParamsSHA256 != want {
		t.Errorf("ParamsSHA256 %s (%v), manifest %s, want %s", got, err, r.Manifest().ParamsSHA256, want)
	}
}

// counting counts the bytes that are read.
type counting struct {
	checkpoint.OS
	read *int64
}

type countingFile struct {
	checkpoint.ReadFile
	read *int64
}

func (c counting) Open(name string) (checkpoint.ReadFile, error) {
	f, err := c.OS.Open(name)
	return countingFile{f, c.read}, err
}

func (f countingFile) ReadAt(p []byte, at int64) (int, error) {
	n, err := f.ReadFile.ReadAt(p, at)
	*f.read += int64(n)
	return n, err
}

func TestRangesAreReadWithoutTheRest(t *testing.T) {
	s := newState(1, []string{"m"}, checkpoint.Array{Name: "w", Shape: []int{1 << 20}})
	dir := mustSave(t, s, checkpoint.OS{}, t.TempDir(), 1, 1, 3)
	var read int64
	r, err := checkpoint.Load(counting{read: &read}, dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	x, m := make([]float32, 1000), make([]float32, 1000)
	if _, err := r.Read(0, 500_000, x, [][]float32{m}); err != nil {
		t.Fatal(err)
	}
	if read > 20_000 {
		t.Errorf("loading and reading 8000 bytes read %d bytes of a checkpoint of %d", read, r.Manifest().Bytes())
	}
}

func TestReadRanges(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var arrays []checkpoint.Array
		for i := range rapid.IntRange(1, 4).Draw(rt, "arrays") {
			shape := rapid.SliceOfN(rapid.IntRange(0, 6), 0, 3).Draw(rt, "shape")
			arrays = append(arrays, checkpoint.Array{Name: fmt.Sprint(i), Shape: shape})
		}
		s := newState(rapid.Uint64().Draw(rt, "seed"), []string{"m", "v"}, arrays...)
		fs := faultfs.New()
		dir, err := s.save(fs, "/c", 1, 5, rapid.IntRange(1, 5).Draw(rt, "servers"))
		if err != nil {
			rt.Fatal(err)
		}
		if err := checkpoint.Verify(fs, dir); err != nil {
			rt.Fatal(err)
		}
		r, err := checkpoint.Load(fs, dir)
		if err != nil {
			rt.Fatal(err)
		}
		for range 5 {
			block := rapid.IntRange(0, len(arrays)-1).Draw(rt, "block")
			from := rapid.IntRange(0, len(s.params[block])).Draw(rt, "from")
			n := rapid.IntRange(0, len(s.params[block])-from).Draw(rt, "n")
			v := make([]float32, n)
			if _, err := r.Read(block, from, nil, [][]float32{nil, v}); err != nil {
				rt.Fatal(err)
			}
			if err := sameBits(v, s.moment[1][block][from:from+n]); err != nil {
				rt.Fatal(err)
			}
		}
	})
}

func TestRequestsThatMakeNoSense(t *testing.T) {
	s := newState(1, []string{"m"}, smallModel()...)
	fs := faultfs.New()
	dir := mustSave(t, s, fs, "/c", 1, 5, 2)
	r, err := checkpoint.Load(fs, dir)
	if err != nil {
		t.Fatal(err)
	}
	x := make([]float32, 3)
	read := func(block, offset int, params []float32, slots ...[]float32) error {
		_, err := r.Read(block, offset, params, slots)
		return err
	}
	stamp := checkpoint.Stamp{Sequence: 1, Step: 5, Slots: []string{"m"}}
	write := func(p checkpoint.PieceState) error {
		_, err := checkpoint.WriteShard(fs, "/d", stamp, checkpoint.Shard{Pieces: []checkpoint.PieceState{p, p}[:1]})
		return err
	}
	commit := func(change func(*checkpoint.Manifest)) error {
		m := *r.Manifest()
		m.Shards = append([]checkpoint.ShardFile{}, m.Shards...)
		change(&m)
		return checkpoint.Commit(fs, dir, m)
	}
	for want, err := range map[string]error{
		"beyond the checkpoint": read(1, 3, x),
		"range 99@0":            read(99, 0, x),
		"range 1@-1":            read(1, -1, x),
		"3 and 2 elements":      read(1, 0, x, x[:2]),
		"saved with 0 slots":    read(4, 0, x, x),
		"saved with 1 slots":    read(1, 0, x, nil, x),
		"has 3 parameters":      write(checkpoint.PieceState{Size: 4, Params: x}),
		"stamp names 1":         write(checkpoint.PieceState{Size: 3, Params: x, Slots: [][]float32{x, x}}),
		"has 2 elements":        write(checkpoint.PieceState{Size: 3, Params: x, Slots: [][]float32{x[:2]}}),
		"held only": commit(func(m *checkpoint.Manifest) {
			m.Arrays = append(m.Arrays, checkpoint.Array{Shape: []int{2}, Aux: true})
		}),
		"after an auxiliary": commit(func(m *checkpoint.Manifest) { m.Arrays = append(m.Arrays, checkpoint.Array{Shape: []int{0}}) }),
		"no valid size": commit(func(m *checkpoint.Manifest) {
			m.Arrays = append(m.Arrays, checkpoint.Array{Shape: []int{-1}, Aux: true})
		}),
		"listed twice": commit(func(m *checkpoint.Manifest) { m.Shards = append(m.Shards, m.Shards[0]) }),
		"not UTF-8":    commit(func(m *checkpoint.Manifest) { m.Classes = []string{"\xff"} }),
		"negative":     commit(func(m *checkpoint.Manifest) { m.Step = -1 }),
	} {
		if checkpoint.FaultOf(err) != checkpoint.Invalid || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	if err := commit(func(m *checkpoint.Manifest) { m.Step = 6 }); checkpoint.FaultOf(err) != checkpoint.Corrupt || !strings.Contains(err.Error(), "different saves") {
		t.Errorf("shards of another step: %v", err)
	}
	if err := checkpoint.Verify(fs, dir); err != nil {
		t.Errorf("refused commits changed the checkpoint: %v", err)
	}
}

func TestCheckModel(t *testing.T) {
	m := checkpoint.Manifest{Arrays: smallModel()}
	if err := m.CheckModel(smallModel()); err != nil {
		t.Fatal(err)
	}
	change := func(f func(a []checkpoint.Array) []checkpoint.Array) error { return m.CheckModel(f(smallModel())) }
	for want, err := range map[string]error{
		`array 0 is "embed" [13 3]`:  change(func(a []checkpoint.Array) []checkpoint.Array { a[0].Shape[1] = 4; return a }),
		`array 1 is "bias"`:          change(func(a []checkpoint.Array) []checkpoint.Array { a[1].Name = "b"; return a }),
		`(auxiliary)`:                change(func(a []checkpoint.Array) []checkpoint.Array { a[4].Aux = false; return a }),
		`the checkpoint has array 4`: change(func(a []checkpoint.Array) []checkpoint.Array { return a[:4] }),
		`the model has array 5`:      change(func(a []checkpoint.Array) []checkpoint.Array { return append(a, a[0]) }),
	} {
		if checkpoint.FaultOf(err) != checkpoint.WrongModel || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}
