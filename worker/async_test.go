package worker_test

import (
	"context"
	"errors"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"optimus/data/order"
	"optimus/elastic"
	"optimus/worker"
)

// push lists the calls of one push of positions [lo, hi) of an epoch.
func push(gen, epoch, lo, hi int, sequence int64) []call {
	ids, at := plan.Range(epoch, lo, hi, nil), elastic.Stamp{Step: sequence, Sequence: sequence}
	return []call{{What: "rows", IDs: ids, Train: true}, {What: "pull", Gen: gen, Stamp: at, Rows: rowsOf(ids)},
		{What: "train", Epoch: epoch, IDs: ids}, {What: "push", Gen: gen, Stamp: at, Weight: int64(len(ids)), Grads: gradsOf(ids)}}
}

func give(lo, hi int, most int64) elastic.Message {
	return elastic.Message{Kind: elastic.GiveWork, Gen: 1, Chunk: &elastic.Work{Chunk: order.Chunk{Epoch: 2, Lo: lo, Hi: hi}, Batch: 2, Most: most, UpTo: lo}}
}

// A worker asks for chunks, trains each a push at a time as far as it may, and
// reports how far it came.
func TestChunks(t *testing.T) {
	w := begin(t, 0, mode(elastic.ASP))
	g := generation(1, members()[0])
	w.rule(nil, g, 0)
	if m := w.next(elastic.WantChunk); m.Chunk != nil || m.Gen != 1 {
		t.Errorf("the first request names chunk %v of generation %d", m.Chunk, m.Gen)
	}
	var want []call
	sequence := int64(0)
	for _, test := range []struct {
		given elastic.Message
		ends  []int // of the pushes
	}{
		{give(0, 5, 10), []int{2, 4, 5}},
		{give(5, 11, 2), []int{7, 9}}, // the rest goes back
		{give(9, 11, 1), []int{11}},
	} {
		w.tell(test.given)
		lo := test.given.Chunk.Chunk.Lo
		for _, hi := range test.ends {
			sequence++
			want = append(want, push(1, 2, lo, hi, sequence)...)
			m := w.next(elastic.Progress)
			done := *test.given.Chunk
			done.UpTo = hi
			if diff := cmp.Diff(&done, m.Chunk); diff != "" || m.Step != sequence || m.Report.Weight != int64(hi-lo) {
				t.Errorf("push %d: step %d, weight %d\n%s", sequence, m.Step, m.Report.Weight, diff)
			}
			lo = hi
		}
		if m := w.next(elastic.WantChunk); m.Chunk == nil || m.Chunk.Chunk != test.given.Chunk.Chunk || m.Chunk.UpTo != lo {
			t.Errorf("the next request names %+v, want that all below %d is done", m.Chunk, lo)
		}
	}
	w.dismiss()
	same(t, "calls", want, w.recorded())
}

// The controller asks for evaluations: of what the servers have.
func TestEvaluationOnDemand(t *testing.T) {
	w := begin(t, 0, mode(elastic.ASP), evaluating)
	w.rule(nil, generation(1, members()[0]), 0)
	w.next(elastic.WantChunk)
	w.tell(give(0, 2, 1))
	w.next(elastic.Progress)
	w.next(elastic.WantChunk)
	w.tell(elastic.Message{Kind: elastic.Evaluate, Gen: 1, Step: 40})
	if m := w.next(elastic.Evaluated); m.Step != 40 || m.Report.Weight != validation {
		t.Errorf("evaluation of step %d over %d examples", m.Step, m.Report.Weight)
	}
	w.dismiss()
	want := append(push(1, 2, 0, 2, 1), assessment(1, 1, 0, 1)...) // one push is made
	same(t, "calls", want, w.recorded())
}

