package transport

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"

	"optimus/internal/wire"
)

type inprocNetwork struct {
	mu        sync.Mutex
	listeners map[string]*inprocListener
	opened    int // listeners, for their addresses
	dialed    int // connections, for the names of their dialers
}

// InProcess returns a network within this process. Networks do not see each
// other.
//
// Frames pass by reference: Send copies the header and hands over Rows and
// Values themselves. Both sides then share that memory, so the receiver must not
// write to it at all, and the sender must not write to it, or release it, until
// the receiver's answer says that it is done with the frame (PushAck, MoveAck;
// for Pulled: the first push for the next step). Send never blocks: queues are
// unbounded, and hold references only.
func InProcess() Network {
	return &inprocNetwork{listeners: make(map[string]*inprocListener)}
}

// Listen opens a listener with an address that only this network knows.
func (n *inprocNetwork) Listen() (Listener, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.opened++
	l := &inprocListener{net: n, addr: fmt.Sprintf("inproc:%d", n.opened), backlog: newQueue[*inprocConn]()}
	n.listeners[l.addr] = l
	return l, nil
}

// Dial connects to a listener. It does not wait for Accept.
func (n *inprocNetwork) Dial(ctx context.Context, addr string) (Conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, &Error{Op: "dial", Peer: addr, Err: err}
	}
	n.mu.Lock()
	l := n.listeners[addr]
	n.dialed++
	dialer := fmt.Sprintf("%s/dialer-%d", addr, n.dialed)
	n.mu.Unlock()
	if l == nil {
		return nil, &Error{Op: "dial", Peer: addr, Err: errNobody}
	}
	there, back := newQueue[*wire.Frame](), newQueue[*wire.Frame]()
	if err := l.backlog.put(&inprocConn{peer: dialer, in: there, out: back}); err != nil {
		return nil, &Error{Op: "dial", Peer: addr, Err: err}
	}
	return &inprocConn{peer: addr, in: back, out: there}, nil
}

type inprocListener struct {
	net     *inprocNetwork
	addr    string
	backlog *queue[*inprocConn]
}

func (l *inprocListener) Accept() (Conn, error) {
	c, err := l.backlog.take()
	if err != nil {
		return nil, &Error{Op: "accept on", Peer: l.addr, Err: err}
	}
	return c, nil
}

func (l *inprocListener) Addr() string { return l.addr }

func (l *inprocListener) Close() error {
	l.net.mu.Lock()
	delete(l.net.listeners, l.addr)
	l.net.mu.Unlock()
	var errs []error
	for _, c := range l.backlog.closeTake() {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}

type inprocConn struct {
	peer    string
	in, out *queue[*wire.Frame]
}

func (c *inprocConn) RemoteAddr() string { return c.peer }

func (c *inprocConn) Send(f *wire.Frame) error {
	err := f.Check(math.MaxInt64)
	if err == nil {
		err = c.out.put(f.View())
	}
	if err != nil {
		return &Error{Op: fmt.Sprintf("send %s to", f.Kind), Peer: c.peer, Err: err}
	}
	return nil
}

func (c *inprocConn) Recv() (*wire.Frame, error) {
	f, err := c.in.take()
	if err != nil {
		return nil, &Error{Op: "receive from", Peer: c.peer, Err: err}
	}
	return f, nil
}

func (c *inprocConn) Close() error {
	c.out.closePut()
	c.in.closeTake()
	return nil
}
