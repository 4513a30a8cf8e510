package checkpoint_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"optimus/elastic/checkpoint"
	"optimus/internal/faultfs"
)

// The file system that fails has the methods that the package wants.
var _ checkpoint.FS = (*faultfs.FS)(nil)

// state is a whole model in memory, to cut, save and compare.
type state struct {
	arrays []checkpoint.Array
	slots  []string
	params [][]float32   // by block
	moment [][][]float32 // by slot, by block; nil for auxiliary arrays
}

func newState(seed uint64, slots []string, arrays ...checkpoint.Array) *state {
	rng := rand.New(rand.NewPCG(seed, 1))
	fill := func(n int) []float32 {
		x := make([]float32, n)
		for i := range x {
			x[i] = math.Float32frombits(rng.Uint32()) // all bit patterns, NaNs too
		}
		return x
	}
	s := &state{arrays: arrays, slots: slots, moment: make([][][]float32, len(slots))}
	for _, a := range arrays {
		s.params = append(s.params, fill(a.Size()))
		for i := range slots {
			var m []float32
			if !a.Aux {
				m = fill(a.Size())
			}
			s.moment[i] = append(s.moment[i], m)
		}
	}
	return s
}

func smallModel() []checkpoint.Array {
	return []checkpoint.Array{
		{Name: "embed", Shape: []int{13, 3}},
		{Name: "bias", Shape: []int{5}},
		{Name: "empty", Shape: []int{0, 4}},
		{Name: "scale", Shape: []int{}},
		{Name: "running mean", Shape: []int{5}, Aux: true},
	}
}

// cut deals every array in p uneven pieces to p servers.
func (s *state) cut(p int, seed uint64) []checkpoint.Shard {
	rng := rand.New(rand.NewPCG(seed, 2))
	shards := make([]checkpoint.Shard, p)
	for i := range shards {
		shards[i] = checkpoint.Shard{Server: i}
	}
	for block, a := range s.arrays {
		for at, left, size := 0, p, a.Size(); left > 0 && at < size; left-- {
			n := size - at
			if left > 1 {
				n = min(n, rng.IntN(2*(n/left)+1)+1)
			}
			to := &shards[(block+left)%p]
			to.Pieces = append(to.Pieces, s.piece(block, at, n))
			at += n
		}
	}
	return shards
}

func (s *state) piece(block, at, n int) checkpoint.PieceState {
	p := checkpoint.PieceState{Block: block, Offset: at, Size: n, Params: s.params[block][at : at+n], Updates: 7}
	if !s.arrays[block].Aux {
		for _, m := range s.moment {
			p.Slots = append(p.Slots, m[block][at:at+n])
		}
	}
	return p
}

// save writes one checkpoint; step also marks the manifest.
func (s *state) save(fs checkpoint.FS, root string, sequence, step int64, p int) (string, error) {
	dir := checkpoint.Dir(root, sequence, step)
	m := checkpoint.Manifest{Sequence: sequence, Step: step, Workload: "test", Slots: s.slots, Arrays: s.arrays,
		Optimizer: json.RawMessage(`{"name":"momentum"}`), Vocabulary: []string{"a", "ünï"}}
	for _, shard := range s.cut(p, uint64(step)) {
		file, err := checkpoint.WriteShard(fs, dir, checkpoint.Stamp{Sequence: sequence, Step: step, Slots: s.slots}, shard)
		if err != nil {
			return dir, err
		}
		m.Shards = append(m.Shards, file)
	}
	return dir, checkpoint.Commit(fs, dir, m)
}

// equals compares the saved state with this one through a cut onto p servers.
func (s *state) equals(r *checkpoint.Reader, p int) error {
	for _, shard := range s.cut(p, uint64(100+p)) {
		for _, want := range shard.Pieces {
			params := make([]float32, want.Size)
			slots := make([][]float32, len(want.Slots))
			for i := range slots {
				slots[i] = make([]float32, want.Size)
			}
			updates, err := r.Read(want.Block, want.Offset, params, slots)
			if err != nil {
				return err
			}
			if updates != want.Updates {
				return fmt.Errorf("block %d: %d updates", want.Block, updates)
			}
			err = sameBits(params, want.Params)
			for i := range slots {
				err = errors.Join(err, sameBits(slots[i], want.Slots[i]))
			}
			if err != nil {
				return fmt.Errorf("piece %d@%d: %w", want.Block, want.Offset, err)
			}
		}
	}
	return nil
}

func sameBits(a, b []float32) error {
	for i := range a {
		if math.Float32bits(a[i]) != math.Float32bits(b[i]) {
			return fmt.Errorf("element %d is %x, not %x", i, math.Float32bits(a[i]), math.Float32bits(b[i]))
		}
	}
	return nil
}

func mustSave(t testing.TB, s *state, fs checkpoint.FS, root string, sequence, step int64, p int) string {
	t.Helper()
	dir, err := s.save(fs, root, sequence, step, p)
	if err != nil {
		t.Fatal(err)
	}
	return dir
}
