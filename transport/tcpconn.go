package transport

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"optimus/internal/wire"
)

// writeSlice is how many bytes are written under one deadline: little enough that
// a slow link moves it within the write timeout, enough not to be felt.
const writeSlice = 4 << 20

type tcpConn struct {
	conn    net.Conn
	peer    string
	timeout time.Duration
	dec     *wire.Decoder

	send  sync.Mutex // one frame at a time; guards enc and slice
	enc   *wire.Encoder
	slice [4][]byte

	once  sync.Once
	cause error // why the connection ended; set by once
}

func newTCPConn(n *tcpNetwork, c net.Conn, peer string) *tcpConn {
	enc := wire.NewEncoder(n.cfg.MaxFrame)
	enc.NoBodySum = loopback(c)
	return &tcpConn{
		conn:    c,
		peer:    peer,
		timeout: n.cfg.WriteTimeout,
		dec:     wire.NewDecoder(c, n.cfg.MaxFrame, &n.pool),
		enc:     enc,
	}
}

// loopback tells whether c stays on this machine, where the kernel copies memory
// and nothing can damage it on the way: a checksum there would cost a fifth of
// the speed and find nothing.
func loopback(c net.Conn) bool {
	a, ok := c.RemoteAddr().(*net.TCPAddr)
	return ok && a.IP.IsLoopback()
}

func (c *tcpConn) RemoteAddr() string { return c.peer }

// Send writes f. A frame that cannot be encoded is refused and the connection
// lives on; a frame that was written in part ends the connection.
func (c *tcpConn) Send(f *wire.Frame) error {
	c.send.Lock()
	defer c.send.Unlock()
	bufs, err := c.enc.Encode(f)
	if err == nil {
		if err = c.write(bufs); err == nil {
			return nil
		}
		err = c.end(ended(err, c.timeout))
	}
	return &Error{Op: fmt.Sprintf("send %s to", f.Kind), Peer: c.peer, Err: err}
}

// write sends bufs, slice by slice, each under its own deadline.
func (c *tcpConn) write(bufs net.Buffers) error {
	for len(bufs) > 0 {
		batch, left := net.Buffers(c.slice[:0]), writeSlice
		for len(bufs) > 0 && left > 0 {
			n := min(left, len(bufs[0]))
			batch = append(batch, bufs[0][:n])
			left -= n
			if bufs[0] = bufs[0][n:]; len(bufs[0]) == 0 {
				bufs = bufs[1:]
			}
		}
		if err := c.conn.SetWriteDeadline(time.Now().Add(c.timeout)); err != nil {
			return err
		}
		if _, err := batch.WriteTo(c.conn); err != nil {
			return err
		}
	}
	return nil
}

// Recv reads the next frame. Any error ends the connection.
func (c *tcpConn) Recv() (*wire.Frame, error) {
	f, err := c.dec.Decode()
	if err != nil {
		return nil, &Error{Op: "receive from", Peer: c.peer, Err: c.end(ended(err, c.timeout))}
	}
	return f, nil
}

func (c *tcpConn) Close() error {
	c.end(ErrClosed)
	return nil
}

// end closes the connection for the given cause and returns the first cause that
// it ended for, which is the one that explains the others.
func (c *tcpConn) end(cause error) error {
	c.once.Do(func() {
		c.cause = cause
		// The error of closing a socket says nothing that the cause does not.
		_ = c.conn.Close()
	})
	if errors.Is(cause, ErrClosed) {
		return c.cause
	}
	return cause
}
