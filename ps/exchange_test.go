package ps_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"optimus/elastic"
	"optimus/internal/faultnet"
	"optimus/internal/wire"
	"optimus/ps"
	"optimus/ps/pieces"
	"optimus/transport"
)

// initial are the arrays of version 0.
func initial() [][]float32 {
	list := blank()
	for b, p := range arrays() {
		p.Init.Fill(seed, b, 0, list[b])
	}
	return list
}

// apply makes one update of the contributions of some workers: for the learned
// blocks w ← w − rate·Σg/Σweight, for the auxiliary ones the weighted average.
func apply(at [][]float32, step int64, workers ...int) {
	var total float64
	sums := make([][]float64, len(at))
	for b := range at {
		sums[b] = make([]float64, len(at[b]))
	}
	for _, w := range workers {
		total += float64(weight(w))
		for b, g := range gradients(w, step) {
			size := arrays()[b].RowSize()
			for i, v := range g.Values {
				if g.Rows != nil {
					i = int(g.Rows[i/size])*size + i%size
				}
				sums[b][i] += float64(v)
			}
		}
	}
	for b := range at {
		for i, s := range sums[b] {
			if b < learned {
				at[b][i] -= float32(rate * s / total)
			} else {
				at[b][i] = float32(momentum*float64(at[b][i]) + (1-momentum)*s/total)
			}
		}
	}
}

var closely = cmp.Options{cmpopts.EquateApprox(1e-5, 1e-6), cmpopts.EquateNaNs()}

// A model goes down, gradients go up, and the next versions are those of the
// optimizer's equation, with the same bits on any number of servers.
func TestRoundTrip(t *testing.T) {
	var first [][]float32
	for name, test := range map[string]struct {
		network transport.Network
		servers int
	}{
		"1 server":           {transport.InProcess(), 1},
		"2 servers":          {transport.InProcess(), 2},
		"3 servers":          {transport.InProcess(), 3},
		"2 servers over tcp": {transport.TCP("", transport.Config{}), 2},
	} {
		t.Run(name, func(t *testing.T) {
			g, servers := start(t, test.network, storeConfig(pieces.BSP), test.servers, 2)
			clients := []*client{newClient(t, test.network, workers(2)[0]), newClient(t, test.network, workers(2)[1])}
			want := initial()
			for step := int64(1); step <= 3; step++ {
				for _, c := range clients {
					if diff := cmp.Diff(want, c.pull(g, step, all()), closely); diff != "" {
						t.Fatalf("%s before step %d (-want +got):\n%s", c.self, step, diff)
					}
				}
				for _, c := range clients {
					c.push(g, step)
				}
				apply(want, step, 0, 1)
			}
			last := clients[0].pull(g, 4, all())
			if first == nil {
				first = last
			}
			if diff := cmp.Diff(first, last); diff != "" {
				t.Errorf("the bits depend on the servers:\n%s", diff)
			}
			for _, s := range servers {
				check(t, s.dismiss())
			}
		})
	}
}

// Only the rows that are asked for travel, and auxiliary arrays only if asked for.
func TestPullBrings(t *testing.T) {
	network := transport.InProcess()
	g, _ := start(t, network, storeConfig(pieces.BSP), 2, 1)
	c := newClient(t, network, workers(1)[0])
	c.got = blank()
	_, err := c.Pull(t.Context(), g, elastic.Stamp{Step: 1}, map[int][]int32{table: {2, 6}}, false, c)
	check(t, err)
	want := initial()
	for i := range want[table] {
		if row := i / 3; row != 2 && row != 6 {
			want[table][i] = float32(math.NaN())
		}
	}
	copy(want[learned:], blank()[learned:])
	if diff := cmp.Diff(want, c.got, cmpopts.EquateNaNs()); diff != "" {
		t.Error(diff)
	}
}

// A server refuses what is not meant for it, says why, and goes on serving.
func TestRefusesFrames(t *testing.T) {
	network := transport.InProcess()
	_, servers := start(t, network, storeConfig(pieces.BSP), 1, 1)
	conn, err := network.Dial(t.Context(), servers[0].Addr)
	check(t, err)
	caller := transport.NewCaller(conn, nil)
	defer func() { caller.Close(); <-caller.Done() }()
	whole := wire.Header{Kind: wire.Pull, Run: runID, Generation: 1, Block: dense, Size: 20}
	for name, test := range map[string]struct {
		change func(*wire.Header)
		want   string
	}{
		"another run":   {func(h *wire.Header) { h.Run = 0xbad }, "another run; the sender's run is bad"},
		"an answer":     {func(h *wire.Header) { h.Kind = wire.Pulled }, "does not take pulled"},
		"no such piece": {func(h *wire.Header) { h.Block = 9 }, "no such piece on this server"},
		"a stranger":    {func(h *wire.Header) { h.Kind, h.Step, h.From = wire.Push, 1, 9 }, "worker 9 is not a member"},
	} {
		t.Run(name, func(t *testing.T) {
			h := whole
			test.change(&h)
			a, err := caller.Call(t.Context(), &wire.Frame{Header: h})
			check(t, err)
			if a.Outcome == 0 || !strings.Contains(a.Text, test.want) {
				t.Errorf("answer %v, outcome %d: %q, want %q", a.Kind, a.Outcome, a.Text, test.want)
			}
		})
	}
	a, err := caller.Call(t.Context(), &wire.Frame{Header: whole})
	check(t, err)
	if a.Kind != wire.Pulled || len(a.Values) != 20 {
		t.Errorf("after the refusals: %v of %d values", a.Kind, len(a.Values))
	}
}

