package data

import "optimus/internal/rng"

const (
	ptbWords      = 300 // of the generated vocabulary, with <eos>
	ptbSuccessors = 3   // words that are likely behind each word
)

// GeneratePTB makes a text of n windows, a tenth of them for validation, with the
// shape of [OpenPTB]'s set. Sentences have 4 to 19 words. Behind each word come
// three of the others, in nine of ten cases; else any word, by a Zipf law. The last
// word of a sentence is its first once more.
//
// So counting pairs of words gets far below the perplexity of counting words, and
// one who remembers how a sentence began still lower. The same n and seed always make
// the same set.
func GeneratePTB(n int, seed uint64) (*Set, error) {
	if err := checkCount("generate PTB", n); err != nil {
		return nil, err
	}
	key, drawn := rng.NewKey(seed, 'p', 't', 'b'), uint64(0)
	draw := func(n int) int { drawn++; return key.Intn(drawn, n) }
	zipf, lex := newZipf(ptbWords-1), newLexicon()
	anyWord := func() int { drawn++; return search(zipf, key.Float64(drawn)) }
	likely := rng.NewKey(seed, 'n', 'e', 'x', 't')
	var tokens []int32
	for len(tokens) <= n*ptbStep {
		first := anyWord()
		tokens = append(tokens, lex.add(spell(first)))
		for word, left := first, draw(16)+2; left > 0; left-- {
			if draw(10) > 0 {
				word = likely.Intn(uint64(word*ptbSuccessors+draw(ptbSuccessors)), ptbWords-1)
			} else {
				word = anyWord()
			}
			tokens = append(tokens, lex.add(spell(word)))
		}
		tokens = append(tokens, lex.add(spell(first)), lex.add(EndOfSentence))
	}
	valid := max(n/10, 1)*ptbStep + 1
	cut := n*ptbStep + 1 - valid
	s := newPTB("PTB (generated)", lex, tokens[:cut+1:cut+1], tokens[cut:n*ptbStep+1])
	s.Generated = true
	return s, nil
}
