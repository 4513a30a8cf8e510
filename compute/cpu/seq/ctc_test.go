package seq

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"optimus/internal/rng"
)

func newCTC(t testing.TB, steps, labels, classes, blank int) *CTC {
	t.Helper()
	c, err := NewCTC(steps, labels, classes, blank)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func normal(seed uint64, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(rng.NewKey(seed).Normal(uint64(i)))
	}
	return x
}

// enumerate returns the loss by its definition: a sum over all classesᵀ paths.
func enumerate(x []float64, classes, blank int, labels []int32) float64 {
	steps := len(x) / classes
	p := make([]float64, len(x))
	for t := range steps {
		sum := 0.0
		for k := range classes {
			sum += math.Exp(x[t*classes+k])
		}
		for k := range classes {
			p[t*classes+k] = math.Exp(x[t*classes+k]) / sum
		}
	}
	path, total := make([]int, steps), 0.0
	var walk func(t int, share float64)
	walk = func(t int, share float64) {
		if t == steps {
			if slices.Equal(merge(path, blank), labels) {
				total += share
			}
			return
		}
		for k := range classes {
			path[t] = k
			walk(t+1, share*p[t*classes+k])
		}
	}
	walk(0, 1)
	return -math.Log(total)
}

// merge turns a path into labels.
func merge(path []int, blank int) []int32 {
	out := []int32{}
	for i, k := range path {
		if k != blank && (i == 0 || k != path[i-1]) {
			out = append(out, int32(k))
		}
	}
	return out
}

// TestCTCAgainstAllPaths compares the loss with the sum over all paths and the gradient with
// differences of that sum.
func TestCTCAgainstAllPaths(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		classes := rapid.IntRange(2, 3).Draw(r, "classes")
		blank := rapid.IntRange(0, classes-1).Draw(r, "blank")
		steps := rapid.IntRange(0, 5).Draw(r, "steps")
		labels := rapid.SliceOfN(rapid.Int32Range(0, int32(classes-1)).Filter(func(l int32) bool { return int(l) != blank }), 0, 4).Draw(r, "labels")
		x := normal(rapid.Uint64Range(0, 1000).Draw(r, "seed"), steps*classes)
		wide := make([]float64, len(x))
		for i, v := range x {
			wide[i] = float64(v)
		}
		c, grad := newCTC(t, 5, 4, classes, blank), normal(1, len(x))
		loss, err := c.Loss(grad, x, labels)
		want := enumerate(wide, classes, blank, labels)
		if math.IsInf(want, 1) {
			if !math.IsInf(loss, 1) || !errors.Is(err, ErrInfeasible) || slices.ContainsFunc(grad, func(v float32) bool { return v != 0 }) {
				r.Fatalf("loss %v, error %v, gradient %v where there is no path", loss, err, grad)
			}
			return
		}
		if err != nil || math.Abs(loss-want) > 1e-12*(1+want) {
			r.Fatalf("loss %v, error %v; all paths give %v", loss, err, want)
		}
		for i := range wide {
			const h = 1e-5
			moved := func(d float64) float64 {
				y := slices.Clone(wide)
				y[i] += d
				return enumerate(y, classes, blank, labels)
			}
			if want := (moved(h) - moved(-h)) / (2 * h); math.Abs(float64(grad[i])-want) > 1e-7 {
				r.Fatalf("gradient %d is %v, want %v", i, grad[i], want)
			}
		}
	})
}

