package paa

import (
	"fmt"
	"slices"
)

// Tolerance is how far [Reassign] may leave the even distribution to save cuts, as a part of a server's
// average: summed over all servers, the elements above the capacity are at most Tolerance·total/p.
const Tolerance = 0.01

// Reassign makes the assignment to p servers that follows old when only some of its servers stay, such that as few
// elements as possible change server, and lists the moves as [Diff] does. New server i < len(survivors) is old server
// survivors[i]; the others are new. Sizes are those of the blocks, in elements.
//
// With the capacity c = ⌈total/p⌉, a server that leaves must move all it has, and one that stays all it has above
// c; no assignment of at most c per server moves less than the sum of these. Reassign
//   - never moves more than that bound,
//   - never leaves a server more than slack = [Tolerance]·total/p above c, nor slack+p below it, and falls below the
//     bound by at most slack: it spends the slack where that saves cutting a block, or evens out the numbers of pieces,
//   - cuts only where whole pieces do not fit, at a place where the parts join their neighbours if there is one, and
//   - picks, where it is free to choose, the pieces and servers that even out the numbers of pieces.
//
// The result depends on the arguments only. The error wraps [ErrServers] if p < 1 or survivors are not at most p
// different servers of old, and else [ErrSizes] or [ErrAssignment] if old is not an assignment of these blocks.
func Reassign(old Assignment, sizes []int, survivors []int, p int) (Assignment, []Move, error) {
	if err := checkServers("reassign", p); err != nil {
		return Assignment{}, nil, err
	}
	if err := old.Validate(sizes); err != nil {
		return Assignment{}, nil, fmt.Errorf("paa: reassign: old assignment: %w", err)
	}
	total, err := sum("reassign", sizes)
	if err != nil {
		return Assignment{}, nil, err
	}
	rank, err := ranks(old.Servers, survivors, p)
	if err != nil {
		return Assignment{}, nil, err
	}

	r := newRescale(old, rank, total, p)
	r.shed(len(survivors))
	r.place()
	next := Assignment{Servers: p, Pieces: arrange(r.collect())}
	return next, Diff(old, next, survivors), nil
}

// ranks maps each old server to its new index, or to pooled if it leaves.
func ranks(servers int, survivors []int, p int) ([]int, error) {
	if len(survivors) > p {
		return nil, fmt.Errorf("paa: reassign: %d survivors among %d servers, want at most as many as servers: %w", len(survivors), p, ErrServers)
	}
	rank := make([]int, servers)
	for i := range rank {
		rank[i] = pooled
	}
	for i, s := range survivors {
		if s < 0 || s >= servers {
			return nil, fmt.Errorf("paa: reassign: survivor %d is server %d, old servers are 0..%d: %w", i, s, servers-1, ErrServers)
		}
		if rank[s] != pooled {
			return nil, fmt.Errorf("paa: reassign: server %d survives twice, as new servers %d and %d: %w", s, rank[s], i, ErrServers)
		}
		rank[s] = i
	}
	return rank, nil
}

// pooled is the server of a piece that is on its way from its old server to a new one.
const pooled = -1

// rescale is the state of Reassign. Servers are new indices.
type rescale struct {
	capacity int // elements that a server may hold
	average  int // elements per server, rounded down
	slack    int // elements, over all servers, by which the capacity may still be exceeded
	fair     int // pieces per server if they are spread evenly, rounded up
	reserve  int // elements per server that only small pieces may use

	held  [][]Piece // per server
	pool  []Piece   // without a server as yet
	load  []int     // elements per server
	count []int     // pieces per server
	edges edges
}

func newRescale(old Assignment, rank []int, total, p int) *rescale {
	average := total / p
	r := &rescale{
		capacity: average,
		average:  average,
		slack:    int(Tolerance * float64(average)),
		fair:     (len(old.Pieces) + p - 1) / p,
		held:     make([][]Piece, p),
		load:     make([]int, p),
		count:    make([]int, p),
		edges:    edges{first: map[edge]int{}, last: map[edge]int{}},
	}
	if total%p > 0 {
		r.capacity++
	}
	pieces := slices.Clone(old.Pieces)
	for i := range pieces {
		pieces[i].Server = rank[pieces[i].Server]
	}
	for _, piece := range arrange(pieces) {
		r.put(piece)
	}
	return r
}

// put adds a piece to the server that it names, or to the pool.
func (r *rescale) put(piece Piece) {
	r.edges.set(piece)
	if piece.Server == pooled {
		r.pool = append(r.pool, piece)
		return
	}
	s := piece.Server
	r.held[s] = append(r.held[s], piece)
	r.load[s] += piece.Size
	r.count[s]++
}

// room is how many elements server s may still take; it is negative if s has too many.
func (r *rescale) room(s int) int { return r.capacity - r.load[s] }

// collect returns all pieces that are on servers, in no order.
func (r *rescale) collect() []Piece {
	var pieces []Piece
	for _, held := range r.held {
		pieces = append(pieces, held...)
	}
	return pieces
}

// edges finds the server of the piece before or behind a place in a block.
type edges struct {
	first, last map[edge]int // server of the piece that begins, ends at the edge
}

type edge struct{ block, offset int }

func (e edges) set(p Piece) {
	e.first[edge{p.Block, p.Offset}] = p.Server
	e.last[edge{p.Block, p.end()}] = p.Server
}

// before returns the server of the piece that ends where p begins.
func (e edges) before(p Piece) (server int, ok bool) {
	server, ok = e.last[edge{p.Block, p.Offset}]
	return
}

// behind returns the server of the piece that begins where p ends.
func (e edges) behind(p Piece) (server int, ok bool) {
	server, ok = e.first[edge{p.Block, p.end()}]
	return
}
