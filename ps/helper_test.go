package ps_test

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"optimus/compute/optim"
	"optimus/elastic"
	"optimus/paa"
	"optimus/ps"
	"optimus/ps/pieces"
	"optimus/transport"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	runID    = 0xfeed
	seed     = 7
	rate     = 0.1
	momentum = 0.75             // of the auxiliary arrays
	patience = 20 * time.Second // bounds every wait of these tests
)

// The blocks of the model under test, as the wire counts them.
const (
	dense, table, bias = 0, 1, 2
	learned            = 3
)

// arrays are the learned blocks, then the auxiliary arrays.
func arrays() []optim.Param {
	return []optim.Param{
		{Name: "dense", Shape: []int{5, 4}, Init: optim.Init{Kind: optim.Uniform, Scale: 0.5}},
		{Name: "table", Shape: []int{7, 3}, Rows: true, Init: optim.Init{Kind: optim.Normal, Scale: 0.1}},
		{Name: "bias", Shape: []int{3}},
		{Name: "running", Shape: []int{4}, Init: optim.Init{Kind: optim.Constant, Scale: 1}},
		{Name: "running of another layer", Shape: []int{2}},
	}
}

func storeConfig(mode pieces.Mode) pieces.Config {
	p := arrays()
	return pieces.Config{Params: p[:learned], Aux: p[learned:], AuxMomentum: momentum, Optimizer: optim.Config{Kind: optim.SGD, LR: rate}, Mode: mode}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// receive waits for what a channel brings.
func receive[T any](t *testing.T, from <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(patience):
		t.Fatalf("waited %v for %s", patience, what)
		panic("unreachable")
	}
}

// link is a member's link to the test, which plays the controller.
type link struct {
	down, up chan elastic.Message
	once     sync.Once
	closed   chan struct{}
}

var errLinkClosed = errors.New("the link is closed")

func newLink() *link {
	return &link{down: make(chan elastic.Message, 16), up: make(chan elastic.Message, 64), closed: make(chan struct{})}
}

func (l *link) Send(m elastic.Message) error {
	select {
	case l.up <- m:
		return nil
	case <-l.closed:
		return errLinkClosed
	}
}

func (l *link) Recv() (elastic.Message, error) {
	select {
	case m := <-l.down:
		return m, nil
	case <-l.closed:
		return elastic.Message{}, errLinkClosed
	}
}

func (l *link) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

// server is a running server and its controller's end of the link.
type server struct {
	elastic.Address
	t    *testing.T
	link *link
	done chan error
}