// A refusal ends an exchange at once: asking again cannot help.
func TestClientTakesNoForAnAnswer(t *testing.T) {
	network := transport.InProcess()
	g, servers := start(t, network, storeConfig(pieces.BSP), 1, 1)
	for name, test := range map[string]struct {
		self elastic.Member
		run  uint64
		want string
	}{
		"another run": {workers(1)[0], 0xbad, "another run"},
		"a stranger":  {elastic.Member{Role: elastic.Worker, ID: 8, Incarnation: 1}, runID, "worker 8 is not a member"},
		"a ghost":     {elastic.Member{Role: elastic.Worker, ID: 0, Incarnation: 9}, runID, "it was replaced"},
	} {
		c := newClient(t, network, test.self, func(c *ps.ClientConfig) { c.Run = test.run })
		err := c.tryPush(t.Context(), g, 1)
		if err == nil || !strings.Contains(err.Error(), servers[0].Member.String()+" refused") || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want a refusal that says %q", name, err, test.want)
		}
	}
}

// A push whose answer, or which itself, is lost is sent again and counts once.
func TestLostFrames(t *testing.T) {
	for _, m := range []pieces.Mode{pieces.BSP, pieces.ASP, pieces.SSP} {
		for name, rule := range map[string]faultnet.Rule{
			"lost answer":      faultnet.Nth(1, faultnet.Answers(wire.PushAck), faultnet.Action{Do: faultnet.Drop}),
			"lost push":        faultnet.Nth(1, faultnet.Requests(wire.Push), faultnet.Action{Do: faultnet.Drop}),
			"cut at an answer": faultnet.Nth(2, faultnet.Answers(wire.PushAck), faultnet.Action{Do: faultnet.Cut}),
			"push twice":       faultnet.Every(faultnet.Requests(wire.Push), faultnet.Action{Do: faultnet.Duplicate}),
			"lost version":     faultnet.Nth(1, faultnet.Answers(wire.Pulled), faultnet.Action{Do: faultnet.Drop}),
		} {
			t.Run(m.String()+" "+name, func(t *testing.T) {
				network := transport.InProcess()
				g, _ := start(t, network, storeConfig(m), 2, 1)
				var faults atomic.Int64
				faulty := faultnet.Wrap(network, func(d faultnet.Direction, f *wire.Frame) faultnet.Action {
					act := rule(d, f)
					if act.Do != faultnet.Deliver {
						faults.Add(1)
					}
					return act
				})
				c := newClient(t, faulty, workers(1)[0], mode(elastic.Mode(m.String())), retry(20*time.Millisecond))
				want := c.pull(g, 1, all())
				c.push(g, 1)
				apply(want, 1, 0)
				if diff := cmp.Diff(want, c.pull(g, 2, all()), closely); diff != "" {
					t.Errorf("after one push (-want +got):\n%s", diff)
				}
				if faults.Load() == 0 {
					t.Error("no frame met the fault")
				}
			})
		}
	}
}

// A network that breaks and heals delays an exchange and no more.
func TestNetworkHeals(t *testing.T) {
	network := transport.InProcess()
	g, _ := start(t, network, storeConfig(pieces.BSP), 1, 1)
	asked := make(chan struct{}, 64)
	faulty := faultnet.Wrap(network, func(d faultnet.Direction, f *wire.Frame) faultnet.Action {
		if d == faultnet.ToListener && f.Kind == wire.Pull {
			asked <- struct{}{}
		}
		return faultnet.Action{}
	})
	c := newClient(t, faulty, workers(1)[0])
	done := make(chan error, 1)
	c.got = blank()
	go func() { // version 1 is not there yet
		_, err := c.Pull(context.Background(), g, elastic.Stamp{Step: 2}, all(), true, c)
		done <- err
	}()
	receive(t, asked, "the pull")
	faulty.Cut()
	newClient(t, network, workers(1)[0]).push(g, 1)
	faulty.Restore()
	check(t, receive(t, done, "the pull to be answered"))
	want := initial()
	apply(want, 1, 0)
	if diff := cmp.Diff(want, c.got, closely); diff != "" {
		t.Error(diff)
	}
}

// Whoever waits for a server that is gone, or that does not answer, says so when
// its time is over.
func TestServerIsGone(t *testing.T) {
	network := transport.InProcess()
	g, servers := start(t, network, storeConfig(pieces.BSP), 1, 1)
	check(t, servers[0].dismiss())
	silent, err := network.Listen() // takes connections and says nothing
	check(t, err)
	defer silent.Close()
	for name, addr := range map[string]string{"gone": servers[0].Addr, "silent": silent.Addr()} {
		for _, m := range []elastic.Mode{elastic.BSP, elastic.SSP} {
			g.Servers[0].Addr = addr
			c := newClient(t, network, workers(1)[0], mode(m), retry(5*time.Millisecond))
			for what, exchange := range map[string]func(context.Context) error{
				"push": func(ctx context.Context) error { return c.tryPush(ctx, g, 1) },
				"pull": func(ctx context.Context) error {
					_, err := c.Pull(ctx, g, elastic.Stamp{Step: 1}, all(), true, c)
					return err
				},
			} {
				ctx, cancel := context.WithTimeout(t.Context(), 40*time.Millisecond)
				done := make(chan error, 1)
				go func() { done <- exchange(ctx) }()
				err := receive(t, done, "the deadline")
				cancel()
				want := "worker 0#1 waits for server 0#100 at " + addr
				if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), want) {
					t.Errorf("%s, %s, %s: %v; want %q", name, m, what, err, want)
				}
			}
		}
	}
}
