package transport_test

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"optimus/internal/failure"
	"optimus/internal/wire"
	"optimus/transport"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// each runs a test on every kind of network.
func each(t *testing.T, test func(t *testing.T, n transport.Network)) {
	t.Run("inproc", func(t *testing.T) { test(t, transport.InProcess()) })
	t.Run("tcp4", func(t *testing.T) { test(t, transport.TCP("", transport.Config{})) })
	t.Run("tcp6", func(t *testing.T) {
		if l, err := net.Listen("tcp6", "[::1]:0"); err != nil {
			t.Skipf("no IPv6 on this machine: %v", err)
		} else {
			l.Close()
		}
		test(t, transport.TCP("::1", transport.Config{}))
	})
}

// pair returns the two ends of a connection, closed at the test's end.
func pair(t testing.TB, n transport.Network) (dialed, accepted transport.Conn) {
	t.Helper()
	l, err := n.Listen()
	check(t, err)
	defer l.Close()
	dialed, err = n.Dial(t.Context(), l.Addr())
	check(t, err)
	accepted, err = l.Accept()
	check(t, err)
	t.Cleanup(func() {
		dialed.Close()
		accepted.Close()
	})
	return dialed, accepted
}

func push(step int64, values ...float32) *wire.Frame {
	return &wire.Frame{Header: wire.Header{Kind: wire.Push, Step: step}, Values: values}
}

// Frames arrive whole, in order, both ways; a sender may use its header again at once.
func TestFrames(t *testing.T) {
	each(t, func(t *testing.T, n transport.Network) {
		a, b := pair(t, n)
		for from, to := range map[transport.Conn]transport.Conn{a: b, b: a} {
			f := push(0, 1, 2, 3)
			f.Rows, f.Text = []int32{5, 6}, "text"
			for i := range int64(100) {
				f.Step = i
				check(t, from.Send(f))
			}
			for i := range int64(100) {
				g, err := to.Recv()
				check(t, err)
				if g.Step != i || len(g.Values) != 3 || g.Values[2] != 3 || g.Rows[1] != 6 || g.Text != "text" {
					t.Fatalf("frame %d came as %+v", i, g)
				}
				g.Release()
			}
		}
	})
}

// Many goroutines on many connections: every frame arrives once, none is torn.
func TestConcurrent(t *testing.T) {
	const conns, senders, frames = 16, 4, 25
	each(t, func(t *testing.T, n transport.Network) {
		l, err := n.Listen()
		check(t, err)
		var wg sync.WaitGroup
		for range conns {
			wg.Go(func() {
				c, err := l.Accept()
				if err != nil {
					t.Error(err)
					return
				}
				defer c.Close()
				var next [senders]int64
				for range senders * frames {
					f, err := c.Recv()
					if err != nil {
						t.Error(err)
						return
					}
					for _, v := range f.Values {
						if v != float32(f.Step) {
							t.Errorf("a frame of step %d holds the value %v", f.Step, v)
							break
						}
					}
					if f.Step != next[f.From] {
						t.Errorf("sender %d: got step %d, want %d", f.From, f.Step, next[f.From])
					}
					next[f.From] = f.Step + 1
					f.Release()
				}
			})
			c, err := n.Dial(t.Context(), l.Addr())
			check(t, err)
			var sending sync.WaitGroup
			for s := range uint32(senders) {
				sending.Go(func() {
					for i := range int64(frames) {
						f := push(i, make([]float32, 3000)...)
						f.From = s
						for j := range f.Values {
							f.Values[j] = float32(i)
						}
						if err := c.Send(f); err != nil {
							t.Error(err)
							return
						}
					}
				})
			}
			wg.Go(func() {
				sending.Wait()
				c.Recv() // until the receiver has closed: closing first could drop what is under way
				c.Close()
			})
		}
		wg.Wait()
		check(t, l.Close())
	})
}

