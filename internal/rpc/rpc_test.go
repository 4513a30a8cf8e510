package rpc_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"optimus/internal/failure"
	"optimus/internal/rpc"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func check(t testing.TB, err error) {
	if err != nil {
		t.Helper()
		t.Fatal(err)
	}
}

// control is an implementation made of what a test sets.
type control struct {
	rpc.UnimplementedControlServer
	status  func(context.Context) (*rpc.StatusReply, error)
	attach  func(rpc.Control_AttachServer) error
	watch   func(rpc.Control_WatchServer) error
	rescale func(context.Context, *rpc.RescaleRequest) (*rpc.RescaleReply, error)
}

func (c *control) Status(ctx context.Context, _ *rpc.StatusRequest) (*rpc.StatusReply, error) {
	return c.status(ctx)
}

func (c *control) Attach(s rpc.Control_AttachServer) error { return c.attach(s) }

func (c *control) Watch(_ *rpc.WatchRequest, s rpc.Control_WatchServer) error { return c.watch(s) }

func (c *control) Rescale(ctx context.Context, r *rpc.RescaleRequest) (*rpc.RescaleReply, error) {
	return c.rescale(ctx, r)
}

// socketPath returns a path short enough for a socket, in a folder that is not there yet.
func socketPath(t testing.TB) string {
	dir, err := os.MkdirTemp("", "rpc")
	check(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	return filepath.Join(dir, "run", "s")
}

// start serves impl and returns the server and a client; both end with the test.
func start(t *testing.T, impl *control) (string, *rpc.Server, *rpc.Client) {
	t.Helper()
	socket := socketPath(t)
	s, err := rpc.Serve(socket, impl)
	check(t, err)
	c, err := rpc.Dial(t.Context(), socket)
	check(t, err)
	t.Cleanup(func() {
		c.Close()
		stop(t, s)
	})
	return socket, s, c
}

// stop closes a server without patience.
func stop(t testing.TB, s *rpc.Server) {
	t.Helper()
	now, cancel := context.WithCancel(context.Background())
	cancel()
	check(t, s.Close(now))
}

// The committed code is what the generators make of control.proto.
func TestGenerated(t *testing.T) {
	out := t.TempDir()
	if text, err := exec.Command("go", "run", "./gen", "-out", out).CombinedOutput(); err != nil {
		t.Fatalf("go run ./gen: %v\n%s", err, text)
	}
	for _, name := range []string{"control.pb.go", "control_grpc.pb.go"} {
		want, err := os.ReadFile(filepath.Join(out, name))
		check(t, err)
		got, err := os.ReadFile(name)
		check(t, err)
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Errorf("%s is not what control.proto gives; run go generate ./internal/rpc (-generated +committed):\n%s", name, diff)
		}
	}
}

func TestAttach(t *testing.T) {
	_, _, c := start(t, &control{attach: func(s rpc.Control_AttachServer) error {
		for {
			e, err := s.Recv()
			if err == io.EOF {
				return nil
			}
			if err != nil {
				return err
			}
			if err := s.Send(&rpc.Envelope{Kind: "re-" + e.Kind, Body: e.Body}); err != nil {
				return err
			}
		}
	}})
	s, err := c.Attach(t.Context())
	check(t, err)
	for i := range 10 {
		body := fmt.Sprintf(`{"step":%d}`, i)
		check(t, s.Send(&rpc.Envelope{Kind: "heartbeat", Body: []byte(body)}))
		e, err := s.Recv()
		check(t, err)
		if e.Kind != "re-heartbeat" || string(e.Body) != body {
			t.Errorf("answer %d: %s %s", i, e.Kind, e.Body)
		}
	}
	check(t, s.CloseSend())
	if _, err := s.Recv(); err != io.EOF {
		t.Errorf("after the last message: %v, want io.EOF", err)
	}
}

