package ps

import (
	"context"
	"encoding/json"
	"fmt"

	"optimus/elastic"
	"optimus/internal/wire"
	"optimus/ps/pieces"
	"optimus/transport"
)

// incoming is a generation that this server prepares.
type incoming struct {
	gen      *elastic.Generation
	left     map[int]int // ranges still to come, by the old index of their server
	local    bool        // what this server keeps is in place
	reported bool
	elements int64
	bytes    int64
	auxBytes int64
}

// install makes room for a generation.
func (s *Server) install(o elastic.Order) error {
	in := &incoming{gen: o.Gen, left: map[int]int{}}
	for _, m := range o.Moves {
		in.left[m.From]++
		n := int64(m.Size) * 4
		if m.Aux {
			in.auxBytes += n
		} else {
			in.elements += int64(m.Size)
			in.bytes += n * int64(1+s.cfg.Store.Optimizer.Slots())
		}
	}
	s.incoming = in
	self := o.Gen.Index(s.cfg.Self)
	return s.store.Install(pieces.Generation{Number: o.Gen.Number, Workers: workers(o.Gen), Pieces: owned(o.Gen, self),
		Voters: voters(o.Gen), Server: self})
}

// fillFrom fills the prepared generation with initial values or a checkpoint's.
func (s *Server) fillFrom(o elastic.Order) error {
	in := s.incoming
	if in == nil || in.gen.Number != o.Gen.Number {
		return nil
	}
	if o.Src == elastic.FromInit {
		if err := s.store.Init(o.Gen.Number, s.cfg.Seed, o.Step); err != nil {
			return err
		}
		return s.filled(in)
	}
	ids := owned(o.Gen, o.Gen.Index(s.cfg.Self))
	s.wg.Go(func() {
		err := s.cfg.Read(o.Path, ids, func(p pieces.Part) error { return s.store.Fill(o.Gen.Number, p) })
		s.post(func() {
			switch {
			case s.incoming != in: // dropped in the meantime
			case err != nil:
				s.fail(err)
			default:
				if err := s.store.SetVersion(o.Gen.Number, o.Step); err != nil {
					s.fail(err)
				} else if err := s.filled(in); err != nil {
					s.fail(err)
				}
			}
		})
	})
	return nil
}

// filled marks what does not come from others as present.
func (s *Server) filled(in *incoming) error {
	in.local = true
	return s.tryMoved()
}

// sendPieces waits for the boundary's version, reports its digest, puts what
// this server keeps into the next generation, and sends what moves away.
func (s *Server) sendPieces(o elastic.Order) {
	version := o.Step
	if s.cfg.Store.Mode != pieces.BSP {
		version = 0 // drained: what is there is the boundary
	}
	s.endSending()
	ctx, cancel := context.WithCancel(s.ctx)
	s.sending = cancel
	if o.Old == nil { // a newcomer has nothing yet
		s.keep(ctx, o)
		return
	}
	forget := s.store.Watch(version, func() {
		s.wg.Go(func() { s.post(func() { s.keep(ctx, o) }) })
	})
	s.sending = func() { cancel(); forget() }
}

// endSending gives up what is being sent. A generation that was dropped may be
// followed by others: the version that it began at is soon gone.
func (s *Server) endSending() {
	if s.sending != nil {
		s.sending()
		s.sending = nil
	}
}

func (s *Server) keep(ctx context.Context, o elastic.Order) {
	if ctx.Err() != nil {
		return // dropped in the meantime
	}
	if o.Old != nil {
		params, state := s.store.Digest()
		s.send(elastic.Message{Kind: elastic.Extracted, Gen: o.Gen.Number, Step: o.Step, Params: params, State: state})
	}
	if in := s.incoming; in != nil && in.gen.Number == o.Gen.Number {
		err := s.store.SetVersion(in.gen.Number, o.Step)
		if err == nil && o.Old != nil {
			err = s.store.FillLocal(in.gen.Number, o.Step)
		}
		if err == nil {
			err = s.filled(in)
		}
		if err != nil {
			s.fail(err)
			return
		}
	}
	if len(o.Moves) > 0 {
		s.wg.Go(func() {
			if err := s.deliver(ctx, o); err != nil && ctx.Err() == nil {
				s.cfg.Log.Warn("pieces were not delivered", "member", s.cfg.Self.String(), "error", err)
			}
		})
	}
}

