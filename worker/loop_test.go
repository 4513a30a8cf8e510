package worker_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"optimus/data/order"
	"optimus/elastic"
	"optimus/worker"
)

// step lists the calls of a synchronous step of worker rank of k.
func step(gen int, n int64, rank, k int) []call {
	batch := plan.IDs(n, nil)
	lo, hi := order.Slice(len(batch), rank, k)
	ids, at := batch[lo:hi], elastic.Stamp{Step: n}
	pull := call{What: "pull", Gen: gen, Stamp: at, Rows: rowsOf(ids)}
	push := call{What: "push", Gen: gen, Stamp: at, Weight: int64(len(ids)), Grads: gradsOf(ids)}
	if len(ids) == 0 {
		return []call{pull, push}
	}
	return []call{{What: "rows", IDs: ids, Train: true}, pull, {What: "train", Epoch: plan.Epoch(n), IDs: ids}, push}
}

// assessment lists the calls of the evaluation of a version, two examples at a
// time: every pull is of that version, and the first brings the auxiliary arrays.
func assessment(gen int, version int64, rank, k int) (list []call) {
	lo, hi := order.Slice(validation, rank, k)
	for first := true; lo < hi; first = false {
		var ids []int
		for ; lo < hi && len(ids) < 2; lo++ {
			ids = append(ids, lo)
		}
		list = append(list, call{What: "rows", IDs: ids}, call{What: "pull", Gen: gen, Stamp: elastic.Stamp{Step: version + 1}, Rows: rowsOf(ids), Aux: first},
			call{What: "evaluate", IDs: ids})
	}
	return list
}

// A synchronous job: each step's share is the plan's, the calls come in order,
// epochs end with an evaluation of their last version, and each step and
// evaluation is reported with its sums.
func TestSynchronousJob(t *testing.T) {
	for rank := range members() {
		w := begin(t, rank, evaluating)
		g := generation(1, members()...)
		w.rule(nil, g, 0)
		w.lease(g, steps)
		var want []call
		for n := int64(1); n <= steps; n++ {
			want = append(want, step(1, n, rank, 3)...)
			batch := plan.IDs(n, nil)
			lo, hi := order.Slice(len(batch), rank, 3)
			r := resultOf(batch[lo:hi])
			if lo == hi {
				r.Counts[0] = 0
			}
			report := elastic.Report{Loss: r.Loss, Weight: r.Weight, Counts: counted(r.Counts[0]), IDs: batch[lo:hi], Staleness: n}
			m := w.next(elastic.Progress)
			if diff := cmp.Diff(&report, m.Report, cmpopts.EquateEmpty(), cmpopts.IgnoreFields(elastic.Report{}, "Pull", "Compute", "Push")); diff != "" || m.Gen != 1 || m.Step != n {
				t.Errorf("rank %d, step %d: generation %d, step %d\n%s", rank, n, m.Gen, m.Step, diff)
			}
			if n != 3 && n != steps { // the ends of the epochs
				continue
			}
			want = append(want, assessment(1, n, rank, 3)...)
			var sum elastic.Report
			var hits int64
			for _, c := range assessment(1, n, rank, 3) {
				if c.What == "evaluate" {
					r := resultOf(c.IDs)
					sum.Loss, sum.Weight, hits = sum.Loss+r.Loss, sum.Weight+r.Weight, hits+r.Counts[0]
				}
			}
			sum.Counts = counted(hits)
			m = w.next(elastic.Evaluated)
			if diff := cmp.Diff(&sum, m.Report); diff != "" || m.Gen != 1 || m.Step != n {
				t.Errorf("rank %d, evaluation of version %d: generation %d, step %d\n%s", rank, n, m.Gen, m.Step, diff)
			}
		}
		w.dismiss()
		same(t, w.self.String(), want, w.recorded())
	}
}

