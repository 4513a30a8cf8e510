package pieces

import (
	"runtime"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"optimus/compute/optim"
)

// phases is how often TestLiveTransitions cuts the blocks anew, every stride steps.
const (
	phases     = 6
	stride     = 5
	totalSteps = phases * stride
)

// layout is the cut of generation 1+phase: one piece per block, or several.
func layout(cfg Config, phase int) []ID {
	var ids []ID
	for b, p := range cfg.Params {
		n := 1 + (phase+b)%3
		for k := range n {
			lo, hi := p.Size()*k/n, p.Size()*(k+1)/n
			ids = append(ids, ID{b, lo, hi - lo})
		}
	}
	return ids
}

// TestLiveTransitions: workers train at full speed while the pieces are cut anew
// under them every few steps; nobody waits for a transition but for its Commit,
// and the result is that of a run without any.
func TestLiveTransitions(t *testing.T) {
	defer goleak.VerifyNone(t)
	cfg := Config{Optimizer: optim.Default(optim.Adam), Params: []optim.Param{
		{Name: "dense", Shape: []int{900}}, {Name: "rows", Shape: []int{100, 7}, Rows: true}}}
	const w = 3
	train := func(phases int) (uint64, uint64) {
		s, err := New(cfg)
		check(t, err)
		install(t, s, Generation{Number: 1, Workers: workers(w), Pieces: layout(cfg, 0)})
		check(t, s.Init(1, 0, 0))
		check(t, s.Commit(1))
		var group sync.WaitGroup
		for k := range w {
			group.Go(func() { liveWorker(t, s, cfg, k, phases) })
		}
		for phase := 1; phase < phases; phase++ {
			number, boundary := phase+1, int64(phase*stride)
			check(t, s.Install(Generation{Number: number, Workers: workers(w), Pieces: layout(cfg, phase)}))
			reached := make(chan struct{})
			s.Watch(boundary, func() { close(reached) })
			<-reached
			check(t, s.FillLocal(number, boundary))
			check(t, s.Commit(number))
		}
		group.Wait()
		return s.Digest()
	}
	p1, q1 := train(phases)
	p2, q2 := train(1)
	if p1 != p2 || q1 != q2 {
		t.Fatal("the run with transitions differs from the run without")
	}
}

// liveWorker pulls all of a version, then pushes all of the step; the generation
// of a step follows from its number.
func liveWorker(t *testing.T, s *Store, cfg Config, k, phases int) {
	generationOf := func(step int64) int { return 1 + min(int(max(step-1, 0))/stride, phases-1) }
	for step := int64(1); step <= totalSteps; step++ {
		whole := make([][]float32, len(cfg.Params))
		for b, p := range cfg.Params {
			whole[b] = make([]float32, p.Size())
		}
		from, to := generationOf(step-1), generationOf(step)
		for _, id := range layout(cfg, from-1) {
			answers := make(chan Answer, 1)
			s.Pull(Request{Generation: from, Step: step - 1, Piece: id}, func(a Answer) { answers <- a })
			a := <-answers
			if a.Outcome != Served {
				t.Errorf("worker %d, pull of version %d under generation %d: %v %v", k, step-1, from, a.Outcome, a.Err)
				return
			}
			copy(whole[id.Block][id.Offset:], a.Values)
		}
		for _, id := range layout(cfg, to-1) {
			u := Push{Generation: to, Step: step, From: Worker{k, 1}, Piece: id, Values: make([]float32, id.Size), Weight: int64(1 + k)}
			for i := range u.Values {
				u.Values[i] = whole[id.Block][id.Offset+i] + float32((id.Offset+i)%5-k)
			}
			out, err := s.Push(u)
			for ; out == Refresh; out, err = s.Push(u) { // the next generation is not installed yet
				runtime.Gosched()
			}
			if out != Accepted {
				t.Errorf("worker %d, push of step %d under generation %d: %v %v", k, step, to, out, err)
				return
			}
		}
	}
}
