package ps_test

import (
	"math"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"optimus/elastic"
	"optimus/internal/faultnet"
	"optimus/internal/wire"
	"optimus/ps"
	"optimus/ps/pieces"
	"optimus/transport"
)

// bound is shorter than the gradients of package ps_test.
const bound = 0.01

func clipping() pieces.Config {
	c := storeConfig(pieces.BSP)
	c.Optimizer.ClipNorm = bound
	return c
}

// applyClipped makes one update as apply does, by a gradient of norm bound.
func applyClipped(t *testing.T, at [][]float32, step int64, workers ...int) {
	t.Helper()
	before := make([][]float32, len(at))
	for b := range at {
		before[b] = append(before[b], at[b]...)
	}
	apply(at, step, workers...)
	var norm float64
	for b := range at[:learned] {
		for i := range at[b] {
			norm += math.Pow(float64(before[b][i]-at[b][i])/rate, 2)
		}
	}
	if norm = math.Sqrt(norm); norm < 2*bound {
		t.Fatalf("norm %v: the test needs a larger one", norm)
	}
	for b := range at[:learned] {
		for i := range at[b] {
			at[b][i] = before[b][i] - (before[b][i]-at[b][i])*float32(bound/norm)
		}
	}
}

// With a bound on the norm the servers vote on each step, whatever becomes of the
// votes on their way, and the bits do not depend on how many they are.
func TestVotes(t *testing.T) {
	var first [][]float32
	for name, test := range map[string]struct {
		network transport.Network
		servers int
		rule    faultnet.Rule
	}{
		"1 server":           {transport.InProcess(), 1, nil},
		"2 servers":          {transport.InProcess(), 2, nil},
		"5 servers":          {transport.InProcess(), 5, nil},
		"3 servers over tcp": {transport.TCP("", transport.Config{}), 3, nil},
		"lost vote":          {transport.InProcess(), 2, faultnet.Nth(1, faultnet.Requests(wire.Vote), faultnet.Action{Do: faultnet.Cut})},
		"lost answer":        {transport.InProcess(), 2, faultnet.Nth(1, faultnet.Answers(wire.VoteAck), faultnet.Action{Do: faultnet.Cut})},
		"votes twice":        {transport.InProcess(), 3, faultnet.Every(faultnet.Requests(wire.Vote), faultnet.Action{Do: faultnet.Duplicate})},
	} {
		t.Run(name, func(t *testing.T) {
			var faults atomic.Int64
			network := faultnet.Wrap(test.network, func(d faultnet.Direction, f *wire.Frame) (act faultnet.Action) {
				if test.rule != nil {
					if act = test.rule(d, f); act.Do != faultnet.Deliver {
						faults.Add(1)
					}
				}
				return act
			})
			g, servers := start(t, network, clipping(), test.servers, 2)
			clients := []*client{newClient(t, network, workers(2)[0]), newClient(t, network, workers(2)[1])}
			want := initial()
			for step := int64(1); step <= 3; step++ {
				for _, c := range clients {
					c.push(g, step)
				}
				applyClipped(t, want, step, 0, 1)
				if diff := cmp.Diff(want, clients[0].pull(g, step+1, all()), closely); diff != "" {
					t.Fatalf("after step %d (-want +got):\n%s", step, diff)
				}
			}
			last := clients[1].pull(g, 4, all())
			if first == nil {
				first = last
			}
			if diff := cmp.Diff(first, last); diff != "" {
				t.Errorf("the bits depend on the servers:\n%s", diff)
			}
			if test.rule != nil && faults.Load() == 0 {
				t.Error("no fault")
			}
			for _, s := range servers {
				check(t, s.dismiss())
			}
		})
	}
}

// hurried lets a server wait for others no longer than this.
func hurried(d time.Duration) func(*ps.ServerConfig) {
	return func(c *ps.ServerConfig) { c.Patience = d }
}

