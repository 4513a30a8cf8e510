package pieces

import "optimus/compute/optim"

// chunk is how many elements are summed, applied and checked at a time: small
// enough that gradient, parameters and state (at most seven arrays) stay in a
// core's second cache between these passes.
const chunk = 4096

// job is one out-of-place update of arrays of equal size.
type job struct {
	in, out *arrays
	kind    kind
	scanned bool         // the one contribution was found finite on receipt
	update  optim.Update // without its arrays
}

// scratch is what an update needs besides its arrays. It is pooled, so that a
// step allocates nothing.
type scratch struct {
	sum     []float32   // one chunk
	grads   [][]float32 // contributions that hold values, in the order of the member list
	in, out [][]float32 // one chunk of each state array
	cursors []cursor    // rows: one per contribution
	rowSum  []float32   // rows: the sums of the touched rows
	result  arrays      // rows: the new values of the touched rows
}

func newScratch(slots int) *scratch {
	return &scratch{
		sum:    make([]float32, chunk),
		in:     make([][]float32, slots),
		out:    make([][]float32, slots),
		result: arrays{slots: make([][]float32, slots)},
	}
}

// reset drops references to the callers' arrays.
func (w *scratch) reset() {
	clear(w.grads)
	w.grads = w.grads[:0]
	clear(w.cursors)
	w.cursors = w.cursors[:0]
}

// collect sets w.grads to what adds up to a piece's gradient: the contributions, or
// for rows the sum over those that were touched.
func (w *scratch) collect(p *piece, from []Push) {
	if p.rows() {
		w.walk(p, from)
		w.grads = append(w.grads, w.sumRows(p))
		return
	}
	for i := range from {
		if len(from[i].Values) > 0 {
			w.grads = append(w.grads, from[i].Values)
		}
	}
}

// update computes out from in and the sum of w.grads, chunk by chunk. It reports
// false, with out half written, if the sum or the result is not finite: finite
// contributions can overflow in their sum, and a finite sum in the optimizer's
// squares.
func (s *Store) update(j job, w *scratch) (bool, error) {
	n := len(j.in.params)
	slots := len(j.in.slots)
	for lo := 0; lo < n; lo += chunk {
		hi := min(lo+chunk, n)
		u := j.update
		u.Params, u.Out = j.in.params[lo:hi], j.out.params[lo:hi]
		u.State, u.StateOut = w.in[:slots], w.out[:slots]
		for i := range slots {
			u.State[i], u.StateOut[i] = j.in.slots[i][lo:hi], j.out.slots[i][lo:hi]
		}
		u.Grad = sum(w.sum, w.grads, lo, hi)
		if !j.scanned && !finite(u.Grad) {
			return false, nil
		}
		if err := s.step(j.kind, u); err != nil {
			return false, err
		}
		if !finite(u.Out) {
			return false, nil
		}
		for _, x := range u.StateOut {
			if !finite(x) {
				return false, nil
			}
		}
	}
	return true, nil
}

// step makes the next version of a chunk.
func (s *Store) step(k kind, u optim.Update) error {
	switch k {
	case carried:
		copy(u.Out, u.Grad)
		return nil
	case averaged:
		return optim.Average(u.Out, u.Params, u.Grad, u.Weight, s.cfg.AuxMomentum)
	}
	return s.cfg.Optimizer.Apply(u)
}

// sum returns elements [lo, hi) of the contributions' sum, added one after the
// other in their order. A single contribution is returned as it is.
func sum(dst []float32, grads [][]float32, lo, hi int) []float32 {
	if len(grads) == 1 {
		return grads[0][lo:hi]
	}
	dst = dst[:hi-lo]
	add(dst, grads[0][lo:hi], grads[1][lo:hi])
	for _, g := range grads[2:] {
		add(dst, dst, g[lo:hi])
	}
	return dst
}

// add sets dst = a + b, element by element; dst may be a.
func add(dst, a, b []float32) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = a[i] + b[i]
	}
}
