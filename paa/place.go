package paa

import (
	"cmp"
	"slices"
)

// place gives all pieces of the pool to servers with room, the largest first.
//
// Small pieces serve to even out the numbers of pieces. Room is kept for them on all servers alike while larger ones
// are placed; and the very smallest, as far as half the slack could bear them all on one server, need no room.
func (r *rescale) place() {
	pool := arrange(r.pool) // neighbours from different servers move as one
	r.pool = nil
	slices.SortFunc(pool, bySize)
	free := len(pool)
	for spare := r.slack / 2; free > 0 && pool[free-1].Size <= spare; free-- {
		spare -= pool[free-1].Size
		r.slack -= pool[free-1].Size
	}
	pool, smallest := pool[:free], slices.Clone(pool[free:])
	r.reserve = r.reserveFor(pool)
	for len(pool) > 0 {
		piece := pool[0]
		pool = pool[1:]
		if r.small(piece) {
			r.reserve = 0
		}
		s := r.pick(piece)
		if s == pooled && r.open(least(r.load)) <= 0 { // only the reserve is left
			r.reserve = 0
			s = r.pick(piece)
		}
		if s != pooled {
			r.slack -= max(0, piece.Size-r.open(s))
			r.give(piece, s)
			continue
		}
		rest := r.fill(piece)
		i, _ := slices.BinarySearchFunc(pool, rest, bySize)
		pool = slices.Insert(pool, i, rest)
	}
	for _, piece := range smallest {
		r.give(piece, r.fewest())
	}
}

// smallPart is the part of a server's average up to which a piece is small. The paper has 1 % for assignments from
// nothing. Here that proved too much: chains of rescales of the catalog's models ended with more cuts and less even
// numbers of pieces.
const smallPart = 0.001

// small reports whether a piece counts for the number of pieces rather than for its size.
func (r *rescale) small(piece Piece) bool { return float64(piece.Size) <= smallPart*float64(r.average) }

// reserveFor divides what the small pieces of the pool need among the servers with room.
func (r *rescale) reserveFor(pool []Piece) int {
	need, servers := 0, 0
	for _, piece := range pool {
		if r.small(piece) {
			need += piece.Size
		}
	}
	for s := range r.load {
		if r.room(s) > 0 {
			servers++
		}
	}
	return need / max(servers, 1)
}

// open is the room of server s without what is kept for small pieces.
func (r *rescale) open(s int) int { return r.room(s) - r.reserve }

// give puts the piece on server s. Where it joins a piece that s holds it is no piece of its own.
func (r *rescale) give(piece Piece, s int) {
	if before, ok := r.edges.before(piece); ok && before == s {
		r.count[s]--
	}
	if behind, ok := r.edges.behind(piece); ok && behind == s {
		r.count[s]--
	}
	piece.Server = s
	r.put(piece)
}

// bySize orders the pool: larger pieces first, equal ones as in the model.
func bySize(a, b Piece) int {
	return cmp.Or(cmp.Compare(b.Size, a.Size), comparePieces(a, b))
}

// pick finds a server for the whole piece: one that has its neighbour if it has room, else the one with most room or,
// for a small piece, with fewest pieces. If none has room, the one that the piece would overfill least, if the slack
// allows. The result is pooled if the piece must be cut.
func (r *rescale) pick(piece Piece) int {
	fits := func(s int) bool { return r.open(s) >= piece.Size }
	if s, ok := r.neighbour(piece, fits); ok {
		return s
	}
	best := least(r.load)
	if !fits(best) {
		if piece.Size-r.open(best) > r.slack {
			return pooled
		}
		return best
	}
	if r.small(piece) {
		for s := range r.load {
			if fits(s) && r.count[s] < r.count[best] {
				best = s
			}
		}
	}
	return best
}

// fill cuts off as much of the piece as an open server has room for, gives it that, and returns the rest. The server
// is one that has the piece's neighbour, else the one with most room. Some server must be open, and none so far that
// the whole piece fits.
func (r *rescale) fill(piece Piece) (rest Piece) {
	s, ok := r.neighbour(piece, func(s int) bool { return r.open(s) > 0 })
	if !ok {
		s = least(r.load)
	}
	n := r.open(s)
	head, rest := split(piece, n)
	if behind, ok := r.edges.behind(piece); ok && behind == s {
		rest, head = split(piece, piece.Size-n)
	}
	r.give(head, s)
	r.edges.set(rest)
	return rest
}

// neighbour returns a server that holds what is just before or behind the piece and is fit to take it.
func (r *rescale) neighbour(piece Piece, fit func(s int) bool) (int, bool) {
	if s, ok := r.edges.before(piece); ok && s != pooled && fit(s) {
		return s, true
	}
	if s, ok := r.edges.behind(piece); ok && s != pooled && fit(s) {
		return s, true
	}
	return 0, false
}

// fewest returns the server with the fewest pieces, among equals the one with most room.
func (r *rescale) fewest() int {
	best := 0
	for s := range r.count {
		if c := cmp.Compare(r.count[s], r.count[best]); c < 0 || c == 0 && r.load[s] < r.load[best] {
			best = s
		}
	}
	return best
}
