package models_test

import (
	"errors"
	"fmt"
	"math"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"optimus/compute"
	"optimus/compute/cpu"
	"optimus/models"
)

// learner is a workload of the size tiny with random values in its blocks, and a way
// to make batches of its generated data.
type learner struct {
	*trainer
}

func newLearner(t *testing.T, name string) learner {
	t.Helper()
	w := lookup(t, name)
	if small, err := w.At(models.Tiny); err == nil {
		w = small
	}
	set, err := w.Generate(models.Options{Seed: 3, N: 40})
	if err != nil {
		t.Fatal(err)
	}
	return learner{newTrainer(t, w, set, 1)}
}

// batch loads examples, with all that a step needs for them. It is its own copy.
func (l learner) batch(ids ...int) *compute.Batch {
	l.load(l.set.Train, ids)
	b := &compute.Batch{N: l.trainer.batch.N}
	for _, in := range l.trainer.batch.Inputs {
		b.Inputs = append(b.Inputs, compute.Array{Shape: in.Shape, F: slices.Clone(in.F), I: slices.Clone(in.I)})
	}
	return b
}

// run trains on a batch whose rows are loaded.
func (l learner) run(b *compute.Batch, ids ...int) (compute.Result, error) {
	return l.e.Train(b, compute.Key{Seed: 1, Examples: ids}, compute.Hooks{})
}

// norm reports whether statistics of the batch are part of the model.
func (l learner) norm() bool { return len(l.p.Aux) > 0 }

// gradients returns those of the last step, each spread over its whole block.
func (l learner) gradients() [][]float64 {
	var out [][]float64
	for b, param := range l.p.Params {
		g, whole, w := l.e.Grad(b), make([]float64, param.Size()), param.RowSize()
		for i, v := range g.Dense {
			whole[i] = float64(v)
		}
		for i, v := range g.Values {
			whole[int(g.Rows[i/w])*w+i%w] = float64(v)
		}
		out = append(out, whole)
	}
	return out
}

func finite(result compute.Result, gradients [][]float64) bool {
	bad := func(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) }
	return !bad(result.Loss) && !slices.ContainsFunc(gradients, func(g []float64) bool { return slices.ContainsFunc(g, bad) })
}

// TestShares cuts a batch of 7 unevenly, once down to one example: weights add up, and
// where no norm looks over the whole batch so do losses and gradients.
func TestShares(t *testing.T) {
	for _, name := range nine() {
		t.Run(name, func(t *testing.T) {
			l := newLearner(t, name)
			step := func(ids ...int) (compute.Result, [][]float64) {
				r, err := l.run(l.batch(ids...), ids...)
				if err != nil {
					t.Fatal(err)
				}
				g := l.gradients()
				if !finite(r, g) || r.Weight < 1 || !(r.Loss > 0) {
					t.Fatalf("examples %v: %+v, or gradients that are not finite", ids, r)
				}
				return r, g
			}
			ids := []int{3, 1, 4, 15, 9, 2, 6}
			whole, want := step(ids...)
			for _, cut := range []int{1, 3} {
				sum, got := step(ids[:cut]...)
				rest, more := step(ids[cut:]...)
				sum.Add(rest)
				if sum.Weight != whole.Weight {
					t.Errorf("cut at %d: weight %d, want %d", cut, sum.Weight, whole.Weight)
				}
				if l.norm() {
					continue
				}
				if sum.Counts != whole.Counts || math.Abs(sum.Loss-whole.Loss) > 1e-5*whole.Loss {
					t.Errorf("cut at %d: %+v, want %+v", cut, sum, whole)
				}
				for b, g := range want {
					largest := 0.0
					for _, v := range g {
						largest = max(largest, math.Abs(v))
					}
					for j, v := range g {
						if s := got[b][j] + more[b][j]; math.Abs(s-v) > 2e-5*largest {
							t.Fatalf("cut at %d: gradient of %s[%d] is %v, want %v; the largest is %v", cut, l.p.Params[b].Name, j, s, v, largest)
						}
					}
				}
			}
		})
	}
}

