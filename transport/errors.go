package transport

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"time"

	"optimus/internal/failure"
	"optimus/internal/wire"
)

// The ends that a connection or listener comes to.
var (
	ErrClosed     = errors.New("the connection was closed on this side")
	ErrPeerClosed = errors.New("the peer closed the connection or died")
	ErrTimeout    = errors.New("timed out")
)

// errNobody is the in-process form of a refused connection.
var errNobody = errors.New("nobody listens there; the member that did has gone")

// Error is the error of an operation with a peer.
type Error struct {
	Op   string // "dial", "send push to", …: reads well before the peer
	Peer string // address of the peer
	Err  error  // wraps ErrClosed, ErrPeerClosed, ErrTimeout, an error of wire, or what the system said
}

// Error returns operation, peer and cause in one line.
func (e *Error) Error() string { return fmt.Sprintf("%s %s: %v", e.Op, e.Peer, e.Err) }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Kind returns the kind of the error for package failure; "" leaves it to the
// cause.
func (e *Error) Kind() string {
	for _, k := range []struct {
		cause error
		kind  failure.Kind
	}{
		{ErrClosed, failure.Canceled},
		{ErrPeerClosed, failure.Unavailable},
		{errNobody, failure.Unavailable},
		{ErrTimeout, failure.Deadline},
		{wire.ErrMagic, failure.Corrupt},
		{wire.ErrVersion, failure.InvalidArgument},
		{wire.ErrTooLarge, failure.InvalidArgument},
		{wire.ErrInvalid, failure.InvalidArgument},
		{wire.ErrChecksum, failure.Corrupt},
	} {
		if errors.Is(e.Err, k.cause) {
			return string(k.kind)
		}
	}
	return ""
}

// ended wraps an error of a net.Conn in the end that it stands for.
func ended(err error, timeout time.Duration) error {
	switch {
	case errors.Is(err, net.ErrClosed):
		return ErrClosed
	case errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Errorf("%w: the peer took nothing for %v; it hangs, or the network between is broken", ErrTimeout, timeout)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("%w within a frame", ErrPeerClosed)
	case errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return ErrPeerClosed
	}
	return err
}