// What was sent before a close still arrives; after it both sides get errors that
// say who closed and name the peer.
func TestCloseAfterSend(t *testing.T) {
	each(t, func(t *testing.T, n transport.Network) {
		a, b := pair(t, n)
		check(t, a.Send(push(1)))
		check(t, a.Close())
		check(t, a.Close())
		if f, err := b.Recv(); err != nil || f.Step != 1 {
			t.Fatalf("the frame sent before Close: %v, %v", f, err)
		}
		_, err := b.Recv()
		wantEnd(t, "peer's Recv", err, transport.ErrPeerClosed, b.RemoteAddr())
		_, err = a.Recv()
		wantEnd(t, "own Recv", err, transport.ErrClosed, a.RemoteAddr())
		wantEnd(t, "own Send", a.Send(push(2)), transport.ErrClosed, a.RemoteAddr())
		// TCP learns by the answer to a first send that nobody is there.
		for err = nil; err == nil; err = b.Send(push(3)) {
			runtime.Gosched()
		}
		if !errors.Is(err, transport.ErrPeerClosed) && !errors.Is(err, transport.ErrClosed) {
			t.Errorf("peer's Send: %v", err)
		}
	})
}

func wantEnd(t *testing.T, what string, err, kind error, peer string) {
	t.Helper()
	if !errors.Is(err, kind) || !strings.Contains(err.Error(), peer) {
		t.Errorf("%s: %v; want %q and the peer %s", what, err, kind, peer)
	}
}

// Close wakes a Recv that waits, on either side.
func TestCloseUnblocksRecv(t *testing.T) {
	each(t, func(t *testing.T, n transport.Network) {
		a, b := pair(t, n)
		errs := make(chan error, 2)
		for _, c := range []transport.Conn{a, b} {
			go func() {
				_, err := c.Recv()
				errs <- err
			}()
		}
		check(t, a.Close())
		for range 2 {
			if err := <-errs; !errors.Is(err, transport.ErrClosed) && !errors.Is(err, transport.ErrPeerClosed) {
				t.Errorf("Recv: %v", err)
			}
		}
	})
}

// Close wakes a Send that waits for a peer that takes nothing, on either side.
func TestCloseUnblocksSend(t *testing.T) {
	for name, closer := range map[string]func(a, b transport.Conn) error{
		"own":    func(a, _ transport.Conn) error { return a.Close() },
		"peer's": func(_, b transport.Conn) error { return b.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			a, b := pair(t, transport.TCP("", transport.Config{}))
			started, failed := make(chan struct{}), make(chan error)
			go func() {
				f := push(1, make([]float32, 16<<20)...) // more than any socket buffer
				close(started)
				failed <- a.Send(f)
			}()
			<-started
			check(t, closer(a, b))
			if err := <-failed; !errors.Is(err, transport.ErrClosed) && !errors.Is(err, transport.ErrPeerClosed) {
				t.Errorf("Send: %v", err)
			}
		})
	}
}

// A peer that takes nothing costs the write timeout, no more, and the error of a
// later operation tells the first cause.
func TestWriteTimeout(t *testing.T) {
	a, _ := pair(t, transport.TCP("", transport.Config{WriteTimeout: 20 * time.Millisecond}))
	err := a.Send(push(1, make([]float32, 16<<20)...))
	wantEnd(t, "Send", err, transport.ErrTimeout, a.RemoteAddr())
	if kind := failure.KindOf(err); kind != failure.Deadline {
		t.Errorf("Send: kind %s, want %s", kind, failure.Deadline)
	}
	_, err = a.Recv()
	wantEnd(t, "Recv afterwards", err, transport.ErrTimeout, a.RemoteAddr())
}

// A refused frame is the sender's mistake; the connection lives on.
func TestRefusedFrame(t *testing.T) {
	a, b := pair(t, transport.TCP("", transport.Config{MaxFrame: 1000}))
	wantEnd(t, "Send", a.Send(push(1, make([]float32, 1000)...)), wire.ErrTooLarge, a.RemoteAddr())
	check(t, a.Send(push(2)))
	if f, err := b.Recv(); err != nil || f.Step != 2 {
		t.Errorf("the next frame: %v, %v", f, err)
	}
	in, _ := pair(t, transport.InProcess())
	wantEnd(t, "Send of no kind", in.Send(&wire.Frame{}), wire.ErrInvalid, in.RemoteAddr())
}

