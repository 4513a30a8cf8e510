package faultnet_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"optimus/internal/faultnet"
	"optimus/internal/wire"
	"optimus/transport"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func check(t testing.TB, err error) {
	if err != nil {
		t.Helper()
		t.Fatal(err)
	}
}

// server acknowledges pushes and notes the steps of those that arrived.
type server struct {
	l     transport.Listener
	wg    sync.WaitGroup
	mu    sync.Mutex
	steps []int64
}

func newServer(t *testing.T, n transport.Network) *server {
	l, err := n.Listen()
	check(t, err)
	s := &server{l: l}
	s.wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s.wg.Go(func() { s.serve(c) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		s.wg.Wait()
	})
	return s
}

func (s *server) serve(c transport.Conn) {
	defer c.Close()
	for {
		f, err := c.Recv()
		if err != nil {
			return
		}
		s.mu.Lock()
		s.steps = append(s.steps, f.Step)
		s.mu.Unlock()
		answer := &wire.Frame{Header: f.Header}
		answer.Kind = wire.PushAck
		if c.Send(answer) != nil {
			return
		}
	}
}

// arrived returns the steps of the pushes that the server saw.
func (s *server) arrived() []int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.steps)
}

func dial(t *testing.T, n transport.Network, addr string) transport.Conn {
	c, err := n.Dial(t.Context(), addr)
	check(t, err)
	t.Cleanup(func() { c.Close() })
	return c
}

// pushes sends a push for each step, then reads answers until their number is as
// wanted or the connection ends.
func pushes(c transport.Conn, steps []int64, answers int) (got []int64, err error) {
	for _, step := range steps {
		if err := c.Send(&wire.Frame{Header: wire.Header{Kind: wire.Push, Step: step}, Values: []float32{1}}); err != nil {
			return nil, err
		}
	}
	for len(got) < answers {
		f, err := c.Recv()
		if err != nil {
			return got, err
		}
		got = append(got, f.Step)
	}
	return got, nil
}

func TestVerbs(t *testing.T) {
	step := func(d faultnet.Direction, n int64) faultnet.Match {
		return func(at faultnet.Direction, f *wire.Frame) bool { return at == d && f.Step == n }
	}
	for name, test := range map[string]struct {
		rule     faultnet.Rule
		arrived  []int64 // pushes at the server
		answered []int64 // answers at the dialer
		ends     bool    // the connection ends
	}{
		"no rule":           {nil, []int64{1, 2, 3}, []int64{1, 2, 3}, false},
		"drop request":      {faultnet.Every(step(faultnet.ToListener, 2), faultnet.Action{Do: faultnet.Drop}), []int64{1, 3}, []int64{1, 3}, false},
		"drop answer":       {faultnet.Every(step(faultnet.ToDialer, 2), faultnet.Action{Do: faultnet.Drop}), []int64{1, 2, 3}, []int64{1, 3}, false},
		"duplicate request": {faultnet.Every(step(faultnet.ToListener, 2), faultnet.Action{Do: faultnet.Duplicate}), []int64{1, 2, 2, 3}, []int64{1, 2, 2, 3}, false},
		"duplicate answer":  {faultnet.Every(step(faultnet.ToDialer, 2), faultnet.Action{Do: faultnet.Duplicate}), []int64{1, 2, 3}, []int64{1, 2, 2, 3}, false},
		"delay keeps order": {faultnet.Every(step(faultnet.ToListener, 1), faultnet.Action{After: time.Millisecond}), []int64{1, 2, 3}, []int64{1, 2, 3}, false},
		"cut at answer":     {faultnet.Every(step(faultnet.ToDialer, 2), faultnet.Action{Do: faultnet.Cut}), []int64{1, 2, 3}, []int64{1}, true},
	} {
		t.Run(name, func(t *testing.T) {
			under := transport.InProcess()
			s := newServer(t, under)
			c := dial(t, faultnet.Wrap(under, test.rule), s.l.Addr())
			want := len(test.answered)
			if test.ends {
				want++
			}
			got, err := pushes(c, []int64{1, 2, 3}, want)
			if test.ends != (err != nil) || !slices.Equal(got, test.answered) {
				t.Errorf("answers %v, error %v; want %v, an end %v", got, err, test.answered, test.ends)
			}
			if err != nil && (!errors.Is(err, transport.ErrPeerClosed) || !errors.Is(err, faultnet.ErrCut)) {
				t.Errorf("the cut's error is %v", err)
			}
			if !test.ends && !slices.Equal(s.arrived(), test.arrived) {
				t.Errorf("the server saw %v, want %v", s.arrived(), test.arrived)
			}
		})
	}
}

func TestCutRequest(t *testing.T) {
	under := transport.InProcess()
	s := newServer(t, under)
	n := faultnet.Wrap(under, faultnet.Nth(2, faultnet.Requests(wire.Push), faultnet.Action{Do: faultnet.Cut}))
	c := dial(t, n, s.l.Addr())
	if got, err := pushes(c, []int64{1}, 1); err != nil || len(got) != 1 {
		t.Fatalf("the first push: %v, %v", got, err)
	}
	if _, err := pushes(c, []int64{2}, 1); !errors.Is(err, faultnet.ErrCut) {
		t.Errorf("the second push: %v, want %v", err, faultnet.ErrCut)
	}
	if got := s.arrived(); !slices.Equal(got, []int64{1}) {
		t.Errorf("the server saw %v, want [1]", got)
	}
}

