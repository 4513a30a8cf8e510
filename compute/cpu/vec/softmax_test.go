package vec

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// exactSoftmax returns softmax(x) and its logarithm in float64.
func exactSoftmax(x []float32) (p, log []float64) {
	top, sum := math.Inf(-1), 0.0
	for _, v := range x {
		top = max(top, float64(v))
	}
	for _, v := range x {
		sum += math.Exp(float64(v) - top)
	}
	for _, v := range x {
		log = append(log, float64(v)-top-math.Log(sum))
		p = append(p, math.Exp(float64(v)-top)/sum)
	}
	return p, log
}

func near(got, want, rel, abs float64) bool { return math.Abs(got-want) <= rel*math.Abs(want)+abs }

func TestSoftmax(t *testing.T) {
	each(t, func(t *testing.T, name string) {
		rapid.Check(t, func(r *rapid.T) {
			x := rapid.SliceOfN(rapid.Float32Range(-60, 60), 1, 100).Draw(r, "x")
			shift := rapid.SampledFrom([]float32{0, 1000, -1000, 1e30}).Draw(r, "shift")
			for i := range x {
				x[i] += shift
			}
			label := rapid.IntRange(0, len(x)-1).Draw(r, "label")
			p, log := exactSoftmax(x)
			y, dx := make([]float32, len(x)), make([]float32, len(x))
			softmaxAt(name, y, x)
			loss, best := crossEntropyAt(name, dx, x, label)
			only, _ := crossEntropyAt(name, nil, x, label)
			_, wantBest := maxAt(&plain, x)
			if exact := -log[label]; !near(loss, exact, 2e-7, 2e-7) || only != loss || best != wantBest {
				r.Fatalf("loss %v (without gradient %v) at %d, want %v at %d", loss, only, best, exact, wantBest)
			}
			for i := range x {
				// A difference of logits is rounded before exp takes it: relative to p this is an
				// error of as many units as the difference has.
				rel := 3e-7 + 6e-8*math.Abs(log[i])
				grad := p[i]
				if i == label {
					grad--
				}
				if !near(float64(y[i]), p[i], rel, 1e-44) || !near(float64(dx[i]), grad, rel, 1e-7*p[i]+1e-44) {
					r.Fatalf("element %d: softmax %g, gradient %g; want %g, %g", i, y[i], dx[i], p[i], grad)
				}
			}
			inPlace := append([]float32(nil), x...)
			crossEntropyAt(name, inPlace, inPlace, label)
			if diff := cmp.Diff(dx, inPlace); diff != "" {
				r.Fatalf("in place the gradient differs (-apart +in place):\n%s", diff)
			}
			a, b := make([]float32, len(x)), append([]float32(nil), x...)
			softmaxAt("plain", a, x)
			softmaxAt(name, b, b)
			if diff := cmp.Diff(a, b); diff != "" {
				r.Fatalf("the level differs from plain, which was not in place (-plain +level):\n%s", diff)
			}
		})
	})
}

// TestCrossEntropyIsSureOfItself has a label whose probability rounds to 1: the loss and the
// gradient at the label are the small probability of the others, not 0.
func TestCrossEntropyIsSureOfItself(t *testing.T) {
	each(t, func(t *testing.T, name string) {
		dx := make([]float32, 2)
		loss, _ := crossEntropyAt(name, dx, []float32{20, 0}, 0)
		want := math.Log1p(math.Exp(-20))
		if !near(loss, want, 2e-7, 1e-16) || !near(float64(dx[0]), -math.Exp(-20), 1e-6, 0) {
			t.Errorf("loss %g, gradient %g; want %g and its negative", loss, dx[0], want)
		}
		loss, _ = crossEntropyAt(name, dx, []float32{float32(math.NaN()), 0}, 1)
		if loss == loss {
			t.Errorf("the loss of a NaN is %v", loss)
		}
	})
}
