package data

import (
	"bytes"

	"optimus/data/source"
	"optimus/internal/rng"
)

// Words of the generated languages, by kind.
const (
	wmtNouns      = 60
	wmtAdjectives = 20
	wmtVerbs      = 30
)

// GenerateWMT17 makes n pairs of sentences, a tenth of them for validation, with the
// shape of [OpenWMT17]'s set. A sentence is one or two clauses: a subject, a verb, an
// object; both are an article, maybe an adjective, and a noun. Its translation goes
// word for word through a dictionary, but the adjective comes behind its noun, the
// verb at the end of its clause, and article and adjective take the noun's ending.
//
// Who attends to the source gets nearly every word right, who does not cannot know
// the nouns. The same n and seed always make the same set.
func GenerateWMT17(n int, seed uint64, o PairOptions) (*Set, error) {
	if err := checkCount("generate WMT17", n); err != nil {
		return nil, err
	}
	s, err := newWMT17(source.Path{}, "WMT17 (generated)", translations(n, seed), o)
	if err == nil {
		s.Generated = true
	}
	return s, err
}

// translations writes n pairs, a tenth of them to validate on.
func translations(n int, seed uint64) (texts [2]parallel) {
	var parts [2][2]bytes.Buffer
	cut := n - max(n/10, 1)
	for i := range n {
		split := 0
		if i >= cut {
			split = 1
		}
		t := &translator{key: rng.NewKey(seed, 'w', 'm', 't', uint64(i)), source: &parts[split][0], target: &parts[split][1]}
		t.clause()
		if t.draw(2) == 0 {
			t.source.WriteString("et ")
			t.target.WriteString("and ")
			t.clause()
		}
		t.source.WriteByte('\n')
		t.target.WriteByte('\n')
	}
	for i := range parts {
		for side := range parts[i] {
			texts[i][side] = parts[i][side].Bytes()
		}
	}
	return texts
}

// translator writes a sentence and its translation.
type translator struct {
	key            rng.Key
	drawn          uint64
	source, target *bytes.Buffer
}

func (t *translator) draw(n int) int {
	t.drawn++
	return t.key.Intn(t.drawn, n)
}

func (t *translator) clause() {
	t.noun()
	verb := spell(t.draw(wmtVerbs))
	t.source.WriteString("v" + verb + " ")
	t.noun()
	t.target.WriteString("w" + verb + " ")
}

// noun writes an article, maybe an adjective, and a noun.
func (t *translator) noun() {
	article, noun := []string{"un", "le"}[t.draw(2)], t.draw(wmtNouns)
	ending := []string{"a", "o", "i"}[noun%3]
	t.source.WriteString(article + " ")
	t.target.WriteString(article + ending + " n" + spell(noun) + " ")
	if t.draw(2) == 0 {
		adjective := spell(t.draw(wmtAdjectives))
		t.source.WriteString("q" + adjective + " ")
		t.target.WriteString("p" + adjective + ending + " ")
	}
	t.source.WriteString("m" + spell(noun) + " ")
}
