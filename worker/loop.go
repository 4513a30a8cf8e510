package worker

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"

	"optimus/compute"
	"optimus/data/order"
	"optimus/elastic"
)

// Config is what one worker needs. All fields but the durations are required.
type Config struct {
	Self       elastic.Member
	Link       elastic.Link
	Model      Model
	Exchanger  Exchanger
	Plan       order.Plan
	Mode       elastic.Mode
	Steps      int64 // of the job
	Blocks     []Block
	Aux        int // number of auxiliary arrays
	Carried    int // values of a state that is carried in lanes, see Carrier; 0 for none. The last auxiliary array keeps it
	Validation int // examples to evaluate on; 0 for none
	Batch      int // examples that the model takes at once in an evaluation
	RecordIDs  bool

	// Beat is the time between signs of life (default 1 s). Patience bounds
	// every wait for servers (default 10 min).
	Beat, Patience time.Duration
	// Slow, if set, is called once per step: tests slow a worker down with it.
	Slow func()
}

// Block says what the loop must know of a block.
type Block struct {
	Name string // for messages
	Rows bool   // pulled and pushed by rows
}

// worker is the state of a running loop.
type worker struct {
	Config
	mu      sync.Mutex
	member  elastic.WorkerMember
	running elastic.Directive
	pulling bool               // the running step still waits for parameters
	cancel  context.CancelFunc // ends the running step
	changed chan struct{}      // capacity 1: the member has news

	ids      []int
	next     []int  // of the step behind the running one
	lanes    *lanes // nil unless a state is carried
	grads    []elastic.Gradient
	sequence int64 // asp, ssp: pushes begun
}

// Run joins the job and works until it is dismissed (nil), its link breaks or
// ctx ends.
func Run(ctx context.Context, cfg Config) error {
	if cfg.Beat <= 0 {
		cfg.Beat = time.Second
	}
	if cfg.Patience <= 0 {
		cfg.Patience = 10 * time.Minute
	}
	lanes, err := newLanes(&cfg)
	if err != nil {
		cfg.Link.Send(elastic.Message{Kind: elastic.Failed, From: cfg.Self, Reason: err.Error()})
		cfg.Link.Close()
		return err
	}
	if lanes != nil {
		cfg.Model = lanes
	}
	w := &worker{Config: cfg, lanes: lanes, changed: make(chan struct{}, 1)}
	w.member = elastic.WorkerMember{Self: cfg.Self, Mode: cfg.Mode, Epoch: cfg.Plan.StepsPerEpoch(), Steps: cfg.Steps, Evaluate: cfg.Validation > 0}

	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var wg sync.WaitGroup
	wg.Go(func() { stop(w.listen()) })
	wg.Go(func() { w.beat(ctx) })
	err = w.loop(ctx)
	stop(err)
	cfg.Link.Close()
	wg.Wait()
	return err
}

// listen feeds the member with messages until the link ends.
func (w *worker) listen() error {
	for {
		m, err := w.Link.Recv()
		if err != nil {
			return fmt.Errorf("%s: the controller's link ended: %w", w.Self, err)
		}
		w.update(func() []elastic.Message { return w.member.Receive(m) })
		select {
		case w.changed <- struct{}{}:
		default:
		}
	}
}

// update tells the member something, sends what it answers, and interrupts the
// running step if that has lost its sense.
func (w *worker) update(tell func() []elastic.Message) {
	w.mu.Lock()
	answers := tell()
	if w.stale() {
		w.cancel()
	}
	w.mu.Unlock()
	for _, a := range answers {
		w.send(a)
	}
}

// stale reports whether the running step has lost its sense.
func (w *worker) stale() bool {
	if w.cancel == nil {
		return false
	}
	next := w.member.Next()
	if next == w.running {
		return false
	}
	if next.Task != w.running.Task || next.Step != w.running.Step || next.Push != w.running.Push {
		return true
	}
	return w.pulling // the same step may now pull from others
}

func (w *worker) send(m elastic.Message) {
	m.From = w.Self
	w.Link.Send(m) // a broken link shows in listen
}

func (w *worker) beat(ctx context.Context) {
	t := time.NewTicker(w.Beat)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			w.send(elastic.Message{Kind: elastic.Beat})
		}
	}
}

