package models_test

import (
	"testing"

	"optimus/compute"
	"optimus/data"
	"optimus/internal/rng"
)

// sizes are those of a data set of sequences: see benchmarks/golden/golden.py.
type sizes struct{ Steps, Words, Targets, Trigrams, Pitches, Letters int }

// set returns a data set of these sizes.
func (s sizes) set() *data.Set {
	return &data.Set{Name: "golden", SequenceLength: s.Steps, Vocabulary: make([]string, s.Words), Target: make([]string, s.Targets),
		Trigrams: s.Trigrams, Pitches: s.Pitches, Letters: s.Letters}
}

// sequences returns the inputs of n examples by the rules of benchmarks/golden/formula.py.
func (s sizes) sequences(t *testing.T, name string, n int) []compute.Array {
	ints := func(v []int32) compute.Array { return compute.Array{I: v} }
	switch name {
	case "rnn-lstm":
		return []compute.Array{ints(goldenIds(0, n*s.Steps, 0, s.Words)), ints(goldenIds(1, n*s.Steps, 0, s.Words))}
	case "dssm":
		return []compute.Array{ints(goldenBags(0, n*4, s.Trigrams, s.Words)), ints(goldenBags(1, n*5, s.Trigrams, s.Words))}
	case "seq2seq":
		before, next := goldenTranslation(3, n, s.Steps+1, s.Targets)
		words := goldenIds(0, n*s.Steps, data.EndToken+1, s.Words)
		return []compute.Array{ints(words), ints(goldenLengths(rng.NewKey(goldenSeed, 6, 1), n, s.Steps)), ints(before), ints(next)}
	case "deepspeech2":
		sounds := float32s(signed(rng.NewKey(goldenSeed, 6, 1), n*s.Steps*s.Pitches))
		return []compute.Array{ints(goldenLengths(rng.NewKey(goldenSeed, 6, 0), n, s.Steps)), {F: sounds},
			ints(goldenIds(2, n*s.Letters, 1, s.Words)), ints(goldenLengths(rng.NewKey(goldenSeed, 6, 3), n, s.Letters))}
	}
	t.Fatalf("no rule for the inputs of %s", name)
	return nil
}

// goldenIds are n values of input i in [from,limit).
func goldenIds(i uint64, n, from, limit int) []int32 {
	ids, key := make([]int32, n), rng.NewKey(goldenSeed, 6, i)
	for j := range ids {
		ids[j] = int32(from + key.Intn(uint64(j), limit-from))
	}
	return ids
}

// goldenLengths are lengths of n examples, at least half of the most.
func goldenLengths(key rng.Key, n, most int) []int32 {
	lengths := make([]int32, n)
	for e := range lengths {
		lengths[e] = int32(most - key.Intn(uint64(e), most/2+1))
	}
	return lengths
}

// goldenBags are n bags of up to most ids below rows, padded with rows.
func goldenBags(i uint64, n, most, rows int) []int32 {
	ids, key := goldenIds(i, n*most, 0, rows), rng.NewKey(goldenSeed, 7, i)
	for b := range n {
		for j := 1 + key.Intn(uint64(b), most); j < most; j++ {
			ids[b*most+j] = int32(rows)
		}
	}
	return ids
}

// goldenTranslation is what a decoder reads, and as input i what it shall write.
func goldenTranslation(i uint64, n, most, words int) (before, next []int32) {
	written := goldenIds(i, n*most, data.EndToken+1, words)
	before, next = make([]int32, n*most), make([]int32, n*most) // padding is 0
	for e, length := range goldenLengths(rng.NewKey(goldenSeed, 7, i), n, most-1) {
		sentence := written[e*most:][:length]
		before[e*most] = data.BeginToken
		copy(before[e*most+1:], sentence)
		copy(next[e*most:], sentence)
		next[e*most+int(length)] = data.EndToken
	}
	return before, next
}