// A worker goes as far as its lease, and no further.
func TestLease(t *testing.T) {
	w := begin(t, 0)
	g := generation(1, members()[0])
	w.rule(nil, g, 0) // the commit allows one step
	w.next(elastic.Progress)
	w.lease(g, 3)
	w.next(elastic.Progress)
	w.next(elastic.Progress)
	w.settle()
	w.dismiss()
	if n := len(w.recorded("push")); n != 3 {
		t.Errorf("%d pushes under a lease of 3 steps", n)
	}
}

// A smooth switch: the first step of the next generation pulls from the old
// owners and pushes to the new ones, before the commit.
func TestStepAcross(t *testing.T) {
	w := begin(t, 0)
	g, next := generation(1, members()[0]), generation(2, members()[:2]...)
	w.rule(nil, g, 0)
	w.next(elastic.Progress)
	w.tell(elastic.Message{Kind: elastic.Prepare, Gen: 2, Old: g, Next: next, Smooth: true})
	w.next(elastic.Prepared)
	w.tell(elastic.Message{Kind: elastic.Switch, Gen: 2, Step: 1})
	if m := w.next(elastic.Progress); m.Gen != 2 || m.Step != 2 {
		t.Errorf("step %d of generation %d, want step 2 of 2", m.Step, m.Gen)
	}
	w.tell(elastic.Message{Kind: elastic.Commit, Gen: 2, Step: 1})
	w.lease(next, 3)
	w.next(elastic.Progress)
	w.dismiss()
	across := step(2, 2, 0, 2)
	across[1].Gen = 1 // the pull
	want := append(append(step(1, 1, 0, 1), across...), step(2, 3, 0, 2)...)
	same(t, "calls", want, w.recorded())
}

// A halt cuts a synchronous step off wherever it stands, and the worker makes it
// anew in the generation that follows, with its share there.
func TestHaltCutsStep(t *testing.T) {
	for _, what := range []string{"pull", "push"} {
		t.Run(what, func(t *testing.T) {
			under, cut := make(chan struct{}), make(chan error, 1)
			w := begin(t, 0, held(what, func(ctx context.Context, c call) error {
				if c.Gen != 1 {
					return nil
				}
				close(under)
				<-ctx.Done()
				cut <- context.Cause(ctx)
				return errors.New("cut off")
			}))
			g, next := generation(1, members()[:2]...), generation(2, members()[0])
			w.rule(nil, g, 0)
			receive(t, under, "the "+what)
			w.tell(elastic.Message{Kind: elastic.Halt, Gen: 1})
			receive(t, cut, "the end of the "+what)
			w.rule(g, next, 0)
			if m := w.next(elastic.Progress); m.Gen != 2 || m.Step != 1 {
				t.Errorf("step %d of generation %d, want step 1 of 2", m.Step, m.Gen)
			}
			w.dismiss()
			begun := step(1, 1, 0, 2)
			if what == "pull" {
				begun = begun[:2]
			}
			same(t, "calls", append(begun, step(2, 1, 0, 1)...), w.recorded())
		})
	}
}

// After a refusal as of another generation the worker waits for news: it neither
// asks the server again and again nor gives up.
func TestRefreshWaitsForNews(t *testing.T) {
	refused := make(chan struct{}, 1)
	w := begin(t, 0, held("push", func(_ context.Context, c call) error {
		if c.Gen == 2 {
			return nil
		}
		select {
		case refused <- struct{}{}:
		default: // asked again and again
		}
		return elastic.ErrRefresh
	}))
	g := generation(1, members()[0])
	w.rule(nil, g, 0)
	receive(t, refused, "the refusal")
	w.lease(g, 2) // news, but not of another generation
	w.settle()
	w.tell(elastic.Message{Kind: elastic.Halt, Gen: 1})
	w.rule(g, generation(2, members()[0]), 0)
	if m := w.next(elastic.Progress); m.Gen != 2 || m.Step != 1 {
		t.Errorf("step %d of generation %d, want step 1 of 2", m.Step, m.Gen)
	}
	w.dismiss()
	if n := len(w.recorded("push")); n != 2 {
		t.Errorf("%d pushes, want the refused one and the one after the news", n)
	}
}