// loop does what the member says.
func (w *worker) loop(ctx context.Context) error {
	for {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		d, step, end := w.begin(ctx)
		if d.Task == elastic.Quit {
			return nil
		}
		err := w.do(step, d)
		interrupted := step.Err() != nil || errors.Is(err, errStale)
		end()
		if err == nil || interrupted {
			continue // the member knows what is next
		}
		if errors.Is(err, elastic.ErrRefresh) && w.await(ctx, d) {
			continue
		}
		if errors.Is(err, elastic.ErrRefresh) {
			err = fmt.Errorf("%s: the servers' generation is over, and within %v the controller has told of no other: %w", w.Self, w.Patience, err)
		}
		w.send(elastic.Message{Kind: elastic.Failed, Reason: err.Error()})
		return err
	}
}

// begin takes up the next directive; end must be called after it.
func (w *worker) begin(ctx context.Context) (elastic.Directive, context.Context, func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	d := w.member.Next()
	step, cancel := context.WithCancel(ctx)
	w.running, w.cancel, w.pulling = d, cancel, true
	if d.Task == elastic.Wait || d.Task == elastic.AskWork {
		w.cancel = nil
	}
	return d, step, func() {
		w.mu.Lock()
		w.cancel = nil
		w.mu.Unlock()
		cancel()
	}
}

// await waits for the member to leave directive d after its servers refused it.
func (w *worker) await(ctx context.Context, d elastic.Directive) bool {
	deadline := time.NewTimer(w.Patience)
	defer deadline.Stop()
	for {
		w.mu.Lock()
		same := w.member.Next() == d
		w.mu.Unlock()
		if !same {
			return true
		}
		select {
		case <-ctx.Done():
			return true
		case <-deadline.C:
			return false
		case <-w.changed:
		}
	}
}

func (w *worker) do(ctx context.Context, d elastic.Directive) error {
	switch d.Task {
	case elastic.AskWork:
		w.mu.Lock()
		w.member.Asked()
		w.mu.Unlock()
		w.send(elastic.Message{Kind: elastic.WantChunk, Gen: d.Pull.Number})
		return nil
	case elastic.Train:
		return w.train(ctx, d)
	case elastic.TrainWork:
		return w.trainWork(ctx, d)
	case elastic.Assess:
		return w.evaluate(ctx, d)
	case elastic.Idle:
		return w.idle(ctx, d)
	}
	select {
	case <-ctx.Done():
	case <-w.changed:
	}
	return nil
}

// train makes one synchronous step: its batch is a pure function of the plan.
func (w *worker) train(ctx context.Context, d elastic.Directive) error {
	rank, workers := d.Push.Rank(w.Self), len(d.Push.Workers)
	w.foretellStep(d.Step+1, rank, workers)
	if w.lanes != nil {
		w.lanes.take(d.Step, rank, workers)
	}
	var ids []int
	ids, w.ids = w.share(d.Step, rank, workers, w.ids)
	report, err := w.step(ctx, d, elastic.Stamp{Step: d.Step}, w.Plan.Epoch(d.Step), ids)
	if err != nil {
		return err
	}
	w.mu.Lock()
	w.member.Did(d.Step)
	w.mu.Unlock()
	w.send(elastic.Message{Kind: elastic.Progress, Gen: d.Push.Number, Step: d.Step, Report: report})
	return nil
}

// share returns what one worker has of a synchronous step; it lies in memory, which is
// used again.
func (w *worker) share(step int64, rank, workers int, memory []int) (ids, kept []int) {
	if w.lanes != nil {
		ids = w.lanes.share(step, rank, workers, memory)
		return ids, ids
	}
	batch := w.Plan.IDs(step, memory)
	lo, hi := order.Slice(len(batch), rank, workers)
	return batch[lo:hi], batch
}

// foretellStep foretells a synchronous step, if the workers stay as they are.
func (w *worker) foretellStep(step int64, rank, workers int) {
	if step > w.Steps {
		w.foretell(0, nil)
		return
	}
	var ids []int
	ids, w.next = w.share(step, rank, workers, w.next)
	w.foretell(w.Plan.Epoch(step), ids)
}

// foretell tells a model that wants to know it what it will probably train on next;
// no ids if nothing is known.
func (w *worker) foretell(epoch int, ids []int) {
	if m, ok := w.Model.(Foreteller); ok {
		m.Next(epoch, ids)
	}
}