// deliver sends each range that moves, until its new owner has acknowledged it.
func (s *Server) deliver(dropped context.Context, o elastic.Order) error {
	ctx, cancel := context.WithTimeout(dropped, s.cfg.Patience)
	defer cancel()
	client := NewClient(ClientConfig{Self: s.cfg.Self, Run: s.cfg.Run, Network: s.cfg.Network})
	defer client.Close()
	index := o.Old.Index(s.cfg.Self)
	return client.each(ctx, o.Gen, func(to int) []*item {
		var items []*item
		for _, m := range o.Moves {
			if m.To != to {
				continue
			}
			f, err := s.extract(o, m, index)
			if err != nil {
				s.post(func() {
					if dropped.Err() == nil {
						s.fail(err)
					}
				})
				continue
			}
			items = append(items, &item{frame: f, take: func(*wire.Frame) error { return nil }})
		}
		return items
	})
}

// extract reads one range with all that moves with it.
func (s *Server) extract(o elastic.Order, m elastic.Move, index int) (*wire.Frame, error) {
	part, err := s.store.Extract(pieces.ID{Block: m.Block, Offset: m.Offset, Size: m.Size}, o.Step)
	if err != nil {
		return nil, err
	}
	f := &wire.Frame{Header: wire.Header{Kind: wire.Move, Role: roleServer, Run: s.cfg.Run, Generation: uint32(o.Gen.Number),
		From: uint32(index), Incarnation: s.cfg.Self.Incarnation, Step: o.Step, Updates: part.Updates, Slots: uint8(1 + len(part.Slots))}}
	setPiece(&f.Header, m.Block, m.Offset, m.Size)
	f.Values = append(f.Values, part.Params...)
	for _, slot := range part.Slots {
		f.Values = append(f.Values, slot...)
	}
	if len(part.Seen) > 0 {
		seen, err := json.Marshal(part.Seen)
		if err != nil {
			return nil, err
		}
		f.Text = string(seen)
	}
	return f, nil
}

// arrived takes a range from its old owner. Sent twice, it is filled once: the
// store copies equal values over equal values.
func (s *Server) arrived(f *wire.Frame, conn transport.Conn) {
	defer f.Release()
	ack := &wire.Frame{Header: wire.Header{Kind: wire.MoveAck, Request: f.Request}}
	in := s.incoming
	if in == nil || in.gen.Number != int(f.Generation) {
		ack.Outcome = refresh
		conn.Send(ack)
		return
	}
	if in.left[int(f.From)] > 0 && s.missing(in, pieceOf(&f.Header)) {
		if err := s.take(in, f); err != nil {
			ack.Outcome, ack.Text = refused, err.Error()
			conn.Send(ack)
			s.fail(err)
			return
		}
		if in.left[int(f.From)]--; in.left[int(f.From)] == 0 {
			delete(in.left, int(f.From))
			s.send(elastic.Message{Kind: elastic.Received, Gen: in.gen.Number, Peer: int(f.From)})
		}
	}
	conn.Send(ack)
	if err := s.tryMoved(); err != nil {
		s.fail(err)
	}
}

// missing reports whether any element of a range is still to come.
func (s *Server) missing(in *incoming, id pieces.ID) bool {
	for _, m := range s.store.Missing(in.gen.Number) {
		if m.Block == id.Block && m.Offset < id.Offset+id.Size && id.Offset < m.Offset+m.Size {
			return true
		}
	}
	return false
}

func (s *Server) take(in *incoming, f *wire.Frame) error {
	id := pieceOf(&f.Header)
	if f.Slots == 0 || len(f.Values) != int(f.Slots)*id.Size {
		return fmt.Errorf("range %v: %d values for %d arrays", id, len(f.Values), f.Slots)
	}
	part := pieces.Part{Block: id.Block, Offset: id.Offset, Size: id.Size, Params: f.Values[:id.Size], Updates: f.Updates}
	for i := 1; i < int(f.Slots); i++ {
		part.Slots = append(part.Slots, f.Values[i*id.Size:(i+1)*id.Size])
	}
	if f.Text != "" {
		if err := json.Unmarshal([]byte(f.Text), &part.Seen); err != nil {
			return fmt.Errorf("range %v: %w", id, err)
		}
	}
	return s.store.Fill(in.gen.Number, part)
}

// tryMoved reports to the controller once every piece of the next generation is
// here, with a digest that must agree with the old owners'.
func (s *Server) tryMoved() error {
	in := s.incoming
	if in == nil || !in.local || in.reported || len(in.left) > 0 {
		return nil
	}
	if missing := s.store.Missing(in.gen.Number); len(missing) > 0 {
		return fmt.Errorf("generation %d: nobody sends range %v", in.gen.Number, missing[0])
	}
	in.reported = true
	params, state := s.store.DigestPending(in.gen.Number)
	s.send(elastic.Message{Kind: elastic.Moved, Gen: in.gen.Number, Params: params, State: state,
		Elements: in.elements, Bytes: in.bytes, AuxBytes: in.auxBytes})
	return nil
}
