package ps

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"optimus/compute/optim"
	"optimus/elastic"
	"optimus/internal/wire"
	"optimus/paa"
	"optimus/ps/pieces"
	"optimus/transport"
)

// ClientConfig is what a worker's client needs.
type ClientConfig struct {
	Self    elastic.Member
	Run     uint64
	Network transport.Network
	Params  []optim.Param // learned blocks, then auxiliary arrays
	Mode    elastic.Mode
	Carried bool // the last auxiliary array is a state that training pulls with the parameters
	// ClipNorm, if positive, bounds the norm of each push's mean gradient in modes
	// asp and ssp, where a push is an update. In bsp the servers see to it.
	ClipNorm float64
	// Retry is how long an answer may take before the request is sent again
	// (default 15 s). Requests are idempotent, so a retry is always safe.
	Retry time.Duration
}

// Client exchanges with the servers of a generation. It is used by one
// goroutine at a time.
type Client struct {
	cfg   ClientConfig
	mu    sync.Mutex
	conns map[string]*transport.Caller
	base  map[clockKey]int64 // ssp: where this worker's clock stood when it joined
}

type clockKey struct {
	gen  int
	addr string
}

// item is one request to one piece: what is asked and what to do with the answer.
type item struct {
	frame *wire.Frame
	take  func(*wire.Frame) error
	done  bool
}

// NewClient returns a client without connections.
func NewClient(cfg ClientConfig) *Client {
	if cfg.Retry <= 0 {
		cfg.Retry = 15 * time.Second
	}
	return &Client{cfg: cfg, conns: map[string]*transport.Caller{}, base: map[clockKey]int64{}}
}

// Close ends all connections.
func (c *Client) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for addr, conn := range c.conns {
		conn.Close()
		<-conn.Done()
		delete(c.conns, addr)
	}
}

// dial returns the connection to addr, a new one if the last has ended.
func (c *Client) dial(ctx context.Context, addr string) (*transport.Caller, error) {
	c.mu.Lock()
	conn := c.conns[addr]
	c.mu.Unlock()
	if conn != nil {
		select {
		case <-conn.Done():
		default:
			return conn, nil
		}
	}
	raw, err := c.cfg.Network.Dial(ctx, addr)
	if err != nil {
		return nil, err
	}
	conn = transport.NewCaller(raw, nil)
	c.mu.Lock()
	c.conns[addr] = conn
	c.mu.Unlock()
	return conn, nil
}

// header starts a frame for one piece.
func (c *Client) header(kind wire.Kind, gen int, step int64, p pieces.ID) wire.Header {
	h := wire.Header{Kind: kind, Role: roleWorker, Run: c.cfg.Run, Generation: uint32(gen),
		From: uint32(c.cfg.Self.ID), Incarnation: c.cfg.Self.Incarnation, Step: step}
	setPiece(&h, p.Block, p.Offset, p.Size)
	return h
}

// Pull brings one version to a model (version Step-1 of a synchronous job, else
// the newest) and returns the largest staleness that a server has seen. See
// worker.Exchanger.
func (c *Client) Pull(ctx context.Context, g *elastic.Generation, at elastic.Stamp, rows map[int][]int32, aux bool, into elastic.Sink) (int64, error) {
	var mu sync.Mutex // the model takes one piece at a time
	var stale int64
	learned := g.Learned
	err := c.each(ctx, g, func(server int) []*item {
		var items []*item
		for _, p := range elastic.Owned(g, server) {
			id := id(p)
			if p.Block >= learned && !aux && !(c.cfg.Carried && p.Block == len(c.cfg.Params)-1) {
				continue
			}
			f := &wire.Frame{Header: c.header(wire.Pull, g.Number, at.Step-1, id)}
			param := &c.cfg.Params[p.Block]
			if param.Rows && p.Block < learned {
				f.Rows = within(rows[p.Block], param.RowSize(), id)
				if len(f.Rows) == 0 {
					continue
				}
			}
			items = append(items, &item{frame: f, take: func(a *wire.Frame) error {
				mu.Lock()
				defer mu.Unlock()
				stale = max(stale, a.Sequence)
				return store(param, learned, id, f.Rows, a, into)
			}})
		}
		return items
	})
	return stale, err
}

