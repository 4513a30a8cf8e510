package step

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"optimus/compute"
	"optimus/models"
)

// TestStep: a workload learns the one batch, which needs every part of a step, and
// allocates nothing doing so. One has dense blocks, one also a table of rows.
func TestStep(t *testing.T) {
	for name, size := range map[string]string{"cifar-small": "", "cnn-rand": "", "rnn-lstm": models.Tiny} {
		s, err := New(Options{Workload: name, Size: size, Batch: 3})
		if err != nil {
			t.Fatal(err)
		}
		loss := func() float64 {
			for i := range s.blocks {
				if err := s.blocks[i].set(s.exe, s.input); err != nil {
					t.Fatal(err)
				}
			}
			r, err := s.exe.Train(s.input, compute.Key{Seed: 1}, compute.Hooks{})
			if err != nil {
				t.Fatal(err)
			}
			return r.Mean()
		}
		before := loss()
		turn, err := s.Turn(20)
		if err != nil {
			t.Fatal(err)
		}
		if turn.Steps != 20 || turn.CPU <= 0 || turn.Wall <= 0 {
			t.Errorf("%s: 20 steps are %+v", name, turn)
		}
		if after := loss(); !(after < before) {
			t.Errorf("%s: the loss of the batch was %v and is %v after 20 steps", name, before, after)
		}
		allocations, err := s.Allocations(5)
		if err != nil || allocations >= 5 { // the runtime's own few
			t.Errorf("%s: %v allocations per step, %v", name, allocations, err)
		}
		if m := s.Memory; m.Heap < m.Weights/2 || m.Gradients*2 != m.Weights || m.Activations <= 0 {
			t.Errorf("%s: memory %+v", name, m)
		}
		s.Close()
	}
}

// TestExcess: clipping by the norm counts dense blocks and rows of tables alike.
func TestExcess(t *testing.T) {
	s, err := New(Options{Workload: "rnn-lstm", Size: models.Tiny, Batch: 3})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	const weight = 5
	squares := 0.0
	for i := range s.blocks {
		g := s.exe.Grad(i)
		for _, v := range slices.Concat(g.Dense, g.Values) {
			squares += float64(v) * float64(v) / (weight * weight)
		}
	}
	s.Optimizer.ClipNorm = math.Sqrt(squares) / 3
	if got := s.excess(weight); math.Abs(got-3) > 1e-6 {
		t.Errorf("a norm of three times the bound has excess %v", got)
	}
	s.Optimizer.ClipNorm *= 6
	if got := s.excess(weight); got > 1 {
		t.Errorf("a norm of half the bound has excess %v", got)
	}
	s.Optimizer.ClipNorm = 0
	if got := s.excess(weight); got != 0 {
		t.Errorf("without a bound the excess is %v", got)
	}
}

