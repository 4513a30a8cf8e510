package elastic

import "errors"

// Link carries messages between a member and the controller, in order. Send
// may be called by several goroutines, Recv by one. The shells implement it.
type Link interface {
	Send(Message) error
	Recv() (Message, error)
	Close() error
}

// ErrRefresh says that a server is no longer, or not yet, in the generation that
// a worker acts under: the controller knows what comes next.
var ErrRefresh = errors.New("the server is in another generation")
