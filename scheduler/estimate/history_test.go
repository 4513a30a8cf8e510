package estimate

import (
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func newConvergence() Convergence {
	return Convergence{History: History{EpochExamples: epochSteps * stepBatch}, Threshold: thresholdFor(seq2seq, 100, 3)}
}

var seq2seq = fig5[4].b

func addAll(t testing.TB, c *Convergence, points ...LossPoint) {
	t.Helper()
	for _, p := range points {
		if err := c.Add(p); err != nil {
			t.Fatal(err)
		}
	}
}

func points(seed uint64, n int) []LossPoint {
	rng := rand.New(rand.NewPCG(seed, 1))
	out := make([]LossPoint, n)
	for i := range out {
		out[i] = noisy(rng, seq2seq, i)
	}
	return out
}

func TestOutliersAreReplaced(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	var h History
	h.EpochExamples = epochSteps * stepBatch
	outliers, size := 0, 0.0
	for step := range 1000 {
		p := noisy(rng, seq2seq, step)
		fine := min(1, 1/(seq2seq[0]*float64(step)/epochSteps+seq2seq[1])+seq2seq[2])
		if p.Loss > 1.3*fine {
			outliers++
		}
		if err := h.Add(p); err != nil {
			t.Fatal(err)
		}
	}
	for _, b := range h.Points() {
		fine := 1/(seq2seq[0]*b.At+seq2seq[1]) + seq2seq[2]
		size = max(size, math.Abs(b.Loss-fine)/fine)
	}
	if outliers == 0 || h.Outliers < outliers || h.Outliers > outliers+10 {
		t.Errorf("%d outliers among 1000 steps, %d replaced", outliers, h.Outliers)
	}
	if size > .12 {
		t.Errorf("a point is %.0f %% off the curve after cleaning", 100*size)
	}
}

func TestLongRunsAreDecimated(t *testing.T) {
	c := newConvergence()
	ps := points(1, 30000)
	addAll(t, &c, ps...)
	steps, weight := len(c.Tail)-c.Binned, float64(len(c.Tail)-c.Binned)*stepBatch
	for i, b := range c.Bins {
		steps += b.Steps
		weight += b.Weight
		if b.Steps != c.StepsPerBin && i != len(c.Bins)-1 {
			t.Errorf("bin %d has %d steps, the others %d", i, b.Steps, c.StepsPerBin)
		}
	}
	if steps != len(ps) || weight != float64(len(ps))*stepBatch {
		t.Errorf("%d steps of weight %v kept of %d", steps, weight, len(ps))
	}
	if n := len(c.Points()); n > maxBins+sideSteps {
		t.Errorf("%d points", n)
	}
}

// Adding a point and fitting anew must not cost more on a long run.
func TestRefitCostIsBounded(t *testing.T) {
	cost := func(steps int) float64 {
		c := newConvergence()
		ps := points(1, steps+20)
		addAll(t, &c, ps[:steps]...)
		if _, err := c.Forecast(); err != nil {
			t.Fatal(err)
		}
		next := steps
		return testing.AllocsPerRun(10, func() {
			addAll(t, &c, ps[next])
			next++
			if _, err := c.Forecast(); err != nil {
				t.Fatal(err)
			}
		})
	}
	short, long := cost(1000), cost(100_000)
	t.Logf("allocations to add a point and fit: %.0f after 1,000 steps, %.0f after 100,000", short, long)
	if long > 3*short {
		t.Errorf("%.0f allocations after 100,000 steps, %.0f after 1,000", long, short)
	}
}

func BenchmarkAddAndFit(b *testing.B) {
	for _, bench := range []struct {
		name  string
		steps int
	}{{"1000", 1000}, {"100000", 100_000}} {
		b.Run(bench.name, func(b *testing.B) {
			rng := rand.New(rand.NewPCG(1, 1))
			c := newConvergence()
			addAll(b, &c, points(1, bench.steps)...)
			b.ReportAllocs()
			for step := bench.steps; b.Loop(); step++ {
				addAll(b, &c, noisy(rng, seq2seq, step))
				if _, err := c.Forecast(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func TestRateDropBeginsANewCurve(t *testing.T) {
	c := newConvergence()
	ps := points(1, 1200)
	second := [3]float64{.3, 3, .05} // after the drop: another curve from epoch 30
	rng := rand.New(rand.NewPCG(2, 2))
	for i := 600; i < 1200; i++ {
		k := float64(i-600) / epochSteps
		ps[i].Loss = (1/(second[0]*k+second[1]) + second[2]) * (1 + .02*rng.NormFloat64())
		ps[i].LearningRate = .01
	}
	addAll(t, &c, ps[:600]...)
	if c.From != 0 {
		t.Fatalf("curve begins at epoch %v before the drop", c.From)
	}
	addAll(t, &c, ps[600])
	if _, err := c.Forecast(); !errors.Is(err, ErrTooFewPoints) {
		t.Errorf("right after the drop: error %v", err)
	}
	addAll(t, &c, ps[601:]...)
	f, err := c.Forecast()
	if err != nil {
		t.Fatal(err)
	}
	want := 30 + settled(second, c.Threshold) + 3
	if c.From != 30 || math.Abs(f.Total-want) > .05*want {
		t.Errorf("from epoch %v, total %.1f, want 30 and %.1f", c.From, f.Total, want)
	}

	t.Run("a smaller batch explains a smaller rate", func(t *testing.T) {
		c := newConvergence()
		ps := points(1, 40)
		for i := 20; i < 40; i++ {
			ps[i].LearningRate, ps[i].M = .05, stepBatch/2
		}
		addAll(t, &c, ps...)
		if c.From != 0 {
			t.Errorf("a new curve at epoch %v", c.From)
		}
	})
}

func TestRollBackReplacesWhatFollowed(t *testing.T) {
	ps := points(1, 2000)
	straight, back := newConvergence(), newConvergence()
	addAll(t, &straight, ps...)
	wrong := points(9, 1500)
	for i := range wrong[1000:] {
		wrong[1000+i].Loss = 3
	}
	copy(wrong, ps[:1000])
	addAll(t, &back, wrong...)
	addAll(t, &back, ps[1000:]...)
	a, err := straight.Forecast()
	if err != nil {
		t.Fatal(err)
	}
	back.Top = straight.Top // the largest loss seen stays seen
	b, err := back.Forecast()
	if err != nil {
		t.Fatal(err)
	}
	if math.Abs(a.Total-b.Total) > 1 {
		t.Errorf("total %.2f with a rollback, %.2f without", b.Total, a.Total)
	}
}

func TestSavedAndRestored(t *testing.T) {
	ps := points(1, 1500)
	whole, saved := newConvergence(), newConvergence()
	addAll(t, &whole, ps...)
	addAll(t, &saved, ps[:700]...)
	raw, err := json.Marshal(saved)
	if err != nil {
		t.Fatal(err)
	}
	var restored Convergence
	if err := json.Unmarshal(raw, &restored); err != nil {
		t.Fatal(err)
	}
	addAll(t, &restored, ps[700:]...)
	if diff := cmp.Diff(whole, restored); diff != "" {
		t.Errorf("the restored job differs:\n%s", diff)
	}
}

func TestConvergenceBadInput(t *testing.T) {
	ok := points(1, 1)[0]
	for name, change := range map[string]func(*Convergence, *LossPoint){
		"no epoch size": func(c *Convergence, _ *LossPoint) { c.EpochExamples = 0 },
		"NaN":           func(_ *Convergence, p *LossPoint) { p.Loss = math.NaN() },
		"infinite":      func(_ *Convergence, p *LossPoint) { p.Loss = math.Inf(1) },
		"negative":      func(_ *Convergence, p *LossPoint) { p.Loss = -1 },
		"no weight":     func(_ *Convergence, p *LossPoint) { p.Weight = 0 },
		"no examples":   func(_ *Convergence, p *LossPoint) { p.Examples = 0 },
	} {
		c, p := newConvergence(), ok
		change(&c, &p)
		before, _ := json.Marshal(c)
		if err := c.Add(p); err == nil {
			t.Errorf("%s: no error", name)
		}
		if after, _ := json.Marshal(c); string(after) != string(before) {
			t.Errorf("%s: the refused point changed the history", name)
		}
	}
	c := newConvergence()
	if _, err := c.Forecast(); !errors.Is(err, ErrTooFewPoints) {
		t.Errorf("no points: %v", err)
	}
	c.Threshold = 0
	if _, err := c.Forecast(); err == nil || errors.Is(err, ErrTooFewPoints) {
		t.Errorf("no threshold: %v", err)
	}
}

// Whatever the losses, a forecast is finite and inside its interval; only losses of
// 0 have no curve.
func TestForecastOfOddCurves(t *testing.T) {
	for name, loss := range map[string]func(i int) float64{
		"constant":   func(int) float64 { return 2.3 },
		"zero":       func(int) float64 { return 0 },
		"rising":     func(i int) float64 { return 1 + float64(i)/100 },
		"linear":     func(i int) float64 { return 5 - float64(i)/100 },
		"to zero":    func(i int) float64 { return math.Exp(-float64(i)) },
		"huge":       func(i int) float64 { return 1e300 / float64(i+1) },
		"tiny":       func(i int) float64 { return 1e-300 / float64(i+1) },
		"jump":       func(i int) float64 { return []float64{1, .1}[i/200%2] },
		"noise free": func(i int) float64 { return 1/(.2*float64(i)/epochSteps+1) + .1 },
	} {
		c := newConvergence()
		for i := range 400 {
			p := LossPoint{Step: int64(i + 1), Examples: int64(i+1) * stepBatch, Loss: loss(i), Weight: 1, LearningRate: .1, M: stepBatch}
			addAll(t, &c, p)
			if i%50 != 49 {
				continue
			}
			f, err := c.Forecast()
			if (err != nil) != (name == "zero") {
				t.Errorf("%s after %d steps: error %v", name, i+1, err)
			}
			if err != nil {
				continue
			}
			if !(f.Low <= f.Total && f.Total <= f.High) || math.IsInf(f.Total, 0) || f.Total < c.Done() || f.Remaining < 0 {
				t.Errorf("%s after %d steps: %+v", name, i+1, f)
			}
		}
	}
}