// A worker without a chunk keeps its clock moving at a bound of staleness, and
// contributes nothing.
func TestIdleClock(t *testing.T) {
	pushed := make(chan call)
	w := begin(t, 0, mode(elastic.SSP), held("push", func(ctx context.Context, c call) error {
		select {
		case pushed <- c:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}))
	w.rule(nil, generation(1, members()[0]), 0)
	w.next(elastic.WantChunk)
	for n := int64(1); n <= 3; n++ {
		want := call{What: "push", Gen: 1, Stamp: elastic.Stamp{Step: n, Sequence: n}, Grads: gradsOf(nil)}
		same(t, "an idle push", []call{want}, []call{receive(t, pushed, "an idle push")})
	}
	w.dismiss()
	if n := len(w.recorded("train")); n != 0 {
		t.Errorf("%d shares computed without a chunk", n)
	}
}

// A step that is given up before its push leaves no trace in the clock: pulls that
// name a later one than the servers have seen would, a few times in a row, wait at
// the bound of staleness for a push that this worker alone can make.
func TestClockCountsPushes(t *testing.T) {
	pulls, computing := make(chan call), make(chan struct{})
	release := make(chan struct{})
	w := begin(t, 0, mode(elastic.SSP), func(w *running, _ *worker.Config) {
		w.hold = func(ctx context.Context, c call) error {
			switch c.What {
			case "pull":
				if ctx.Err() != nil {
					return context.Cause(ctx)
				}
				select {
				case pulls <- c: // the test lets it through
				case <-ctx.Done():
					return context.Cause(ctx)
				}
			case "train":
				computing <- struct{}{}
				<-release
			}
			return nil
		}
	})
	resume := func() {
		t.Helper()
		w.next(elastic.Halted)
		w.tell(elastic.Message{Kind: elastic.Resume, Gen: 1})
		w.next(elastic.WantChunk)
	}
	halt := elastic.Message{Kind: elastic.Halt, Gen: 1, Source: elastic.FromSelf}
	first := elastic.Stamp{Step: 1, Sequence: 1}
	w.rule(nil, generation(1, members()[0]), 0)
	w.next(elastic.WantChunk)
	work := func() {
		t.Helper()
		w.tell(give(0, 8, 10)) // ends an idle step that waits for its pull, if it came so far
		w.settle()
	}
	work()
	for range 3 {
		if c := receive(t, pulls, "a pull"); c.Stamp != first {
			t.Errorf("a pull with stamp %+v, want %+v", c.Stamp, first)
		}
		receive(t, computing, "a gradient")
		w.tell(halt) // ends a step that computes
		w.settle()
		release <- struct{}{}
		resume()
		work()
		w.tell(halt) // ends a step that waits for its pull, likewise
		resume()
		work()
	}
	for n := int64(1); n <= 2; n++ {
		want := elastic.Stamp{Step: n, Sequence: n}
		if c := receive(t, pulls, "a pull"); c.Stamp != want {
			t.Errorf("a pull with stamp %+v, want %+v", c.Stamp, want)
		}
		receive(t, computing, "a gradient")
		release <- struct{}{}
		if m := w.next(elastic.Progress); m.Step != n {
			t.Errorf("push %d is reported as step %d", n, m.Step)
		}
	}
	w.dismiss()
	if pushes := w.recorded("push"); len(pushes) != 2 || pushes[0].Stamp != first {
		t.Errorf("pushes %+v, want two", pushes)
	}
}

// A push that has begun may be on some pieces: one that is cut off keeps its
// number, and the next one has another.
func TestCutOffPushKeepsItsNumber(t *testing.T) {
	under := make(chan call, 4)
	w := begin(t, 0, mode(elastic.ASP), held("push", func(ctx context.Context, c call) error {
		if under <- c; c.Gen == 1 {
			<-ctx.Done()
			return context.Cause(ctx)
		}
		return nil
	}))
	w.rule(nil, generation(1, members()[0]), 0)
	w.next(elastic.WantChunk)
	w.tell(give(0, 8, 10))
	receive(t, under, "the push that is cut off")
	w.tell(elastic.Message{Kind: elastic.Halt, Gen: 1, Source: elastic.FromCheckpoint})
	w.next(elastic.Halted)
	w.rule(generation(1, members()[0]), generation(2, members()[0]), 0)
	w.next(elastic.WantChunk)
	again := give(0, 2, 10)
	again.Gen = 2
	w.tell(again)
	if c := receive(t, under, "the push of the next generation"); c.Stamp.Sequence != 2 {
		t.Errorf("sequence %d, want 2", c.Stamp.Sequence)
	}
	w.next(elastic.Progress)
	w.next(elastic.WantChunk)
	w.dismiss()
}

// A gradient that is not finite is reported and left out whole; the clock moves
// on and the next share counts.
func TestNonFiniteIsLeftOut(t *testing.T) {
	for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		n := 0
		w := begin(t, 0, mode(elastic.ASP), func(w *running, _ *worker.Config) {
			w.model.spoil = func(dense []float32) {
				if n++; n == 1 {
					dense[1] = float32(bad)
				}
			}
		})
		w.rule(nil, generation(1, members()[0]), 0)
		w.next(elastic.WantChunk)
		w.tell(give(0, 4, 2))
		if m := w.next(elastic.Vetoed); m.Step != 1 || m.Gen != 1 || m.Culprit != 0 || m.Block != "dense" {
			t.Errorf("%v: vetoed: %+v", bad, m)
		}
		if m := w.next(elastic.Progress); m.Report.Weight != 0 || m.Report.Loss != 0 {
			t.Errorf("%v: the step left out reports %+v", bad, m.Report)
		}
		if m := w.next(elastic.Progress); m.Report.Weight != 2 {
			t.Errorf("%v: the step after it reports %+v", bad, m.Report)
		}
		w.next(elastic.WantChunk)
		w.dismiss()
		empty := call{What: "push", Gen: 1, Stamp: elastic.Stamp{Step: 1, Sequence: 1}, Grads: gradsOf(nil)}
		same(t, "pushes", []call{empty, push(1, 2, 2, 4, 2)[3]}, w.recorded("push"))
	}
}

