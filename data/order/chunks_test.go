package order

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestNewChunks(t *testing.T) {
	for _, c := range []struct {
		examples      int
		record, bytes int64
		size, chunks  int
	}{
		{1_281_167, 150_528, 0, 891, 1438}, // 224×224×3 bytes
		{100, 10, 250, 25, 4},
		{101, 10, 259, 25, 5},
		{7, 1 << 40, 0, 1, 7}, // a record larger than a chunk
		{7, 1, 0, 7, 1},
	} {
		got, err := NewChunks(c.examples, c.record, c.bytes)
		if err != nil || got.Size != c.size || got.Len() != c.chunks {
			t.Errorf("%+v: %+v with %d chunks, %v", c, got, got.Len(), err)
		}
		end := 0
		for i := range got.Len() {
			lo, hi := got.Range(i)
			if lo != end || hi <= lo {
				t.Fatalf("%+v: chunk %d is [%d, %d), want it to begin at %d", c, i, lo, hi, end)
			}
			end = hi
		}
		if end != c.examples {
			t.Errorf("%+v: the chunks end at %d", c, end)
		}
	}
	for _, c := range [][3]int64{{0, 1, 1}, {-1, 1, 1}, {1, 0, 1}, {1, -1, 1}, {1, 1, -1}} {
		if _, err := NewChunks(int(c[0]), c[1], c[2]); !errors.Is(err, ErrInvalid) {
			t.Errorf("%v: %v", c, err)
		}
	}
	var none Chunks
	if lo, hi := none.Range(0); none.Len() != 0 || lo != hi || none.Group([]int{0}) != nil {
		t.Error("the zero Chunks has something in it")
	}
	if lo, hi := (Chunks{10, 4}).Range(-1); lo != hi {
		t.Errorf("chunk -1 is [%d, %d)", lo, hi)
	}
}

// What Ahead foretells is what the steps then use, and Group leaves nothing out.
func TestAheadFollowsTheOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := Plan{Seed: rapid.Uint64().Draw(t, "seed"), Examples: rapid.IntRange(1, 60).Draw(t, "examples")}
		p.Batch = rapid.IntRange(1, p.Examples+3).Draw(t, "batch")
		workers := rapid.IntRange(1, 9).Draw(t, "workers")
		rank, step := rapid.IntRange(0, workers-1).Draw(t, "rank"), rapid.Int64Range(1, 40).Draw(t, "step")
		n := rapid.IntRange(0, 12).Draw(t, "steps")
		var want, batch []int
		for k := range int64(n) {
			batch = p.IDs(step+k, batch)
			lo, hi := Slice(len(batch), rank, workers)
			want = append(want, batch[lo:hi]...)
		}
		got := p.Ahead(step, n, rank, workers, nil)
		if !slices.Equal(got, want) {
			t.Fatalf("foretold %v, used %v", got, want)
		}
		c := Chunks{p.Examples, rapid.IntRange(1, p.Examples).Draw(t, "size")}
		first := -1 // place in got of the last chunk's first id
		var all []int
		for _, need := range c.Group(got) {
			lo, hi := c.Range(need.Chunk)
			last := -1
			for _, id := range need.IDs {
				at := slices.Index(got, id)
				if id < lo || id >= hi || at <= last {
					t.Fatalf("%+v of [%d, %d) is not in the order of %v", need, lo, hi, got)
				}
				last = at
			}
			if at := slices.Index(got, need.IDs[0]); at <= first {
				t.Fatalf("chunk %d comes too late in %v", need.Chunk, got)
			} else {
				first = at
			}
			all = append(all, need.IDs...)
		}
		slices.Sort(all)
		slices.Sort(want)
		if !slices.Equal(all, slices.Compact(want)) {
			t.Fatalf("%v are read, %v are used", all, want)
		}
	})
	if ids := (Plan{}).Ahead(1, 1<<62, 0, 1, nil); len(ids) != 0 {
		t.Errorf("a plan that is not valid foretells %v", ids)
	}
	if needs := (Chunks{4, 2}).Group([]int{-1, 4}); needs != nil {
		t.Errorf("ids that do not exist are needed: %v", needs)
	}
}