// TestCTCTable has three classes, blank first, all probabilities 1/3, and the case of a blank that moves from
// the first class to the last.
func TestCTCTable(t *testing.T) {
	logs := func(rows ...[3]float64) (x []float32) {
		for _, row := range rows {
			for _, p := range row {
				x = append(x, float32(math.Log(p)))
			}
		}
		return x
	}
	for _, c := range []struct {
		x      []float32
		blank  int
		labels []int32
		want   float64
	}{
		{make([]float32, 6), 0, []int32{1}, 1.098612},
		{make([]float32, 6), 0, nil, 2.197225},
		{make([]float32, 6), 0, []int32{1, 2}, 2.197225},
		{make([]float32, 9), 0, []int32{1, 1}, 3.295837},
		{make([]float32, 6), 0, []int32{1, 1}, math.Inf(1)},
		{nil, 0, nil, 0},
		{nil, 0, []int32{1}, math.Inf(1)},
		{logs([3]float64{.5, .3, .2}, [3]float64{.2, .5, .3}, [3]float64{.1, .2, .7}), 0, []int32{1, 2}, 0.931404},
		{logs([3]float64{.3, .2, .5}, [3]float64{.5, .3, .2}, [3]float64{.2, .7, .1}), 2, []int32{0, 1}, 0.931404},
	} {
		loss, err := newCTC(t, 3, 2, 3, c.blank).Loss(nil, c.x, c.labels)
		if math.IsInf(c.want, 1) != errors.Is(err, ErrInfeasible) || loss != c.want && !(math.Abs(loss-c.want) < 1e-6) {
			t.Errorf("%d steps, blank %d, labels %v: loss %v, error %v; want %v", len(c.x)/3, c.blank, c.labels, loss, err, c.want)
		}
	}
}

// TestCTCInfeasible runs an utterance without a path between good ones: theirs are the gradients they have alone.
func TestCTCInfeasible(t *testing.T) {
	c := newCTC(t, 4, 3, 3, 0)
	good := [][]int32{{1, 2}, {2}, {1, 2, 1}}
	var alone [][]float32
	for i, labels := range good {
		grad := make([]float32, 12)
		if _, err := newCTC(t, 4, 3, 3, 0).Loss(grad, normal(uint64(i), 12), labels); err != nil {
			t.Fatal(err)
		}
		alone = append(alone, grad)
	}
	for i, labels := range good {
		bad := normal(9, 6)
		loss, err := c.Loss(bad, bad, []int32{1, 1})
		var infeasible *InfeasibleError
		if !math.IsInf(loss, 1) || !errors.As(err, &infeasible) || infeasible.Needed != 3 || infeasible.Steps != 2 || !strings.Contains(err.Error(), "need 3") {
			t.Fatalf("loss %v, error %v", loss, err)
		}
		if diff := cmp.Diff(make([]float32, 6), bad); diff != "" {
			t.Errorf("the gradient is not zero:\n%s", diff)
		}
		grad := make([]float32, 12)
		if _, err := c.Loss(grad, normal(uint64(i), 12), labels); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(alone[i], grad); diff != "" {
			t.Errorf("utterance %d differs from the one alone:\n%s", i, diff)
		}
	}
	never := []float32{0, float32(math.Inf(-1)), 0, 0, float32(math.Inf(-1)), 0}
	if loss, err := c.Loss(nil, never, []int32{1}); !math.IsInf(loss, 1) || !errors.Is(err, ErrInfeasible) || !strings.Contains(err.Error(), "infinities") {
		t.Errorf("labels of probability 0: loss %v, error %v", loss, err)
	}
	if loss, err := c.Loss(nil, []float32{0, float32(math.NaN()), 0}, []int32{1}); loss == loss || err != nil {
		t.Errorf("a NaN: loss %v, error %v", loss, err)
	}
}

