// Package ps is the network side of the parameter servers: Server is the shell
// around a store of pieces and the server's protocol machine; Client is what a
// worker exchanges parameters and gradients through.
//
// All rules of a step live in ps/pieces, all rules of a transition in elastic.
// What is here moves bytes, retries, and keeps deadlines. Every request is
// idempotent, so a connection that breaks or an answer that is lost is met by
// sending again.
package ps

import (
	"optimus/elastic"
	"optimus/internal/wire"
	"optimus/paa"
	"optimus/ps/pieces"
)

// Roles as they stand in a frame's header.
const (
	roleServer uint8 = 1
	roleWorker uint8 = 2
)

// Outcomes as they stand in an answer's header: 0 is success.
const (
	okay uint8 = iota
	duplicate
	refresh
	refused
	gone
	early // ask again soon
)

func outcome(o pieces.Outcome) uint8 {
	switch o {
	case pieces.Accepted, pieces.Served:
		return okay
	case pieces.Duplicate:
		return duplicate
	case pieces.Refresh:
		return refresh
	case pieces.Gone:
		return gone
	}
	return refused
}

func pieceOf(h *wire.Header) pieces.ID {
	return pieces.ID{Block: int(h.Block), Offset: int(h.Offset), Size: int(h.Size)}
}

func setPiece(h *wire.Header, block, offset, size int) {
	h.Block, h.Offset, h.Size = uint32(block), uint64(offset), uint64(size)
}

// owned converts a server's pieces of a generation.
func owned(g *elastic.Generation, server int) []pieces.ID {
	var ids []pieces.ID
	for _, p := range elastic.Owned(g, server) {
		ids = append(ids, id(p))
	}
	return ids
}

func id(p paa.Piece) pieces.ID { return pieces.ID{Block: p.Block, Offset: p.Offset, Size: p.Size} }

func workers(g *elastic.Generation) []pieces.Worker {
	var list []pieces.Worker
	for _, a := range g.Workers {
		list = append(list, pieces.Worker{ID: a.ID, Incarnation: a.Incarnation})
	}
	return list
}