// serve starts server id; tune may change its configuration.
func serve(t *testing.T, network transport.Network, id int, store pieces.Config, tune ...func(*ps.ServerConfig)) *server {
	t.Helper()
	s := &server{t: t, link: newLink(), done: make(chan error, 1)}
	s.Member = elastic.Member{Role: elastic.Server, ID: id, Incarnation: uint64(100 + id)}
	cfg := ps.ServerConfig{Self: s.Member, Run: runID, Link: s.link, Network: network, Store: store, Seed: seed,
		Log: slog.New(slog.DiscardHandler), Beat: time.Hour, Patience: patience}
	for _, fn := range tune {
		fn(&cfg)
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() { s.done <- ps.Serve(ctx, cfg) }()
	t.Cleanup(func() {
		cancel()
		receive(t, s.done, "Serve to end")
	})
	s.Addr = s.next(elastic.Hello).Addr
	return s
}

func (s *server) tell(m elastic.Message) { s.link.down <- m }

// next waits for the server's next message, which must be of a kind.
func (s *server) next(kind elastic.Kind) elastic.Message {
	s.t.Helper()
	m := receive(s.t, s.link.up, s.Member.String()+" to say "+string(kind))
	if m.Kind != kind {
		s.t.Fatalf("%s says %s (%s), want %s", s.Member, m.Kind, m.Reason, kind)
	}
	return m
}

// until collects the server's messages up to the first of a kind.
func (s *server) until(kind elastic.Kind) (list []elastic.Message) {
	s.t.Helper()
	for {
		m := receive(s.t, s.link.up, s.Member.String()+" to say "+string(kind))
		if m.Kind == elastic.Failed {
			s.t.Fatalf("%s failed: %s", s.Member, m.Reason)
		}
		if list = append(list, m); m.Kind == kind {
			return list
		}
	}
}

// dismiss ends the server and returns what Serve said.
func (s *server) dismiss() error {
	s.t.Helper()
	s.tell(elastic.Message{Kind: elastic.Dismiss, Reason: "the test is over"})
	err := receive(s.t, s.done, s.Member.String()+" to leave")
	s.done <- err // for the cleanup
	return err
}

func workers(n int) (list []elastic.Member) {
	for i := range n {
		list = append(list, elastic.Member{Role: elastic.Worker, ID: i, Incarnation: uint64(i + 1)})
	}
	return list
}

// generation assigns the model to servers as the controller does: from scratch,
// or with old's assignment as the start.
func generation(t *testing.T, number int, old *elastic.Generation, servers []*server, members []elastic.Member) *elastic.Generation {
	t.Helper()
	g := &elastic.Generation{Number: number, Learned: learned}
	for _, s := range servers {
		g.Servers = append(g.Servers, s.Address)
	}
	for _, m := range members {
		g.Workers = append(g.Workers, elastic.Address{Member: m})
	}
	var sizes []int
	for _, p := range arrays() {
		sizes = append(sizes, p.Size())
	}
	var err error
	switch {
	case old == nil:
		g.Blocks, err = paa.Assign(paa.RulePAA, sizes[:learned], len(servers))
	case len(old.Servers) == len(servers):
		g.Blocks = old.Blocks
	default:
		stay := []int{0, 1, 2}[:min(len(old.Servers), len(servers))]
		g.Blocks, _, err = paa.Reassign(old.Blocks, sizes[:learned], stay, len(servers))
	}
	check(t, err)
	g.Aux, err = paa.Whole(sizes[learned:], len(servers))
	check(t, err)
	return g
}

// prepare has all servers prepare g; commit has it rule.
func prepare(old, g *elastic.Generation, source elastic.Source, servers ...*server) {
	for _, s := range servers {
		s.tell(elastic.Message{Kind: elastic.Prepare, Gen: g.Number, Old: old, Next: g, Source: source, Smooth: source == elastic.FromPeers})
		s.next(elastic.Prepared)
	}
}

func commit(g *elastic.Generation, step int64, servers ...*server) {
	for _, s := range servers {
		s.tell(elastic.Message{Kind: elastic.Commit, Gen: g.Number, Step: step})
	}
}

// start brings n servers of a mode to generation 1 with initial values.
func start(t *testing.T, network transport.Network, store pieces.Config, n, w int, tune ...func(*ps.ServerConfig)) (*elastic.Generation, []*server) {
	t.Helper()
	var servers []*server
	for i := range n {
		servers = append(servers, serve(t, network, i, store, tune...))
	}
	g := generation(t, 1, nil, servers, workers(w))
	prepare(nil, g, elastic.FromInit, servers...)
	for _, s := range servers {
		s.tell(elastic.Message{Kind: elastic.Switch, Gen: 1})
		s.next(elastic.Moved)
	}
	commit(g, 0, servers...)
	return g, servers
}

// client is a worker's client and the model that it pulls into.
type client struct {
	*ps.Client
	t    *testing.T
	self elastic.Member
	got  [][]float32 // arrays; NaN where nothing came
}

func newClient(t *testing.T, network transport.Network, self elastic.Member, tune ...func(*ps.ClientConfig)) *client {
	cfg := ps.ClientConfig{Self: self, Run: runID, Network: network, Params: arrays(), Mode: elastic.BSP}
	for _, fn := range tune {
		fn(&cfg)
	}
	c := &client{Client: ps.NewClient(cfg), t: t, self: self}
	t.Cleanup(c.Close)
	return c
}

// mode and retry tune a client.
func mode(m elastic.Mode) func(*ps.ClientConfig)      { return func(c *ps.ClientConfig) { c.Mode = m } }
func retry(d time.Duration) func(*ps.ClientConfig)    { return func(c *ps.ClientConfig) { c.Retry = d } }
func (c *client) SetParam(b, offset int, v []float32) { copy(c.got[b][offset:], v) }
func (c *client) SetAux(i, offset int, v []float32)   { copy(c.got[learned+i][offset:], v) }
func (c *client) SetRow(b, row, offset int, v []float32) {
	p := arrays()[b]
	copy(c.got[b][row*p.RowSize()+offset:], v)
}

func blank() (list [][]float32) {
	for _, p := range arrays() {
		list = append(list, slices.Repeat([]float32{float32(math.NaN())}, p.Size()))
	}
	return list
}

// all are the rows of the whole table.
func all() map[int][]int32 { return map[int][]int32{table: {0, 1, 2, 3, 4, 5, 6}} }

// pull returns the arrays before a step.
func (c *client) pull(g *elastic.Generation, step int64, rows map[int][]int32) [][]float32 {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), patience)
	defer cancel()
	c.got = blank()
	if _, err := c.Pull(ctx, g, elastic.Stamp{Step: step}, rows, true, c); err != nil {
		c.t.Fatal(err)
	}
	return c.got
}

// push pushes this worker's contribution to a step.
func (c *client) push(g *elastic.Generation, step int64) {
	c.t.Helper()
	check(c.t, c.tryPush(c.t.Context(), g, step))
}

func (c *client) tryPush(ctx context.Context, g *elastic.Generation, step int64) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return c.Push(ctx, g, elastic.Stamp{Step: step, Sequence: step}, gradients(c.self.ID, step), weight(c.self.ID))
}

func weight(worker int) int64 { return int64(2 + worker) }

// gradients are a worker's sums in a step. Each worker touches other rows of the
// table, and all touch row 3.
func gradients(worker int, step int64) []elastic.Gradient {
	var list []elastic.Gradient
	for b, p := range arrays() {
		g := elastic.Gradient{Block: b, Values: make([]float32, p.Size())}
		if p.Rows {
			g.Rows = []int32{int32(worker), 3}
			g.Values = g.Values[:2*p.RowSize()]
		}
		for i := range g.Values {
			g.Values[i] = float32(worker+1)*float32(i%5-2)/8 + float32(step)/16
		}
		list = append(list, g)
	}
	return list
}
