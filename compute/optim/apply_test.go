package optim

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"optimus/internal/level"
)

// reference is one element's optimizer in float64, written from the papers' formulas.
type reference struct {
	w, a, s float64 // parameter, mean (or velocity), mean square
}

func (r *reference) step(c Config, t int64, lr, sum float64, weight int64, decay bool) {
	g := sum / float64(weight)
	if c.Clip > 0 {
		g = math.Max(-c.Clip, math.Min(c.Clip, g))
	}
	if decay {
		g += c.WeightDecay * r.w
	}
	switch c.Kind {
	case SGD:
		r.a = c.Momentum*r.a + g
		r.w -= lr * r.a
	case RMSProp:
		r.s = c.Rho*r.s + (1-c.Rho)*g*g
		r.w -= lr * g / math.Sqrt(r.s+c.Epsilon)
	case Adam:
		r.a = c.Beta1*r.a + (1-c.Beta1)*g
		r.s = c.Beta2*r.s + (1-c.Beta2)*g*g
		mean, square := r.a/(1-math.Pow(c.Beta1, float64(t))), r.s/(1-math.Pow(c.Beta2, float64(t)))
		r.w -= lr * mean / (math.Sqrt(square) + c.Epsilon)
	}
}

// TestReference follows every optimizer for some steps of changing gradients,
// rates and weights, at every level.
func TestReference(t *testing.T) {
	const n, steps = 37, 12
	for _, name := range level.Present() {
		for _, c := range append(configs(), variants()...) {
			u := update(c, n)
			u.Out, u.StateOut = u.Params, u.State // in place
			refs := make([]reference, n)
			for i := range refs {
				refs[i].w = float64(u.Params[i])
			}
			for step := int64(1); step <= steps; step++ {
				u.T, u.Weight, u.Decay = step, 1+step%5, step%4 != 0
				u.LR = c.LR / float64(1+step/6)
				Init{Kind: Normal, Scale: 20}.Fill(uint64(step), 1, 0, u.Grad)
				for i := range refs {
					refs[i].step(c, step, u.LR, float64(u.Grad[i]), u.Weight, u.Decay)
				}
				c.apply(u, name)
			}
			for i, r := range refs {
				if got := float64(u.Params[i]); !(math.Abs(got-r.w) <= 2e-5*(1+math.Abs(r.w))) {
					t.Fatalf("%s, %s: element %d is %v after %d steps, want %v", name, label(c), i, got, steps, r.w)
				}
			}
		}
	}
}

// variants are settings that the defaults do not cover.
func variants() []Config {
	rms := Default(RMSProp)
	rms.LR, rms.Rho, rms.WeightDecay, rms.Clip = 0.05, 0.5, 0.01, 3
	adam := Default(Adam)
	adam.LR, adam.Beta1, adam.WeightDecay, adam.Clip = 0.05, 0, 0.01, 3
	bare := Default(SGD)
	bare.Momentum, bare.WeightDecay, bare.Clip = 0, 0.1, 0.5
	return []Config{rms, adam, bare}
}

// TestCuts: whatever the cut into pieces and the level, and whether in place or
// from buffer to buffer, the bits are the same.
func TestCuts(t *testing.T) {
	all := append(configs(), variants()...)
	rapid.Check(t, func(t *rapid.T) {
		c := all[rapid.IntRange(0, len(all)-1).Draw(t, "config")]
		whole := update(c, rapid.IntRange(0, 100).Draw(t, "n"))
		whole.T, whole.Weight = rapid.Int64Range(1, 1e6).Draw(t, "t"), rapid.Int64Range(0, 1e9).Draw(t, "weight")
		for i, s := range whole.State {
			Init{Kind: Uniform, Scale: 1}.Fill(3, i, 0, s)
			for j := range s {
				s[j] = float32(math.Abs(float64(s[j]))) // a mean square is not negative
			}
		}
		pieces := clone(whole)
		if err := c.Apply(whole); err != nil {
			t.Fatal(err)
		}
		inPlace := rapid.Bool().Draw(t, "in place")
		if inPlace {
			pieces.Out, pieces.StateOut = pieces.Params, pieces.State
		}
		for from := 0; from < len(pieces.Params); {
			to := rapid.IntRange(from+1, len(pieces.Params)).Draw(t, "cut")
			name := rapid.SampledFrom(level.Present()).Draw(t, "level")
			if u := cut(pieces, from, to); u.Weight == 0 {
				if err := c.Apply(u); err != nil {
					t.Fatal(err)
				}
			} else {
				c.apply(u, name)
			}
			from = to
		}
		if diff := cmp.Diff(whole.Out, pieces.Out); diff != "" {
			t.Fatalf("%s: parameters differ (-whole +pieces):\n%s", label(c), diff)
		}
		if diff := cmp.Diff(whole.StateOut, pieces.StateOut); diff != "" {
			t.Fatalf("%s: state differs (-whole +pieces):\n%s", label(c), diff)
		}
	})
}

func clone(u Update) Update {
	arrays := func(xs [][]float32) (out [][]float32) {
		for _, x := range xs {
			out = append(out, slices.Clone(x))
		}
		return out
	}
	u.Params, u.Out, u.Grad = slices.Clone(u.Params), slices.Clone(u.Out), slices.Clone(u.Grad)
	u.State, u.StateOut = arrays(u.State), arrays(u.StateOut)
	return u
}

