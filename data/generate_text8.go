package data

import "optimus/internal/rng"

const (
	topicWords   = 2000 // of the generated vocabulary
	topics       = 20
	topicSegment = 200 // words on one topic
)

// GenerateText8 makes a text of n examples, a tenth of them for validation, with the
// shape of [OpenText8]'s set: a chain of segments of 200 words, each on one of 20
// topics. Of its words three in ten are any, by a Zipf law, and the others those of
// the topic. Words are random letters, so that their trigrams tell them apart.
//
// Word vectors that have learned the topics tell a word from words drawn at random;
// counts do not. The same n and seed always make the same set.
func GenerateText8(n int, seed uint64) (*Set, error) {
	if err := checkCount("generate text8", n); err != nil {
		return nil, err
	}
	key, drawn := rng.NewKey(seed, 't', 'e', 'x', 't', '8'), uint64(0)
	zipf, own, lex := newZipf(topicWords), newZipf(topicWords/topics), newLexicon()
	word := func(rank int) string {
		letters := rng.NewKey(seed, 'w', 'o', 'r', 'd', uint64(rank))
		text := make([]byte, 4+letters.Intn(0, 6))
		for i := range text {
			text[i] = 'a' + byte(letters.Intn(uint64(i+1), 26))
		}
		return string(text)
	}
	words := make([]string, topicWords)
	for rank := range words {
		words[rank] = word(rank)
	}
	tokens := make([]int32, n+4*contextReach)
	topic := 0
	for i := range tokens {
		if i%topicSegment == 0 {
			topic = key.Intn(drawn, topics)
		}
		drawn += 2
		rank := search(zipf, key.Float64(drawn))
		if key.Intn(drawn+1, 10) >= 3 {
			rank = search(own, key.Float64(drawn))*topics + topic
		}
		tokens[i] = lex.add(words[rank])
	}
	valid := max(n/10, 1) + 2*contextReach
	s := newText8("text8 (generated)", lex, tokens, len(tokens)-valid, seed)
	s.Generated = true
	return s, nil
}
