package bpe

import (
	"bytes"
	"cmp"
	"container/heap"
	"strings"
	"unicode/utf8"
)

// Counts says how often each word is in a text. The zero value is ready for use.
type Counts struct {
	number map[string]int32
	words  []string
	counts []int
}

// Add counts the words of a text, which are what white space parts.
func (c *Counts) Add(text []byte) {
	if c.number == nil {
		c.number = map[string]int32{}
	}
	for word := range bytes.FieldsSeq(text) {
		n, ok := c.number[string(word)]
		if !ok {
			n = int32(len(c.words))
			c.words = append(c.words, string(word))
			c.counts = append(c.counts, 0)
			c.number[c.words[n]] = n
		}
		c.counts[n]++
	}
}

// Learn returns the n merges that byte-pair encoding learns from the words, or fewer
// where no two neighbours are left that occur twice. Of pairs that are equally frequent
// the last in the order of their text goes first, so the same words and counts always
// give the same list, in whatever order they were counted.
//
// Words of more than 128 letters, of invalid UTF-8, or that hold </w> teach nothing.
//
// Work and memory follow the number of distinct words: a merge visits but the words
// that have its pair.
func Learn(words *Counts, n int) *Merges {
	l := &learner{numbers: map[symbol]int32{}, pairs: map[uint64]int32{}}
	for i, word := range words.words {
		if utf8.ValidString(word) && utf8.RuneCountInString(word) <= longest && !strings.Contains(word, wordEnd) {
			l.addWord(word, words.counts[i])
		}
	}
	l.queueRisen()
	var list [][2]symbol
	for len(list) < n {
		best, ok := l.next()
		if !ok {
			break
		}
		list = append(list, l.merge(best))
	}
	return newMerges(list, false)
}

// learner knows the words as they are cut at present.
type learner struct {
	numbers map[symbol]int32
	symbols []symbol
	texts   []string // of the symbols, with the end of the word

	words  [][]int32 // symbols of each word
	counts []int     // of each word

	pairs  map[uint64]int32 // numbers of pairs of symbols
	seen   []pair
	risen  []int32 // pairs that may have to go up in the queue
	queue  []entry
	merged []int32 // scratch of merge
}

// pair is two symbols that are neighbours somewhere.
type pair struct {
	left, right int32
	count       int     // over all words
	queued      int     // with which count it is in the queue; 0 if it is not
	words       []int32 // that may have it; one may be listed twice
}

// entry is a pair in the queue, with a count that it had when it was put there and
// that may have fallen since.
type entry struct {
	count int
	pair  int32
}

func (l *learner) number(s symbol) int32 {
	n, ok := l.numbers[s]
	if !ok {
		n = int32(len(l.symbols))
		l.numbers[s] = n
		l.symbols, l.texts = append(l.symbols, s), append(l.texts, s.String())
	}
	return n
}

// addWord takes a word as letters.
func (l *learner) addWord(word string, count int) {
	s := make([]int32, 0, utf8.RuneCountInString(word))
	for len(word) > 0 {
		_, size := utf8.DecodeRuneInString(word)
		s = append(s, l.number(symbol{word[:size], size == len(word)}))
		word = word[size:]
	}
	l.words, l.counts = append(l.words, s), append(l.counts, count)
	l.add(int32(len(l.words)-1), s, 1)
}

// add counts the pairs of neighbours in a part of a word, or with sign -1 takes them away.
func (l *learner) add(word int32, part []int32, sign int) {
	for i := range len(part) - 1 {
		key := uint64(part[i])<<32 | uint64(part[i+1])
		n, ok := l.pairs[key]
		if !ok {
			n = int32(len(l.seen))
			l.pairs[key] = n
			l.seen = append(l.seen, pair{left: part[i], right: part[i+1]})
		}
		p := &l.seen[n]
		p.count += sign * l.counts[word]
		if sign > 0 {
			if len(p.words) == 0 || p.words[len(p.words)-1] != word {
				p.words = append(p.words, word)
			}
			l.risen = append(l.risen, n)
		}
	}
}

// queueRisen puts the pairs into the queue that are more frequent than it has them.
func (l *learner) queueRisen() {
	for _, n := range l.risen {
		if p := &l.seen[n]; p.count > max(p.queued, 1) {
			p.queued = p.count
			heap.Push(l, entry{p.count, n})
		}
	}
	l.risen = l.risen[:0]
}

// next takes the most frequent pair out of the queue. Counts that have fallen are
// mended only when they come up.
func (l *learner) next() (best int32, ok bool) {
	for len(l.queue) > 0 {
		e := heap.Pop(l).(entry)
		p := &l.seen[e.pair]
		if e.count != p.queued {
			continue // it is in the queue with a higher count, or was
		}
		p.queued = 0
		if e.count == p.count {
			return e.pair, true
		}
		l.risen = append(l.risen, e.pair)
		l.queueRisen()
	}
	return 0, false
}

// merge makes one symbol of the pair in all words.
func (l *learner) merge(n int32) [2]symbol {
	p := &l.seen[n]
	left, right, words := p.left, p.right, p.words
	p.words = nil // the pair is gone, unless other merges make it anew
	made := [2]symbol{l.symbols[left], l.symbols[right]}
	product := l.number(symbol{made[0].text + made[1].text, made[1].end})
	for _, word := range words {
		s := l.words[word]
		first, last := -1, 0
		l.merged = l.merged[:0]
		for i := 0; i < len(s); i++ {
			if i+1 < len(s) && s[i] == left && s[i+1] == right {
				if first < 0 {
					first = i
				}
				l.merged = append(l.merged, product)
				i++
				last = i
			} else {
				l.merged = append(l.merged, s[i])
			}
		}
		if first < 0 {
			continue
		}
		// Pairs change from the neighbour before the first to that behind the last.
		from, behind := max(first-1, 0), max(len(s)-last-2, 0)
		l.add(word, s[from:len(s)-behind], -1)
		l.words[word] = append(s[:0], l.merged...)
		l.add(word, l.words[word][from:len(l.merged)-behind], 1)
	}
	l.queueRisen()
	return made
}

// The queue is a heap.

func (l *learner) Len() int      { return len(l.queue) }
func (l *learner) Swap(i, j int) { l.queue[i], l.queue[j] = l.queue[j], l.queue[i] }
func (l *learner) Push(x any)    { l.queue = append(l.queue, x.(entry)) }
func (l *learner) Less(i, j int) bool {
	a, b := l.queue[i], l.queue[j]
	if a.count != b.count {
		return a.count > b.count
	}
	p, q := &l.seen[a.pair], &l.seen[b.pair]
	return cmp.Or(strings.Compare(l.texts[p.left], l.texts[q.left]), strings.Compare(l.texts[p.right], l.texts[q.right])) > 0
}

func (l *learner) Pop() any {
	last := len(l.queue) - 1
	e := l.queue[last]
	l.queue = l.queue[:last]
	return e
}