func TestWatch(t *testing.T) {
	_, _, c := start(t, &control{watch: func(s rpc.Control_WatchServer) error {
		for _, state := range []string{`"running"`, `"done"`} {
			if err := s.Send(&rpc.StatusReply{StatusJson: []byte(state)}); err != nil {
				return err
			}
		}
		return failure.E("watch", "job a", failure.LostMember, errors.New("server 1 died"), "look at its log")
	}})
	w, err := c.Watch(t.Context(), &rpc.WatchRequest{})
	check(t, err)
	for _, want := range []string{`"running"`, `"done"`} {
		r, err := w.Recv()
		check(t, err)
		if string(r.StatusJson) != want {
			t.Errorf("got %s, want %s", r.StatusJson, want)
		}
	}
	_, err = w.Recv()
	if want := "watch job a: server 1 died; look at its log"; err == nil || err.Error() != want || failure.KindOf(err) != failure.LostMember {
		t.Errorf("the stream's end: %v of kind %s", err, failure.KindOf(err))
	}
}

// Each kind of failure arrives as it left, with text, subject and advice.
func TestErrorsCross(t *testing.T) {
	for _, kind := range failure.Kinds() {
		t.Run(string(kind), func(t *testing.T) {
			sent := failure.E("rescale", "job a", kind, errors.New("because"), "do this")
			_, _, c := start(t, &control{rescale: func(context.Context, *rpc.RescaleRequest) (*rpc.RescaleReply, error) {
				return nil, fmt.Errorf("in between: %w", sent)
			}})
			_, err := c.Rescale(t.Context(), &rpc.RescaleRequest{Servers: 2})
			if failure.KindOf(err) != kind || err.Error() != "in between: "+sent.Error() {
				t.Errorf("got %q of kind %s, want %q of kind %s", err, failure.KindOf(err), sent, kind)
			}
		})
	}
	t.Run("plain", func(t *testing.T) {
		_, _, c := start(t, &control{status: func(context.Context) (*rpc.StatusReply, error) { return nil, os.ErrNotExist }})
		_, err := c.Status(t.Context(), &rpc.StatusRequest{})
		if failure.KindOf(err) != failure.NotFound || err.Error() != os.ErrNotExist.Error() {
			t.Errorf("got %q of kind %s", err, failure.KindOf(err))
		}
	})
	t.Run("unknown call", func(t *testing.T) {
		socket, _, c := start(t, &control{})
		_, err := c.Checkpoint(t.Context(), &rpc.CheckpointRequest{})
		if failure.KindOf(err) != failure.InvalidArgument || !strings.HasPrefix(err.Error(), "checkpoint "+socket) {
			t.Errorf("got %q of kind %s", err, failure.KindOf(err))
		}
	})
}

// Calls have a deadline, their own where they set one.
func TestDeadlines(t *testing.T) {
	var got time.Time
	var has bool
	_, _, c := start(t, &control{
		status: func(ctx context.Context) (*rpc.StatusReply, error) {
			got, has = ctx.Deadline()
			return &rpc.StatusReply{}, nil
		},
		rescale: func(ctx context.Context, _ *rpc.RescaleRequest) (*rpc.RescaleReply, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		},
	})
	_, err := c.Status(context.Background(), &rpc.StatusRequest{})
	check(t, err)
	if !has {
		t.Error("a call without deadline had none on the server either")
	}
	own, cancel := context.WithTimeout(t.Context(), 12*time.Hour)
	defer cancel()
	_, err = c.Status(own, &rpc.StatusRequest{})
	check(t, err)
	if until := time.Until(got); !has || until < time.Hour {
		t.Errorf("a call's own deadline of 12 h became %v", until)
	}
	short, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := c.Rescale(short, &rpc.RescaleRequest{}); failure.KindOf(err) != failure.Deadline {
		t.Errorf("a call that hangs: %v of kind %s", err, failure.KindOf(err))
	}
}