// TestInputs: what another implementation is told is the batch that we train on.
func TestInputs(t *testing.T) {
	for name, want := range map[string][]Input{
		"resnet-50":   {{Name: "pixels", Shape: []int{3, 224, 224}}, {Name: "label", Shape: []int{}, Limit: 1000}},
		"cifar-small": {{Name: "pixels", Shape: []int{3, 32, 32}}, {Name: "label", Shape: []int{}, Limit: 10}},
		"rnn-lstm":    {{Name: "tokens", Shape: []int{35}, Limit: 10000, Zipf: true}, {Name: "next", Shape: []int{35}, Limit: 10000}},
		"cnn-rand":    {{Name: "tokens", Shape: []int{59}, Limit: 18764, Zipf: true}, {Name: "label", Shape: []int{}, Limit: 2}},
	} {
		w, err := models.Lookup(name)
		if err != nil {
			t.Fatal(err)
		}
		p, err := w.Full()
		if err != nil {
			t.Fatal(err)
		}
		s := &Step{Program: p, Batch: 2}
		if diff := cmp.Diff(want, s.Inputs()); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// TestBatch: lengths are all the same, ids are below their bound, no id is padding.
func TestBatch(t *testing.T) {
	for _, w := range models.All() {
		p, err := w.Full()
		if err != nil {
			t.Fatal(err)
		}
		if w.Name == "resnet-50" || w.Name == "inception-bn" {
			continue // as the other pictures, but slow
		}
		b := batch(p, 2)
		for i, in := range p.Inputs {
			if in.Limit == 0 {
				continue
			}
			from, below := bounds(p, i)
			low, high := slices.Min(b.Inputs[i].I), slices.Max(b.Inputs[i].I)
			if int(low) < from || int(high) >= below || below > in.Limit {
				t.Errorf("%s, input %q: values from %d to %d, want [%d,%d) below %d", w.Name, in.Name, low, high, from, below, in.Limit)
			}
			if strings.HasSuffix(in.Name, "length") && below != from+1 {
				t.Errorf("%s, input %q: lengths in [%d,%d), want one alone", w.Name, in.Name, from, below)
			}
		}
	}
}

// TestZipf: of the ids of a table, as many lie in [1,10) as in [10,100) and in
// [100,1000), counted from 1.
func TestZipf(t *testing.T) {
	w, err := models.Lookup("cnn-rand")
	if err != nil {
		t.Fatal(err)
	}
	p, err := w.Full()
	if err != nil {
		t.Fatal(err)
	}
	var decade [6]int
	ids := batch(p, 500).Inputs[0].I
	for _, id := range ids {
		decade[int(math.Log10(float64(id)+1))]++
	}
	share := 1 / math.Log10(18765)
	for d, n := range decade[:4] {
		if got := float64(n) / float64(len(ids)); math.Abs(got-share) > 0.01 {
			t.Errorf("a share of %.3f has 10^%d to 10^%d, want %.3f", got, d, d+1, share)
		}
	}
}

// TestFLOP: published counts of multiply-adds, forward: ResNet-50 4.1 G (its gradients
// twice that, but for the first layer's input), the language model by hand.
func TestFLOP(t *testing.T) {
	count := func(name string) float64 {
		w, err := models.Lookup(name)
		if err != nil {
			t.Fatal(err)
		}
		p, err := w.Full()
		if err != nil {
			t.Fatal(err)
		}
		return (&Step{Program: p, Batch: 1}).FLOP() / 2
	}
	if got := count("resnet-50"); math.Abs(got/(3*4.09e9)-1) > 0.03 {
		t.Errorf("a step of ResNet-50 has %.3g multiply-adds per picture", got)
	}
	lstm, last := 4.*200*200*2, 200.*10000
	if got, want := count("rnn-lstm"), 35*3*(2*lstm+last); math.Abs(got/want-1) > 0.001 {
		t.Errorf("a step of the language model has %.4g multiply-adds per example, want %.4g", got, want)
	}
}

func TestRefused(t *testing.T) {
	for want, o := range map[string]Options{
		"did you mean":   {Workload: "resnet50"},
		`no size "huge"`: {Workload: "cnn-rand", Size: "huge"},
		"capacity":       {Workload: "cnn-rand", Batch: -1},
		"threads":        {Workload: "cnn-rand", Batch: 1, Threads: -1},
	} {
		if _, err := New(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: error %v, want %q", o, err, want)
		}
	}
}

// BenchmarkStep is a step of each workload on one thread, at the batch of
// DefaultBatch. To see where the time of one goes:
//
//	go test -run '^$' -bench Step/resnet-50 -cpuprofile cpu.out ./benchmarks/step
func BenchmarkStep(b *testing.B) {
	for _, w := range models.All() {
		b.Run(w.Name, func(b *testing.B) {
			s, err := New(Options{Workload: w.Name})
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			b.ReportAllocs()
			for b.Loop() {
				if err := s.Run(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(s.Batch*b.N)/b.Elapsed().Seconds(), "examples/s")
		})
	}
}

func ExampleNew() {
	s, err := New(Options{Workload: "cifar-small", Batch: 4})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()
	turn, err := s.Turn(2)
	fmt.Println(turn.Steps, "steps", err)
	// Output: 2 steps <nil>
}
