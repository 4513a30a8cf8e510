package order

import (
	"fmt"
	"slices"
)

// DefaultChunkBytes is the size of a chunk where none is asked for: 128 MB, the
// block of HDFS, by which Optimus deals its data (Peng and others, 2018).
const DefaultChunkBytes = 128 << 20

// Chunks cuts the stored examples, by id, into runs that are read as one. It
// never changes which examples a step uses, only who fetches them: a loader
// groups what its worker will need by chunk and reads that much ahead.
//
// (What a [Ledger] leases is a [Chunk] of an epoch's positions, which the
// permutation scatters over these.)
type Chunks struct {
	Examples int `json:"examples"` // N, examples of the set
	Size     int `json:"size"`     // examples of a chunk; the last may be short
}

// NewChunks cuts examples of recordBytes each into chunks of about chunkBytes,
// never more, but of one example at least; 0 is [DefaultChunkBytes]. Records of
// different sizes count with their mean.
func NewChunks(examples int, recordBytes, chunkBytes int64) (Chunks, error) {
	if chunkBytes == 0 {
		chunkBytes = DefaultChunkBytes
	}
	switch {
	case examples <= 0:
		return Chunks{}, fmt.Errorf("chunks: %w: %d examples, want 1 or more; check that the data set is not empty", ErrInvalid, examples)
	case recordBytes <= 0 || chunkBytes < 0:
		return Chunks{}, fmt.Errorf("chunks: %w: records of %d bytes in chunks of %d, want positive sizes", ErrInvalid, recordBytes, chunkBytes)
	}
	return Chunks{examples, int(max(1, min(chunkBytes/recordBytes, int64(examples))))}, nil
}

// Len returns the number of chunks.
func (c Chunks) Len() int {
	if c.Examples <= 0 || c.Size <= 0 {
		return 0
	}
	return (c.Examples-1)/c.Size + 1
}

// Range returns the ids [lo, hi) of chunk i, of 0..Len()-1; it is empty for any
// other.
func (c Chunks) Range(i int) (lo, hi int) {
	if i < 0 || i >= c.Len() {
		return 0, 0
	}
	return i * c.Size, i*c.Size + min(c.Size, c.Examples-i*c.Size)
}

// Need is what a worker must have of one chunk: the ids, in order of use, each
// once.
type Need struct {
	Chunk int
	IDs   []int
}

// Group sorts ids by chunk; the chunk that is used first comes first. The ids
// are those that [Plan.Ahead] or, of a leased chunk, [Plan.Range] foretells; those
// that the set does not have are passed over.
func (c Chunks) Group(ids []int) []Need {
	var needs []Need
	where := map[int]int{}
	seen := make(map[int]bool, len(ids))
	for _, id := range ids {
		if id < 0 || id >= c.Examples || c.Size <= 0 || seen[id] {
			continue
		}
		seen[id] = true
		at, ok := where[id/c.Size]
		if !ok {
			at = len(needs)
			where[id/c.Size] = at
			needs = append(needs, Need{Chunk: id / c.Size})
		}
		needs[at].IDs = append(needs[at].IDs, id)
	}
	return needs
}

// Ahead returns the ids that worker rank of workers uses in the n steps from
// step on, in order of use, as long as nobody joins or leaves. An id comes twice
// where the steps reach into the next epoch and draw it again. It overwrites dst
// and reuses its memory.
func (p Plan) Ahead(step int64, n, rank, workers int, dst []int) []int {
	dst = dst[:0]
	for ; n > 0 && p.valid(); step, n = step+1, n-1 {
		epoch, lo, hi := p.Positions(step)
		a, b := Slice(hi-lo, rank, workers)
		dst = p.appendRange(dst, epoch, lo+a, lo+b)
	}
	return dst
}

// Readers says who reads which chunk: worker Readers[i] reads chunk i. Workers
// go by id, which a rescale leaves alone, not by rank. Each reads as many chunks
// as any other, or one more; with fewer chunks than workers some read none.
//
// Readers depend on the rescales so far, so a coordinator keeps them as state.
type Readers []int

// Handover says that a chunk changes its reader. From may be dead: its
// successor then reads the chunk from storage.
type Handover struct{ Chunk, From, To int }

// unread is the reader of a chunk that has not been dealt.
const unread = -1

// DealChunks deals chunks 0..chunks-1 to workers, named by their ids, round
// robin.
func DealChunks(chunks int, workers []int) (Readers, error) {
	if chunks < 0 {
		return nil, fmt.Errorf("deal: %w: %d chunks, want 0 or more", ErrInvalid, chunks)
	}
	r, _, err := Readers(slices.Repeat([]int{unread}, chunks)).Rescale(workers)
	return r, err
}

// Rescale returns the readers for other workers, in even shares again, and
// which chunks change hands: those of the workers that leave, and of those that
// stay only what is beyond their share. No even deal moves fewer. It leaves r as
// it is.
func (r Readers) Rescale(workers []int) (Readers, []Handover, error) {
	share, err := r.shares(workers)
	if err != nil {
		return nil, nil, err
	}
	next := slices.Clone(r)
	var moved []Handover
	for i, w := range r {
		if share[w] > 0 {
			share[w]-- // it keeps the chunk
		} else {
			moved = append(moved, Handover{Chunk: i, From: w})
		}
	}
	at := 0
	for i := range moved {
		for share[workers[at]] == 0 {
			at = (at + 1) % len(workers)
		}
		h := &moved[i]
		h.To = workers[at]
		next[h.Chunk] = h.To
		share[h.To]--
		at = (at + 1) % len(workers)
	}
	return next, moved, nil
}

// shares returns how many chunks each worker is to read. Where shares are
// uneven, who has the most has the larger one, as that leaves most in place.
func (r Readers) shares(workers []int) (map[int]int, error) {
	if len(workers) == 0 {
		return nil, fmt.Errorf("deal: %w: no workers to read %d chunks", ErrInvalid, len(r))
	}
	has := map[int]int{}
	for _, w := range r {
		has[w]++
	}
	share := map[int]int{}
	most := slices.Clone(workers)
	slices.SortStableFunc(most, func(a, b int) int { return has[b] - has[a] })
	for rank, w := range most {
		if _, twice := share[w]; twice || w < 0 {
			return nil, fmt.Errorf("deal: %w: worker %d is negative or comes twice", ErrInvalid, w)
		}
		lo, hi := Slice(len(r), rank, len(workers))
		share[w] = hi - lo
	}
	return share, nil
}
