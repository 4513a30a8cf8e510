package seq

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func wide(x []float32) []float64 {
	out := make([]float64, len(x))
	for i, v := range x {
		out[i] = float64(v)
	}
	return out
}

// derivative is that of f by x[i], by central differences.
func derivative(f func(x []float64) float64, x []float64, i int) float64 {
	const h = 1e-5
	moved := func(d float64) float64 {
		y := slices.Clone(x)
		y[i] += d
		return f(y)
	}
	return (moved(h) - moved(-h)) / (2 * h)
}

func close32(got float32, want float64) bool {
	return math.Abs(float64(got)-want) <= 2e-6*(1+math.Abs(want))
}

// attend64 is dot attention by its equations.
func attend64(q, memory []float64, n int) (context, weights []float64) {
	h := len(q)
	context, sum := make([]float64, h), 0.0
	for i := range n {
		score := 0.0
		for j, v := range q {
			score += v * memory[i*h+j]
		}
		weights = append(weights, math.Exp(score))
		sum += weights[i]
	}
	for i := range weights {
		weights[i] /= sum
		for j := range context {
			context[j] += weights[i] * memory[i*h+j]
		}
	}
	return context, weights
}

// TestAttend compares with the equations in float64 and their derivatives; what lies behind the source's end is
// NaN, so that it would show if it were read.
func TestAttend(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		h, positions := rapid.IntRange(1, 20).Draw(r, "h"), rapid.IntRange(0, 6).Draw(r, "positions")
		n := rapid.IntRange(0, positions).Draw(r, "n")
		seed := rapid.Uint64Range(0, 1000).Draw(r, "seed")
		q, memory, dcontext := normal(seed, h), normal(seed+1, positions*h), normal(seed+2, h)
		for i := n * h; i < len(memory); i++ {
			memory[i] = float32(math.NaN())
		}
		context, weights := normal(1, h), normal(2, positions)
		Attend(context, weights, q, memory, n)
		wantContext, wantWeights := attend64(wide(q), wide(memory), n)
		for i, w := range weights {
			if i < n && !close32(w, wantWeights[i]) || i >= n && w != 0 {
				r.Fatalf("weights %v, want %v and zeros", weights, wantWeights)
			}
		}
		for i, v := range context {
			if !close32(v, wantContext[i]) {
				r.Fatalf("context %v, want %v", context, wantContext)
			}
		}
		dq, dmemory := make([]float32, h), make([]float32, len(memory))
		AttendGrad(dq, dmemory, dcontext, weights, q, memory, make([]float32, positions), n)
		loss := func(q, memory []float64) (s float64) {
			context, _ := attend64(q, memory, n)
			for i, v := range context {
				s += v * float64(dcontext[i])
			}
			return s
		}
		for i, got := range dq {
			if want := derivative(func(q []float64) float64 { return loss(q, wide(memory)) }, wide(q), i); !close32(got, want) {
				r.Fatalf("gradient of q %d is %v, want %v", i, got, want)
			}
		}
		for i, got := range dmemory {
			want := 0.0
			if i < n*h {
				want = derivative(func(m []float64) float64 { return loss(wide(q), m) }, wide(memory), i)
			}
			if !close32(got, want) {
				r.Fatalf("gradient of memory %d is %v, want %v", i, got, want)
			}
		}
		again := slices.Clone(dq)
		AttendGrad(again, dmemory, dcontext, weights, q, memory, make([]float32, positions), n)
		for i, got := range again {
			if !close32(got, 2*float64(dq[i])) {
				r.Fatalf("the second gradient does not add: %v after %v", got, dq[i])
			}
		}
	})
}

func TestSampledLoss(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		s := rapid.SliceOfN(rapid.Float32Range(-30, 30), 0, 6).Draw(r, "scores")
		var noise []float32
		if rapid.Bool().Draw(r, "with noise") {
			noise = normal(3, len(s))
		}
		exact := func(s []float64) (loss float64) {
			for i, v := range s {
				if noise != nil {
					v -= float64(noise[i])
				}
				if i == 0 {
					v = -v
				}
				loss += math.Log1p(math.Exp(v))
			}
			return loss
		}
		ds := make([]float32, len(s))
		loss := SampledLoss(ds, s, noise)
		if want := exact(wide(s)); math.Abs(loss-want) > 1e-12*(1+want) || SampledLoss(nil, s, noise) != loss {
			r.Fatalf("loss %v, without gradient %v, want %v", loss, SampledLoss(nil, s, noise), want)
		}
		for i, got := range ds {
			if want := derivative(exact, wide(s), i); math.Abs(float64(got)-want) > 1e-7 {
				r.Fatalf("gradient %d is %v, want %v", i, got, want)
			}
		}
		in := slices.Clone(s)
		SampledLoss(in, in, noise)
		if diff := cmp.Diff(ds, in); diff != "" {
			r.Fatalf("in place the gradient differs:\n%s", diff)
		}
	})
}

// TestSampledLossFarAway has scores whose exponentials overflow, and ones whose gradients are tiny.
func TestSampledLossFarAway(t *testing.T) {
	inf := float32(math.Inf(1))
	for _, c := range []struct {
		s    []float32
		loss float64
		ds   []float32
	}{
		{[]float32{1e30, -1e30}, 0, []float32{0, 0}},
		{[]float32{-1e3, 1e3}, 2e3, []float32{-1, 1}},
		{[]float32{inf, -inf}, 0, []float32{0, 0}},
		{[]float32{0, inf}, math.Inf(1), []float32{-0.5, 1}},
		{[]float32{40, -40}, 2 * math.Log1p(math.Exp(-40)), []float32{-4.248354e-18, 4.248354e-18}},
	} {
		ds := make([]float32, 2)
		loss := SampledLoss(ds, c.s, nil)
		if loss != c.loss || math.Abs(float64(ds[0]-c.ds[0])) > 1e-23 || math.Abs(float64(ds[1]-c.ds[1])) > 1e-23 {
			t.Errorf("scores %v: loss %v, gradient %v; want %v, %v", c.s, loss, ds, c.loss, c.ds)
		}
	}
}

func TestMisuseAndAllocations(t *testing.T) {
	x := func(n int) []float32 { return make([]float32, n) }
	context, weights, q, memory, scratch := x(5), x(3), x(5), x(15), x(3)
	if n := testing.AllocsPerRun(10, func() {
		Attend(context, weights, q, memory, 2)
		AttendGrad(q, memory, context, weights, q, memory, scratch, 2)
		SampledLoss(weights, weights, scratch)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
	for want, f := range map[string]func(){
		"memory has 14": func() { Attend(context, weights, q, memory[1:], 2) },
		"4 of 3":        func() { Attend(context, weights, q, memory, 4) },
		"-1 of 3":       func() { MaskedSoftmax(weights, scratch, -1) },
		"scratch has 2": func() { AttendGrad(q, memory, context, weights, q, memory, scratch[1:], 2) },
		"noise has 2":   func() { SampledLoss(weights, weights, scratch[1:]) },
		"ds has 2":      func() { SampledLoss(weights[1:], weights, nil) },
	} {
		func() {
			defer func() {
				if got := fmt.Sprint(recover()); !strings.Contains(got, want) {
					t.Errorf("panic %q, want one with %q", got, want)
				}
			}()
			f()
		}()
	}
}