// store hands an answer's values to the model.
func store(param *optim.Param, learned int, id pieces.ID, rows []int32, a *wire.Frame, into elastic.Sink) error {
	defer a.Release()
	switch {
	case len(rows) > 0:
		size, at := param.RowSize(), 0
		for _, r := range rows {
			lo, hi := pieces.RowSpan(size, id, int(r))
			n := hi - lo
			if at+n > len(a.Values) {
				return fmt.Errorf("rows of piece %v: %d values came, more were due", id, len(a.Values))
			}
			into.SetRow(id.Block, int(r), id.Offset+lo-int(r)*size, a.Values[at:at+n])
			at += n
		}
	case len(a.Values) != id.Size:
		return fmt.Errorf("piece %v: %d values came", id, len(a.Values))
	case id.Block >= learned:
		into.SetAux(id.Block-learned, id.Offset, a.Values)
	default:
		into.SetParam(id.Block, id.Offset, a.Values)
	}
	return nil
}

// within returns the rows that touch a piece.
func within(rows []int32, size int, id pieces.ID) []int32 {
	lo, hi := len(rows), 0
	for i, r := range rows {
		if a, b := pieces.RowSpan(size, id, int(r)); a < b {
			lo, hi = min(lo, i), i+1
		}
	}
	if lo >= hi {
		return nil
	}
	return rows[lo:hi]
}

// Push gives every block's gradient, cut into the generation's pieces, to their
// owners and returns once all have acknowledged it.
func (c *Client) Push(ctx context.Context, g *elastic.Generation, at elastic.Stamp, grads []elastic.Gradient, weight int64) error {
	by := c.scale(grads[:g.Learned], weight)
	return c.each(ctx, g, func(server int) []*item {
		var items []*item
		for _, p := range elastic.Owned(g, server) {
			f := &wire.Frame{Header: c.header(wire.Push, g.Number, at.Step, id(p))}
			f.Weight, f.Sequence = weight, at.Sequence
			c.cut(f, p, g.Learned, &grads[p.Block])
			if by != 1 && p.Block < g.Learned { // the values are a copy
				for i := range f.Values {
					f.Values[i] *= by
				}
			}
			items = append(items, &item{frame: f, take: func(a *wire.Frame) error { return nil }})
		}
		return items
	})
}

// scale returns what brings a push's gradient, of the learned blocks, to at most
// ClipNorm.
func (c *Client) scale(grads []elastic.Gradient, weight int64) float32 {
	if c.cfg.ClipNorm <= 0 || c.cfg.Mode == elastic.BSP || weight == 0 {
		return 1
	}
	var sum optim.Squares
	for i := range grads {
		sum.Add(grads[i].Values, weight, c.cfg.ClipNorm)
	}
	return float32(1 / sum.Excess())
}

// cut gives the frame the part of a gradient that belongs to a piece. What the
// server may keep beyond this worker's next step is copied: nobody waits for rows
// and statistics, so the model may overwrite them before they are applied.
func (c *Client) cut(f *wire.Frame, p paa.Piece, learned int, g *elastic.Gradient) {
	param := &c.cfg.Params[p.Block]
	switch {
	case param.Rows && p.Block < learned:
		f.Rows = []int32{}
		size := param.RowSize()
		for i, r := range g.Rows {
			if lo, hi := pieces.RowSpan(size, id(p), int(r)); lo < hi {
				f.Rows = append(f.Rows, r)
				from := i*size + p.Offset + lo - int(r)*size
				f.Values = append(f.Values, g.Values[from:from+hi-lo]...)
			}
		}
	case len(g.Values) == 0:
	case p.Block >= learned || c.cfg.Mode != elastic.BSP:
		f.Values = append([]float32(nil), g.Values[p.Offset:p.Offset+p.Size]...)
	default:
		f.Values = g.Values[p.Offset : p.Offset+p.Size]
	}
}