// TestNothing: a share without examples has no weight and changes nothing.
func TestNothing(t *testing.T) {
	for _, name := range nine() {
		l := newLearner(t, name)
		if _, err := l.run(l.batch(0, 1), 0, 1); err != nil {
			t.Fatal(err)
		}
		r, err := l.run(l.batch())
		if err != nil || r != (compute.Result{}) {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
		for b, g := range l.gradients() {
			if slices.ContainsFunc(g, func(v float64) bool { return v != 0 }) {
				t.Errorf("%s: a gradient of %s", name, l.p.Params[b].Name)
			}
		}
		for i := range l.p.Aux {
			if slices.ContainsFunc(l.e.AuxSum(i), func(v float32) bool { return v != 0 }) {
				t.Errorf("%s: a statistic %s", name, l.p.Aux[i].Name)
			}
		}
		if r, err := l.e.Evaluate(l.batch()); err != nil || r != (compute.Result{}) {
			t.Errorf("%s: evaluation: %+v, %v", name, r, err)
		}
	}
}

// TestNotFinite puts NaN and infinity where a model reads them: the step says so, in its
// loss or its gradients, so that the servers can refuse it. And the step after that is
// right again. (An infinite bias is no mistake: cells saturate, and a ReLU lets nothing
// through. So blocks get a NaN.)
func TestNotFinite(t *testing.T) {
	for _, name := range nine() {
		t.Run(name, func(t *testing.T) {
			l := newLearner(t, name)
			ids := []int{0, 1, 2}
			check := func(what string, b *compute.Batch) {
				t.Helper()
				if r, err := l.run(b, ids...); err != nil || finite(r, l.gradients()) {
					t.Errorf("%s: %+v, %v, and finite gradients", what, r, err)
				}
			}
			right, err := l.run(l.batch(ids...), ids...)
			if err != nil {
				t.Fatal(err)
			}
			nan, inf := float32(math.NaN()), float32(math.Inf(1))
			for i, in := range l.p.Inputs {
				for _, v := range []float32{nan, inf, -inf} {
					if in.Limit == 0 {
						b := l.batch(ids...)
						b.Inputs[i].F[middle(in)] = v
						check(fmt.Sprintf("%v in input %s", v, in.Name), b)
					}
				}
			}
			few := max(1, len(l.p.Params)/16)
			for block := 0; block < len(l.p.Params); block += few {
				param := l.p.Params[block]
				if fixed(l.p, block) {
					continue
				}
				b := l.batch(ids...)
				if param.Rows {
					rows, err := l.e.Rows(block, b)
					if err != nil {
						t.Fatal(err)
					}
					for _, row := range rows {
						l.e.SetRow(block, int(row), 0, []float32{nan})
					}
				} else {
					l.e.SetParam(block, 0, []float32{nan})
				}
				check("NaN in block "+param.Name, b)
			}
			if again, err := l.run(l.batch(ids...), ids...); err != nil || again != right {
				t.Errorf("after that %+v, %v; want %+v", again, err, right)
			}
		})
	}
}

// middle is a value in the middle of the first example, which all crops have in common.
func middle(in compute.Input) int {
	c, h, w := in.Shape[0], in.Shape[1], in.Shape[2]
	return (c/2*h+h/2)*w + w/2
}

// fixed reports whether a block is the scale of a norm that counts as 1.
func fixed(p *compute.Program, block int) bool {
	return slices.ContainsFunc(p.Forward, func(s compute.Step) bool {
		norm, ok := s.Op.(*compute.BatchNorm)
		return ok && norm.FixGamma && norm.Gamma == block
	})
}

// TestRefuses: a batch that the model is not made for is an error that says what is
// wrong, and the step after that is right.
func TestRefuses(t *testing.T) {
	for _, name := range nine() {
		t.Run(name, func(t *testing.T) {
			l := newLearner(t, name)
			ids := []int{0, 1, 2}
			right, err := l.run(l.batch(ids...), ids...)
			if err != nil {
				t.Fatal(err)
			}
			refuse := func(b *compute.Batch, want ...string) {
				t.Helper()
				_, train := l.run(b)
				_, evaluate := l.e.Evaluate(b)
				for _, err := range []error{train, evaluate} {
					for _, part := range want {
						if !errors.Is(err, cpu.ErrInput) || !strings.Contains(fmt.Sprint(err), part) {
							t.Errorf("error %v, want one about the input with %q", err, part)
						}
					}
				}
			}
			for i, in := range l.p.Inputs {
				b := l.batch(ids...)
				if in.Limit > 0 {
					b.Inputs[i].I[1] = int32(in.Limit)
					refuse(b, fmt.Sprintf("%q", in.Name), fmt.Sprint("value ", in.Limit))
					b.Inputs[i].I[1] = -1
					refuse(b, fmt.Sprintf("%q", in.Name), "value -1")
				}
				b = l.batch(ids...)
				a, more := &b.Inputs[i], 3*in.Size()*(l.p.Steps(in.Axis)+1) // longer than anything the model is for
				if in.Limit > 0 {
					a.I = make([]int32, more)
				} else {
					a.F = make([]float32, more)
				}
				refuse(b, fmt.Sprintf("input %q holds %d values", in.Name, more))
			}
			b := l.batch(ids...)
			b.N = -1
			refuse(b, "-1 examples")
			b = l.batch(ids...)
			b.Inputs = b.Inputs[1:]
			refuse(b, "inputs, the program has")
			if again, err := l.run(l.batch(ids...), ids...); err != nil || again != right {
				t.Errorf("after that %+v, %v; want %+v", again, err, right)
			}
		})
	}
}

// TestBO33InfeasibleTranscript: a transcript that no path of its recording makes is
// refused, whatever else is in the batch; it does not ruin a gradient.
func TestBO33InfeasibleTranscript(t *testing.T) {
	l := newLearner(t, "deepspeech2")
	ids := []int{0, 1, 2, 3}
	b := l.batch(ids...)
	lengths, letters := b.Inputs[inputOf(t, l.p, "length")].I, b.Inputs[inputOf(t, l.p, "text length")].I
	lengths[2] = 24 // which leave the second convolution nothing
	_, err := l.run(b, ids...)
	if !errors.Is(err, cpu.ErrInput) || !strings.Contains(fmt.Sprint(err), fmt.Sprintf("example 2: its %d labels need", letters[2])) {
		t.Errorf("error %v, want one that names example 2", err)
	}
	good := []int{0, 1, 3}
	if r, err := l.run(l.batch(good...), good...); err != nil || !finite(r, l.gradients()) || r.Weight != 3 {
		t.Errorf("the others: %+v, %v", r, err)
	}
}

func inputOf(t *testing.T, p *compute.Program, name string) int {
	t.Helper()
	i := slices.IndexFunc(p.Inputs, func(in compute.Input) bool { return in.Name == name })
	if i < 0 {
		t.Fatalf("%s has no input %q", p.Name, name)
	}
	return i
}

// TestSteadySteps: once it has seen its longest batch, no workload allocates anything
// in a step, however many examples the next has and however long they are.
func TestSteadySteps(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector makes sync.Pool allocate")
	}
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // a collection empties sync.Pool
	for _, name := range nine() {
		for _, threads := range []int{1, 2} {
			l := newLearner(t, name)
			e, err := cpu.Compile(l.p, 8, cpu.Threads(threads))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(e.Close)
			l.e = e
			warm := []*compute.Batch{l.batch(0, 1, 2, 3, 4, 5, 6, 7), l.batch(8)}
			fresh := []*compute.Batch{l.batch(9), l.batch(10, 11), l.batch(12, 13, 14), l.batch(15, 16, 17, 18, 19, 20)}
			for i, param := range l.p.Params {
				if !param.Rows {
					e.SetParam(i, 0, l.params[i])
				}
			}
			step := func(b *compute.Batch) {
				for i, param := range l.p.Params {
					if !param.Rows {
						continue
					}
					rows, err := e.Rows(i, b)
					if err != nil {
						t.Fatal(err)
					}
					for _, row := range rows {
						w := param.RowSize()
						e.SetRow(i, int(row), 0, l.params[i][int(row)*w:int(row+1)*w])
					}
				}
				if _, err := e.Train(b, compute.Key{Seed: 1}, compute.Hooks{}); err != nil {
					t.Fatal(err)
				}
				if _, err := e.Evaluate(b); err != nil {
					t.Fatal(err)
				}
			}
			for _, b := range warm {
				step(b)
			}
			// A thread that is interrupted while it holds scratch memory can make another
			// allocate, once for each thread.
			left := math.Inf(1)
			for range threads + 1 {
				i := 0
				if left = testing.AllocsPerRun(len(fresh)-1, func() { step(fresh[i]); i++ }); left < 1 {
					break
				}
			}
			if left >= 1 {
				t.Errorf("%s, %d threads: %v allocations in a step", name, threads, left)
			}
		}
	}
}
