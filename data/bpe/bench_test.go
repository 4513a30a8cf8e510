package bpe

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// made is a text of so many distinct words with the frequencies of Zipf's law, spelled
// by syllables, which gives pairs the skewed frequencies that those of a language have.
func made(distinct, words int) []byte {
	r := rand.New(rand.NewPCG(1, 2))
	syllable := rand.NewZipf(r, 1.1, 3, 400)
	list := make([]string, distinct)
	for i := range list {
		var b strings.Builder
		for range 1 + r.IntN(5) {
			s := syllable.Uint64()
			b.WriteByte(byte('a' + s%20))
			b.WriteByte(byte('a' + s/20))
		}
		list[i] = fmt.Sprint(b.String(), i%10)
	}
	word := rand.NewZipf(r, 1.05, 5, uint64(distinct-1))
	var text []byte
	for range words {
		text = append(append(text, list[word.Uint64()]...), ' ')
	}
	return text
}

// BenchmarkLearn learns from a text of 500,000 words; on a small part of it the
// definition takes its turn.
func BenchmarkLearn(b *testing.B) {
	const merges = 8000
	var words, few Counts
	text := made(100_000, 500_000)
	words.Add(text)
	few.Add(text[:20_000])
	counts := map[string]int{}
	for i, word := range few.words {
		counts[word] = few.counts[i]
	}
	var learned int
	var naive, fast time.Duration
	b.ReportAllocs()
	for b.Loop() {
		learned += Learn(&words, merges).Len()
		b.StopTimer()
		begin := time.Now()
		learnNaive(counts, 100)
		naive += time.Since(begin)
		begin = time.Now()
		Learn(&few, 100)
		fast += time.Since(begin)
		b.StartTimer()
	}
	b.ReportMetric(float64(learned)/b.Elapsed().Seconds(), "merges/s")
	b.ReportMetric(float64(len(words.words)), "words")
	b.ReportMetric(naive.Seconds()/fast.Seconds(), "naive/fast")
}

// BenchmarkEncode cuts the same text, with an empty memory for words at first.
func BenchmarkEncode(b *testing.B) {
	var words Counts
	text := made(100_000, 500_000)
	words.Add(text)
	m := Learn(&words, 4000)
	list, few := pairsOf(m), text[:2000]
	var naive, fast time.Duration
	var pieces []byte
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		pieces = m.NewEncoder().Append(pieces[:0], text)
		b.StopTimer()
		begin := time.Now()
		encodeNaive(list, string(few))
		naive += time.Since(begin)
		begin = time.Now()
		m.NewEncoder().Append(nil, few)
		fast += time.Since(begin)
		b.StartTimer()
	}
	b.ReportMetric(500_000*float64(b.N)/b.Elapsed().Seconds(), "words/s")
	b.ReportMetric(naive.Seconds()/fast.Seconds(), "naive/fast")
}
