package paa

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
)

// Errors that callers may want to tell apart; all errors of this package but those of [Lookup] wrap one.
var (
	// ErrRule reports a rule that is not among [Rules].
	ErrRule = errors.New("unknown assignment rule")
	// ErrServers reports a number or a list of servers that cannot be.
	ErrServers = errors.New("invalid servers")
	// ErrSizes reports block sizes that are negative or whose sum overflows.
	ErrSizes = errors.New("invalid block sizes")
	// ErrAssignment reports an assignment that does not cover its blocks exactly once.
	ErrAssignment = errors.New("invalid assignment")
)

// Piece is the range [Offset, Offset+Size) of the elements of one block, held by one server.
// Offset and Size count elements, not bytes.
type Piece struct {
	Block  int `json:"block"`
	Offset int `json:"offset"`
	Size   int `json:"size"`
	Server int `json:"server"`
}

// end is the first offset behind the piece.
func (p Piece) end() int { return p.Offset + p.Size }

// Assignment says for each element of each block which of Servers servers holds it.
//
// Pieces are sorted by block, then offset, are never empty, and cover each block exactly once. A block
// without elements has no piece; a server without pieces is valid.
type Assignment struct {
	Servers int     `json:"servers"`
	Pieces  []Piece `json:"pieces"`
}

// Validate checks that the assignment covers blocks of the given sizes exactly once, in order. The error
// wraps [ErrServers], [ErrSizes] or [ErrAssignment] and names the first piece or block that is wrong.
func (a Assignment) Validate(sizes []int) error {
	if err := checkServers("validate", a.Servers); err != nil {
		return err
	}
	if _, err := sum("validate", sizes); err != nil {
		return err
	}
	block, offset := 0, 0 // the next element that a piece must start with
	for i, p := range a.Pieces {
		switch {
		case p.Server < 0 || p.Server >= a.Servers:
			return invalid("piece %d of block %d is on server %d, servers are 0..%d", i, p.Block, p.Server, a.Servers-1)
		case p.Block < 0 || p.Block >= len(sizes):
			return invalid("piece %d is of block %d, there are %d blocks", i, p.Block, len(sizes))
		case p.Size < 1:
			return invalid("piece %d of block %d has size %d, want at least 1", i, p.Block, p.Size)
		case p.Block < block:
			return invalid("piece %d of block %d comes after block %d, pieces must be sorted", i, p.Block, block)
		}
		for ; block < p.Block; block, offset = block+1, 0 {
			if offset != sizes[block] {
				return invalid("elements %d..%d of block %d are on no server", offset, sizes[block]-1, block)
			}
		}
		switch {
		case p.Offset < 0 || p.Offset > sizes[block] || p.Size > sizes[block]-p.Offset:
			return invalid("piece %d covers %d elements from %d on of block %d, which has %d", i, p.Size, p.Offset, block, sizes[block])
		case p.Offset > offset:
			return invalid("elements %d..%d of block %d are on no server", offset, p.Offset-1, block)
		case p.Offset < offset:
			return invalid("element %d of block %d is in two pieces or pieces are not sorted", p.Offset, block)
		}
		offset = p.end()
	}
	for ; block < len(sizes); block, offset = block+1, 0 {
		if offset != sizes[block] {
			return invalid("elements %d..%d of block %d are on no server", offset, sizes[block]-1, block)
		}
	}
	return nil
}

// Stats describes how even an assignment is; its JSON form is that of `optimus plan`.
type Stats struct {
	// Servers has one entry per server, in order.
	Servers []ServerStats `json:"servers"`
	// SizeGap is the difference in elements between the fullest and the emptiest server.
	SizeGap int `json:"size_gap"`
	// Requests is the number of pieces: what each worker pushes, and pulls, per step.
	Requests int `json:"requests"`
	// RequestGap is the difference in pieces between the servers with most and fewest.
	RequestGap int `json:"request_gap"`
	// MaxOverMean is the elements of the fullest server divided by their mean; 1 is perfect, and what
	// an assignment without elements has.
	MaxOverMean float64 `json:"max_over_mean"`
}

// ServerStats counts what one server holds.
type ServerStats struct {
	Parameters int `json:"parameters"` // elements
	Pieces     int `json:"pieces"`
}

// Stats counts the elements and pieces of each server. Pieces on servers out of range are left out.
func (a Assignment) Stats() Stats {
	s := Stats{Servers: make([]ServerStats, max(a.Servers, 0)), MaxOverMean: 1}
	total := 0
	for _, p := range a.Pieces {
		if p.Server < 0 || p.Server >= a.Servers {
			continue
		}
		s.Servers[p.Server].Parameters += p.Size
		s.Servers[p.Server].Pieces++
		s.Requests++
		total += p.Size
	}
	if len(s.Servers) == 0 {
		return s
	}
	most, least := s.Servers[0], s.Servers[0]
	for _, v := range s.Servers[1:] {
		most.Parameters, least.Parameters = max(most.Parameters, v.Parameters), min(least.Parameters, v.Parameters)
		most.Pieces, least.Pieces = max(most.Pieces, v.Pieces), min(least.Pieces, v.Pieces)
	}
	s.SizeGap, s.RequestGap = most.Parameters-least.Parameters, most.Pieces-least.Pieces
	if total > 0 {
		s.MaxOverMean = float64(most.Parameters) * float64(a.Servers) / float64(total)
	}
	return s
}

// arrange brings pieces into the form of an Assignment: sorted, and neighbours on one server merged.
// It works in place.
func arrange(pieces []Piece) []Piece {
	slices.SortFunc(pieces, comparePieces)
	out := pieces[:0]
	for _, p := range pieces {
		if n := len(out); n > 0 && out[n-1].Block == p.Block && out[n-1].Server == p.Server && out[n-1].end() == p.Offset {
			out[n-1].Size += p.Size
		} else {
			out = append(out, p)
		}
	}
	return out
}

func comparePieces(a, b Piece) int {
	return cmp.Or(cmp.Compare(a.Block, b.Block), cmp.Compare(a.Offset, b.Offset))
}

// sum adds up block sizes; the error wraps ErrSizes.
func sum(op string, sizes []int) (int, error) {
	total := 0
	for i, n := range sizes {
		if n < 0 {
			return 0, fmt.Errorf("paa: %s: block %d has size %d, want 0 or more elements: %w", op, i, n, ErrSizes)
		}
		if n > math.MaxInt-total {
			return 0, fmt.Errorf("paa: %s: the sizes of blocks 0..%d add up to more than %d elements: %w", op, i, math.MaxInt, ErrSizes)
		}
		total += n
	}
	return total, nil
}

func checkServers(op string, p int) error {
	if p < 1 {
		return fmt.Errorf("paa: %s: %d servers, want at least 1: %w", op, p, ErrServers)
	}
	return nil
}

func invalid(format string, args ...any) error {
	return fmt.Errorf("paa: validate: %s: %w", fmt.Sprintf(format, args...), ErrAssignment)
}