// trainWork trains a leased chunk, a push at a time (asp, ssp).
func (w *worker) trainWork(ctx context.Context, d elastic.Directive) error {
	work := *d.Work
	at := work.UpTo
	var err error
	for n := int64(0); at < work.Chunk.Hi && n < work.Most && ctx.Err() == nil; n++ {
		hi := min(at+work.Batch, work.Chunk.Hi)
		w.ids = w.Plan.Range(work.Chunk.Epoch, at, hi, w.ids)
		after := hi // where the lease goes on, if it does
		if n+1 < work.Most {
			after = min(hi+work.Batch, work.Chunk.Hi)
		}
		w.next = w.Plan.Range(work.Chunk.Epoch, hi, after, w.next)
		w.foretell(work.Chunk.Epoch, w.next)
		var report *elastic.Report
		report, err = w.step(ctx, d, w.stamp(), work.Chunk.Epoch, w.ids)
		if err != nil {
			break
		}
		at = hi
		work.UpTo = at
		done := work
		w.send(elastic.Message{Kind: elastic.Progress, Gen: d.Push.Number, Step: w.sequence, Report: report, Chunk: &done})
		w.update(w.member.Pushed) // after the report: a halt waits for both
	}
	if err != nil || ctx.Err() != nil {
		return err
	}
	w.mu.Lock()
	w.member.Worked()
	w.mu.Unlock()
	w.send(elastic.Message{Kind: elastic.WantChunk, Gen: d.Push.Number, Chunk: &work})
	return nil
}

// idle keeps this worker's clock moving while it has no chunk, or those that
// have one would wait for it at the staleness bound. It moves as the slowest
// does, and contributes nothing.
func (w *worker) idle(ctx context.Context, d elastic.Directive) error {
	select {
	case <-ctx.Done():
	case <-w.changed:
	case <-time.After(idlePause):
		if _, err := w.step(ctx, d, w.stamp(), 0, nil); err != nil {
			return err
		}
		w.update(w.member.Pushed)
	}
	return nil
}

// idlePause keeps idle workers from busying the servers.
const idlePause = 3 * time.Millisecond

// stamp numbers the next push of modes asp and ssp. A step that is given up before
// its push lends its number to the next one: the servers hold this worker back by the
// pushes that they have seen, its own included, so that a clock ahead of them would
// wait for itself.
func (w *worker) stamp() elastic.Stamp {
	return elastic.Stamp{Step: w.sequence + 1, Sequence: w.sequence + 1}
}

// errStale says that a step was given up before any of it was pushed.
var errStale = errors.New("the member has something else to do")

// step pulls, computes and pushes one share of a batch. In modes asp and ssp the
// member's Pushed must follow once the step is reported.
func (w *worker) step(ctx context.Context, d elastic.Directive, at elastic.Stamp, epoch int, ids []int) (*elastic.Report, error) {
	start := time.Now()
	rows, err := w.rows(epoch, ids, true)
	if err != nil {
		return nil, err
	}
	stale, err := w.pull(ctx, d.Pull, at, rows, false)
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	w.pulling = false
	w.mu.Unlock()
	pulled := time.Now()
	if w.Slow != nil {
		w.Slow()
	}
	var r compute.Result
	if len(ids) > 0 {
		if r, err = w.Model.Train(w.Plan.Seed, epoch, ids); err != nil {
			return nil, fmt.Errorf("%s: step %d: %w", w.Self, at.Step, err)
		}
	}
	computed := time.Now()
	if veto := w.collect(r.Weight); veto != "" && w.Mode != elastic.BSP {
		// Nobody else waits for this push: it is left out whole, on all servers.
		w.send(elastic.Message{Kind: elastic.Vetoed, Gen: d.Push.Number, Step: at.Step, Culprit: w.Self.ID, Block: veto})
		w.clear()
		r = compute.Result{}
	}
	w.mu.Lock()
	begun := w.member.Pushing(d)
	w.mu.Unlock()
	if !begun {
		return nil, errStale
	}
	w.sequence = at.Sequence // used up, even if only some pieces get it
	wait, cancel := context.WithTimeout(ctx, w.Patience)
	defer cancel()
	if err := w.Exchanger.Push(wait, d.Push, at, w.grads, r.Weight); err != nil {
		return nil, err
	}
	report := &elastic.Report{Loss: r.Loss, Weight: r.Weight, Counts: counts(&r), Staleness: stale,
		Pull: pulled.Sub(start).Seconds(), Compute: computed.Sub(pulled).Seconds(), Push: time.Since(computed).Seconds()}
	if w.RecordIDs {
		report.IDs = append([]int{}, ids...)
	}
	return report, nil
}

func (w *worker) pull(ctx context.Context, g *elastic.Generation, at elastic.Stamp, rows map[int][]int32, aux bool) (int64, error) {
	wait, cancel := context.WithTimeout(ctx, w.Patience)
	defer cancel()
	return w.Exchanger.Pull(wait, g, at, rows, aux, w.Model)
}

