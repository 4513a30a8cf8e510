package cpu

import (
	"testing"

	"optimus/compute"
)

// TestNGrams has the example of Papineni et al. (2002): a word counts as often as the
// reference has it.
func TestNGrams(t *testing.T) {
	const the, cat, is, on, mat = 1, 2, 3, 4, 5
	reference := []int32{the, cat, is, on, the, mat}
	for _, c := range []struct {
		candidate []int32
		want      compute.Counts
	}{
		{[]int32{the, the, the, the, the, the, the}, compute.Counts{2, 0, 0, 0, 7, 6, 5, 4, 7, 6}},
		{reference, compute.Counts{6, 5, 4, 3, 6, 5, 4, 3, 6, 6}},
		{[]int32{cat, is, on, cat, is, on}, compute.Counts{3, 2, 1, 0, 6, 5, 4, 3, 6, 6}},
		{[]int32{mat, the}, compute.Counts{2, 0, 0, 0, 2, 1, 0, 0, 2, 6}},
		{nil, compute.Counts{9: 6}},
	} {
		if got := ngrams(c.candidate, reference); got != c.want {
			t.Errorf("%v: %v, want %v", c.candidate, got, c.want)
		}
	}
}
