package transport_test

import (
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"optimus/internal/wire"
	"optimus/transport"
)

// BenchmarkTCP compares frames over a TCP network with the same bytes over a bare
// net.Conn, both in this run and in turns, so that of-raw means something on a
// busy machine. In echo each message comes back at once and both ways count; in
// push 16 go one way before a short answer.
func BenchmarkTCP(b *testing.B) {
	for _, bytes := range []int{4 << 10, 256 << 10, 4 << 20} {
		b.Run(fmt.Sprintf("echo/%dKiB", bytes>>10), func(b *testing.B) {
			compare(b, 2*bytes, rawExchange(b, 1, bytes, bytes), frameExchange(b, 1, bytes, bytes))
		})
		b.Run(fmt.Sprintf("push/%dKiB", bytes>>10), func(b *testing.B) {
			compare(b, 16*bytes, rawExchange(b, 16, bytes, 4), frameExchange(b, 16, bytes, 4))
		})
	}
}

func compare(b *testing.B, bytes int, raw, framed func()) {
	raw()
	framed()
	b.SetBytes(int64(bytes))
	b.ReportAllocs()
	var rawTime, frameTime time.Duration
	for b.Loop() {
		start := time.Now()
		framed()
		frameTime += time.Since(start)
		b.StopTimer()
		start = time.Now()
		raw()
		rawTime += time.Since(start)
		b.StartTimer()
	}
	b.ReportMetric(rawTime.Seconds()/frameTime.Seconds(), "of-raw")
}

// rawExchange returns a function that sends n messages of some bytes and waits
// for one answer.
func rawExchange(b *testing.B, n, bytes, answer int) func() {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check(b, err)
	b.Cleanup(func() { l.Close() })
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		buf := make([]byte, bytes)
		for {
			for range n {
				if _, err := io.ReadFull(c, buf); err != nil {
					return
				}
			}
			if _, err := c.Write(buf[:answer]); err != nil {
				return
			}
		}
	}()
	c, err := net.Dial("tcp", l.Addr().String())
	check(b, err)
	b.Cleanup(func() { c.Close() })
	out, in := make([]byte, bytes), make([]byte, answer)
	return func() {
		for range n {
			_, err := c.Write(out)
			check(b, err)
		}
		_, err = io.ReadFull(c, in)
		check(b, err)
	}
}

// frameExchange is rawExchange with frames.
func frameExchange(b *testing.B, n, bytes, answer int) func() {
	c, peer := pair(b, transport.TCP("", transport.Config{}))
	go func() {
		ack := &wire.Frame{Header: wire.Header{Kind: wire.PushAck}, Values: make([]float32, answer/4)}
		for {
			for range n {
				f, err := peer.Recv()
				if err != nil {
					return
				}
				f.Release()
			}
			if peer.Send(ack) != nil {
				return
			}
		}
	}()
	f := &wire.Frame{Header: wire.Header{Kind: wire.Push}, Values: make([]float32, bytes/4)}
	return func() {
		for range n {
			check(b, c.Send(f))
		}
		g, err := c.Recv()
		check(b, err)
		g.Release()
	}
}

func check(tb testing.TB, err error) {
	if err != nil {
		tb.Helper()
		tb.Fatal(err)
	}
}