// A stream whose server goes away ends with ErrNotRunning, and so do calls until
// another server takes the socket.
func TestServerGoesAway(t *testing.T) {
	attached := make(chan struct{}, 1)
	impl := &control{
		attach: func(s rpc.Control_AttachServer) error {
			attached <- struct{}{}
			<-s.Context().Done()
			return s.Context().Err()
		},
		status: func(context.Context) (*rpc.StatusReply, error) { return &rpc.StatusReply{}, nil },
	}
	socket, first, c := start(t, impl)
	s, err := c.Attach(t.Context())
	check(t, err)
	<-attached
	ended := make(chan error)
	go func() {
		_, err := s.Recv()
		ended <- err
	}()
	stop(t, first)
	err = <-ended
	if kind := failure.KindOf(err); kind != failure.Unavailable && kind != failure.Canceled {
		t.Errorf("the stream: %v of kind %s", err, kind)
	}
	if _, err := c.Status(t.Context(), &rpc.StatusRequest{}); !errors.Is(err, rpc.ErrNotRunning) || !strings.Contains(err.Error(), socket) {
		t.Errorf("a call afterwards: %v", err)
	}
	if _, err := rpc.Dial(t.Context(), socket); !errors.Is(err, rpc.ErrNotRunning) {
		t.Errorf("another Dial: %v", err)
	}
	second, err := rpc.Serve(socket, impl)
	check(t, err)
	defer stop(t, second)
	again, err := rpc.Dial(t.Context(), socket)
	check(t, err)
	defer again.Close()
	_, err = again.Status(t.Context(), &rpc.StatusRequest{})
	check(t, err)
}

// A process that dies in the middle of a stream, without any goodbye.
func TestServerDies(t *testing.T) {
	socket := socketPath(t)
	s, err := rpc.Serve(socket, &control{attach: func(s rpc.Control_AttachServer) error {
		check(t, s.Send(&rpc.Envelope{Kind: "welcome"}))
		<-s.Context().Done()
		return nil
	}})
	check(t, err)
	defer stop(t, s)
	front := filepath.Join(filepath.Dir(socket), "front")
	cut := forward(t, front, socket)
	c, err := rpc.Dial(t.Context(), front)
	check(t, err)
	defer c.Close()
	stream, err := c.Attach(t.Context())
	check(t, err)
	_, err = stream.Recv()
	check(t, err)
	cut()
	_, err = stream.Recv()
	if !errors.Is(err, rpc.ErrNotRunning) || failure.KindOf(err) != failure.Unavailable || !strings.Contains(err.Error(), front) {
		t.Errorf("the stream: %v of kind %s", err, failure.KindOf(err))
	}
}

// forward passes bytes between two sockets until cut, which ends it as the death
// of a process would.
func forward(t *testing.T, from, to string) (cut func()) {
	l, err := net.Listen("unix", from)
	check(t, err)
	open := make(chan net.Conn, 16)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			a, err := l.Accept()
			if err != nil {
				return
			}
			b, err := net.Dial("unix", to)
			if err != nil {
				a.Close()
				return
			}
			open <- a
			open <- b
			go io.Copy(a, b)
			go io.Copy(b, a)
		}
	}()
	return func() {
		l.Close()
		<-done
		close(open)
		for c := range open {
			c.Close()
		}
	}
}

// Close lets a call under way finish.
func TestCloseWaits(t *testing.T) {
	entered, leave := make(chan struct{}), make(chan struct{})
	_, s, c := start(t, &control{status: func(context.Context) (*rpc.StatusReply, error) {
		close(entered)
		<-leave
		return &rpc.StatusReply{StatusJson: []byte("1")}, nil
	}})
	got := make(chan error)
	go func() {
		_, err := c.Status(t.Context(), &rpc.StatusRequest{})
		got <- err
	}()
	<-entered
	closed := make(chan error)
	go func() { closed <- s.Close(t.Context()) }()
	select {
	case <-closed:
		t.Error("Close did not wait for the call")
	case <-time.After(10 * time.Millisecond):
	}
	close(leave)
	check(t, <-got)
	check(t, <-closed)
	<-s.Done()
}

func TestLargeMessages(t *testing.T) {
	size := 0
	_, _, c := start(t, &control{status: func(context.Context) (*rpc.StatusReply, error) {
		return &rpc.StatusReply{StatusJson: make([]byte, size)}, nil
	}})
	size = 63 << 20
	if r, err := c.Status(t.Context(), &rpc.StatusRequest{}); err != nil || len(r.StatusJson) != size {
		t.Errorf("a message of 63 MiB: %v", err)
	}
	size = 65 << 20
	if _, err := c.Status(t.Context(), &rpc.StatusRequest{}); failure.KindOf(err) != failure.InvalidArgument {
		t.Errorf("a message of 65 MiB: %v of kind %s", err, failure.KindOf(err))
	}
}
