package cpu

import (
	"fmt"
	"slices"

	"optimus/compute"
	"optimus/compute/cpu/seq"
)

// ctc is the loss of connectionist temporal classification. Each thread has what an
// utterance takes in memory.
type ctc struct {
	none
	e            *executable
	op           *compute.CTC
	x, dx        port
	lengths      *lengths
	labelLengths *lengths
	threads      []transcriber
	sums         []tally
	fwd          func(task, thread int)
}

type transcriber struct {
	loss   *seq.CTC
	path   []int32 // decoded labels
	row    []int
	heard  []int32 // where words end in the path,
	spoken []int32 // and in the labels
}

func newCTC(e *executable, op *compute.CTC) (kernel, error) {
	k := &ctc{e: e, op: op, x: e.port(op.X), dx: e.sink(op, op.DX), sums: make([]tally, e.capacity)}
	labels := e.p.Inputs[op.Labels]
	k.lengths, k.labelLengths = e.lengths(op.Lengths, e.p.Buffers[op.X].Axis), e.lengths(op.LabelLengths, labels.Axis)
	steps, most := *k.x.steps, e.steps[labels.Axis]
	for range e.threads {
		loss, err := seq.NewCTC(steps, most, op.Classes, op.Blank)
		if err != nil {
			return nil, err
		}
		k.threads = append(k.threads, transcriber{loss, make([]int32, 0, steps), make([]int, max(steps, most)+2), make([]int32, 0, steps+1), make([]int32, 0, most+1)})
	}
	e.checks = append(e.checks, k.check)
	k.fwd = k.sample
	return k, nil
}

// check refuses labels that no path makes.
func (k *ctc) check(b *compute.Batch) error {
	for i := range b.N {
		needed, steps := 0, *k.x.steps
		if k.lengths != nil {
			steps = k.lengths.follow(int(b.Inputs[k.op.Lengths].I[i]))
		}
		labels := k.labels(b, i)
		for j, l := range labels {
			if int(l) == k.op.Blank {
				return fmt.Errorf("%w: input %q, example %d, position %d: label %d is the blank; the data and the model must agree on it",
					ErrInput, k.e.p.Inputs[k.op.Labels].Name, i, j, l)
			}
			needed++
			if j > 0 && l == labels[j-1] {
				needed++ // a blank must part equal neighbours
			}
		}
		if needed > steps {
			return fmt.Errorf("%w: input %q, example %d: its %d labels need %d time steps, and %d are left of its recording; leave it out or shorten its labels",
				ErrInput, k.e.p.Inputs[k.op.Labels].Name, i, len(labels), needed, steps)
		}
	}
	return nil
}

// labels returns those of example i.
func (k *ctc) labels(b *compute.Batch, i int) []int32 {
	most := k.e.steps[k.e.p.Inputs[k.op.Labels].Axis]
	return b.Inputs[k.op.Labels].I[i*most:][:b.Inputs[k.op.LabelLengths].I[i]]
}

func (k *ctc) forward() {
	k.lengths.update()
	k.e.pool.run(k.e.n, k.fwd)
	k.e.total(k.sums)
}

func (k *ctc) sample(i, thread int) {
	labels, n := k.labels(k.e.batch, i), k.lengths.at(i, *k.x.steps)*k.op.Classes
	x, t := k.x.at(i)[:n], &k.threads[thread]
	var dx []float32
	if k.e.train {
		dx = k.dx.fresh(i)[:n]
	}
	// What may be wrong with the labels was checked; infinite logits make the loss
	// infinite, for all to see.
	loss, _ := t.loss.Loss(dx, x, labels)
	k.sums[i] = tally{loss: loss, weight: 1, counts: t.count(x, labels, k.op.Space)}
}

// count compares labels with the likeliest path.
func (t *transcriber) count(x []float32, labels []int32, space int) (c compute.Counts) {
	t.path = t.loss.BestPath(t.path[:0], x)
	c[0] = t.edits(len(t.path), len(labels), func(i, j int) bool { return t.path[i] == labels[j] })
	c[1] = int64(len(labels))
	if space == compute.None {
		return c
	}
	t.heard, t.spoken = wordEnds(t.heard[:0], t.path, space), wordEnds(t.spoken[:0], labels, space)
	c[2] = t.edits(len(t.heard), len(t.spoken), func(i, j int) bool {
		return slices.Equal(wordAt(t.path, t.heard, i, space), wordAt(labels, t.spoken, j, space))
	})
	c[3] = int64(len(t.spoken))
	return c
}

// wordEnds appends where the words of a text end: runs of labels other than space.
func wordEnds(ends []int32, text []int32, space int) []int32 {
	for i, l := range text {
		if int(l) != space && (i+1 == len(text) || int(text[i+1]) == space) {
			ends = append(ends, int32(i+1))
		}
	}
	return ends
}

func wordAt(text, ends []int32, i, space int) []int32 {
	from := ends[i]
	for from > 0 && int(text[from-1]) != space {
		from--
	}
	return text[from:ends[i]]
}

// edits is the edit distance of Levenshtein of sequences of n and m.
func (t *transcriber) edits(n, m int, equal func(i, j int) bool) int64 {
	row := t.row[:m+1]
	for j := range row {
		row[j] = j
	}
	for i := range n {
		diagonal := row[0]
		row[0] = i + 1
		for j := range m {
			replaced := diagonal
			if !equal(i, j) {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, diagonal+1)
		}
	}
	return int64(row[m])
}