func TestCutAndRestore(t *testing.T) {
	under := transport.InProcess()
	s := newServer(t, under)
	n := faultnet.Wrap(under, nil)
	c := dial(t, n, s.l.Addr())
	n.Cut()
	if _, err := c.Recv(); err == nil {
		t.Error("a connection outlived the cut")
	}
	if _, err := n.Dial(t.Context(), s.l.Addr()); !errors.Is(err, faultnet.ErrCut) {
		t.Errorf("Dial over a cut link: %v", err)
	}
	n.Restore()
	if got, err := pushes(dial(t, n, s.l.Addr()), []int64{5}, 1); err != nil || got[0] != 5 {
		t.Errorf("after Restore: %v, %v", got, err)
	}
}

// A close ends a delay.
func TestCloseEndsDelay(t *testing.T) {
	under := transport.InProcess()
	s := newServer(t, under)
	asked := make(chan struct{})
	n := faultnet.Wrap(under, func(faultnet.Direction, *wire.Frame) faultnet.Action {
		close(asked)
		return faultnet.Action{After: time.Hour}
	})
	c := dial(t, n, s.l.Addr())
	failed := make(chan error)
	go func() { failed <- c.Send(&wire.Frame{Header: wire.Header{Kind: wire.Push}}) }()
	<-asked
	check(t, c.Close())
	if err := <-failed; !errors.Is(err, transport.ErrClosed) {
		t.Errorf("Send: %v", err)
	}
}

func TestFirstCountsAll(t *testing.T) {
	any := func(faultnet.Direction, *wire.Frame) bool { return true }
	rule := faultnet.First(
		faultnet.Nth(1, any, faultnet.Action{Do: faultnet.Drop}),
		faultnet.Nth(2, any, faultnet.Action{Do: faultnet.Cut}),
	)
	var got []faultnet.Verb
	for range 3 {
		got = append(got, rule(faultnet.ToListener, &wire.Frame{}).Do)
	}
	if want := []faultnet.Verb{faultnet.Drop, faultnet.Cut, faultnet.Deliver}; !slices.Equal(got, want) {
		t.Errorf("verbs %v, want %v", got, want)
	}
}

// A TCP proxy delivers a push and loses its answer once; the retry gets through:
// PaddlePaddle/Paddle#11379.
func TestProxyLosesAnswer(t *testing.T) {
	for name, do := range map[string]faultnet.Verb{"drop": faultnet.Drop, "cut": faultnet.Cut} {
		t.Run(name, func(t *testing.T) {
			n := transport.TCP("", transport.Config{})
			s := newServer(t, n)
			seen := make(chan struct{}, 1)
			lose := faultnet.Nth(1, faultnet.Answers(wire.PushAck), faultnet.Action{Do: do})
			p, err := faultnet.NewProxy(n, s.l.Addr(), func(d faultnet.Direction, f *wire.Frame) faultnet.Action {
				act := lose(d, f)
				if act.Do == do {
					seen <- struct{}{}
				}
				return act
			})
			check(t, err)
			defer p.Close()

			ctx, cancel := context.WithCancel(t.Context())
			go func() {
				<-seen // the asker gives up once its answer is lost
				cancel()
			}()
			caller := transport.NewCaller(dial(t, n, p.Addr()), nil)
			first := &wire.Frame{Header: wire.Header{Kind: wire.Push, Step: 1}}
			if answer, err := caller.Call(ctx, first); err == nil {
				t.Fatalf("the lost answer came: %+v", answer)
			}
			if do == faultnet.Cut {
				<-caller.Done()
				caller = transport.NewCaller(dial(t, n, p.Addr()), nil)
			}
			if _, err := caller.Call(t.Context(), first); err != nil {
				t.Errorf("the retry: %v", err)
			}
			if got := s.arrived(); !slices.Equal(got, []int64{1, 1}) {
				t.Errorf("the server saw %v, want the push and its retry", got)
			}
			check(t, caller.Close())
			<-caller.Done()
		})
	}
}

func TestProxyCutRestoreRetarget(t *testing.T) {
	n := transport.TCP("", transport.Config{})
	a, b := newServer(t, n), newServer(t, n)
	p, err := faultnet.NewProxy(n, a.l.Addr(), nil)
	check(t, err)
	c := dial(t, n, p.Addr())
	if _, err := pushes(c, []int64{1}, 1); err != nil {
		t.Fatal(err)
	}
	p.Cut()
	if _, err := c.Recv(); err == nil {
		t.Error("a connection outlived the cut")
	}
	if _, err := dial(t, n, p.Addr()).Recv(); err == nil {
		t.Error("a connection passed the cut link")
	}
	p.Restore()
	p.SetTarget(b.l.Addr())
	if _, err := pushes(dial(t, n, p.Addr()), []int64{2}, 1); err != nil {
		t.Errorf("after Restore: %v", err)
	}
	if !slices.Equal(a.arrived(), []int64{1}) || !slices.Equal(b.arrived(), []int64{2}) {
		t.Errorf("the servers saw %v and %v, want [1] and [2]", a.arrived(), b.arrived())
	}
	check(t, p.Close())
}