// each runs the requests to every server of a generation at once and waits for
// all answers.
func (c *Client) each(ctx context.Context, g *elastic.Generation, requests func(server int) []*item) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	errs := make([]error, len(g.Servers))
	var wg sync.WaitGroup
	for i := range g.Servers {
		items := requests(i)
		if len(items) == 0 {
			continue
		}
		wg.Go(func() {
			if errs[i] = c.deliver(ctx, g, g.Servers[i], items); errs[i] != nil {
				cancel()
			}
		})
	}
	wg.Wait()
	var first error
	for _, err := range errs {
		if err != nil && (first == nil || errors.Is(first, context.Canceled)) {
			first = err
		}
	}
	return first
}

// backoff is the pause before a request is tried again on a new connection.
const backoff = 30 * time.Millisecond

// deliver sends the items to one server until each is answered.
func (c *Client) deliver(ctx context.Context, g *elastic.Generation, to elastic.Address, items []*item) error {
	var last error
	for {
		conn, err := c.dial(ctx, to.Addr)
		if err == nil {
			err = c.attempt(ctx, g, conn, to, items)
		}
		if err == nil || errors.Is(err, elastic.ErrRefresh) || errors.As(err, new(fatal)) {
			return err
		}
		last = err
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s waits for %s at %s: %w (last: %v)", c.cfg.Self, to.Member, to.Addr, context.Cause(ctx), last)
		case <-time.After(backoff):
		}
	}
}

// fatal is an answer that sending again cannot change.
type fatal struct{ error }

func (f fatal) Unwrap() error { return f.error }

// attempt sends what is not answered yet and waits for the answers, the
// connection's end, or the time to send again.
func (c *Client) attempt(ctx context.Context, g *elastic.Generation, conn *transport.Caller, to elastic.Address, items []*item) error {
	pushed := items[0].frame.Step
	if items[0].frame.Kind == wire.Push {
		pushed--
	}
	base, err := c.clock(ctx, g, conn, to, pushed)
	if err != nil {
		return err
	}
	type answer struct {
		item *item
		f    *wire.Frame
		err  error
	}
	var open []*item
	for _, it := range items {
		if !it.done {
			open = append(open, it)
		}
	}
	answers := make(chan answer, len(open))
	for _, it := range open {
		f := it.frame
		if base != 0 {
			f = f.View()
			f.Step += base
		}
		conn.Start(f, func(a *wire.Frame, err error) { answers <- answer{it, a, err} })
	}
	again := time.NewTimer(c.cfg.Retry)
	defer again.Stop()
	for range open {
		select {
		case a := <-answers:
			if a.err != nil {
				return a.err
			}
			if err := verdict(a.f, to); err != nil {
				return err
			}
			if err := a.item.take(a.f); err != nil {
				return fatal{err}
			}
			a.item.done = true
		case <-again.C:
			return fmt.Errorf("%s did not answer within %v", to.Member, c.cfg.Retry)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// verdict turns an answer that is not a success into an error.
func verdict(a *wire.Frame, from elastic.Address) error {
	switch {
	case a.Kind == wire.Failure || a.Outcome == refused:
		return fatal{fmt.Errorf("%s refused: %s", from.Member, a.Text)}
	case a.Outcome == refresh || a.Outcome == gone:
		return fmt.Errorf("%s: %w", from.Member, elastic.ErrRefresh)
	case a.Outcome == early:
		return fmt.Errorf("%s: %s", from.Member, a.Text)
	}
	return nil
}

// clock returns what a server's clock of this worker is ahead of the steps that
// it has pushed: a new member counts on from the slowest (ssp). The server is
// asked once per generation.
func (c *Client) clock(ctx context.Context, g *elastic.Generation, conn *transport.Caller, to elastic.Address, pushed int64) (int64, error) {
	if c.cfg.Mode != elastic.SSP {
		return 0, nil
	}
	key := clockKey{g.Number, to.Addr}
	c.mu.Lock()
	base, ok := c.base[key]
	c.mu.Unlock()
	if ok {
		return base, nil
	}
	ctx, cancel := context.WithTimeout(ctx, c.cfg.Retry)
	defer cancel()
	a, err := conn.Call(ctx, &wire.Frame{Header: c.header(wire.Hello, g.Number, 0, pieces.ID{})})
	if err != nil {
		return 0, err
	}
	if err := verdict(a, to); err != nil {
		return 0, err
	}
	c.mu.Lock()
	c.base[key] = a.Step - pushed
	c.mu.Unlock()
	return a.Step - pushed, nil
}
