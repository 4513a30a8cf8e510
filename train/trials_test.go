package train

import (
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"go.uber.org/goleak"

	"optimus/spec"
	"optimus/telemetry"
)

// TestBO20_OptimizerStateAfterResume: 100 steps straight through equal 50, stop,
// restore and 50 more, to the bit, and equal them through a rescale of servers.
func TestBO20_OptimizerStateAfterResume(t *testing.T) {
	long(t)
	for _, kind := range []string{"momentum", "adam", "rmsprop"} {
		t.Run(kind, func(t *testing.T) {
			base := func(steps int) *job {
				j := newJob(t, spec.InProc, 2, 1, steps)
				j.spec.Workload = "cifar-small"
				j.spec.Optimizer.Name = kind
				j.spec.LR = 0.001
				return j
			}
			straight := base(100)
			straight.start(t.Context())
			want, err := straight.wait()
			if err != nil {
				t.Fatal(err)
			}
			half := base(50)
			half.start(t.Context())
			if _, err := half.wait(); err != nil {
				t.Fatal(err)
			}
			rest := base(100)
			rest.o.Root, rest.spec.Resume, rest.spec.Servers.Count = half.o.Root, "job", 3
			rest.start(t.Context())
			got, err := rest.wait()
			if err != nil {
				t.Fatal(err)
			}
			if got.ParamsSHA256 != want.ParamsSHA256 {
				t.Errorf("resumed on 3 servers: parameters differ")
			}
			live := base(100)
			status := make(chan spec.Status, 10000)
			live.o.Notify = func(s spec.Status) { status <- s }
			go func() {
				defer close(live.done)
				live.result, live.err = Run(t.Context(), live.spec, live.o)
			}()
			rep, err := rescaleAt(t.Context(), live.o.Root, "job", status, 20, 3, 1)
			if err != nil {
				t.Fatal(err)
			}
			<-live.done
			if live.err != nil || live.result.ParamsSHA256 != want.ParamsSHA256 {
				t.Errorf("rescaled live: parameters differ (%v)", live.err)
			}
			slots := map[string]int64{"momentum": 1, "rmsprop": 1, "adam": 2}[kind]
			if moved := rep.BytesMoved - rep.AuxBytesMoved; moved != rep.ElementsMoved*4*(1+slots) || moved == 0 {
				t.Errorf("%d bytes moved for %d elements with %d state arrays", moved, rep.ElementsMoved, slots)
			}
		})
	}
}

// TestBO24_FewerExamplesThanWorkers: each example once, idle workers are shown,
// the job ends by itself.
func TestBO24_FewerExamplesThanWorkers(t *testing.T) {
	j := newJob(t, spec.InProc, 1, 9, 0)
	j.spec.Workload, j.o.Task = "", lin1(1, 2, 3, 4)
	j.o.Slow = func(int) func() { return func() { time.Sleep(20 * time.Millisecond) } }
	j.start(t.Context())
	j.until("five idle workers", func(s spec.Status) bool {
		idle := 0
		for _, m := range s.Members {
			if m.Idle {
				idle++
			}
		}
		return idle == 5
	})
	if _, err := j.wait(); err != nil {
		t.Fatal(err)
	}
	steps := history(t, j.o.Root, "job")
	for epoch := range 3 {
		if err := telemetry.Coverage(steps, epoch, 4); err != nil {
			t.Error(err)
		}
	}
	none := newJob(t, spec.InProc, 1, 2, 0)
	none.spec.Workload, none.o.Task = "", lin1()
	none.o.Task.Batch = 4
	none.start(t.Context())
	if _, err := none.wait(); err == nil {
		t.Error("a job without examples was accepted")
	}
}

// TestNothingLeaks: 1,000 steps, then 20 rescales: live heap, goroutines and
// descriptors stay where they were.
func TestNothingLeaks(t *testing.T) {
	long(t)
	defer goleak.VerifyNone(t)
	measure := func() (heap uint64, goroutines, files int) {
		// The job stands still now; what was under way for the last step ends.
		goroutines = runtime.NumGoroutine()
		for same := 0; same < 5; same++ {
			time.Sleep(10 * time.Millisecond)
			if n := runtime.NumGoroutine(); n != goroutines {
				goroutines, same = n, 0
			}
		}
		for range 3 {
			runtime.GC()
		}
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		fds, err := filepath.Glob("/proc/self/fd/*")
		if err != nil {
			t.Fatal(err)
		}
		return m.HeapAlloc, goroutines, len(fds)
	}
	j := newJob(t, spec.InProc, 2, 2, 100000)
	j.spec.Workload, j.o.Task = "", wideTask()
	gate := make(chan struct{})
	hold := make(chan int, 10)
	n := 0
	status := make(chan spec.Status, 1)
	j.o.Notify = func(s spec.Status) {
		select {
		case <-status:
		default:
		}
		status <- s
		if s.Step > n && (s.Step == 200 || s.Step == 1000) {
			n = s.Step
			hold <- s.Step
			<-gate
		}
	}
	go func() {
		defer close(j.done)
		j.result, j.err = Run(t.Context(), j.spec, j.o)
	}()
	<-hold
	h1, g1, f1 := measure()
	gate <- struct{}{}
	<-hold
	h2, g2, f2 := measure()
	gate <- struct{}{}
	t.Logf("live heap %d bytes at step 200, %d at step 1,000", h1, h2)
	if d := float64(h2) - float64(h1); d > 0.02*float64(h1) {
		t.Errorf("live heap grew from %d to %d bytes between steps 200 and 1,000", h1, h2)
	}
	if g1 != g2 || f1 != f2 {
		t.Errorf("goroutines %d → %d, descriptors %d → %d", g1, g2, f1, f2)
	}
	sizes := [][2]int{{3, 3}, {1, 2}, {2, 4}, {2, 2}}
	for i := range 20 {
		s := sizes[i%len(sizes)]
		if _, err := rescaleAt(t.Context(), j.o.Root, "job", status, 0, s[0], s[1]); err != nil {
			t.Fatalf("rescale %d to %v: %v", i, s, err)
		}
	}
	if err := stop(t, j.o.Root, "job"); err != nil {
		t.Fatal(err)
	}
	<-j.done
	if j.result.Servers != 2 || j.result.Workers != 2 || len(j.result.Rescales) != 20 {
		t.Errorf("ended with %d servers, %d workers, %d rescales", j.result.Servers, j.result.Workers, len(j.result.Rescales))
	}
}
