// Package transport carries frames of the data plane between the members of a
// job: workers, servers, and servers among each other at a transition.
//
// A [Network] makes listeners and connections; its kinds are [InProcess], which
// passes frames by reference, and [TCP], which writes them in the format of
// package wire. Members find each other by address alone: a listener's address
// is always chosen by the system and handed on by the controller, so two jobs on
// one machine never collide.
//
// A [Conn] is a plain ordered stream of frames. A [Caller] on top of it asks and
// gets answers, many at a time. Neither dials again nor retries: whether a
// request may be repeated is the protocol's knowledge (pushes are idempotent by
// incarnation and step), not the transport's. Nothing waits for ever on a peer
// that died: writes have a deadline that moves with progress, silent machines are
// found by keep-alive, waits for an answer end with their context, and closing
// either side of a connection ends every wait on both.
package transport

import (
	"context"

	"optimus/internal/wire"
)

// Conn carries frames between two members, in order, each once.
type Conn interface {
	// Send hands f to the connection. It may be called by several goroutines. It
	// blocks while the peer does not take what was sent before, at most for the
	// network's write timeout. After an error other than a refused frame
	// (wire.ErrTooLarge) the connection is closed.
	Send(f *wire.Frame) error
	// Recv waits for the next frame. One goroutine calls it. The receiver owns
	// the frame: it may call Release on it.
	Recv() (*wire.Frame, error)
	// Close ends the connection and unblocks Send and Recv on both sides. It may
	// be called several times and by any goroutine.
	Close() error
	// RemoteAddr names the peer, for messages.
	RemoteAddr() string
}

// Listener takes in connections that others dialed.
type Listener interface {
	Accept() (Conn, error)
	// Addr is what a peer dials.
	Addr() string
	// Close stops accepting; connections that were accepted live on.
	Close() error
}

// Network is a kind of transport.
type Network interface {
	// Listen opens a listener on an address that the system chooses.
	Listen() (Listener, error)
	// Dial connects to the Addr of a listener of the same kind.
	Dial(ctx context.Context, addr string) (Conn, error)
}