// Errors end the worker, which tells the controller first. No wait is for ever.
func TestFailures(t *testing.T) {
	boom := errors.New("boom")
	fail := func(context.Context, call) error { return boom }
	hang := func(ctx context.Context, _ call) error {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	brief := func(_ *running, c *worker.Config) { c.Patience = 20 * time.Millisecond }
	for name, test := range map[string]struct {
		tune []func(*running, *worker.Config)
		is   error
		text string
	}{
		"rows":               {[]func(*running, *worker.Config){held("rows", fail)}, boom, "worker 0#1: rows of block 1: boom"},
		"pull":               {[]func(*running, *worker.Config){held("pull", fail)}, boom, "boom"},
		"train":              {[]func(*running, *worker.Config){held("train", fail)}, boom, "worker 0#1: step 1: boom"},
		"push":               {[]func(*running, *worker.Config){held("push", fail)}, boom, "boom"},
		"evaluate":           {[]func(*running, *worker.Config){held("evaluate", fail), evaluating, func(_ *running, c *worker.Config) { c.Steps = 1 }}, boom, "worker 0#1: evaluation of version 1: boom"},
		"a pull that hangs":  {[]func(*running, *worker.Config){held("pull", hang), brief}, context.DeadlineExceeded, ""},
		"a push that hangs":  {[]func(*running, *worker.Config){held("push", hang), brief}, context.DeadlineExceeded, ""},
		"news that stay out": {[]func(*running, *worker.Config){held("push", func(context.Context, call) error { return elastic.ErrRefresh }), brief}, elastic.ErrRefresh, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := begin(t, 0, test.tune...)
			w.rule(nil, generation(1, members()[0]), 0)
			if name == "evaluate" {
				w.next(elastic.Progress)
			}
			failed := w.next(elastic.Failed)
			err := w.ended()
			if !errors.Is(err, test.is) || !strings.Contains(err.Error(), test.text) || failed.Reason != err.Error() {
				t.Errorf("Run: %v; told: %q; want %q", err, failed.Reason, test.text)
			}
		})
	}
}

// However a worker ends, Run returns and says why.
func TestEnds(t *testing.T) {
	for name, test := range map[string]struct {
		end  func(w *running)
		want string
	}{
		"killed":   {func(w *running) { w.stop(errors.New("the shell ends it")) }, "the shell ends it"},
		"orphaned": {func(w *running) { w.link.Close() }, "worker 0#1: the controller's link ended"},
	} {
		for _, busy := range []bool{false, true} {
			under := make(chan struct{}, 1)
			w := begin(t, 0, held("pull", func(ctx context.Context, _ call) error {
				under <- struct{}{}
				<-ctx.Done()
				return ctx.Err()
			}))
			if busy {
				w.rule(nil, generation(1, members()[0]), 0)
				receive(t, under, "the pull")
			}
			test.end(w)
			if err := w.ended(); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%s, busy %v: %v, want %q", name, busy, err, test.want)
			}
		}
	}
}

// A worker gives signs of life while it waits and while it computes.
func TestBeats(t *testing.T) {
	computing, release := make(chan struct{}), make(chan struct{})
	w := begin(t, 0, func(_ *running, c *worker.Config) { c.Beat = time.Millisecond },
		held("train", func(context.Context, call) error {
			close(computing)
			<-release
			return nil
		}))
	w.next(elastic.Beat)
	g := generation(1, members()[0])
	for _, m := range []elastic.Message{{Kind: elastic.Prepare, Gen: 1, Next: g}, {Kind: elastic.Commit, Gen: 1}} {
		w.tell(m)
	}
	receive(t, computing, "the step")
	for range cap(w.link.up) + 1 { // more than were on their way
		for m := receive(t, w.link.up, "a sign of life"); m.Kind != elastic.Beat; {
			m = receive(t, w.link.up, "a sign of life")
		}
	}
	close(release)
	for m := receive(t, w.link.up, "the report"); m.Kind != elastic.Progress; {
		m = receive(t, w.link.up, "the report")
	}
	w.dismiss()
}
