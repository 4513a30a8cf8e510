package paa

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
)

// The rules of [Assign].
const (
	// RuleMXNet is MXNet's default: small blocks by a hash of their index, big blocks cut evenly over all servers.
	RuleMXNet = "mxnet"
	// RulePAA is the parameter assignment algorithm of Optimus (§5.3).
	RulePAA = "paa"
)

// Rules lists the names that [Assign] accepts.
func Rules() []string { return []string{RuleMXNet, RulePAA} }

// bigArray is the size from which on MXNet cuts a block (MXNET_KVSTORE_BIGARRAY_BOUND).
const bigArray = 1_000_000

// Assign gives blocks of the given sizes (in elements) to p servers by one of the [Rules].
//
// RuleMXNet puts block i of fewer than 10⁶ elements on server i·9973 mod p. A larger block of n elements is
// cut over all servers; piece i ends at element n/p·(i+1), rounded half away from zero.
//
// RulePAA follows the authors' implementation of Optimus §5.3, not its prose where the two differ. With avg the
// floor of total/p, blocks are taken by decreasing size, equal ones in model order:
//   - a block of at most total/(100·p) elements goes to the server with the fewest pieces, the first of equals;
//   - one of at most avg elements to the server whose room (avg less what it holds) exceeds it least; if
//     none has room, to the server that holds least. This may overfill it: four blocks of 0.75·avg on three
//     servers end as 1.5, 0.75 and 0.75;
//   - a larger one fills server after server, the emptiest first, up to avg, until less is left than the
//     next one's room; that rest is placed like a block of at most avg elements.
//
// The pieces of a block lie in the order of their servers.
//
// Because avg is rounded down, the last large block may find all servers full. The authors' code stops there
// with an index error, or stores empty pieces. Assign makes no empty pieces, and deals what is left, always
// fewer than p elements, one by one to the server that holds least, among equals to one that already holds
// part of the block. So one block of 10 on 3 servers becomes 4+3+3, and one of 2 on 3 servers 1+1+0.
//
// The error wraps [ErrRule], [ErrServers] or [ErrSizes].
func Assign(rule string, sizes []int, p int) (Assignment, error) {
	if err := checkServers("assign", p); err != nil {
		return Assignment{}, err
	}
	total, err := sum("assign", sizes)
	if err != nil {
		return Assignment{}, err
	}
	var pieces []Piece
	switch rule {
	case RuleMXNet:
		pieces = mxnet(sizes, p)
	case RulePAA:
		pieces = newFilling(total, p).assign(sizes)
	default:
		return Assignment{}, fmt.Errorf("paa: assign: rule %q: %w, use one of: %s", rule, ErrRule, strings.Join(Rules(), ", "))
	}
	return Assignment{Servers: p, Pieces: pieces}, nil
}

// Whole puts array i, uncut, on server i mod p. It is meant for arrays that travel with the model without
// being parameters, as the running statistics of batch normalisation. The error wraps [ErrServers] or [ErrSizes].
func Whole(sizes []int, p int) (Assignment, error) {
	if err := checkServers("whole", p); err != nil {
		return Assignment{}, err
	}
	if _, err := sum("whole", sizes); err != nil {
		return Assignment{}, err
	}
	a := Assignment{Servers: p}
	for i, n := range sizes {
		if n > 0 {
			a.Pieces = append(a.Pieces, Piece{Block: i, Size: n, Server: i % p})
		}
	}
	return a, nil
}

func mxnet(sizes []int, p int) []Piece {
	var pieces []Piece
	for b, n := range sizes {
		switch {
		case n == 0:
		case n < bigArray:
			pieces = append(pieces, Piece{Block: b, Size: n, Server: (b % p) * (9973 % p) % p})
		default:
			// In float64, as MXNet computes it; the last cut is pinned so that no rounding can lose an element.
			from := 0
			for s := range p {
				to := min(int(math.Round(float64(n)/float64(p)*float64(s+1))), n)
				if s == p-1 {
					to = n
				}
				if to > from {
					pieces = append(pieces, Piece{Block: b, Offset: from, Size: to - from, Server: s})
				}
				from = to
			}
		}
	}
	return pieces
}

// filling is the state of RulePAA: what each server has got so far.
type filling struct {
	avg, small int
	load       []int // elements per server
	count      []int // pieces per server
}

func newFilling(total, p int) *filling {
	// total/p/100 is the floor of total/(100·p), without overflow.
	return &filling{avg: total / p, small: total / p / 100, load: make([]int, p), count: make([]int, p)}
}

func (f *filling) assign(sizes []int) []Piece {
	order := make([]int, len(sizes))
	for b := range order {
		order[b] = b
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(sizes[b], sizes[a]) })
	var pieces []Piece
	for _, b := range order {
		switch n := sizes[b]; {
		case n == 0:
		case n <= f.small:
			pieces = append(pieces, Piece{Block: b, Size: n, Server: f.give(n, least(f.count))})
		case n <= f.avg:
			pieces = append(pieces, Piece{Block: b, Size: n, Server: f.give(n, f.bestFit(n))})
		default:
			offset := 0
			for s, m := range f.slice(n) {
				if m > 0 {
					pieces = append(pieces, Piece{Block: b, Offset: offset, Size: m, Server: s})
					offset += m
				}
			}
		}
	}
	slices.SortFunc(pieces, comparePieces)
	return pieces
}

// slice cuts a block of n > avg elements and returns how many each server gets.
func (f *filling) slice(n int) []int {
	parts := make([]int, len(f.load))
	order := make([]int, len(f.load))
	for s := range order {
		order[s] = s
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(f.load[a], f.load[b]) })
	for _, s := range order {
		room := f.avg - f.load[s]
		if n == 0 || room <= 0 {
			break
		}
		if n < room {
			s, room = f.bestFit(n), n
		}
		parts[s] = room
		f.give(room, s)
		n -= room
	}
	if n > 0 {
		f.deal(n, parts)
	}
	return parts
}

// deal gives the last n < p elements of a block, when all servers are full, one each to the servers with the least
// load, among equals first to those that hold a part of the block already. It adds them to parts.
func (f *filling) deal(n int, parts []int) {
	order := make([]int, len(parts))
	for s := range order {
		order[s] = s
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(f.load[a], f.load[b]), cmp.Compare(min(parts[b], 1), min(parts[a], 1)))
	})
	for _, s := range order[:n] {
		if parts[s] == 0 {
			f.count[s]++
		}
		parts[s]++
		f.load[s]++
	}
}

// bestFit returns the server whose room exceeds n least or, if no server has room for n, the one with the least load.
func (f *filling) bestFit(n int) int {
	best := -1
	for s, load := range f.load {
		if f.avg-load >= n && (best < 0 || load > f.load[best]) {
			best = s
		}
	}
	if best < 0 {
		return least(f.load)
	}
	return best
}

// give adds a piece of n elements to server s and returns s.
func (f *filling) give(n, s int) int {
	f.load[s] += n
	f.count[s]++
	return s
}

// least returns the index of the first of the smallest values.
func least(v []int) int {
	best := 0
	for i := range v {
		if v[i] < v[best] {
			best = i
		}
	}
	return best
}
