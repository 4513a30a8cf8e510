package ps

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"optimus/compute/optim"
	"optimus/elastic"
	"optimus/internal/wire"
	"optimus/ps/pieces"
	"optimus/transport"
)

// ruling is the generation of the last commit; ctx ends with it.
type ruling struct {
	gen    *elastic.Generation
	voters []int
	ctx    context.Context
	end    context.CancelFunc
}

// rule makes g the ruling generation; what the servers of the one before had to tell
// each other is void.
func (s *Server) rule(g *elastic.Generation) {
	ctx, end := context.WithCancel(s.ctx)
	if old := s.ruling.Swap(&ruling{g, voters(g), ctx, end}); old != nil {
		old.end()
	}
}

// generation returns the number of the ruling generation; 0 before the first.
func (s *Server) generation() int {
	if r := s.ruling.Load(); r != nil {
		return r.gen.Number
	}
	return 0
}

// voters returns the servers of a generation that hold pieces.
func voters(g *elastic.Generation) (list []int) {
	for i := range g.Servers {
		if len(elastic.Owned(g, i)) > 0 {
			list = append(list, i)
		}
	}
	return list
}

// voted hands the store's vote to canvass.
func (s *Server) voted(v pieces.Vote) {
	select {
	case s.votes <- v:
	case <-s.ctx.Done():
	}
}

// canvass brings this server's votes to the other voters, one step after the other,
// and sees that theirs come in time.
func (s *Server) canvass() {
	client := NewClient(ClientConfig{Self: s.cfg.Self, Run: s.cfg.Run, Network: s.cfg.Network})
	defer client.Close()
	var v pieces.Vote
	overdue := time.NewTimer(s.cfg.Patience)
	defer overdue.Stop()
	for {
		var err error
		select {
		case <-s.ctx.Done():
			return
		case v = <-s.votes:
			err = s.cast(client, v)
			overdue.Reset(s.cfg.Patience)
		case <-overdue.C:
			err = s.missed(v)
		}
		if err != nil {
			s.wg.Go(func() { s.post(func() { s.undecided(v, err) }) }) // the loop may wait for this goroutine
		}
	}
}

// cast sends a vote until all other voters have acknowledged it.
func (s *Server) cast(client *Client, v pieces.Vote) error {
	r := s.ruling.Load()
	if r == nil || r.gen.Number != v.Generation {
		return nil
	}
	sum, err := json.Marshal(v.Squares)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.ctx, s.cfg.Patience)
	defer cancel()
	err = client.each(ctx, r.gen, func(server int) []*item {
		if server == v.Server || !slices.Contains(r.voters, server) {
			return nil
		}
		f := &wire.Frame{Header: wire.Header{Kind: wire.Vote, Role: roleServer, Run: s.cfg.Run, Generation: uint32(v.Generation),
			From: uint32(v.Server), Incarnation: s.cfg.Self.Incarnation, Step: v.Step}, Text: string(sum)}
		return []*item{{frame: f, take: func(*wire.Frame) error { return nil }}}
	})
	if r.ctx.Err() != nil || errors.Is(err, elastic.ErrRefresh) {
		return nil // nobody needs it any more
	}
	return err
}

// missed returns an error that names the servers whose votes on a step have not come.
func (s *Server) missed(v pieces.Vote) error {
	missing := s.store.Awaited(v.Generation, v.Step)
	r := s.ruling.Load()
	if len(missing) == 0 || r == nil || r.gen.Number != v.Generation {
		return nil
	}
	var names []string
	for _, server := range missing {
		names = append(names, r.gen.Servers[server].Member.String())
	}
	return fmt.Errorf("step %d: %s has waited %v for the vote of %s on the norm of the gradient",
		v.Step, s.cfg.Self, s.cfg.Patience, strings.Join(names, ", "))
}

// undecided gives up after a vote that did not come about. While the job is halted
// the controller decides how long that may last.
func (s *Server) undecided(v pieces.Vote, err error) {
	if s.frozen || s.generation() != v.Generation {
		s.cfg.Log.Warn("vote is not decided", "member", s.cfg.Self.String(), "error", err)
		return
	}
	s.fail(err)
}

// vote takes another server's vote, also while pushes are refused: a step that all
// have voted on is made.
func (s *Server) vote(conn transport.Conn, f *wire.Frame) {
	ack := &wire.Frame{Header: wire.Header{Kind: wire.VoteAck, Request: f.Request}}
	var sum optim.Squares
	out, err := pieces.Refused, json.Unmarshal([]byte(f.Text), &sum)
	if err == nil {
		out, err = s.store.Vote(pieces.Vote{Generation: int(f.Generation), Step: f.Step, Server: int(f.From), Squares: sum})
	}
	if ack.Outcome = outcome(out); err != nil {
		ack.Text = err.Error()
	}
	conn.Send(ack)
}
