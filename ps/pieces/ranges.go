package pieces

import "slices"

// ranges are disjoint ranges [lo, hi) in ascending order.
type ranges []span

type span struct{ lo, hi int }

// add includes [lo, hi), merging what touches.
func (r *ranges) add(lo, hi int) {
	kept := (*r)[:0:0]
	for _, x := range *r {
		if x.hi < lo || x.lo > hi {
			kept = append(kept, x)
		} else {
			lo, hi = min(lo, x.lo), max(hi, x.hi)
		}
	}
	kept = append(kept, span{lo, hi})
	slices.SortFunc(kept, func(a, b span) int { return a.lo - b.lo })
	*r = kept
}

// gaps returns what of [0, size) is not included.
func (r ranges) gaps(size int) []span {
	var out []span
	at := 0
	for _, x := range r {
		if x.lo > at {
			out = append(out, span{at, x.lo})
		}
		at = x.hi
	}
	if at < size {
		out = append(out, span{at, size})
	}
	return out
}

func (r ranges) gap(size int) (span, bool) {
	if g := r.gaps(size); len(g) > 0 {
		return g[0], true
	}
	return span{}, false
}

// overlap returns the range that two ranges of the same block share.
func overlap(a, b ID) (id ID, ok bool) {
	lo, hi := max(a.Offset, b.Offset), min(a.Offset+a.Size, b.Offset+b.Size)
	return ID{a.Block, lo, hi - lo}, a.Block == b.Block && lo < hi
}
