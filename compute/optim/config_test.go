package optim

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestConfigValidate(t *testing.T) {
	for _, c := range append(configs(), variants()...) {
		if err := c.Validate(); err != nil {
			t.Errorf("%s: %v", label(c), err)
		}
	}
	for _, bad := range []struct {
		name, kind string
		spoil      func(c *Config)
	}{
		{"kind", SGD, func(c *Config) { c.Kind = "" }},
		{"kind", SGD, func(c *Config) { *c = Default("lion") }},
		{"lr", SGD, func(c *Config) { c.LR = 0 }},
		{"lr", SGD, func(c *Config) { c.LR = math.NaN() }},
		{"lr", SGD, func(c *Config) { c.LR = math.Inf(1) }},
		{"momentum", SGD, func(c *Config) { c.Momentum = 1 }},
		{"momentum", Adam, func(c *Config) { c.Momentum = 0.9 }},
		{"rho", RMSProp, func(c *Config) { c.Rho = -0.1 }},
		{"rho", SGD, func(c *Config) { c.Rho = 0.9 }},
		{"beta1", Adam, func(c *Config) { c.Beta1 = 1 }},
		{"beta2", Adam, func(c *Config) { c.Beta2 = math.NaN() }},
		{"epsilon", RMSProp, func(c *Config) { c.Epsilon = 0 }},
		{"epsilon", Adam, func(c *Config) { c.Epsilon = 1e-60 }},
		{"weight_decay", SGD, func(c *Config) { c.WeightDecay = -1 }},
		{"clip_norm", SGD, func(c *Config) { c.ClipNorm = -1 }},
		{"clip_norm", SGD, func(c *Config) { c.ClipNorm = math.NaN() }},
		{"clip_norm", Adam, func(c *Config) { c.ClipNorm = 1e-50 }},
		{"clip", SGD, func(c *Config) { c.Clip = math.Inf(1) }},
		{"factor", SGD, func(c *Config) { c.Steps = []int64{1} }},
		{"factor", SGD, func(c *Config) { c.Factor = 0.1 }},
		{"steps", SGD, func(c *Config) { c.Factor, c.Steps = 0.1, []int64{5, 5} }},
		{"steps", SGD, func(c *Config) { c.Factor, c.Steps = 0.1, []int64{0} }},
	} {
		c := Default(bad.kind)
		bad.spoil(&c)
		if err := c.Validate(); !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), bad.name) {
			t.Errorf("%+v: error %v; want one about %s", c, err, bad.name)
		}
	}
}

func TestSlots(t *testing.T) {
	got := map[string][]string{}
	for _, c := range configs() {
		got[label(c)] = c.SlotNames()
		if c.Slots() != len(c.SlotNames()) {
			t.Errorf("%s: %d slots, names %v", label(c), c.Slots(), c.SlotNames())
		}
	}
	want := map[string][]string{
		"sgd": nil, "sgd+momentum": {"momentum"}, "sgd+momentum+clip+decay": {"momentum"},
		"rmsprop": {"mean_square"}, "adam": {"mean", "mean_square"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestRate(t *testing.T) {
	c := Config{Kind: SGD, LR: 1, Factor: 0.5, Steps: []int64{10, 20}}
	for step, want := range map[int64]float64{1: 1, 9: 1, 10: 0.5, 19: 0.5, 20: 0.25, 1000: 0.25} {
		if got := c.Rate(step); got != want {
			t.Errorf("step %d: rate %v, want %v", step, got, want)
		}
	}
}

func TestJSON(t *testing.T) {
	want := Config{
		Kind: Adam, LR: 0.5, Beta1: 0.8, Beta2: 0.9, Epsilon: 1e-6, WeightDecay: 1e-4, Clip: 5, Factor: 0.1, Steps: []int64{30, 60},
	}
	text, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	const golden = `{"kind":"adam","lr":0.5,"beta1":0.8,"beta2":0.9,"epsilon":0.000001,"weight_decay":0.0001,"clip":5,"factor":0.1,"steps":[30,60]}`
	if string(text) != golden {
		t.Errorf("JSON is %s, want %s", text, golden)
	}
	var got Config
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestFillCuts: any cut of a block gives the bits of the whole.
func TestFillCuts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 200).Draw(t, "n")
		in := Init{Kind: rapid.SampledFrom([]string{"", Constant, Uniform, Normal, Given}).Draw(t, "kind")}
		switch in.Kind {
		case "":
		case Given:
			in = InitFrom(rapid.SliceOfN(rapid.Float32(), n, n).Draw(t, "values"))
		default:
			in.Scale = rapid.Float64Range(0, 10).Draw(t, "scale")
		}
		if err := in.Validate(); err != nil {
			t.Fatal(err)
		}
		seed, block := rapid.Uint64().Draw(t, "seed"), rapid.IntRange(0, 1000).Draw(t, "block")
		whole, pieces := make([]float32, n), make([]float32, n)
		in.Fill(seed, block, 0, whole)
		for from := 0; from < n; {
			to := rapid.IntRange(from+1, n).Draw(t, "cut")
			in.Fill(seed, block, from, pieces[from:to])
			from = to
		}
		if !slices.Equal(whole, pieces) {
			t.Fatalf("%+v: the pieces differ from the whole", in)
		}
	})
}

