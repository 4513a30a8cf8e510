package bpe

import (
	"bytes"
	"maps"
	"slices"
	"strings"
)

// learnNaive is the definition: it counts all pairs anew before each merge.
func learnNaive(counts map[string]int, n int) [][2]string {
	words := map[string][]string{}
	for word := range counts {
		letters := strings.Split(word, "")
		letters[len(letters)-1] += wordEnd
		words[word] = letters
	}
	var list [][2]string
	for len(list) < n {
		pairs := map[[2]string]int{}
		for word, s := range words {
			for i := range len(s) - 1 {
				pairs[[2]string{s[i], s[i+1]}] += counts[word]
			}
		}
		var best [2]string
		for p, count := range pairs {
			if d := count - pairs[best]; d > 0 || d == 0 && slices.Compare(p[:], best[:]) > 0 {
				best = p
			}
		}
		if pairs[best] < 2 {
			break
		}
		list = append(list, best)
		for word, s := range words {
			words[word] = mergeNaive(s, best)
		}
	}
	return list
}

// mergeNaive merges a pair wherever it is, from the left.
func mergeNaive(s []string, pair [2]string) []string {
	var out []string
	for i := 0; i < len(s); i++ {
		if i+1 < len(s) && s[i] == pair[0] && s[i+1] == pair[1] {
			out = append(out, s[i]+s[i+1])
			i++
		} else {
			out = append(out, s[i])
		}
	}
	return out
}

// encodeNaive cuts the words of a text by a list, with a single space between.
func encodeNaive(list [][2]string, text string) string {
	var out []string
	for _, word := range strings.Fields(text) {
		s := strings.Split(word, "")
		s[len(s)-1] += wordEnd
		for {
			first := slices.IndexFunc(list, func(p [2]string) bool {
				return slices.ContainsFunc(adjacent(s), func(q [2]string) bool { return p == q })
			})
			if first < 0 {
				break
			}
			s = mergeNaive(s, list[first])
		}
		last := len(s) - 1
		s[last] = strings.TrimSuffix(s[last], wordEnd)
		out = append(out, strings.Join(s, Mark+" "))
	}
	return strings.Join(out, " ")
}

func adjacent(s []string) [][2]string {
	var pairs [][2]string
	for i := range len(s) - 1 {
		pairs = append(pairs, [2]string{s[i], s[i+1]})
	}
	return pairs
}

// pairsOf returns the merges as text.
func pairsOf(m *Merges) [][2]string {
	var list [][2]string
	for a, b := range m.All() {
		list = append(list, [2]string{a, b})
	}
	return list
}

// countsOf counts words in the given order of distinct ones.
func countsOf(counts map[string]int, order []string) *Counts {
	c := &Counts{}
	for _, word := range order {
		c.Add(bytes.Repeat([]byte(word+" "), counts[word]))
	}
	return c
}

func sorted(counts map[string]int) []string { return slices.Sorted(maps.Keys(counts)) }
