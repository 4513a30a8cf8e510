package faultnet

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"optimus/internal/wire"
	"optimus/transport"
)

// ErrCut is what operations on a link that was cut return, besides
// transport.ErrPeerClosed, which is all that a program under test should look at.
var ErrCut = errors.New("faultnet cut the link")

// Network is a network whose dialed connections obey a rule in both directions.
// Connections that it accepts pass untouched, so that a frame between two of its
// users meets the rule once.
type Network struct {
	under transport.Network

	mu    sync.Mutex
	rule  Rule
	cut   bool
	conns map[*conn]struct{} // the dialed ones that are open
}

// Wrap returns a network over under that obeys rule; nil delivers everything.
func Wrap(under transport.Network, rule Rule) *Network {
	return &Network{under: under, rule: rule, conns: make(map[*conn]struct{})}
}

// SetRule replaces the rule, for frames that pass from now on.
func (n *Network) SetRule(rule Rule) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.rule = rule
}

// Cut ends all dialed connections and refuses new ones until Restore.
func (n *Network) Cut() {
	n.mu.Lock()
	n.cut = true
	var open []*conn
	for c := range n.conns {
		open = append(open, c)
	}
	n.mu.Unlock()
	for _, c := range open {
		c.Close()
	}
}

// Restore lets connections be dialed again.
func (n *Network) Restore() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.cut = false
}

// Listen listens on the network beneath.
func (n *Network) Listen() (transport.Listener, error) { return n.under.Listen() }

// Dial connects over the network beneath; the connection obeys the rule.
func (n *Network) Dial(ctx context.Context, addr string) (transport.Conn, error) {
	under, err := n.under.Dial(ctx, addr)
	if err != nil {
		return nil, err
	}
	c := &conn{Conn: under, net: n, closed: make(chan struct{})}
	n.mu.Lock()
	cut := n.cut
	if !cut {
		n.conns[c] = struct{}{}
	}
	n.mu.Unlock()
	if cut {
		return nil, errors.Join(cutError("dial", addr), under.Close())
	}
	return c, nil
}

// decide asks the rule about a frame.
func (n *Network) decide(d Direction, f *wire.Frame) Action {
	n.mu.Lock()
	rule := n.rule
	n.mu.Unlock()
	if rule == nil {
		return Action{}
	}
	return rule(d, f)
}

func cutError(op, peer string) error {
	return &transport.Error{Op: op, Peer: peer, Err: fmt.Errorf("%w: %w", transport.ErrPeerClosed, ErrCut)}
}

// conn is a dialed connection.
type conn struct {
	transport.Conn
	net    *Network
	once   sync.Once
	closed chan struct{}
	again  *wire.Frame // a received frame to deliver once more; the receiver's own
}

// Send passes f on as the rule says.
func (c *conn) Send(f *wire.Frame) error {
	act := c.net.decide(ToListener, f)
	c.wait(act.After)
	switch act.Do {
	case Drop:
		return nil
	case Cut:
		c.Close()
		return cutError(fmt.Sprintf("send %s to", f.Kind), c.RemoteAddr())
	case Duplicate:
		if err := c.Conn.Send(f); err != nil {
			return err
		}
	}
	return c.Conn.Send(f)
}

// Recv returns the next frame that the rule lets pass.
func (c *conn) Recv() (*wire.Frame, error) {
	if f := c.again; f != nil {
		c.again = nil
		return f, nil
	}
	for {
		f, err := c.Conn.Recv()
		if err != nil {
			return nil, err
		}
		act := c.net.decide(ToDialer, f)
		c.wait(act.After)
		switch act.Do {
		case Drop:
			f.Release()
			continue
		case Cut:
			f.Release()
			c.Close()
			return nil, cutError("receive from", c.RemoteAddr())
		case Duplicate:
			c.again = f.Clone()
		}
		return f, nil
	}
}

// Close ends the connection and any delay on it.
func (c *conn) Close() (err error) {
	c.once.Do(func() {
		c.net.mu.Lock()
		delete(c.net.conns, c)
		c.net.mu.Unlock()
		close(c.closed)
		err = c.Conn.Close()
	})
	return err
}

func (c *conn) wait(d time.Duration) {
	if d <= 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-c.closed:
	}
}