// TestFillValues: each kind has its distribution, and blocks and seeds differ.
func TestFillValues(t *testing.T) {
	const n = 20000
	x := make([]float32, n)
	moments := func() (mean, std, high float64) {
		for _, v := range x {
			mean += float64(v) / n
			std += float64(v) * float64(v) / n
			high = max(high, math.Abs(float64(v)))
		}
		return mean, math.Sqrt(std), high
	}
	for _, c := range []struct {
		in        Init
		std, most float64
	}{
		{Init{Kind: Uniform, Scale: 0.5}, 0.5 / math.Sqrt(3), 0.5},
		{Init{Kind: Normal, Scale: 0.5}, 0.5, 3},
	} {
		c.in.Fill(1, 2, 0, x)
		mean, std, high := moments()
		if math.Abs(mean) > 0.015 || math.Abs(std/c.std-1) > 0.02 || high > c.most {
			t.Errorf("%+v: mean %.4f, deviation %.4f, largest %.3f; want 0, %.4f, at most %v", c.in, mean, std, high, c.std, c.most)
		}
		y := make([]float32, n)
		for _, other := range []struct{ seed, block int }{{1, 3}, {2, 2}} {
			c.in.Fill(uint64(other.seed), other.block, 0, y)
			if slices.Equal(x[:3], y[:3]) {
				t.Errorf("%+v: seed and block %v give the values of seed 1 block 2", c.in, other)
			}
		}
	}
	Init{Kind: Constant, Scale: -1}.Fill(1, 0, 0, x)
	if mean, _, high := moments(); math.Abs(mean+1) > 1e-9 || high != 1 {
		t.Errorf("constant -1: mean %v, largest %v", mean, high)
	}
	Init{}.Fill(1, 0, 0, x)
	if _, _, high := moments(); high != 0 {
		t.Errorf("zero init holds %v", high)
	}
	given := []float32{3, 1, 2}
	if InitFrom(given).Fill(1, 0, 0, x[:3]); !slices.Equal(x[:3], given) {
		t.Errorf("%v of the given values %v", x[:3], given)
	}
}

// TestGivenValuesAreNotWritten: they could be large. What reads such an array back
// is told that they are missing.
func TestGivenValuesAreNotWritten(t *testing.T) {
	p := Param{Name: "w", Shape: []int{2}, Init: InitFrom([]float32{1, 2})}
	text, err := json.Marshal(p)
	if want := `{"name":"w","shape":[2],"init":{"kind":"given"}}`; err != nil || string(text) != want {
		t.Fatalf("%s, %v; want %s", text, err, want)
	}
	var back Param
	if err := json.Unmarshal(text, &back); err != nil {
		t.Fatal(err)
	}
	if err := back.Validate(); !errors.Is(err, ErrParam) || !strings.Contains(err.Error(), "no values") {
		t.Errorf("read back: %v", err)
	}
}

func TestParamValidate(t *testing.T) {
	good := Param{Name: "w", Shape: []int{4, 5, 2}, Rows: true, Init: Init{Kind: Uniform, Scale: 1}}
	if err := good.Validate(); err != nil || good.Size() != 40 || good.RowSize() != 10 {
		t.Errorf("%v, size %d, row %d", err, good.Size(), good.RowSize())
	}
	for cause, spoil := range map[string]func(p *Param){
		"name":      func(p *Param) { p.Name = "" },
		"shape":     func(p *Param) { p.Shape = []int{3, -1} },
		"multiply":  func(p *Param) { p.Shape = []int{math.MaxInt / 2, 3} },
		"rows":      func(p *Param) { p.Shape = nil },
		"unknown":   func(p *Param) { p.Init.Kind = "xavier" },
		"no kind":   func(p *Param) { p.Init.Kind = "" },
		"scale":     func(p *Param) { p.Init.Scale = -1 },
		"constant ": func(p *Param) { p.Init = Init{Kind: Constant, Scale: math.Inf(1)} },

		"39 starting values": func(p *Param) { p.Init = InitFrom(make([]float32, 39)) },
		"no values":          func(p *Param) { p.Init = Init{Kind: Given} },
		"element 3":          func(p *Param) { p.Init = InitFrom([]float32{0, 1, 2, float32(math.NaN())}) },
		"given has scale":    func(p *Param) { p.Init.Kind = Given },
		"has values but":     func(p *Param) { p.Init.Values = new([]float32) },
	} {
		p := good
		spoil(&p)
		if err := p.Validate(); !errors.Is(err, ErrParam) || !strings.Contains(err.Error(), cause) {
			t.Errorf("%s: error %v", cause, err)
		}
	}
}

func ExampleConfig_Apply() {
	c := Config{Kind: SGD, LR: 0.5, Factor: 0.1, Steps: []int64{100}}
	if err := c.Validate(); err != nil {
		fmt.Println(err)
		return
	}
	version, next := []float32{1, 2}, make([]float32, 2)
	sum := []float32{4, -8} // over four examples
	if err := c.Apply(Update{T: 1, LR: c.Rate(1), Params: version, Out: next, Grad: sum, Weight: 4}); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(version, next)
	// Output: [1 2] [0.5 3]
}

// TestWarmup: the learning rate rises in equal steps, and what drops it later counts as well.
func TestWarmup(t *testing.T) {
	c := Config{Kind: SGD, LR: 0.8, Warmup: 4}.DropAfter([]int{1, 3}, 2)
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	for step, want := range map[int64]float64{1: 0.2, 2: 0.4, 3: 0.06, 4: 0.08, 6: 0.08, 7: 0.008} {
		if got := c.Rate(step); math.Abs(got-want) > 1e-12 {
			t.Errorf("step %d: rate %v, want %v", step, got, want)
		}
	}
	c.Warmup = -1
	if err := c.Validate(); !errors.Is(err, ErrConfig) {
		t.Errorf("warmup −1: error %v", err)
	}
}
