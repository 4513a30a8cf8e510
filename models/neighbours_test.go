package models_test

import (
	"cmp"
	"math"
	"slices"
)

// neighbourShare is the metric of word vectors: of the so many words whose vectors
// have the largest cosines with a word's, the share that is on its topic.
func neighbourShare(tr *trainer, topics [][]string, near int) float64 {
	number := map[string]int{}
	for i, trigram := range tr.set.Vocabulary {
		number[trigram] = i
	}
	width := tr.p.Params[0].Shape[1]
	var vectors [][]float64
	var topicOf []int
	for topic, words := range topics {
		for _, word := range words {
			v := make([]float64, width)
			for wrapped, i := "#"+word+"#", 0; i+3 <= len(wrapped); i++ {
				for j, x := range tr.params[0][number[wrapped[i:i+3]]*width:][:width] {
					v[j] += float64(x)
				}
			}
			vectors, topicOf = append(vectors, v), append(topicOf, topic)
		}
	}
	dot := func(a, b []float64) (sum float64) {
		for i, x := range a {
			sum += x * b[i]
		}
		return sum
	}
	hits, order := 0, make([]int, len(vectors))
	for i, v := range vectors {
		cosine := make([]float64, len(vectors))
		for j, other := range vectors {
			order[j], cosine[j] = j, dot(v, other)/math.Sqrt(dot(other, other))
		}
		cosine[i] = math.Inf(-1)
		slices.SortFunc(order, func(a, b int) int { return cmp.Compare(cosine[b], cosine[a]) })
		for _, j := range order[:near] {
			if topicOf[j] == topicOf[i] {
				hits++
			}
		}
	}
	return float64(hits) / float64(near*len(vectors))
}
