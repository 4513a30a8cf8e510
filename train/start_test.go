package train

import (
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"optimus/compute"
	"optimus/spec"
	"optimus/telemetry"
	"optimus/worker"
)

// seen records the parameters that each worker trains a step on.
type seen struct {
	mu    sync.Mutex
	first map[*probe]float32
}

// probe is LIN1 that notes what it was given.
type probe struct {
	linear
	s *seen
}

func (m *probe) Train(seed uint64, epoch int, ids []int) (compute.Result, error) {
	m.s.mu.Lock()
	if _, ok := m.s.first[m]; !ok {
		m.s.first[m] = m.w
	}
	m.s.mu.Unlock()
	return m.linear.Train(seed, epoch, ids)
}

// TestBO02_FirstPullIsTheInitialValue: in asp, however late a worker or server
// starts, all workers begin with what one initialisation made: until somebody has
// pushed, everybody sees the same.
func TestBO02_FirstPullIsTheInitialValue(t *testing.T) {
	for _, late := range []int{0, 3} {
		s := &seen{first: map[*probe]float32{}}
		j := newJob(t, spec.InProc, 4, 4, 300)
		j.spec.Mode, j.spec.Workload, j.spec.Epochs = spec.ASP, "", 0
		targets := make([]float32, 1000)
		for i := range targets {
			targets[i] = 3
		}
		task := lin1(targets...)
		task.Batch = 8
		task.Params[0].Init.Kind, task.Params[0].Init.Scale = "constant", 0.5
		made := 0
		task.New = func(int) (worker.Model, error) {
			s.mu.Lock()
			id := made
			made++
			s.mu.Unlock()
			if id == late {
				time.Sleep(300 * time.Millisecond)
			}
			return &probe{linear: linear{targets: targets}, s: s}, nil
		}
		// The first push of everybody is held back until all have pulled.
		var pulled sync.WaitGroup
		pulled.Add(4)
		j.o.Slow = func(int) func() {
			var once sync.Once
			return func() { once.Do(func() { pulled.Done(); pulled.Wait() }) }
		}
		j.o.Task = task
		j.start(t.Context())
		r, err := j.wait()
		if err != nil {
			t.Fatal(err)
		}
		if len(s.first) != 4 {
			t.Fatalf("%d workers trained", len(s.first))
		}
		for _, w := range s.first {
			if w != 0.5 {
				t.Errorf("late %d: a worker began with w = %v, not with the initial 0.5", late, w)
			}
		}
		if r.Loss > 0.01 {
			t.Errorf("late %d: loss %v after 300 steps", late, r.Loss)
		}
	}
}

// noting notes the parameter of each step that a worker trains.
type noting struct {
	linear
	note func(w float32)
}

func (m *noting) Train(seed uint64, epoch int, ids []int) (compute.Result, error) {
	m.note(m.w)
	return m.linear.Train(seed, epoch, ids)
}

// TestBO18_RestoredValuesHold: after a restore all workers train on one and the
// same version at every step, and it goes on from the saved one.
func TestBO18_RestoredValuesHold(t *testing.T) {
	run := func(root string, w, steps int, resume string) [][]float32 {
		j := newJob(t, spec.InProc, 2, w, steps)
		if root != "" {
			j.o.Root = root
		}
		task := lin1(2, 4, 6, 8, 2, 4, 6, 8)
		task.Optimizer.Momentum = 0.5
		notes := make([][]float32, 0, w)
		var mu sync.Mutex
		task.New = func(int) (worker.Model, error) {
			mu.Lock()
			defer mu.Unlock()
			id := len(notes)
			notes = append(notes, nil)
			return &noting{linear{targets: []float32{2, 4, 6, 8, 2, 4, 6, 8}}, func(v float32) {
				mu.Lock()
				defer mu.Unlock()
				notes[id] = append(notes[id], v)
			}}, nil
		}
		j.spec.Workload, j.o.Task, j.spec.Resume = "", task, resume
		j.start(t.Context())
		if _, err := j.wait(); err != nil {
			t.Fatal(err)
		}
		return notes
	}
	straight := run("", 1, 20, "")[0]
	root := t.TempDir()
	run(root, 3, 10, "")
	for id, got := range run(root, 4, 20, "job") {
		for i, w := range got {
			if d := w - straight[10+i]; d > 1e-5 || d < -1e-5 {
				t.Fatalf("worker %d, step %d after the restore: w = %v, an unbroken run has %v", id, i+1, w, straight[10+i])
			}
		}
		if len(got) != 10 {
			t.Errorf("worker %d made %d steps, want 10", id, len(got))
		}
	}
}

// poison is LIN1 whose gradient is not finite in some of its steps.
type poison struct {
	linear
	n  *int
	at func(n int) bool
}

func (m *poison) Train(seed uint64, epoch int, ids []int) (compute.Result, error) {
	r, err := m.linear.Train(seed, epoch, ids)
	if *m.n++; m.at(*m.n) {
		m.g = float32(math.NaN())
	}
	return r, err
}

// TestBO05_NonFinite: one worker's NaN never reaches the served weights: its
// step is skipped and named, and too many in a row end the job.
func TestBO05_NonFinite(t *testing.T) {
	poisoned := func(mode spec.Mode, limit int, at func(int) bool) *job {
		j := newJob(t, spec.InProc, 2, 3, 30)
		task := lin1(1, 2, 3, 4, 5, 6)
		calls := 0
		var mu sync.Mutex
		task.New = func(int) (worker.Model, error) {
			mu.Lock()
			defer mu.Unlock()
			calls++
			m := &poison{linear: linear{targets: []float32{1, 2, 3, 4, 5, 6}}, n: new(int), at: at}
			if calls != 2 {
				m.at = func(int) bool { return false }
			}
			return m, nil
		}
		j.spec.Mode, j.spec.Workload, j.spec.NonFiniteLimit, j.o.Task = mode, "", limit, task
		j.start(t.Context())
		return j
	}
	j := poisoned(spec.BSP, 0, func(n int) bool { return n == 5 })
	r, err := j.wait()
	if err != nil || r.Steps != 30 {
		t.Fatalf("result %+v, error %v", r, err)
	}
	skipped := 0
	for _, rec := range records(t, j.o.Root, "job") {
		switch rec := rec.(type) {
		case telemetry.Skipped:
			skipped++
			if rec.Step != 5 || !strings.Contains(rec.Cause, "worker") || !strings.Contains(rec.Cause, "w") {
				t.Errorf("skipped %+v", rec)
			}
		case telemetry.Step:
			if l := float64(rec.Loss); math.IsNaN(l) || math.IsInf(l, 0) {
				t.Errorf("step %d: loss %v", rec.Step, l)
			}
		}
	}
	if skipped != 1 {
		t.Errorf("%d steps were skipped, want 1", skipped)
	}
	if _, err := poisoned(spec.BSP, 4, func(int) bool { return true }).wait(); err == nil || !strings.Contains(err.Error(), "non-finite") {
		t.Errorf("a gradient that is never finite: %v", err)
	}
}
