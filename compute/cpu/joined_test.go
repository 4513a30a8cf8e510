package cpu

import (
	"testing"

	"optimus/compute"
)

// TestJoined: BLEU is of words, however they were cut.
func TestJoined(t *testing.T) {
	op := &compute.Greedy{Pieces: []string{"<pad>", "<unk>", "<s>", "</s>", "lo@@", "w", "l@@", "ow", "er", "low@@"}, Mark: "@@"}
	reference := []int32{4, 5, 4, 5, 9, 8, 1} // low low lower <unk>
	for name, c := range map[string]struct {
		written []int32
		matches int64 // words
		length  int64
	}{
		"the same":       {[]int32{4, 5, 4, 5, 9, 8, 1}, 4, 4},
		"cut otherwise":  {[]int32{6, 7, 6, 7, 4, 5, 1}, 3, 4},
		"a piece behind": {[]int32{4, 5, 9}, 2, 2}, // its mark is no letter
		"nothing":        {nil, 0, 0},
	} {
		numbers := map[string]int32{}
		got := ngrams(joined(op, numbers, c.written), joined(op, numbers, reference))
		if got[0] != c.matches || got[8] != c.length || got[9] != 4 {
			t.Errorf("%s: %v, want %d of %d words to match", name, got, c.matches, c.length)
		}
	}
	op.Pieces = nil
	if got := ngrams(joined(op, nil, reference), joined(op, nil, reference)); got[8] != 7 || got[3] != 4 {
		t.Errorf("whole words: %v", got)
	}
}
