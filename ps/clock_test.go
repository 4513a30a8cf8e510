package ps_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"optimus/elastic"
	"optimus/internal/faultnet"
	"optimus/internal/wire"
	"optimus/ps/pieces"
	"optimus/transport"
)

// drain takes a mode without steps to the boundary of g, short of its commit.
func drain(old, g *elastic.Generation, step int64, servers ...*server) {
	prepare(old, g, elastic.FromPeers, servers...)
	for _, s := range servers {
		s.tell(elastic.Message{Kind: elastic.Halt, Gen: g.Number})
		s.next(elastic.Halted)
	}
	for _, s := range servers {
		s.tell(elastic.Message{Kind: elastic.Switch, Gen: g.Number, Step: step})
		s.until(elastic.Moved)
	}
}

// A newcomer that knows of the commit of its generation before the server does
// asks for its clock until the server knows too. Then it counts from the slowest
// member's clock: it neither waits for the past nor outruns the bound.
func TestClockOfNewcomer(t *testing.T) {
	network := transport.InProcess()
	store := storeConfig(pieces.SSP) // staleness 0
	ssp := mode(elastic.SSP)
	old, servers := start(t, network, store, 1, 1)
	veteran := newClient(t, network, workers(2)[0], ssp)
	want := initial()
	for step := int64(1); step <= 3; step++ {
		veteran.pull(old, step, all())
		veteran.push(old, step)
		apply(want, step, 0)
	}
	g := generation(t, 2, old, servers, workers(2))
	drain(old, g, 3, servers...)

	early, pulls := make(chan string, 64), make(chan int64, 64)
	newcomer := newClient(t, faultnet.Wrap(network, func(d faultnet.Direction, f *wire.Frame) faultnet.Action {
		switch {
		case d == faultnet.ToDialer && f.Kind == wire.Hello && f.Outcome != 0:
			early <- f.Text
		case d == faultnet.ToListener && f.Kind == wire.Pull && f.Block == dense:
			pulls <- f.Step
		}
		return faultnet.Action{}
	}), workers(2)[1], ssp)
	pulled := make(chan error, 1)
	pull := func(step int64) {
		newcomer.got = blank()
		_, err := newcomer.Pull(context.Background(), g, elastic.Stamp{Step: step}, all(), true, newcomer)
		pulled <- err
	}
	go pull(1)
	if why := receive(t, early, "the server to be asked too early"); !strings.Contains(why, "generation 2 has not come yet") {
		t.Errorf("too early: %q", why)
	}
	commit(g, 3, servers...)
	check(t, receive(t, pulled, "the newcomer's first pull"))
	if clock := receive(t, pulls, "its request"); clock != 3 {
		t.Errorf("the newcomer's clock is %d, the slowest's 3", clock)
	}
	if diff := cmp.Diff(want, newcomer.got, closely); diff != "" {
		t.Error(diff)
	}

	newcomer.push(g, 1)
	apply(want, 1, 1)
	go pull(2) // a step ahead of the veteran now: must wait for it
	if clock := receive(t, pulls, "its second request"); clock != 4 {
		t.Errorf("the newcomer's clock is %d after its first step, want 4", clock)
	}
	veteran.push(g, 4)
	apply(want, 4, 0)
	check(t, receive(t, pulled, "the newcomer's second pull"))
	if diff := cmp.Diff(want, newcomer.got, closely); diff != "" {
		t.Errorf("the pull did not wait for the slowest:\n%s", diff)
	}
}

// The clock is told to members of the server's generation and to nobody else.
func TestClockAnswers(t *testing.T) {
	network := transport.InProcess()
	old, servers := start(t, network, storeConfig(pieces.SSP), 1, 2)
	g := generation(t, 2, old, servers, workers(2)[:1])
	drain(old, g, 0, servers...)
	commit(g, 0, servers...)
	newClient(t, network, workers(2)[0], mode(elastic.SSP)).pull(g, 1, all()) // the commit has come
	conn, err := network.Dial(t.Context(), servers[0].Addr)
	check(t, err)
	caller := transport.NewCaller(conn, nil)
	defer func() { caller.Close(); <-caller.Done() }()
	outcomes := map[uint8]string{}
	for _, test := range []struct {
		name       string
		generation uint32
		from       uint32
		okay       bool
		text       string
	}{
		{"a member", 2, 0, true, ""},
		{"of the generation before", 1, 0, false, ""},
		{"of the next", 3, 0, false, "generation 3 has not come yet"},
		{"who left", 2, 1, false, "worker 1#2 is not a member of generation 2"},
	} {
		a, err := caller.Call(t.Context(), &wire.Frame{Header: wire.Header{Kind: wire.Hello, Run: runID, Generation: test.generation,
			From: test.from, Incarnation: uint64(test.from + 1)}})
		check(t, err)
		if (a.Outcome == 0) != test.okay || a.Step != 0 || !strings.Contains(a.Text, test.text) {
			t.Errorf("%s: outcome %d, clock %d, %q", test.name, a.Outcome, a.Step, a.Text)
		}
		if other, ok := outcomes[a.Outcome]; ok {
			t.Errorf("%s is answered as %s is", test.name, other)
		}
		outcomes[a.Outcome] = test.name
	}
}
