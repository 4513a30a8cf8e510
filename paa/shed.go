package paa

import (
	"cmp"
	"slices"
)

// shed takes from each of the first n servers, those that stay, what it has above the capacity. Half the slack may be
// spent on leaving it a little more, shared evenly.
func (r *rescale) shed(n int) {
	var over []int
	for s := range n {
		if r.room(s) < 0 {
			over = append(over, s)
		}
	}
	surplus := r.surplus(over)
	spare := r.slack / 2
	for i, s := range over {
		left := r.shedFrom(s, surplus[i], spare/(len(over)-i))
		spare -= left
		r.slack -= left
	}
}

// surplus says how many pieces each of the given servers should give away: what it has above the fair number, but
// together no more than the servers with room lack.
func (r *rescale) surplus(over []int) []int {
	lack := -len(r.pool)
	for s := range r.load {
		if r.room(s) > 0 {
			lack += max(0, r.fair-r.count[s])
		}
	}
	lack = max(lack, 0)
	surplus := make([]int, len(over))
	total := 0
	for i, s := range over {
		surplus[i] = max(0, r.count[s]-r.fair)
		total += surplus[i]
	}
	for i := range surplus {
		if total > lack {
			surplus[i] = surplus[i] * lack / total
		}
	}
	return surplus
}

// shedFrom takes what server s has above the capacity, less at most spare, in about surplus pieces, and returns what
// it leaves.
func (r *rescale) shedFrom(s, surplus, spare int) int {
	excess := -r.room(s)
	if excess <= spare {
		return excess
	}
	// By decreasing size, so that the largest pieces go first.
	slices.SortFunc(r.held[s], func(a, b Piece) int { return cmp.Or(cmp.Compare(b.Size, a.Size), comparePieces(a, b)) })
	c := r.choose(r.held[s], excess, spare, surplus)
	held := r.held[s]
	r.held[s], r.load[s], r.count[s] = nil, 0, 0
	for i, piece := range held {
		if c.take[i] {
			piece.Server = pooled
		}
		r.put(piece)
	}
	if c.left <= spare {
		return c.left
	}
	r.cutFrom(s, c.left)
	return 0
}

// choice is a set of a server's pieces to give away.
type choice struct {
	take []bool // by index in held
	n    int    // pieces taken
	left int    // elements still to be taken
}

func (c *choice) add(i int, held []Piece) {
	c.take[i] = true
	c.n++
	c.left -= held[i].Size
}

// trials bounds the choices that choose compares.
const trials = 64

// choose picks, from pieces held by decreasing size, about surplus ones with together at most excess elements, such
// that at most spare are left. To find them it takes the largest that fit, and tries again without the very largest,
// the two largest, and so on. If in the end more than spare is left, one of the other pieces is larger than that.
func (r *rescale) choose(held []Piece, excess, spare, surplus int) choice {
	// better orders by: no cut needed, pieces near the surplus, little left.
	better := func(a, b choice) bool {
		cut := func(c choice) int {
			if c.left > spare {
				return 1
			}
			return 0
		}
		off := func(c choice) int { return max(c.n-surplus, surplus-c.n) }
		return cmp.Or(cmp.Compare(cut(a), cut(b)), cmp.Compare(off(a), off(b)), cmp.Compare(a.left, b.left)) < 0
	}
	best := r.chooseFrom(held, 0, excess, spare, surplus)
	for skip := 1; skip < min(len(held), trials); skip++ {
		if c := r.chooseFrom(held, skip, excess, spare, surplus); better(c, best) {
			best = c
		}
	}
	return best
}

// chooseFrom is one trial of choose. Held is sorted by decreasing size, so its end has the pieces that are good for
// their number rather than their size: room is kept for as many of these as there are too many.
func (r *rescale) chooseFrom(held []Piece, skip, excess, spare, surplus int) choice {
	c := choice{take: make([]bool, len(held)), left: excess}
	small, reserve := len(held), 0
	for small > 0 && len(held)-small < surplus && r.small(held[small-1]) && reserve+held[small-1].Size <= excess/2 {
		small--
		reserve += held[small].Size
	}
	for i := skip; i < small && c.n < surplus; i++ {
		if held[i].Size <= c.left-reserve {
			c.add(i, held)
		}
	}
	for i := len(held) - 1; i >= small && c.n < surplus && held[i].Size <= c.left; i-- {
		c.add(i, held)
	}
	cuttable := false // there is a piece from which what is left could be cut
	for i := 0; i < len(held) && c.left > spare && !(cuttable && c.n >= surplus+1+r.fair/8); i++ {
		switch {
		case c.take[i]:
		case held[i].Size <= c.left:
			c.add(i, held)
		default:
			cuttable = true
		}
	}
	return c
}

// cutFrom cuts n elements off a piece of server s into the pool; a piece with more than n must be there. It takes the
// end that joins the pool or, failing that, may join what another server will have; the largest piece among equals.
func (r *rescale) cutFrom(s, n int) {
	best, tail, bestScore := -1, false, -1
	for i, piece := range r.held[s] {
		if piece.Size <= n {
			continue
		}
		behind, ok := r.edges.behind(piece)
		before, ok2 := r.edges.before(piece)
		for _, end := range []struct {
			tail  bool
			score int
		}{{true, r.joins(s, behind, ok)}, {false, r.joins(s, before, ok2)}} {
			if end.score > bestScore || end.score == bestScore && piece.Size > r.held[s][best].Size {
				best, tail, bestScore = i, end.tail, end.score
			}
		}
	}
	piece := r.held[s][best]
	r.held[s] = slices.Delete(r.held[s], best, best+1)
	r.load[s] -= piece.Size
	r.count[s]--
	head, rest := split(piece, n)
	head.Server = pooled
	if tail {
		head, rest = split(piece, piece.Size-n)
		rest.Server = pooled
	}
	r.put(head)
	r.put(rest)
}

// joins says how good it is to cut off a range whose neighbour is on the given server.
func (r *rescale) joins(s, neighbour int, ok bool) int {
	switch {
	case !ok || neighbour == s:
		return 0
	case neighbour == pooled:
		return 3 // they move together
	case r.room(neighbour) > 0:
		return 2 // it may move there
	case r.room(neighbour) < 0 && neighbour > s:
		return 1 // the neighbour has still to be cut
	}
	return 0
}

// split cuts a piece behind its first n elements.
func split(p Piece, n int) (head, tail Piece) {
	head, tail = p, p
	head.Size = n
	tail.Offset += n
	tail.Size -= n
	return head, tail
}
