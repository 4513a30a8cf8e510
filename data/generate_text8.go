package data

import (
	"bytes"

	"optimus/internal/rng"
)

const topicSegment = 200 // words on one topic

// GenerateText8 makes a text of n examples, a tenth of them for validation, with the
// shape of [OpenText8]'s set: a chain of segments of 200 words, each on one of 20 to 200
// topics, one for each 10,000 words of the text. Of its words three in ten are any, by a
// Zipf law over 2,000 to 250,000 words, one for each 100 of the text, and the others those
// of the topic. Words are random letters, so that their
// trigrams tell them apart.
//
// Word vectors that have learned the topics tell a word from words drawn at random;
// counts do not. The same n and seed always make the same set.
func GenerateText8(n int, seed uint64) (*Set, error) {
	if err := checkMost("generate text8", n, text8Most); err != nil {
		return nil, err
	}
	lex := newLexicon()
	tokens := make([]int32, 0, n+4*contextReach)
	topicText(n, seed, func(word string) { tokens = append(tokens, lex.add(word)) })
	valid := max(n/10, 1) + 2*contextReach
	s := newText8("text8 (generated)", lex, tokens, len(tokens)-valid, seed)
	s.Generated = true
	return s, nil
}

const text8Most = 1 << 25

// topicSizes returns the number of topics of a text of n examples, and of its words.
func topicSizes(n int) (topics, words int) {
	return min(max(n/10000, 20), 200), min(max(n/100, 2000), 250000)
}

// TopicWords returns the count most frequent words of each topic of the set that
// GenerateText8 makes of n and seed. Vectors of words on one topic should be near
// each other.
func TopicWords(n int, seed uint64, count int) [][]string {
	topics, words := topicSizes(n)
	list := make([][]string, topics)
	for rank := range min(count*topics, words) {
		list[rank%topics] = append(list[rank%topics], randomWord(rank, seed))
	}
	return list
}

// topicText says the words of a text of n examples in turn.
func topicText(n int, seed uint64, say func(word string)) {
	key, drawn := rng.NewKey(seed, 't', 'e', 'x', 't', '8'), uint64(0)
	topics, size := topicSizes(n)
	zipf, own := newZipf(size), newZipf(size/topics)
	words := make([]string, size)
	for rank := range words {
		words[rank] = randomWord(rank, seed)
	}
	topic := 0
	for i := range n + 4*contextReach {
		if i%topicSegment == 0 {
			topic = key.Intn(drawn, topics)
		}
		drawn += 2
		rank := search(zipf, key.Float64(drawn))
		if key.Intn(drawn+1, 10) >= 3 {
			rank = search(own, key.Float64(drawn))*topics + topic
		}
		say(words[rank])
	}
}

// randomWord is 4 to 9 letters.
func randomWord(rank int, seed uint64) string {
	letters := rng.NewKey(seed, 'w', 'o', 'r', 'd', uint64(rank))
	text := make([]byte, 4+letters.Intn(0, 6))
	for i := range text {
		text[i] = 'a' + byte(letters.Intn(uint64(i+1), 26))
	}
	return string(text)
}

// text8Text is a text as the original's file has it: one line, a space before each word.
func text8Text(n int, seed uint64) []byte {
	var b bytes.Buffer
	topicText(n, seed, func(word string) {
		b.WriteByte(' ')
		b.WriteString(word)
	})
	return b.Bytes()
}
