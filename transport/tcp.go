package transport

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"syscall"
	"time"

	"optimus/internal/wire"
)

// Config tunes a TCP network. Its zero value is what a cluster should start with;
// values of zero or less stand for the defaults.
type Config struct {
	// WriteTimeout is how long a peer may take nothing of what is sent to it
	// before the connection is given up. A slow peer that moves on is never cut.
	// Default 30 s.
	WriteTimeout time.Duration
	// DialTimeout bounds a Dial besides its context. Default 10 s.
	DialTimeout time.Duration
	// MaxFrame is the largest frame in bytes, sent or received. Default 1 GiB.
	MaxFrame int64
	// Advertise is the host that Addr names where it is not the one listened on:
	// of a listener on all addresses, or behind a service name.
	Advertise string
}

func (c Config) withDefaults() Config {
	if c.WriteTimeout <= 0 {
		c.WriteTimeout = 30 * time.Second
	}
	if c.DialTimeout <= 0 {
		c.DialTimeout = 10 * time.Second
	}
	if c.MaxFrame <= 0 {
		c.MaxFrame = wire.DefaultMaxFrame
	}
	return c
}

// keepAlive finds out within half a minute that a silent peer's machine is gone.
func keepAlive() net.KeepAliveConfig {
	return net.KeepAliveConfig{Enable: true, Idle: 10 * time.Second, Interval: 5 * time.Second, Count: 4}
}

type tcpNetwork struct {
	host string
	cfg  Config
	pool wire.Pool // receive buffers of all connections
}

// TCP returns a network over TCP that listens on ports of host which the system
// chooses. An empty host is the loopback address 127.0.0.1; names, IPv4 and IPv6
// addresses work. Received frames hold pooled memory until Release.
func TCP(host string, cfg Config) Network {
	if host == "" {
		host = "127.0.0.1"
	}
	return &tcpNetwork{host: host, cfg: cfg.withDefaults()}
}

// Listen opens a port on the network's host.
func (n *tcpNetwork) Listen() (Listener, error) {
	at := net.JoinHostPort(n.host, "0")
	lc := net.ListenConfig{KeepAliveConfig: keepAlive()}
	l, err := lc.Listen(context.Background(), "tcp", at)
	if err != nil {
		return nil, &Error{Op: "listen on", Peer: at, Err: err}
	}
	addr := l.Addr().String()
	if n.cfg.Advertise != "" {
		_, port, err := net.SplitHostPort(addr)
		if err != nil {
			return nil, &Error{Op: "listen on", Peer: at, Err: errors.Join(err, l.Close())}
		}
		addr = net.JoinHostPort(n.cfg.Advertise, port)
	}
	return &tcpListener{net: n, l: l, addr: addr, closed: make(chan struct{})}, nil
}

// Dial connects to a listener's Addr.
func (n *tcpNetwork) Dial(ctx context.Context, addr string) (Conn, error) {
	d := net.Dialer{Timeout: n.cfg.DialTimeout, KeepAliveConfig: keepAlive()}
	c, err := d.DialContext(ctx, "tcp", addr)
	if err == nil {
		return newTCPConn(n, c, addr), nil
	}
	var timeout net.Error
	switch {
	case ctx.Err() != nil:
		err = ctx.Err()
	case errors.As(err, &timeout) && timeout.Timeout():
		err = fmt.Errorf("%w: no answer within %v; is the machine up and the port open?", ErrTimeout, n.cfg.DialTimeout)
	case errors.Is(err, syscall.ECONNREFUSED):
		err = fmt.Errorf("%w; the member that listened there has gone", syscall.ECONNREFUSED)
	}
	return nil, &Error{Op: "dial", Peer: addr, Err: err}
}

type tcpListener struct {
	net    *tcpNetwork
	l      net.Listener
	addr   string
	once   sync.Once
	closed chan struct{}
}

// Accept waits for the next connection. Short of descriptors it waits for some to
// be closed rather than give up the listener.
func (l *tcpListener) Accept() (Conn, error) {
	for {
		c, err := l.l.Accept()
		if err == nil {
			return newTCPConn(l.net, c, c.RemoteAddr().String()), nil
		}
		if errors.Is(err, net.ErrClosed) {
			return nil, &Error{Op: "accept on", Peer: l.addr, Err: ErrClosed}
		}
		if !errors.Is(err, syscall.EMFILE) && !errors.Is(err, syscall.ENFILE) && !errors.Is(err, syscall.ECONNABORTED) {
			return nil, &Error{Op: "accept on", Peer: l.addr, Err: err}
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-l.closed:
		}
	}
}

func (l *tcpListener) Addr() string { return l.addr }

func (l *tcpListener) Close() (err error) {
	l.once.Do(func() {
		close(l.closed)
		err = l.l.Close()
	})
	return err
}
