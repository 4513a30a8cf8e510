package transport_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"optimus/internal/wire"
	"optimus/transport"
)

// serve answers every frame of c with a PushAck of twice its step, in batches and
// in mixed order.
func serve(c transport.Conn, batch int) {
	defer c.Close()
	for {
		var asked []*wire.Frame
		for range batch {
			f, err := c.Recv()
			if err != nil {
				return
			}
			asked = append(asked, f)
		}
		rand.Shuffle(len(asked), func(i, j int) { asked[i], asked[j] = asked[j], asked[i] })
		for _, f := range asked {
			answer := &wire.Frame{Header: wire.Header{Kind: wire.PushAck, Request: f.Request, Step: 2 * f.Step}}
			if c.Send(answer) != nil {
				return
			}
		}
	}
}

// Many callers over one connection each get their own answer.
func TestCallerMatches(t *testing.T) {
	each(t, func(t *testing.T, n transport.Network) {
		a, b := pair(t, n)
		go serve(b, 8)
		c := transport.NewCaller(a, nil)
		var wg sync.WaitGroup
		for i := range int64(64) {
			wg.Go(func() {
				f := push(i, 1)
				answer, err := c.Call(t.Context(), f)
				if err != nil {
					t.Error(err)
				} else if answer.Step != 2*i {
					t.Errorf("call %d got the answer to %d", i, answer.Step/2)
				}
				if f.Request != 0 {
					t.Error("Call wrote to its frame")
				}
			})
		}
		wg.Wait()
		check(t, c.Close())
		<-c.Done()
	})
}

// A call ends with its context; its late answer reaches nobody, the next one works.
func TestCallerDeadline(t *testing.T) {
	each(t, func(t *testing.T, n transport.Network) {
		a, b := pair(t, n)
		c := transport.NewCaller(a, nil)
		defer func() { <-c.Done() }()
		defer c.Close()
		ctx, cancel := context.WithCancel(t.Context())
		arrived := make(chan *wire.Frame)
		go func() {
			f, _ := b.Recv()
			cancel()
			arrived <- f
		}()
		f := push(7)
		f.Block = 3
		_, err := c.Call(ctx, f)
		wantEnd(t, "Call", err, context.Canceled, a.RemoteAddr())
		if !strings.Contains(err.Error(), "push of step 7, block 3") {
			t.Errorf("the error does not say what was waited for: %v", err)
		}
		late := <-arrived
		late.Kind = wire.PushAck
		check(t, b.Send(late))
		go serve(b, 1)
		if answer, err := c.Call(t.Context(), push(8)); err != nil || answer.Step != 16 {
			t.Errorf("the next call: %v, %v", answer, err)
		}
	})
}

// When the connection ends every request gets an error, once; later ones too.
func TestCallerFailsPending(t *testing.T) {
	each(t, func(t *testing.T, n transport.Network) {
		for name, end := range map[string]func(c *transport.Caller, peer transport.Conn) error{
			"own close":    func(c *transport.Caller, _ transport.Conn) error { return c.Close() },
			"peer's close": func(_ *transport.Caller, peer transport.Conn) error { return peer.Close() },
		} {
			a, b := pair(t, n)
			c := transport.NewCaller(a, nil)
			var order []int64
			for i := range int64(10) {
				c.Start(push(i), func(_ *wire.Frame, err error) {
					if !errors.Is(err, transport.ErrClosed) && !errors.Is(err, transport.ErrPeerClosed) {
						t.Errorf("%s: %v", name, err)
					}
					order = append(order, i)
				})
				_, err := b.Recv()
				check(t, err)
			}
			check(t, end(c, b))
			<-c.Done()
			if len(order) != 10 || order[0] != 0 || order[9] != 9 {
				t.Errorf("%s: requests failed in the order %v", name, order)
			}
			_, err := c.Call(t.Context(), push(11))
			if err == nil || !strings.Contains(err.Error(), a.RemoteAddr()) {
				t.Errorf("%s: a later call: %v", name, err)
			}
		}
	})
}

// A request that cannot be sent gets its error at once.
func TestCallerRefused(t *testing.T) {
	a, _ := pair(t, transport.InProcess())
	c := transport.NewCaller(a, nil)
	_, err := c.Call(t.Context(), &wire.Frame{})
	wantEnd(t, "Call", err, wire.ErrInvalid, a.RemoteAddr())
	check(t, c.Close())
	<-c.Done()
}

// Frames that answer nothing go to the other function; its callback may close.
func TestCallerOther(t *testing.T) {
	each(t, func(t *testing.T, n transport.Network) {
		a, b := pair(t, n)
		got := make(chan *wire.Frame, 1)
		c := transport.NewCaller(a, func(f *wire.Frame) { got <- f })
		check(t, b.Send(&wire.Frame{Header: wire.Header{Kind: wire.Refresh, Generation: 4}}))
		if f := <-got; f.Kind != wire.Refresh || f.Generation != 4 {
			t.Errorf("got %+v", f)
		}
		c.Start(push(1), func(*wire.Frame, error) { c.Close() })
		go serve(b, 1)
		<-c.Done()
	})
}
