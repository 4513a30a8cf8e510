package worker_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.uber.org/goleak"

	"optimus/compute"
	"optimus/data/order"
	"optimus/elastic"
	"optimus/worker"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience bounds every wait of these tests.
const patience = 20 * time.Second

// call is one call of the loop to its model or exchanger.
type call struct {
	What   string // rows, pull, train, push, evaluate
	Gen    int
	Stamp  elastic.Stamp
	Epoch  int
	IDs    []int
	Rows   []int32 // of block 1
	Train  bool    // rows: for training
	Aux    bool
	Weight int64
	Grads  []elastic.Gradient
}

// tape records the calls in order. A call that hold is set for goes on when it
// returns, with its error.
type tape struct {
	mu    sync.Mutex
	calls []call
	hold  func(context.Context, call) error
}

func (r *tape) add(ctx context.Context, c call) error {
	r.mu.Lock()
	r.calls = append(r.calls, c)
	r.mu.Unlock()
	if r.hold != nil {
		return r.hold(ctx, c)
	}
	return nil
}

// recorded returns the calls so far, of some kinds or of all.
func (r *tape) recorded(what ...string) (list []call) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.calls {
		if len(what) == 0 || slices.Contains(what, c.What) {
			list = append(list, c)
		}
	}
	return list
}

// model is a model of a dense block, one of rows, and one auxiliary array. Its
// numbers follow from the examples' ids, so a test can say what they must be.
type model struct {
	*tape
	spoil func(dense []float32) // changes a gradient, if set
	ids   []int
}

// rowsOf are the distinct rows, ascending, that examples need.
func rowsOf(ids []int) []int32 {
	rows := []int32{}
	for _, id := range ids {
		rows = append(rows, int32(id%3))
	}
	slices.Sort(rows)
	return slices.Compact(rows)
}

// resultOf is what computing on examples gives.
func resultOf(ids []int) compute.Result {
	r := compute.Result{Weight: int64(len(ids)), Counts: compute.Counts{1}}
	for _, id := range ids {
		r.Loss += float64(id)
	}
	return r
}

// gradsOf is the contribution that a share leads to; an empty share's is empty.
func gradsOf(ids []int) []elastic.Gradient {
	grads := []elastic.Gradient{{Block: 0}, {Block: 1, Rows: []int32{}}, {Block: 2}}
	if len(ids) > 0 {
		grads[0].Values = []float32{float32(resultOf(ids).Loss), float32(len(ids))}
		grads[1].Rows = rowsOf(ids)
		grads[1].Values = make([]float32, len(grads[1].Rows))
		grads[2].Values = []float32{float32(ids[0])}
	}
	return grads
}

func (m *model) SetParam(int, int, []float32)    {}
func (m *model) SetRow(int, int, int, []float32) {}
func (m *model) SetAux(int, int, []float32)      {}
func (m *model) Close()                          {}
func (m *model) AuxSum(int) []float32            { return gradsOf(m.ids)[2].Values }

func (m *model) Rows(block, epoch int, ids []int, training bool) ([]int32, error) {
	if block != 1 {
		return nil, errors.New("block 0 has no rows")
	}
	return rowsOf(ids), m.add(context.Background(), call{What: "rows", IDs: slices.Clone(ids), Train: training})
}

func (m *model) Train(seed uint64, epoch int, ids []int) (compute.Result, error) {
	if seed != plan.Seed {
		return compute.Result{}, errors.New("another seed")
	}
	m.ids = slices.Clone(ids)
	return resultOf(ids), m.add(context.Background(), call{What: "train", Epoch: epoch, IDs: m.ids})
}

func (m *model) Evaluate(ids []int) (compute.Result, error) {
	return resultOf(ids), m.add(context.Background(), call{What: "evaluate", IDs: slices.Clone(ids)})
}

func (m *model) Grad(block int) compute.Grad {
	g := gradsOf(m.ids)[block]
	if block == 1 {
		return compute.Grad{Rows: g.Rows, Values: g.Values}
	}
	if m.spoil != nil {
		m.spoil(g.Values)
	}
	return compute.Grad{Dense: g.Values}
}

// exchanger records and succeeds at once, unless held.
type exchanger struct{ *tape }

func (x exchanger) Pull(ctx context.Context, g *elastic.Generation, at elastic.Stamp, rows map[int][]int32, aux bool, _ elastic.Sink) (int64, error) {
	return at.Step, x.add(ctx, call{What: "pull", Gen: g.Number, Stamp: at, Rows: rows[1], Aux: aux})
}

func (x exchanger) Push(ctx context.Context, g *elastic.Generation, at elastic.Stamp, grads []elastic.Gradient, weight int64) error {
	c := call{What: "push", Gen: g.Number, Stamp: at, Weight: weight, Grads: slices.Clone(grads)}
	for i := range c.Grads {
		c.Grads[i].Values = slices.Clone(c.Grads[i].Values)
	}
	return x.add(ctx, c)
}

