package cpu

import (
	"testing"

	"pgregory.net/rapid"
)

// TestPlace checks that buffers which live at the same time do not overlap, that
// each begins a cache line, and that no more is taken than for one behind another.
func TestPlace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 30).Draw(t, "buffers")
		sizes, lives, sum := make([]int, n), make([]life, n), 0
		for b := range n {
			sizes[b] = rapid.IntRange(1, 100).Draw(t, "size")
			lives[b].first = rapid.IntRange(0, 20).Draw(t, "first")
			lives[b].last = lives[b].first + rapid.IntRange(-1, 8).Draw(t, "length")
			sum += roundUp(sizes[b])
		}
		offsets, total := place(sizes, lives)
		if total > sum {
			t.Fatalf("%d elements for buffers of %d", total, sum)
		}
		for a := range n {
			if lives[a].last < lives[a].first {
				continue
			}
			if offsets[a]%align != 0 || offsets[a]+sizes[a] > total {
				t.Fatalf("buffer %d of %d elements lies at %d of %d", a, sizes[a], offsets[a], total)
			}
			for b := range a {
				if lives[a].meets(lives[b]) && lives[b].last >= lives[b].first &&
					offsets[a] < offsets[b]+sizes[b] && offsets[b] < offsets[a]+sizes[a] {
					t.Fatalf("buffers %d and %d live in %v and %v and overlap: %d+%d, %d+%d", a, b, lives[a], lives[b], offsets[a], sizes[a], offsets[b], sizes[b])
				}
			}
		}
	})
}

// TestPlaceReuses checks a chain: each value dies when the next is made.
func TestPlaceReuses(t *testing.T) {
	sizes, lives := []int{100, 100, 100, 100}, []life{{0, 1}, {1, 2}, {2, 3}, {3, 4}}
	if _, total := place(sizes, lives); total != 2*roundUp(100) {
		t.Errorf("%d elements, want room for two buffers", total)
	}
}
