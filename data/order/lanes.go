package order

// A running text is read in order by a model that carries its state from each window of
// words to the next, as in truncated back-propagation through time (Zaremba and others,
// 2014; Merity and others, 2018). The examples of such a plan are the windows, in the
// order of the text, and Batch is a number of lanes: each lane has a contiguous part of
// the text, and in each step goes on with its next window. So lane b of step k reads
// what follows what it read in step k-1.
//
// A lane, not a worker, owns a state. Worker rank of workers has the lanes
// [Slice](Batch, rank, workers); when the number of workers changes, states go with
// their lanes, and what is read stays the same.
//
// Every window comes exactly once an epoch, and a step has as many windows as
// [Plan.Positions] says. Where the lanes do not divide the windows, the first lanes have
// one more, and the others do nothing in an epoch's last step.

// Windows returns the windows that lanes [lo, hi) read in a step, in order; lanes that
// read none are left out, which are the last ones of an epoch's last step. It
// overwrites dst and reuses its memory.
func (p Plan) Windows(step int64, lo, hi int, dst []int) []int {
	dst = dst[:0]
	if !p.valid() || step < 1 {
		return dst
	}
	nth := int((step - 1) % p.StepsPerEpoch())
	for lane := max(lo, 0); lane < min(hi, p.Batch); lane++ {
		if first, end := Slice(p.Examples, lane, p.Batch); first+nth < end {
			dst = append(dst, first+nth)
		}
	}
	return dst
}

// Begins reports whether step (from 1) is an epoch's first, in which every lane starts
// from a state of zeros.
func (p Plan) Begins(step int64) bool {
	return p.valid() && step >= 1 && (step-1)%p.StepsPerEpoch() == 0
}
