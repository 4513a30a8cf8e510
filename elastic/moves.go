package elastic

import "optimus/paa"

// Move is a range that changes its server. Block counts the learned blocks
// first, then the auxiliary arrays, as the servers do.
type Move struct {
	paa.Move
	Aux bool
}

// Moves lists what passes from each server of old to another one of next, by
// assignment index. Old and new agree on it without talking.
func Moves(old, next *Generation) []Move {
	stay := Survivors(old, next)
	var list []Move
	for _, m := range paa.Diff(old.Blocks, next.Blocks, stay) {
		list = append(list, Move{m, false})
	}
	for _, m := range paa.Diff(old.Aux, next.Aux, stay) {
		m.Block += old.Learned
		list = append(list, Move{m, true})
	}
	return list
}

// Survivors returns, for the first servers of next that were in old, their old
// assignment index.
func Survivors(old, next *Generation) []int {
	var stay []int
	for i, a := range next.Servers {
		if i >= len(old.Servers) || old.Servers[i].Member != a.Member {
			break
		}
		stay = append(stay, i)
	}
	return stay
}

// Owned lists the pieces of one server, learned blocks first.
func Owned(g *Generation, server int) []paa.Piece {
	var list []paa.Piece
	for _, p := range g.Blocks.Pieces {
		if p.Server == server {
			list = append(list, p)
		}
	}
	for _, p := range g.Aux.Pieces {
		if p.Server == server {
			p.Block += g.Learned
			list = append(list, p)
		}
	}
	return list
}