// rows asks the model which rows of the row blocks the examples need.
func (w *worker) rows(epoch int, ids []int, training bool) (map[int][]int32, error) {
	var rows map[int][]int32
	for b, block := range w.Blocks {
		if !block.Rows {
			continue
		}
		if rows == nil {
			rows = map[int][]int32{}
		}
		var list []int32
		if len(ids) > 0 {
			var err error
			if list, err = w.Model.Rows(b, epoch, ids, training); err != nil {
				return nil, fmt.Errorf("%s: rows of block %d: %w", w.Self, b, err)
			}
		}
		rows[b] = list
	}
	return rows, nil
}

// collect gathers the gradients of all blocks and the statistics of all
// auxiliary arrays; it returns the place of the first non-finite value, if any.
func (w *worker) collect(weight int64) (veto string) {
	w.clear()
	if weight == 0 {
		return ""
	}
	for b := range w.Blocks {
		g := w.Model.Grad(b)
		if w.Blocks[b].Rows {
			w.grads[b].Rows, w.grads[b].Values = g.Rows, g.Values
		} else {
			w.grads[b].Values = g.Dense
		}
	}
	for i := range w.Aux {
		w.grads[len(w.Blocks)+i].Values = w.Model.AuxSum(i)
	}
	if w.Mode == elastic.BSP {
		return "" // the servers look, and name the worker
	}
	for _, g := range w.grads {
		if !finite(g.Values) {
			return w.name(g.Block)
		}
	}
	return ""
}

// name names a block, or behind the blocks an auxiliary array.
func (w *worker) name(block int) string {
	if aux := block - len(w.Blocks); aux >= 0 {
		return fmt.Sprintf("auxiliary array %d", aux)
	}
	return w.Blocks[block].Name
}

// clear makes the contribution empty: every piece still hears of it.
func (w *worker) clear() {
	if w.grads == nil {
		w.grads = make([]elastic.Gradient, len(w.Blocks)+w.Aux)
	}
	for i := range w.grads {
		w.grads[i] = elastic.Gradient{Block: i}
		if i < len(w.Blocks) && w.Blocks[i].Rows {
			w.grads[i].Rows = []int32{}
		}
	}
}

func finite(x []float32) bool {
	for _, v := range x {
		if v-v != 0 {
			return false
		}
	}
	return true
}

// counts copies what a result counted, without the zeros at the end.
func counts(r *compute.Result) []int64 {
	n := len(r.Counts)
	for n > 0 && r.Counts[n-1] == 0 {
		n--
	}
	return slices.Clone(r.Counts[:n])
}

// assessments yields the batches in which one worker goes through its share of an
// evaluation.
func (w *worker) assessments(rank, workers int) iter.Seq[[]int] {
	if w.lanes != nil {
		return w.lanes.assessments(w.Validation, rank, workers)
	}
	lo, hi := order.Slice(w.Validation, rank, workers)
	return func(yield func([]int) bool) {
		for more := true; lo < hi && more; more = yield(w.ids) {
			for w.ids = w.ids[:0]; lo < hi && len(w.ids) < w.Batch; lo++ {
				w.ids = append(w.ids, lo)
			}
		}
	}
}

// evaluate computes this worker's share of the evaluation of one version.
func (w *worker) evaluate(ctx context.Context, d elastic.Directive) error {
	var sum compute.Result
	at := elastic.Stamp{Step: d.Step + 1}
	if w.Mode != elastic.BSP {
		at.Step = w.sequence + 1
	}
	first := true
	for ids := range w.assessments(d.Pull.Rank(w.Self), len(d.Pull.Workers)) {
		rows, err := w.rows(0, ids, false)
		if err != nil {
			return err
		}
		if _, err := w.pull(ctx, d.Pull, at, rows, first); err != nil {
			return err
		}
		r, err := w.Model.Evaluate(ids)
		if err != nil {
			return fmt.Errorf("%s: evaluation of version %d: %w", w.Self, d.Step, err)
		}
		sum.Add(r)
		first = false
	}
	w.mu.Lock()
	w.member.Assessed()
	w.mu.Unlock()
	w.send(elastic.Message{Kind: elastic.Evaluated, Gen: d.Pull.Number, Step: d.Step,
		Report: &elastic.Report{Loss: sum.Loss, Weight: sum.Weight, Counts: counts(&sum)}})
	return nil
}