// link is the worker's link to the test, which plays the controller. A message
// down is taken only after the worker has dealt with the one before.
type link struct {
	down, up chan elastic.Message
	once     sync.Once
	closed   chan struct{}
}

var errLinkClosed = errors.New("the link is closed")

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

// plan has three steps to an epoch, the last one short.
var plan = order.Plan{Seed: 3, Examples: 11, Batch: 4}

const (
	steps      = 5
	validation = 7
)

// running is a worker at work.
type running struct {
	*tape
	t     *testing.T
	self  elastic.Member
	link  *link
	model *model
	stop  context.CancelCauseFunc
	done  chan error
}

// begin runs worker rank, under tune's changes.
func begin(t *testing.T, rank int, tune ...func(*running, *worker.Config)) *running {
	t.Helper()
	w := &running{tape: &tape{}, t: t, self: members()[rank], done: make(chan error, 1),
		link: &link{down: make(chan elastic.Message), up: make(chan elastic.Message, 256), closed: make(chan struct{})}}
	w.model = &model{tape: w.tape}
	cfg := worker.Config{Self: w.self, Link: w.link, Model: w.model, Exchanger: exchanger{w.tape}, Plan: plan, Mode: elastic.BSP, Steps: steps,
		Blocks: []worker.Block{{Name: "dense"}, {Name: "rows", Rows: true}}, Aux: 1, Batch: 2, RecordIDs: true, Beat: time.Hour, Patience: patience}
	for _, fn := range tune {
		fn(w, &cfg)
	}
	var ctx context.Context
	ctx, w.stop = context.WithCancelCause(context.Background())
	go func() { w.done <- worker.Run(ctx, cfg) }()
	t.Cleanup(func() {
		w.stop(nil)
		receive(t, w.done, "Run to end")
	})
	return w
}

func mode(m elastic.Mode) func(*running, *worker.Config) {
	return func(_ *running, c *worker.Config) { c.Mode = m }
}

func evaluating(_ *running, c *worker.Config) { c.Validation = validation }

// held has fn decide about the calls of a kind.
func held(what string, fn func(context.Context, call) error) func(*running, *worker.Config) {
	return func(w *running, _ *worker.Config) {
		w.hold = func(ctx context.Context, c call) error {
			if c.What == what {
				return fn(ctx, c)
			}
			return nil
		}
	}
}

func members() (list []elastic.Member) {
	for i := range 3 {
		list = append(list, elastic.Member{Role: elastic.Worker, ID: i, Incarnation: uint64(i + 1)})
	}
	return list
}

func generation(number int, members ...elastic.Member) *elastic.Generation {
	g := &elastic.Generation{Number: number}
	for _, m := range members {
		g.Workers = append(g.Workers, elastic.Address{Member: m})
	}
	return g
}

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

func (w *running) tell(m elastic.Message) {
	w.t.Helper()
	select {
	case w.link.down <- m:
	case <-time.After(patience):
		w.t.Fatalf("the worker does not take %s", m.Kind)
	}
}

// settle returns once the worker has dealt with all that it was told.
func (w *running) settle() { w.tell(elastic.Message{Kind: elastic.Lease, Gen: -1}) }

// next waits for the worker's next message, which must be of a kind.
func (w *running) next(kind elastic.Kind) elastic.Message {
	w.t.Helper()
	m := receive(w.t, w.link.up, "the worker to say "+string(kind))
	if m.Kind != kind || m.From != w.self {
		w.t.Fatalf("%s says %s (%s), want %s", m.From, m.Kind, m.Reason, kind)
	}
	return m
}

// rule brings the worker into generation g at a step.
func (w *running) rule(old, g *elastic.Generation, step int64) {
	w.t.Helper()
	w.tell(elastic.Message{Kind: elastic.Prepare, Gen: g.Number, Old: old, Next: g})
	w.next(elastic.Prepared)
	w.tell(elastic.Message{Kind: elastic.Switch, Gen: g.Number, Step: step})
	w.tell(elastic.Message{Kind: elastic.Commit, Gen: g.Number, Step: step})
}

func (w *running) lease(g *elastic.Generation, step int64) {
	w.tell(elastic.Message{Kind: elastic.Lease, Gen: g.Number, Step: step})
}

// ended waits for the end of Run.
func (w *running) ended() error {
	w.t.Helper()
	err := receive(w.t, w.done, "Run to end")
	w.done <- err // for the cleanup
	return err
}

// dismiss ends the worker, which must not mind.
func (w *running) dismiss() {
	w.t.Helper()
	w.tell(elastic.Message{Kind: elastic.Dismiss})
	if err := w.ended(); err != nil {
		w.t.Errorf("Run: %v", err)
	}
}

func same(t *testing.T, what string, want, got []call) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// counted is how a report states hits: nothing stands for none.
func counted(hits int64) []int64 {
	if hits == 0 {
		return []int64{}
	}
	return []int64{hits}
}