// TestHandoverIsTheLeast compares with all even deals, by which workers have the
// larger share.
func TestHandoverIsTheLeast(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		team := rapid.SliceOfNDistinct(rapid.IntRange(0, 9), 1, 8, rapid.ID[int])
		chunks, workers := rapid.IntRange(0, 40).Draw(t, "chunks"), team.Draw(t, "workers")
		readers, err := DealChunks(chunks, workers)
		if err != nil {
			t.Fatal(err)
		}
		for i, w := range readers {
			if w != workers[i%len(workers)] {
				t.Fatalf("%v are not dealt round robin to %v", readers, workers)
			}
		}
		for range rapid.IntRange(1, 4).Draw(t, "rescales") {
			workers = team.Draw(t, "next workers")
			before := slices.Clone(readers)
			next, moved, err := readers.Rescale(workers)
			if err != nil || !slices.Equal(readers, before) {
				t.Fatalf("%v became %v: %v", before, readers, err)
			}
			checkEven(t, next, workers)
			for _, h := range moved {
				if before[h.Chunk] != h.From || h.From == h.To {
					t.Fatalf("%+v, read by %d before", h, before[h.Chunk])
				}
				before[h.Chunk] = h.To
			}
			if !slices.Equal(before, next) {
				t.Fatalf("the handovers %v lead to %v, not to %v", moved, before, next)
			}
			if least := fewest(readers, workers); len(moved) != least {
				t.Fatalf("%v to %v moves %d chunks, %d would do", readers, workers, len(moved), least)
			}
			readers = next
		}
	})
	for _, team := range [][]int{nil, {1, 1}, {-1}} {
		if _, err := DealChunks(3, team); !errors.Is(err, ErrInvalid) {
			t.Errorf("workers %v: %v", team, err)
		}
	}
	if _, err := DealChunks(-1, []int{1}); !errors.Is(err, ErrInvalid) {
		t.Errorf("-1 chunks: %v", err)
	}
}

func checkEven(t *rapid.T, r Readers, workers []int) {
	least, most, total := len(r), 0, 0
	for _, w := range workers {
		n := 0
		for _, reader := range r {
			if reader == w {
				n++
			}
		}
		least, most, total = min(least, n), max(most, n), total+n
	}
	if total != len(r) || most-least > 1 {
		t.Fatalf("of %d chunks %d are read, by workers with %d to %d", len(r), total, least, most)
	}
}

// fewest tries every choice of the workers that have the larger share.
func fewest(r Readers, workers []int) int {
	small, large := len(r)/len(workers), len(r)%len(workers)
	best := len(r)
	for set := range 1 << len(workers) {
		kept, chosen := 0, 0
		for i, w := range workers {
			share := small + set>>i&1
			chosen += set >> i & 1
			has := 0
			for _, reader := range r {
				if reader == w {
					has++
				}
			}
			kept += min(has, share)
		}
		if chosen == large {
			best = min(best, len(r)-kept)
		}
	}
	return best
}

// A loader reads ahead by the chunks that its worker is about to need.
func ExampleChunks() {
	chunks, err := NewChunks(1000, 4096, 1<<20) // 256 records of 4 kB in a chunk of 1 MB
	if err != nil {
		fmt.Println(err)
		return
	}
	p := Plan{Seed: 7, Examples: 1000, Batch: 8}
	for _, need := range chunks.Group(p.Ahead(1, 2, 0, 2, nil)) {
		fmt.Println("chunk", need.Chunk, "examples", need.IDs)
	}
	// Output:
	// chunk 1 examples [274 345 292 426]
	// chunk 3 examples [799 826]
	// chunk 2 examples [705]
	// chunk 0 examples [188]
}

// A coordinator tells the workers of a new generation what each reads from now on.
func ExampleReaders_Rescale() {
	readers, err := DealChunks(6, []int{0, 1, 2})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(readers)
	next, moved, err := readers.Rescale([]int{0, 1, 2, 3}) // worker 3 joins
	fmt.Println(next, moved, err)
	// Output:
	// [0 1 2 0 1 2]
	// [0 1 2 0 1 3] [{5 2 3}] <nil>
}