func cut(u Update, from, to int) Update {
	arrays := func(xs [][]float32) (out [][]float32) {
		for _, x := range xs {
			out = append(out, x[from:to])
		}
		return out
	}
	u.Params, u.Out, u.Grad = u.Params[from:to], u.Out[from:to], u.Grad[from:to]
	u.State, u.StateOut = arrays(u.State), arrays(u.StateOut)
	return u
}

// TestVersions: the arrays of version s stay as they are, for an abort.
func TestVersions(t *testing.T) {
	for _, c := range configs() {
		u := update(c, 50)
		before := clone(u)
		if err := c.Apply(u); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([][]float32{before.Params, before.Grad}, [][]float32{u.Params, u.Grad}); diff != "" {
			t.Errorf("%s changed its inputs:\n%s", label(c), diff)
		}
		if diff := cmp.Diff(before.State, u.State); diff != "" {
			t.Errorf("%s changed its state:\n%s", label(c), diff)
		}
		if slices.Equal(u.Out, u.Params) {
			t.Errorf("%s changed no parameter", label(c))
		}
	}
}

// TestWeight: a linear model w·x with x = 1 and loss (w−y)² sees two examples
// with y = 1 on one worker and one with y = 4 on another. The sums −4 and −8 and
// the weights 2 and 1 make a mean gradient of −4: a mean of means would be −5.
func TestWeight(t *testing.T) {
	c := Config{Kind: SGD, LR: 0.1}
	u := Update{T: 1, LR: c.Rate(1), Params: []float32{0}, Out: []float32{9}, Grad: []float32{-4 - 8}, Weight: 2 + 1}
	if err := c.Apply(u); err != nil {
		t.Fatal(err)
	}
	if u.Out[0] != 0.4 {
		t.Errorf("w is %v, want 0.4", u.Out[0])
	}
}

// TestNoWeight: a step to which nobody contributed is a copy, decay and all.
func TestNoWeight(t *testing.T) {
	for _, c := range append(configs(), variants()...) {
		u := update(c, 20)
		for i, s := range u.State {
			Init{Kind: Uniform, Scale: 1}.Fill(5, i, 0, s)
		}
		u.Weight, u.Grad = 0, nil
		if err := c.Apply(u); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(append(u.State, u.Params), append(u.StateOut, u.Out)); diff != "" {
			t.Errorf("%s: not a copy:\n%s", label(c), diff)
		}
	}
}

// TestNotFinite: infinities are clipped, a NaN stays one and stays where it is.
func TestNotFinite(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	c := Config{Kind: SGD, LR: 1, Clip: 2}
	for _, name := range level.Present() {
		u := Update{T: 1, LR: 1, Weight: 1, Params: make([]float32, 11), Out: make([]float32, 11)}
		u.Grad = []float32{nan, inf, -inf, 1, 5, -5, 0, 1, nan, inf, 1}
		c.apply(u, name)
		want := []float32{nan, -2, 2, -1, -2, 2, 0, -1, nan, -2, -1}
		if diff := cmp.Diff(want, u.Out, cmp.Comparer(func(a, b float32) bool { return a == b || a != a && b != b })); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestMisfits(t *testing.T) {
	c := Default(Adam)
	for cause, spoil := range map[string]func(c *Config, u *Update){
		"kind":      func(c *Config, _ *Update) { c.Kind = "lion" },
		"weight":    func(_ *Config, u *Update) { u.Weight = -1 },
		"T is 0":    func(_ *Config, u *Update) { u.T = 0 },
		"room":      func(_ *Config, u *Update) { u.Out = u.Out[1:] },
		"gradients": func(_ *Config, u *Update) { u.Grad = nil },
		"state":     func(_ *Config, u *Update) { u.State = u.State[:1] },
		"array 1":   func(_ *Config, u *Update) { u.StateOut[1] = nil },
	} {
		u, c := update(c, 9), c
		spoil(&c, &u)
		before := clone(u)
		err := c.Apply(u)
		if !errors.Is(err, ErrUpdate) || !strings.Contains(err.Error(), cause) {
			t.Errorf("%s: error %v", cause, err)
		}
		if diff := cmp.Diff(before, u); diff != "" {
			t.Errorf("%s: something was written:\n%s", cause, diff)
		}
	}
}

func TestNoAllocation(t *testing.T) {
	for _, c := range configs() {
		u := update(c, 100)
		if n := testing.AllocsPerRun(10, func() { _ = c.Apply(u) }); n != 0 {
			t.Errorf("%s: %v allocations", label(c), n)
		}
	}
}

func TestAverage(t *testing.T) {
	running, sum, out := []float32{1, -2}, []float32{12, 6}, make([]float32, 2)
	if err := Average(out, running, sum, 3, 0.75); err != nil || out[0] != 1.75 || out[1] != -1 {
		t.Errorf("%v, %v; want [1.75 -1]", out, err)
	}
	if err := Average(out, running, nil, 0, 0.75); err != nil || !slices.Equal(out, running) {
		t.Errorf("%v, %v with weight 0; want %v", out, err, running)
	}
	if err := Average(running, running, sum, 3, 0.75); err != nil || running[0] != 1.75 {
		t.Errorf("%v, %v in place; want 1.75 first", running, err)
	}
	for name, err := range map[string]error{
		"weight":   Average(out, running, sum, -1, 0.5),
		"momentum": Average(out, running, sum, 1, math.NaN()),
		"lengths":  Average(out, running, sum[1:], 1, 0.5),
		"out":      Average(out[1:], running, sum, 1, 0.5),
	} {
		if !errors.Is(err, ErrUpdate) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}