func TestStrayConnection(t *testing.T) {
	l, err := transport.TCP("", transport.Config{}).Listen()
	check(t, err)
	defer l.Close()
	stray, err := net.Dial("tcp", l.Addr())
	check(t, err)
	defer stray.Close()
	_, err = io.WriteString(stray, "GET / HTTP/1.1\r\n\r\n")
	check(t, err)
	c, err := l.Accept()
	check(t, err)
	_, err = c.Recv()
	wantEnd(t, "Recv", err, wire.ErrMagic, stray.LocalAddr().String())
	if n, err := stray.Read(make([]byte, 1)); err == nil {
		t.Errorf("the stray connection got %d bytes, want it closed", n)
	}
}

func TestListenerClose(t *testing.T) {
	each(t, func(t *testing.T, n transport.Network) {
		l, err := n.Listen()
		check(t, err)
		failed := make(chan error)
		go func() {
			_, err := l.Accept()
			failed <- err
		}()
		check(t, l.Close())
		check(t, l.Close())
		wantEnd(t, "Accept", <-failed, transport.ErrClosed, l.Addr())
		_, err = n.Dial(t.Context(), l.Addr())
		if failure.KindOf(err) != failure.Unavailable || !strings.Contains(err.Error(), l.Addr()) {
			t.Errorf("Dial of a closed listener: %v of kind %s", err, failure.KindOf(err))
		}
	})
}

// A dialer whom a closing listener never accepted learns of it.
func TestListenerCloseWithBacklog(t *testing.T) {
	each(t, func(t *testing.T, n transport.Network) {
		l, err := n.Listen()
		check(t, err)
		c, err := n.Dial(t.Context(), l.Addr())
		check(t, err)
		defer c.Close()
		check(t, l.Close())
		_, err = c.Recv()
		wantEnd(t, "Recv", err, transport.ErrPeerClosed, l.Addr())
	})
}

func TestDialCancelled(t *testing.T) {
	each(t, func(t *testing.T, n transport.Network) {
		l, err := n.Listen()
		check(t, err)
		defer l.Close()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err = n.Dial(ctx, l.Addr())
		wantEnd(t, "Dial", err, context.Canceled, l.Addr())
	})
}

// Networks of one process do not meet, and no two listeners share an address.
func TestAddresses(t *testing.T) {
	a, b := transport.InProcess(), transport.InProcess()
	l, err := a.Listen()
	check(t, err)
	defer l.Close()
	if _, err := b.Dial(t.Context(), l.Addr()); err == nil {
		t.Error("one in-process network reached a listener of another")
	}
	m, err := a.Listen()
	check(t, err)
	defer m.Close()
	if l.Addr() == m.Addr() {
		t.Errorf("two listeners have the address %s", l.Addr())
	}
	p, err := transport.TCP("", transport.Config{Advertise: "worker-3.job"}).Listen()
	check(t, err)
	defer p.Close()
	if host, port, err := net.SplitHostPort(p.Addr()); err != nil || host != "worker-3.job" || port == "0" {
		t.Errorf("an advertised listener has the address %s", p.Addr())
	}
}

// Connections leave no descriptor behind, however they end.
func TestDescriptors(t *testing.T) {
	open := func() int {
		fds, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Skipf("this system does not list descriptors: %v", err)
		}
		return len(fds)
	}
	n := transport.TCP("", transport.Config{})
	warm, _ := pair(t, n) // the poller's own descriptors are open from now on
	check(t, warm.Send(push(0)))
	before := open()
	for i := range 50 {
		l, err := n.Listen()
		check(t, err)
		a, err := n.Dial(t.Context(), l.Addr())
		check(t, err)
		b, err := l.Accept()
		check(t, err)
		check(t, a.Send(push(1)))
		check(t, a.Close())
		if i%2 == 0 {
			check(t, b.Close())
		} else { // a receiver that meets the end need not close
			_, err = b.Recv()
			check(t, err)
			if _, err = b.Recv(); err == nil {
				t.Fatal("received from a closed peer")
			}
		}
		check(t, l.Close())
	}
	if after := open(); after > before {
		t.Errorf("%d descriptors before, %d after 50 connections", before, after)
	}
}

// In process the receiver sees the sender's memory itself.
func TestSharing(t *testing.T) {
	values := []float32{1}
	a, b := pair(t, transport.InProcess())
	check(t, a.Send(push(1, values...)))
	f, err := b.Recv()
	check(t, err)
	if &f.Values[0] != &values[0] {
		t.Error("in process the values were copied")
	}
	f.Release()
	if values[0] != 1 {
		t.Error("releasing a shared frame changed the sender's values")
	}
}
