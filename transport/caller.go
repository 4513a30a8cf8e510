package transport

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"optimus/internal/wire"
)

// Caller asks and gets answers over one connection: many requests may be under
// way at once, and answers may come in any order. It matches them by the
// header's Request, which it sets itself. It does not dial again: when the
// connection ends, so does the Caller.
type Caller struct {
	conn  Conn
	other func(*wire.Frame)
	done  chan struct{}

	mu      sync.Mutex
	last    uint64 // the last request id given out
	pending map[uint64]pending
	err     error // why the connection ended
}

// pending is a request without its answer yet.
type pending struct {
	asked wire.Header
	done  func(*wire.Frame, error)
}

// NewCaller takes over conn: from now on only the Caller receives from it. Frames
// that answer no request (their Request is 0) go to other, on the goroutine that
// receives; nil drops them.
func NewCaller(conn Conn, other func(*wire.Frame)) *Caller {
	c := &Caller{conn: conn, other: other, done: make(chan struct{}), pending: make(map[uint64]pending)}
	go c.receive()
	return c
}

// Call sends f and waits for its answer, which may be a Failure. The error names
// the peer and what was waited for; it wraps the context's error or that of the
// connection.
func (c *Caller) Call(ctx context.Context, f *wire.Frame) (*wire.Frame, error) {
	type result struct {
		answer *wire.Frame
		err    error
	}
	answered := make(chan result, 1)
	id := c.start(f, func(answer *wire.Frame, err error) { answered <- result{answer, err} })
	select {
	case r := <-answered:
		return r.answer, r.err
	case <-ctx.Done():
	}
	if p, ok := c.forget(id); ok {
		return nil, c.failed(&p.asked, fmt.Errorf("no answer: %w", context.Cause(ctx)))
	}
	r := <-answered // it came just now
	return r.answer, r.err
}

// Start sends f and returns. done gets the answer, or the error that ended the
// connection, exactly once: on the goroutine that receives, so it must not block;
// or, where f could not be sent, on this one before Start returns.
func (c *Caller) Start(f *wire.Frame, done func(answer *wire.Frame, err error)) {
	c.start(f, done)
}

func (c *Caller) start(f *wire.Frame, done func(*wire.Frame, error)) (id uint64) {
	stamped := f.View() // f may be under way on other connections too
	c.mu.Lock()
	if err := c.err; err != nil {
		c.mu.Unlock()
		done(nil, c.failed(&f.Header, err))
		return 0
	}
	c.last++
	id = c.last
	stamped.Request = id
	c.pending[id] = pending{stamped.Header, done}
	c.mu.Unlock()
	if err := c.conn.Send(stamped); err != nil {
		if _, ok := c.forget(id); ok {
			done(nil, err)
		}
	}
	return id
}

// Conn returns the connection, for sending frames that want no answer.
func (c *Caller) Conn() Conn { return c.conn }

// Done is closed when the connection has ended and every request got its error.
func (c *Caller) Done() <-chan struct{} { return c.done }

// Close ends the connection. Requests under way get an error soon after; Done
// tells when they all have. It may be called from anywhere, done functions too.
func (c *Caller) Close() error { return c.conn.Close() }

// forget takes a request off the list; false if it is no longer there.
func (c *Caller) forget(id uint64) (pending, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p, ok := c.pending[id]
	delete(c.pending, id)
	return p, ok
}

// receive hands out answers until the connection ends, then errors.
func (c *Caller) receive() {
	defer close(c.done)
	for {
		f, err := c.conn.Recv()
		if err != nil {
			c.fail(err)
			return
		}
		if f.Request == 0 {
			if c.other != nil {
				c.other(f)
			}
		} else if p, ok := c.forget(f.Request); ok {
			p.done(f, nil)
		} else {
			f.Release() // its asker gave up, or it is a duplicate
		}
	}
}

// fail gives all requests the error that ended the connection.
func (c *Caller) fail(err error) {
	// Without a receiver the connection is of no use to senders either.
	_ = c.conn.Close()
	c.mu.Lock()
	left := c.pending
	c.err, c.pending = err, nil
	c.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(left)) { // in the order they were asked
		p := left[id]
		p.done(nil, c.failed(&p.asked, err))
	}
}

// failed wraps err in what was asked of whom.
func (c *Caller) failed(asked *wire.Header, err error) error {
	if e := (*Error)(nil); errors.As(err, &e) {
		err = e.Err // it names the same peer
	}
	return &Error{
		Op:   fmt.Sprintf("%s of step %d, block %d, offset %d to", asked.Kind, asked.Step, asked.Block, asked.Offset),
		Peer: c.conn.RemoteAddr(),
		Err:  err,
	}
}
