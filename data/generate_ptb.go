package data

import (
	"slices"

	"optimus/internal/rng"
)

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
	texts := sentencesOf(n, seed)
	lex := newLexicon()
	train, err := readTokens(ptbTrain, texts[0], func(word string) (int32, error) { return lex.add(word), nil })
	if err != nil {
		return nil, err
	}
	valid, err := readTokens(ptbValid, texts[1], lex.known)
	if err != nil {
		return nil, err
	}
	s := newPTB("PTB (generated)", lex, train, valid)
	s.Generated = true
	return s, nil
}

// sentencesOf writes n windows of text, a tenth of them to validate on. Where a short
// text to train on lacks words of the other, they are <unk>, as its own rarest word is.
func sentencesOf(n int, seed uint64) [2][]byte {
	key, drawn := rng.NewKey(seed, 'p', 't', 'b'), uint64(0)
	draw := func(n int) int { drawn++; return key.Intn(drawn, n) }
	zipf := newZipf(ptbWords - 1)
	anyWord := func() int { drawn++; return search(zipf, key.Float64(drawn)) }
	likely := rng.NewKey(seed, 'n', 'e', 'x', 't')
	sentence := func() []int {
		first := anyWord()
		words := []int{first}
		for word, left := first, draw(16)+2; left > 0; left-- {
			if draw(10) > 0 {
				word = likely.Intn(uint64(word*ptbSuccessors+draw(ptbSuccessors)), ptbWords-1)
			} else {
				word = anyWord()
			}
			words = append(words, word)
		}
		return append(words, first)
	}
	windows := max(n/10, 1)
	var texts [2][][]int
	for i, most := range []int{n - windows, windows} {
		for count := 0; count <= most*ptbStep; count++ { // the end of a line counts
			texts[i] = append(texts[i], sentence())
			count += len(texts[i][len(texts[i])-1])
		}
	}
	name := knownNames(texts)
	var out [2][]byte
	for i, text := range texts {
		for _, words := range text {
			for _, word := range words {
				out[i] = append(append(out[i], ' '), name(word)...)
			}
			out[i] = append(out[i], " \n"...)
		}
	}
	return out
}

// knownNames returns what words are called, so that all of the second text are in the
// first.
func knownNames(texts [2][][]int) func(word int) string {
	counts := make([]int, ptbWords)
	for _, words := range texts[0] {
		for _, word := range words {
			counts[word]++
		}
	}
	lack := false
	for _, words := range texts[1] {
		lack = lack || slices.ContainsFunc(words, func(word int) bool { return counts[word] == 0 })
	}
	rarest := -1
	for word, count := range counts {
		if lack && count > 0 && (rarest < 0 || count < counts[rarest]) {
			rarest = word
		}
	}
	return func(word int) string {
		if word == rarest || counts[word] == 0 {
			return Unknown
		}
		return spell(word)
	}
}
