package ps_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"optimus/elastic"
	"optimus/ps"
	"optimus/ps/pieces"
	"optimus/transport"
)

// A snapshot that is armed before its version exists is written when it does,
// with that version's values, once; one that cannot be written says why; one of
// a version that a recovery takes back is never written.
func TestSnapshots(t *testing.T) {
	network := transport.InProcess()
	var writes atomic.Int64
	g, servers := start(t, network, storeConfig(pieces.BSP), 1, 1, func(c *ps.ServerConfig) {
		c.Write = func(id, step int64, server int, parts []pieces.Part) (json.RawMessage, error) {
			writes.Add(1)
			if id == 2 {
				return nil, errors.New("disk full")
			}
			got := blank()
			for _, p := range parts {
				copy(got[p.Block][p.Offset:], p.Params)
			}
			want := initial()
			apply(want, 1, 0)
			if step != 1 || server != 0 || !cmp.Equal(want, got, closely) {
				return nil, fmt.Errorf("snapshot %d of server %d, step %d: %s", id, server, step, cmp.Diff(want, got, closely))
			}
			return json.RawMessage(`"shard"`), nil
		}
	})
	s := servers[0]
	c := newClient(t, network, workers(1)[0])
	for id, step := range []int64{1: 1, 2: 2, 3: 3} {
		if id == 0 {
			continue
		}
		s.tell(elastic.Message{Kind: elastic.Snapshot, Gen: 1, ID: int64(id), Step: step})
		if m := s.next(elastic.Armed); m.ID != int64(id) || m.Step != step || m.Gen != 1 {
			t.Errorf("armed: %+v", m)
		}
	}
	if n := writes.Load(); n != 0 {
		t.Errorf("%d snapshots of versions that do not exist", n)
	}
	c.push(g, 1)
	if m := s.next(elastic.Snapshotted); m.ID != 1 || m.Step != 1 || string(m.Shard) != `"shard"` || m.Reason != "" {
		t.Errorf("snapshot 1: %+v", m)
	}
	c.push(g, 2)
	if m := s.next(elastic.Snapshotted); m.ID != 2 || m.Reason != "disk full" || m.Shard != nil {
		t.Errorf("snapshot 2: %+v", m)
	}

	s.tell(elastic.Message{Kind: elastic.Halt, Gen: 2})
	s.next(elastic.Halted)
	next := generation(t, 2, g, servers, workers(1))
	prepare(g, next, elastic.FromSelf, s)
	s.tell(elastic.Message{Kind: elastic.Switch, Gen: 2, Step: 2, Rewind: 2})
	s.until(elastic.Moved)
	commit(next, 2, s)
	c.pull(next, 3, all()) // the commit has come
	c.push(next, 3)
	check(t, s.dismiss()) // waits for what is being written
	if n := writes.Load(); n != 2 {
		t.Errorf("%d snapshots were written, want 2: the third was taken back", n)
	}
}

// Whatever ends a server, it leaves no goroutine and no listener behind.
func TestServerEnds(t *testing.T) {
	killed := errors.New("killed")
	for name, test := range map[string]struct {
		end  func(l *link, stop context.CancelCauseFunc)
		want string
	}{
		"dismissed": {func(l *link, _ context.CancelCauseFunc) { l.down <- elastic.Message{Kind: elastic.Dismiss} }, ""},
		"killed":    {func(_ *link, stop context.CancelCauseFunc) { stop(killed) }, "killed"},
		"orphaned":  {func(l *link, _ context.CancelCauseFunc) { l.Close() }, "server 4#1: the controller's link ended"},
	} {
		for kind, network := range map[string]transport.Network{"in process": transport.InProcess(), "tcp": transport.TCP("", transport.Config{})} {
			t.Run(name+" "+kind, func(t *testing.T) {
				defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
				l := newLink()
				ctx, stop := context.WithCancelCause(t.Context())
				defer stop(nil)
				done := make(chan error, 1)
				go func() {
					done <- ps.Serve(ctx, ps.ServerConfig{Self: elastic.Member{Role: elastic.Server, ID: 4, Incarnation: 1}, Link: l,
						Network: network, Store: storeConfig(pieces.BSP), Log: slog.New(slog.DiscardHandler), Beat: time.Millisecond})
				}()
				hello := receive(t, l.up, "the server's hello")
				if m := receive(t, l.up, "a sign of life"); m.Kind != elastic.Beat || m.From != hello.From {
					t.Errorf("after its hello %s says %s", m.From, m.Kind)
				}
				idle, err := network.Dial(t.Context(), hello.Addr) // a worker that says nothing
				check(t, err)
				test.end(l, stop)
				if err := receive(t, done, "the server's end"); test.want == "" && err != nil || err != nil && !strings.Contains(err.Error(), test.want) || test.want != "" && err == nil {
					t.Errorf("Serve: %v, want %q", err, test.want)
				}
				if _, err := idle.Recv(); err == nil {
					t.Error("a connection outlives the server")
				}
				idle.Close()
				if conn, err := network.Dial(t.Context(), hello.Addr); err == nil {
					conn.Close()
					t.Errorf("something still listens at %s", hello.Addr)
				}
			})
		}
	}
}

// A server that cannot start says why and leaves nothing.
func TestServeErrors(t *testing.T) {
	bad := storeConfig(pieces.BSP)
	bad.AuxMomentum = 2
	err := ps.Serve(t.Context(), ps.ServerConfig{Link: newLink(), Network: transport.InProcess(), Store: bad})
	if err == nil || !strings.Contains(err.Error(), "auxiliary momentum 2") {
		t.Errorf("a store that cannot be: %v", err)
	}
	err = ps.Serve(t.Context(), ps.ServerConfig{Self: elastic.Member{Role: elastic.Server, ID: 4, Incarnation: 1}, Link: newLink(),
		Network: transport.TCP("no.such.host.invalid", transport.Config{}), Store: storeConfig(pieces.BSP)})
	if err == nil || !strings.Contains(err.Error(), "server 4#1: ") {
		t.Errorf("a host that cannot be listened on: %v", err)
	}
}

// A non-finite value stops its step, and the controller hears whose it was.
func TestVeto(t *testing.T) {
	network := transport.InProcess()
	g, servers := start(t, network, storeConfig(pieces.BSP), 1, 2)
	clients := []*client{newClient(t, network, workers(2)[0]), newClient(t, network, workers(2)[1])}
	clients[0].push(g, 1)
	grads := gradients(1, 1)
	grads[bias].Values[1] = float32(math.NaN())
	check(t, clients[1].Push(t.Context(), g, elastic.Stamp{Step: 1}, grads, 1))
	if m := servers[0].next(elastic.Vetoed); m.Step != 1 || m.Culprit != 1 || m.Block != "bias" || m.Gen != 1 {
		t.Errorf("%+v", m)
	}
}