// TestCTCLong has more steps than products of probabilities could live through, and logits far apart.
func TestCTCLong(t *testing.T) {
	const steps, classes = 2000, 29
	c := newCTC(t, steps, 200, classes, 28)
	x := normal(1, steps*classes)
	for i := range x {
		x[i] = 20*x[i] + 1000
	}
	labels := make([]int32, 200)
	for i := range labels {
		labels[i] = int32(rng.NewKey(2).Intn(uint64(i), 28))
	}
	grad := make([]float32, len(x))
	loss, err := c.Loss(grad, x, labels)
	if err != nil || !(loss > 1000) || math.IsInf(loss, 1) {
		t.Fatalf("loss %v, error %v", loss, err)
	}
	for t0 := range steps {
		sum := 0.0
		for _, v := range grad[t0*classes : (t0+1)*classes] {
			sum += float64(v)
		}
		if math.Abs(sum) > 1e-5 { // both shares sum to one
			t.Fatalf("the gradients of step %d sum to %v", t0, sum)
		}
	}
	if n := testing.AllocsPerRun(1, func() {
		if _, err := c.Loss(grad, x, labels); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestCTCErrors(t *testing.T) {
	c := newCTC(t, 2, 1, 3, 0)
	for _, e := range []struct {
		grad, x []float32
		labels  []int32
		want    string
	}{
		{nil, make([]float32, 9), nil, "3 time steps; the plan is for 2"},
		{nil, make([]float32, 6), []int32{1, 2}, "2 labels; the plan is for 1"},
		{nil, make([]float32, 5), nil, "no whole number"},
		{make([]float32, 3), make([]float32, 6), nil, "equally long"},
		{nil, make([]float32, 6), []int32{0}, "without the blank"},
		{nil, make([]float32, 6), []int32{3}, "label 0 is 3"},
		{nil, make([]float32, 6), []int32{-1}, "label 0 is -1"},
	} {
		if e.grad != nil {
			e.grad[0] = 7
		}
		if _, err := c.Loss(e.grad, e.x, e.labels); err == nil || errors.Is(err, ErrInfeasible) || !strings.Contains(err.Error(), e.want) || e.grad != nil && e.grad[0] != 7 {
			t.Errorf("%d logits, labels %v: error %v, want one with %q and the gradient as it was", len(e.x), e.labels, err, e.want)
		}
	}
	for _, p := range [][4]int{{0, 1, 2, 0}, {1, -1, 2, 0}, {1, 1, 0, 0}, {1, 1, 2, 2}, {1, 1, 2, -1}} {
		if _, err := NewCTC(p[0], p[1], p[2], p[3]); err == nil || !strings.Contains(err.Error(), "plan CTC") {
			t.Errorf("NewCTC%v: error %v", p, err)
		}
	}
}

func TestBestPath(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		blank := rapid.IntRange(0, 3).Draw(r, "blank")
		path := rapid.SliceOf(rapid.IntRange(0, 3)).Draw(r, "path")
		x := make([]float32, 4*len(path))
		for i, k := range path {
			x[4*i+k] = 1
		}
		if got, want := newCTC(t, 1, 1, 4, blank).BestPath([]int32{}, x), merge(path, blank); !slices.Equal(got, want) {
			r.Fatalf("path %v gives %v, want %v", path, got, want)
		}
	})
}

// FuzzCTC looks for panics and for losses that are no negative logarithm of a probability.
func FuzzCTC(f *testing.F) {
	f.Add([]byte{1, 2, 2}, uint8(7), uint64(1))
	f.Add([]byte{}, uint8(0), uint64(2))
	f.Fuzz(func(t *testing.T, labels []byte, steps uint8, seed uint64) {
		c := newCTC(t, 255, 255, 4, 1)
		x := normal(seed, 4*int(steps))
		var z []int32
		for _, l := range labels {
			z = append(z, int32(l%6)-1)
		}
		grad := make([]float32, len(x))
		loss, err := c.Loss(grad, x, z)
		if err == nil && (!(loss >= 0) || math.IsInf(loss, 0)) {
			t.Errorf("loss %v of labels %v in %d steps", loss, z, steps)
		}
		for i, v := range grad {
			if !(v >= -1 && v <= 1) {
				t.Errorf("gradient %d is %v", i, v)
			}
		}
	})
}

func BenchmarkCTC(b *testing.B) {
	const steps, classes, n = 400, 29, 100
	c := newCTC(b, steps, n, classes, 0)
	x, grad, labels := normal(1, steps*classes), make([]float32, steps*classes), make([]int32, n)
	for i := range labels {
		labels[i] = int32(1 + i%28)
	}
	best := time.Duration(math.MaxInt64)
	for b.Loop() {
		start := time.Now()
		if _, err := c.Loss(grad, x, labels); err != nil {
			b.Fatal(err)
		}
		best = min(best, time.Since(start))
	}
	b.ReportMetric(float64(best.Nanoseconds())/(steps*(2*n+1)), "best-ns/cell")
}

// ExampleCTC has two steps and the classes blank, a and b, all equally probable: three of the nine paths make
// "a", namely aa, a and a blank, a blank and a.
func ExampleCTC() {
	c, err := NewCTC(2, 1, 3, 0)
	if err != nil {
		fmt.Println(err)
		return
	}
	grad := make([]float32, 6)
	loss, err := c.Loss(grad, make([]float32, 6), []int32{1})
	fmt.Printf("%.4f %v %.2f\n", math.Exp(-loss), err, grad[:3])
	// Output: 0.3333 <nil> [0.00 -0.33 0.33]
}