// A server does not wait for ever for a vote, and says whose is missing.
func TestVoteDoesNotCome(t *testing.T) {
	network := transport.InProcess()
	g, servers := start(t, network, clipping(), 2, 1, hurried(50*time.Millisecond))
	c := newClient(t, network, workers(1)[0])
	grads := gradients(0, 1)
	owner := -1
	for i := range servers {
		for _, p := range elastic.Owned(g, i) {
			if p.Block == bias {
				owner = i
			}
		}
	}
	grads[bias].Values[0] = float32(math.NaN())
	check(t, c.Push(t.Context(), g, elastic.Stamp{Step: 1}, grads, 1))
	if m := servers[owner].next(elastic.Vetoed); m.Step != 1 {
		t.Errorf("%+v", m)
	}
	m := servers[1-owner].next(elastic.Failed)
	if !strings.Contains(m.Reason, "step 1") || !strings.Contains(m.Reason, "for the vote of "+servers[owner].Member.String()) {
		t.Errorf("the other says %q", m.Reason)
	}
}

// Nor does it try for ever to bring its own vote to a server that is gone.
func TestVoteDoesNotArrive(t *testing.T) {
	network := transport.InProcess()
	g, servers := start(t, network, clipping(), 2, 1, hurried(50*time.Millisecond))
	c := newClient(t, network, workers(1)[0])
	check(t, servers[1].dismiss())
	alone := *g
	alone.Servers = g.Servers[:1]
	c.push(&alone, 1)
	if m := servers[0].next(elastic.Failed); !strings.Contains(m.Reason, "waits for "+servers[1].Member.String()) {
		t.Errorf("it says %q", m.Reason)
	}
}

// A halt that finds all servers with their votes cast, but under way, does not take
// the step back: workers may have reported it.
func TestHaltFindsVotesUnderWay(t *testing.T) {
	network := faultnet.Wrap(transport.InProcess(), func(_ faultnet.Direction, f *wire.Frame) faultnet.Action {
		if f.Kind == wire.Vote {
			return faultnet.Action{After: 200 * time.Millisecond}
		}
		return faultnet.Action{}
	})
	g, servers := start(t, network, clipping(), 2, 1)
	c := newClient(t, network, workers(1)[0])
	c.push(g, 1)
	for _, s := range servers {
		s.tell(elastic.Message{Kind: elastic.Halt, Gen: 1})
		if m := s.next(elastic.Halted); m.Step != 1 {
			t.Errorf("%s has or promises version %d, want 1", s.Member, m.Step)
		}
	}
	next := generation(t, 2, g, servers, workers(1))
	prepare(g, next, elastic.FromSelf, servers...)
	for _, s := range servers {
		s.tell(elastic.Message{Kind: elastic.Switch, Gen: 2, Step: 1, Rewind: 1})
		s.until(elastic.Moved)
	}
	commit(next, 1, servers...)
	want := initial()
	applyClipped(t, want, 1, 0)
	if diff := cmp.Diff(want, c.pull(next, 2, all()), closely); diff != "" {
		t.Error(diff)
	}
}

// Without common steps each push is an update: its worker bounds it, over all blocks
// and by the mean, and leaves its model's arrays as they are.
func TestPushIsClipped(t *testing.T) {
	for _, m := range []pieces.Mode{pieces.ASP, pieces.SSP} {
		network := transport.InProcess()
		store := clipping()
		store.Mode = m
		g, _ := start(t, network, store, 2, 1)
		c := newClient(t, network, workers(1)[0], mode(elastic.Mode(m.String())), func(c *ps.ClientConfig) { c.ClipNorm = bound })
		want := initial()
		for step := int64(1); step <= 2; step++ {
			grads := gradients(0, step)
			check(t, c.Push(t.Context(), g, elastic.Stamp{Step: step, Sequence: step}, grads, weight(0)))
			if diff := cmp.Diff(gradients(0, step), grads); diff != "" {
				t.Errorf("%v: the gradients changed:\n%s", m, diff)
			}
			applyClipped(t, want, step, 0)
		}
		check(t, c.Push(t.Context(), g, elastic.Stamp{Step: 3, Sequence: 3}, make([]elastic.Gradient, len(arrays())), 0))
		if diff := cmp.Diff(want, c.pull(g, 4, all()), closely); diff != "" {
			t.Errorf("%v (-want +got):\n%s", m, diff)
		}
	}
}
