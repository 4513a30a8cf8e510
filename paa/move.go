package paa

// Move is a range of a block that changes server when one assignment follows another. From is the
// index of its server in the old assignment, To in the new one; the two count different lists of servers.
type Move struct {
	Block  int `json:"block"`
	Offset int `json:"offset"`
	Size   int `json:"size"`
	From   int `json:"from"`
	To     int `json:"to"`
}

// Diff lists what must move when assignment new follows old: each range whose server in new is not the same server
// as in old. New server i < len(survivors) is old server survivors[i], the others are new servers. Moves are sorted by
// block and offset and as long as possible. Elements that only one of the assignments covers are left out.
func Diff(old, new Assignment, survivors []int) []Move {
	var moves []Move
	for i, j := 0, 0; i < len(old.Pieces) && j < len(new.Pieces); {
		a, b := old.Pieces[i], new.Pieces[j]
		if a.Block == b.Block {
			from, to := max(a.Offset, b.Offset), min(a.end(), b.end())
			stays := b.Server >= 0 && b.Server < len(survivors) && survivors[b.Server] == a.Server
			if from < to && !stays {
				moves = appendMove(moves, Move{Block: a.Block, Offset: from, Size: to - from, From: a.Server, To: b.Server})
			}
		}
		if a.Block < b.Block || a.Block == b.Block && a.end() <= b.end() {
			i++
		} else {
			j++
		}
	}
	return moves
}

// appendMove adds m, to the last move if that goes on in m.
func appendMove(moves []Move, m Move) []Move {
	if n := len(moves); n > 0 {
		l := &moves[n-1]
		if l.Block == m.Block && l.From == m.From && l.To == m.To && l.Offset+l.Size == m.Offset {
			l.Size += m.Size
			return moves
		}
	}
	return append(moves, m)
}
