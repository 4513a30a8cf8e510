package pieces

import (
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"optimus/compute/optim"
)

// TestSteadyStepAllocatesNothing: push, apply, pull, dense and by rows.
func TestSteadyStepAllocatesNothing(t *testing.T) {
	for _, rows := range []bool{false, true} {
		for _, kind := range []string{optim.SGD, optim.RMSProp, optim.Adam} {
			t.Run(fmt.Sprint(kind, " rows ", rows), func(t *testing.T) {
				cfg := Config{Params: []optim.Param{{Name: "x", Shape: []int{3000, 3}, Rows: rows}}, Optimizer: optim.Default(kind)}
				s := open(t, cfg, 2)
				u := Push{Generation: 1, Piece: ID{0, 0, 9000}, Values: ones(9000), Weight: 1}
				r := Request{Generation: 1, Piece: u.Piece}
				if rows {
					u.Rows, u.Values = []int32{5, 70, 2999}, ones(9)
					r.Rows, r.Into = u.Rows, make([]float32, 9)
				}
				served := 0
				reply := func(a Answer) {
					if a.Outcome == Served {
						served++
					}
				}
				step := func() {
					u.Step++
					r.Step++
					s.Pull(r, reply)
					for w := range 2 {
						u.From = Worker{w, 1}
						if out, err := s.Push(u); out != Accepted {
							t.Fatal(out, err)
						}
					}
				}
				for range 3 {
					step()
				}
				n := testing.AllocsPerRun(50, step)
				if served < 50 {
					t.Fatalf("only %d pulls were served", served)
				}
				if !raceEnabled && n != 0 {
					t.Fatalf("%v allocations per step", n)
				}
			})
		}
	}
}

// TestConcurrentTraining runs workers, retries, checkpoints, transitions and
// digests at once; the result is that of the same steps one after the other.
func TestConcurrentTraining(t *testing.T) {
	defer goleak.VerifyNone(t)
	const n, w, steps = 5000, 3, 60
	cfg := Config{Optimizer: optim.Default(optim.SGD), Params: []optim.Param{
		{Name: "dense", Shape: []int{n}}, {Name: "rows", Shape: []int{n, 1}, Rows: true}}}
	ids := []ID{{0, 0, n / 2}, {0, n / 2, n - n/2}, {1, 0, n}}
	train := func(parallel bool) (uint64, uint64) {
		s, err := New(cfg)
		check(t, err)
		install(t, s, Generation{Number: 1, Workers: workers(w), Pieces: ids})
		check(t, s.Init(1, 0, 0))
		check(t, s.Commit(1))
		done := make(chan struct{})
		var aside sync.WaitGroup
		if parallel {
			aside.Go(func() { checkpoints(t, s, done) })
			for v := int64(10); v < steps; v += 10 {
				s.Watch(v, func() { pinOne(t, s, v) })
			}
		}
		var group sync.WaitGroup
		for k := range w {
			work := func() { workOne(t, s, k, ids, steps) }
			group.Go(work)
		}
		group.Wait()
		close(done)
		aside.Wait()
		return s.Digest()
	}
	p1, q1 := train(true)
	runtime.GC()
	p2, q2 := train(false)
	if p1 != p2 || q1 != q2 {
		t.Fatal("two runs of the same steps differ")
	}
}

// workOne is one worker: pull everything, push what depends on it, twice.
func workOne(t *testing.T, s *Store, k int, ids []ID, steps int64) {
	for step := int64(1); step <= steps; step++ {
		for _, id := range ids {
			answers := make(chan Answer, 1)
			s.Pull(Request{Generation: 1, Step: step - 1, Piece: id}, func(a Answer) { answers <- a })
			a := <-answers
			if a.Outcome != Served {
				t.Errorf("worker %d, step %d: %v", k, step, a.Outcome)
				return
			}
			u := Push{Generation: 1, Step: step, From: Worker{k, 1}, Piece: id, Values: make([]float32, id.Size), Weight: 1}
			for i, x := range a.Values {
				u.Values[i] = x + float32(i%7+k)
			}
			for range 2 {
				if out, err := s.Push(u); out != Accepted && out != Duplicate {
					t.Errorf("worker %d, step %d: %v %v", k, step, out, err)
					return
				}
			}
		}
	}
}

// checkpoints reads what can be read at any time until done.
func checkpoints(t *testing.T, s *Store, done chan struct{}) {
	for {
		select {
		case <-done:
			return
		default:
		}
		low, high := s.Versions()
		if high > low+1 {
			t.Errorf("pieces at versions %d to %d", low, high)
		}
		if snap, err := s.Pin(low); err == nil {
			snap.Release()
		}
		s.Counters()
		runtime.Gosched()
	}
}

func pinOne(t *testing.T, s *Store, version int64) {
	snap, err := s.Pin(version)
	if err != nil {
		t.Error(err)
		return
	}
	defer snap.Release()
	part := snap.Parts()[0]
	p, q := part.Digest()
	runtime.Gosched()
	if p2, q2 := part.Digest(); p != p2 || q != q2 {
		t.Error("a pinned array changed")
	}
}

// BenchmarkStep is push, apply and pull of one piece by one worker; x-copy says
// how many plain copies of the same array take as long.
func BenchmarkStep(b *testing.B) {
	const n = 1 << 20
	for _, w := range []int{1, 4} {
		for _, o := range []optim.Config{{Kind: optim.SGD, LR: 0.1}, optim.Default(optim.SGD), optim.Default(optim.RMSProp), optim.Default(optim.Adam)} {
			b.Run(fmt.Sprintf("%s momentum %v w %d", o.Kind, o.Momentum, w), func(b *testing.B) {
				s := open(b, Config{Params: []optim.Param{{Name: "x", Shape: []int{n}}}, Optimizer: o}, w)
				values, dst := ones(n), make([]float32, n)
				step := int64(0)
				b.SetBytes(4 * n * int64(w))
				for b.Loop() {
					step++
					for k := range w {
						if out, err := s.Push(Push{Generation: 1, Step: step, From: Worker{k, 1}, Piece: ID{0, 0, n}, Values: values, Weight: 1}); out != Accepted {
							b.Fatal(out, err)
						}
					}
					s.Pull(Request{Generation: 1, Step: step, Piece: ID{0, 0, n}}, func(Answer) {})
				}
				mine := b.Elapsed().Seconds() / float64(b.N)
				const copies = 100
				start := time.Now()
				for range copies {
					copy(dst, values)
				}
				b.ReportMetric(mine/(time.Since(start).Seconds()/copies), "x-copy")
			})
		}
	}
}

// BenchmarkRows is a step that touches 1000 of a million rows of 64.
func BenchmarkRows(b *testing.B) {
	const rows, size, touched = 1 << 20 >> 2, 64, 1000
	s := open(b, Config{Params: []optim.Param{{Name: "x", Shape: []int{rows, size}, Rows: true}}, Optimizer: optim.Default(optim.Adam)}, 1)
	u := Push{Generation: 1, From: Worker{0, 1}, Piece: ID{0, 0, rows * size}, Values: ones(touched * size), Weight: 1}
	for i := range touched {
		u.Rows = append(u.Rows, int32(i*(rows/touched)))
	}
	b.SetBytes(4 * touched * size)
	for b.Loop() {
		u.Step++
		if out, err := s.Push(u); out != Accepted {
			b.Fatal(out, err)
		}
	}
}
