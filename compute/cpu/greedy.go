package cpu

import (
	"fmt"
	"slices"
	"strings"

	"optimus/compute"
	"optimus/compute/cpu/vec"
)

// greedy writes translations with the cells of a decoder, whose own work in an
// evaluation is done by then. It has room for the most steps, in tiles of examples as
// the decoder: what is written does not depend on how long other sentences of the batch
// are.
type greedy struct {
	none
	*attentive
	op     *compute.Greedy
	table  *table
	scores product
	words  []int32 // [N,T]: what is written
	ends   []int   // how many words of each example; -1 while it is written
	sums   []tally
	fwd    func(task, thread int)
}

func newGreedy(e *executable, op *compute.Greedy) (kernel, error) {
	cells, ok := e.kernels[op.Decoder]
	if !ok {
		return nil, fmt.Errorf("%T before its decoder; a program decodes first", op)
	}
	k := &greedy{attentive: cells.kernel.(*decoder).attentive, op: op, table: e.tables[op.Table], ends: make([]int, e.capacity), sums: make([]tally, e.capacity)}
	k.words = make([]int32, e.capacity*k.steps)
	k.scores.in = op.Decoder.H
	k.scores.add(e, op.W, op.B, op.Words)
	e.reserve(recurrentTile * (op.Decoder.In + op.Words))
	k.fwd = k.tile
	return k, nil
}

func (k *greedy) forward() {
	if k.e.train {
		return
	}
	k.scores.pack(k.e, ahead)
	k.e.pool.run(tiles(k.e.n, recurrentTile), k.fwd)
	k.e.total(k.sums)
}

func (k *greedy) tile(task, thread int) {
	v := k.e.stretch(task, k.steps)
	k.start(v)
	for j := range v.n {
		k.ends[v.lo+j] = -1
	}
	for s := 0; s < v.steps && slices.Contains(k.ends[v.lo:v.lo+v.n], -1); s++ {
		k.write(v, s, k.e.scratch[thread])
	}
	steps := k.e.steps[k.e.p.Inputs[k.op.References].Axis]
	for i := v.lo; i < v.lo+v.n; i++ {
		n := k.ends[i]
		if n < 0 {
			n = k.steps
		}
		reference := k.e.batch.Inputs[k.op.References].I[i*steps : (i+1)*steps]
		if end := slices.Index(reference, int32(k.op.End)); end >= 0 {
			reference = reference[:end]
		}
		written, numbers := k.words[i*k.steps:][:n], map[string]int32{}
		k.sums[i] = tally{counts: ngrams(joined(k.op, numbers, written), joined(k.op, numbers, reference))}
	}
}

// write adds a word to each example of a stretch.
func (k *greedy) write(v stretch, s int, scratch []float32) {
	in, out := k.input.in, k.scores.out
	x, scores := scratch[:v.n*in], scratch[v.n*in:v.n*(in+out)]
	for j := range v.n {
		last := int32(k.op.Begin)
		if s > 0 {
			last = k.words[(v.lo+j)*k.steps+s-1]
		}
		slot, _ := k.table.slot(last)
		copy(x[j*in:(j+1)*in], k.table.row(slot))
	}
	k.input.multiply(v.at(k.a, k.input.out, s), x, false)
	k.step(v, s)
	k.scores.multiply(scores, v.states().at(k.ys, k.scores.in, s+1), false)
	for j := range v.n {
		_, best := vec.Max(scores[j*out : (j+1)*out])
		k.words[(v.lo+j)*k.steps+s] = int32(best)
		if best == k.op.End && k.ends[v.lo+j] < 0 {
			k.ends[v.lo+j] = s
		}
	}
}

// joined returns the words that pieces make, each as the number that it has or gets.
func joined(op *compute.Greedy, numbers map[string]int32, pieces []int32) []int32 {
	if op.Pieces == nil {
		return pieces
	}
	var words []int32
	var word []byte
	for i, p := range pieces {
		letters, goesOn := strings.CutSuffix(op.Pieces[p], op.Mark)
		word = append(word, letters...)
		if goesOn && i+1 < len(pieces) {
			continue
		}
		n, ok := numbers[string(word)]
		if !ok {
			n = int32(len(numbers))
			numbers[string(word)] = n
		}
		words, word = append(words, n), word[:0]
	}
	return words
}

// ngrams counts for BLEU: for n from 1 to 4 how many n-grams of the candidate there
// are, and how many of them the reference has too, each as often as it has it; and
// both lengths.
func ngrams(candidate, reference []int32) (c compute.Counts) {
	for n := 1; n <= 4; n++ {
		for i := 0; i+n <= len(candidate); i++ {
			gram := candidate[i : i+n]
			if occurrences(candidate[:i+n-1], gram) < occurrences(reference, gram) {
				c[n-1]++
			}
			c[3+n]++
		}
	}
	c[8], c[9] = int64(len(candidate)), int64(len(reference))
	return c
}

// occurrences counts how often gram is in text.
func occurrences(text, gram []int32) (count int) {
	for i := 0; i+len(gram) <= len(text); i++ {
		if slices.Equal(text[i:i+len(gram)], gram) {
			count++
		}
	}
	return count
}
