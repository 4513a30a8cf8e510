package train

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"optimus/data"
	"optimus/internal/failure"
	"optimus/models"
	"optimus/spec"
)

// watched is a split that notes what it is asked for.
type watched struct {
	data.Split
	mu    sync.Mutex
	asked [][]int
	more  chan struct{} // capacity 1: asked has grown
}

func (s *watched) Fill(ids []int, b *data.Batch) error {
	s.mu.Lock()
	s.asked = append(s.asked, slices.Clone(ids))
	s.mu.Unlock()
	select {
	case s.more <- struct{}{}:
	default:
	}
	return s.Split.Fill(ids, b)
}

func (s *watched) requests() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.asked)
}

// TestReadsAhead: a worker reads the examples of its next step while it is in the one
// before, with common steps and with leases, and no example is read twice.
func TestReadsAhead(t *testing.T) {
	w, err := models.Lookup("cnn-rand")
	if err == nil {
		w, err = w.At(models.Tiny)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, mode := range []spec.Mode{spec.BSP, spec.ASP} {
		t.Run(string(mode), func(t *testing.T) {
			set, err := w.Generate(models.Options{Seed: 1, N: 80})
			if err != nil {
				t.Fatal(err)
			}
			o, j := testOptions(t), testJob(1, 1)
			split := &watched{Split: set.Train, more: make(chan struct{}, 1)}
			set.Train = split
			j.Mode, j.Batch, j.Epochs, j.Steps = mode, 16, 1, 0
			if o.Task, err = NewTask(w, set, j); err != nil {
				t.Fatal(err)
			}
			split.asked = nil // what the fingerprint read
			step, late := 0, 0
			o.Slow = func(int) func() {
				return func() { // the step has its own examples, since it knows their rows
					if step++; step >= 4 { // the end of a lease, and of the epoch
						return
					}
					deadline := time.After(10 * time.Second)
					for split.requests() <= step {
						select {
						case <-split.more:
						case <-deadline:
							late++
							return
						}
					}
				}
			}
			if _, err := Run(t.Context(), j, o); err != nil {
				t.Fatal(err)
			}
			if step != 5 || late > 0 {
				t.Errorf("of %d steps, want 5, %d did not read ahead", step, late)
			}
			var all []int
			for _, ids := range split.asked {
				all = append(all, ids...)
			}
			slices.Sort(all)
			if want := set.Train.Len(); len(all) != want || len(slices.Compact(all)) != want {
				t.Errorf("%d examples were read, want each of %d once: %v", len(all), want, split.asked)
			}
		})
	}
}

// TestReadingAheadEnds: leases that are taken back by rescales, by the loss of a worker
// and by a stop leave nothing behind that still reads.
func TestReadingAheadEnds(t *testing.T) {
	for _, mode := range []spec.Mode{spec.ASP, spec.SSP} {
		t.Run(string(mode), func(t *testing.T) {
			defer goleak.VerifyNone(t)
			j := newJob(t, spec.InProc, 1, 2, 0)
			j.spec.Mode, j.spec.Size, j.spec.Batch, j.spec.Epochs = mode, models.Tiny, 32, 1000
			if mode == spec.SSP {
				j.spec.Staleness = 2
			}
			j.o.Slow = func(int) func() { return func() { time.Sleep(time.Millisecond) } }
			var running *coordinator
			j.o.reach = func(c *coordinator) { running = c }
			ctx, cancel := context.WithCancelCause(t.Context())
			j.start(ctx)
			for _, r := range [][3]int{{10, 1, 3}, {30, 2, 1}, {50, 1, 3}} {
				j.step(r[0])
				if _, err := Rescale(ctx, j.o.Root, "job", r[1], r[2]); err != nil {
					t.Fatal(err)
				}
			}
			s := j.step(70)
			running.post(func() { running.starter.kill(running.ctl.Generation().Workers[0].Member) })
			j.until("a worker's loss", func(now spec.Status) bool { return now.Generation > s.Generation })
			j.step(s.Step + 30)
			cancel(StopAtOnce)
			if _, err := j.wait(); failure.KindOf(err) != failure.Canceled {
				t.Fatalf("stopped: %v", err)
			}
		})
	}
}