// In a synchronous job the servers look for non-finite values: all of them must
// hear of the step.
func TestServersVetoSynchronousSteps(t *testing.T) {
	w := begin(t, 0, func(w *running, _ *worker.Config) {
		w.model.spoil = func(dense []float32) { dense[0] = float32(math.NaN()) }
	})
	w.rule(nil, generation(1, members()[0]), 0)
	w.next(elastic.Progress)
	w.dismiss()
	want := step(1, 1, 0, 1)[3]
	want.Grads[0].Values[0] = float32(math.NaN())
	if diff := cmp.Diff([]call{want}, w.recorded("push"), cmpopts.EquateNaNs()); diff != "" {
		t.Error(diff)
	}
}

// A halt lets a push that has begun finish on all pieces, and is answered after
// its report; what is left of the chunk is not trained.
func TestHaltWaitsForPush(t *testing.T) {
	under, release := make(chan struct{}, 4), make(chan struct{})
	w := begin(t, 0, mode(elastic.ASP), held("push", func(ctx context.Context, c call) error {
		under <- struct{}{}
		select {
		case <-release:
			return nil
		case <-ctx.Done():
			return errors.New("the push was cut off")
		}
	}))
	w.rule(nil, generation(1, members()[0]), 0)
	w.next(elastic.WantChunk)
	w.tell(give(0, 8, 10))
	receive(t, under, "the push")
	w.tell(elastic.Message{Kind: elastic.Halt, Gen: 1, Source: elastic.FromPeers})
	w.settle()
	close(release)
	if m := w.next(elastic.Progress); m.Chunk.UpTo != 2 {
		t.Errorf("the push is reported up to %d, want 2", m.Chunk.UpTo)
	}
	if m := w.next(elastic.Halted); m.Gen != 1 {
		t.Errorf("halted of generation %d", m.Gen)
	}
	w.settle()
	w.dismiss()
	same(t, "calls", push(1, 2, 0, 2, 1), w.recorded())
}
