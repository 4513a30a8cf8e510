package ps

import (
	"fmt"
	"time"

	"optimus/internal/wire"
	"optimus/ps/pieces"
	"optimus/transport"
)

// accept takes connections until the listener is closed.
func (s *Server) accept() {
	for {
		conn, err := s.ln.Accept()
		if err != nil {
			if s.ctx.Err() != nil {
				return
			}
			s.cfg.Log.Warn("accept", "member", s.cfg.Self.String(), "error", err)
			select {
			case <-s.ctx.Done():
				return
			case <-time.After(backoff): // out of descriptors: others still train
			}
			continue
		}
		s.conns.Lock()
		s.conns.open[conn] = true
		s.conns.Unlock()
		s.wg.Go(func() { s.serve(conn) })
	}
}

// serve answers one connection's requests until it ends.
func (s *Server) serve(conn transport.Conn) {
	defer func() {
		s.conns.Lock()
		delete(s.conns.open, conn)
		s.conns.Unlock()
		conn.Close()
	}()
	if s.ctx.Err() != nil {
		return // accepted while closing
	}
	for {
		f, err := conn.Recv()
		if err != nil {
			return
		}
		if f.Run != s.cfg.Run {
			s.refuse(conn, f, fmt.Sprintf("this server belongs to another run; the sender's run is %x", f.Run))
			continue
		}
		switch f.Kind {
		case wire.Push:
			s.push(conn, f)
		case wire.Pull:
			s.pull(conn, f)
		case wire.Hello:
			s.clock(conn, f)
		case wire.Vote:
			s.vote(conn, f)
		case wire.Move:
			s.post(func() { s.arrived(f, conn) })
		default:
			s.refuse(conn, f, fmt.Sprintf("a server does not take %v", f.Kind))
		}
	}
}

func (s *Server) refuse(conn transport.Conn, f *wire.Frame, why string) {
	conn.Send(&wire.Frame{Header: wire.Header{Kind: wire.Failure, Outcome: refused, Request: f.Request}, Text: why})
	f.Release()
}

// clock tells a worker where its clock stands here (ssp). The worker may know of
// the commit of its generation before this server does, and must ask again.
func (s *Server) clock(conn transport.Conn, f *wire.Frame) {
	out := &wire.Frame{Header: wire.Header{Kind: wire.Hello, Request: f.Request}}
	s.gate.RLock()
	clock, member := s.store.Clock(pieces.Worker{ID: int(f.From), Incarnation: f.Incarnation})
	switch gen, want := s.generation(), int(f.Generation); {
	case gen < want:
		out.Outcome, out.Text = early, fmt.Sprintf("the commit of generation %d has not come yet", want)
	case gen > want:
		out.Outcome = refresh
	case !member:
		out.Outcome, out.Text = refused, fmt.Sprintf("worker %d#%d is not a member of generation %d", f.From, f.Incarnation, gen)
	default:
		out.Step = clock
	}
	s.gate.RUnlock()
	conn.Send(out)
}

// push gives a contribution to the store. The store keeps the values until they
// are applied, so the frame's memory is left to the garbage collector. A frozen
// server still takes pushes of the next generation: a worker may know of its
// commit first, and the store sets them aside until it comes here.
func (s *Server) push(conn transport.Conn, f *wire.Frame) {
	ack := &wire.Frame{Header: wire.Header{Kind: wire.PushAck, Request: f.Request}}
	s.gate.RLock()
	if s.frozen && int(f.Generation) <= s.generation() {
		ack.Outcome = refresh
	} else {
		out, err := s.store.Push(pieces.Push{Generation: int(f.Generation), Step: f.Step,
			From:     pieces.Worker{ID: int(f.From), Incarnation: f.Incarnation},
			Sequence: f.Sequence, Piece: pieceOf(&f.Header), Rows: f.Rows, Values: f.Values, Weight: f.Weight})
		ack.Outcome = outcome(out)
		if err != nil {
			ack.Text = err.Error()
		}
	}
	s.gate.RUnlock()
	conn.Send(ack)
}

// pull answers now, or when the version is there.
func (s *Server) pull(conn transport.Conn, f *wire.Frame) {
	rows := f.Rows
	if len(rows) == 0 {
		rows = nil
	}
	h := f.Header
	s.store.Pull(pieces.Request{Generation: int(f.Generation), Step: f.Step, Piece: pieceOf(&f.Header), Rows: rows}, func(a pieces.Answer) {
		out := &wire.Frame{Header: wire.Header{Kind: wire.Pulled, Request: h.Request, Outcome: outcome(a.Outcome), Step: a.Version,
			Updates: a.Updates, Sequence: s.store.MaxStaleness(), Block: h.Block, Offset: h.Offset, Size: h.Size}, Values: a.Values}
		if a.Err != nil {
			out.Text = a.Err.Error()
		}
		conn.Send(out)
	})
}
