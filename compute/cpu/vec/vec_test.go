package vec

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"optimus/internal/level"
	"optimus/internal/rng"
)

func fill(seed uint64, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(rng.NewKey(seed).Normal(uint64(i)))
	}
	return x
}

func each(t *testing.T, f func(t *testing.T, name string)) {
	for _, name := range level.Present() {
		t.Run(name, func(t *testing.T) { f(t, name) })
	}
}

// TestArithmetic holds every level to the definition, bit for bit, at all lengths
// around the assembly's groups and at all alignments.
func TestArithmetic(t *testing.T) {
	const a = float32(1.0 / 3)
	ops := map[string]struct {
		run  func(name string, dst, src []float32)
		want func(d, s float32) float32
	}{
		"add":   {addAt, func(d, s float32) float32 { return d + s }},
		"axpy":  {func(name string, dst, src []float32) { axpyAt(name, dst, a, src) }, func(d, s float32) float32 { return d + float32(a*s) }},
		"scale": {func(name string, dst, _ []float32) { scaleAt(name, dst, a) }, func(d, _ float32) float32 { return d * a }},
	}
	each(t, func(t *testing.T, name string) {
		for op, o := range ops {
			for n := range 100 {
				off := n % 7
				x, src := fill(1, n+off+1), fill(2, n+off)[off:]
				dst := append([]float32(nil), x...)
				o.run(name, dst[off:off+n], src)
				for i, got := range dst {
					want := x[i]
					if i >= off && i < off+n {
						want = o.want(x[i], src[i-off])
					}
					if got != want {
						t.Fatalf("%s of %d: element %d is %v, want %v", op, n, i-off, got, want)
					}
				}
			}
		}
	})
}

func TestFinite(t *testing.T) {
	bad := []float32{float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN()), math.Float32frombits(0xff800001)}
	good := []float32{0, math.MaxFloat32, -math.MaxFloat32, math.SmallestNonzeroFloat32, 1}
	each(t, func(t *testing.T, name string) {
		rapid.Check(t, func(t *rapid.T) {
			x := rapid.SliceOfN(rapid.SampledFrom(good), 0, 300).Draw(t, "x")
			if got := finiteAt(name, x); got != -1 {
				t.Fatalf("found element %d (%v) of finite ones", got, x[got])
			}
			if len(x) == 0 {
				return
			}
			first := rapid.IntRange(0, len(x)-1).Draw(t, "first")
			x[first] = rapid.SampledFrom(bad).Draw(t, "bad")
			x[rapid.IntRange(first, len(x)-1).Draw(t, "second")] = rapid.SampledFrom(bad).Draw(t, "bad2")
			if got := finiteAt(name, x); got != first {
				t.Fatalf("Finite is %d, want %d", got, first)
			}
		})
	})
}

// TestPublic runs the exported functions at the level of this process, with lengths that differ, and
// counts what they allocate.
func TestPublic(t *testing.T) {
	x, y, z := []float32{1, 2, 3}, []float32{10, 20, 30}, make([]float32, 3)
	Add(x, y)
	AXPY(x, -0.5, y)
	Scale(x, 2)
	best, at := Max(x)
	if got := fmt.Sprint(x, Finite(x), Finite(nil), Sum(x), Dot(x, y), best, at); got != "[12 24 36] -1 -1 72 1680 36 2" {
		t.Errorf("got %s", got)
	}
	var places [3]int32
	calls := map[string]func(short []float32){
		"Add":          func(s []float32) { Add(x, s) },
		"AXPY":         func(s []float32) { AXPY(x, 0, s) },
		"Exp":          func(s []float32) { Exp(z, s) },
		"Log":          func(s []float32) { Log(z, s) },
		"Tanh":         func(s []float32) { Tanh(z, s) },
		"Sigmoid":      func(s []float32) { Sigmoid(z, s) },
		"ReLU":         func(s []float32) { ReLU(z, s) },
		"ReLUGrad":     func(s []float32) { ReLUGrad(z, x, s) },
		"TanhGrad":     func(s []float32) { TanhGrad(z, s, x) },
		"Mul":          func(s []float32) { Mul(z, s, x) },
		"Greater":      func(s []float32) { Greater(z, places[:], s, 1) },
		"Dot":          func(s []float32) { Dot(x, s) },
		"Softmax":      func(s []float32) { Softmax(z, s) },
		"CrossEntropy": func(s []float32) { CrossEntropy(z, s, 1) },
	}
	for op, f := range calls {
		func() {
			defer func() {
				if got := fmt.Sprint(recover()); !strings.Contains(got, op) || !strings.Contains(got, "equally long") {
					t.Errorf("%s with unequal lengths: panic %q", op, got)
				}
			}()
			f(y[1:])
		}()
		if n := testing.AllocsPerRun(10, func() { f(y) }); n != 0 {
			t.Errorf("%s: %v allocations", op, n)
		}
	}
	if n := testing.AllocsPerRun(10, func() { Scale(x, 1); Finite(x); Sum(x); Max(x); DropoutMask(z, 1, 2, 0.5) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	for _, rate := range []float64{-0.1, 1, math.NaN()} {
		func() {
			defer func() {
				if got := fmt.Sprint(recover()); !strings.Contains(got, "rate") {
					t.Errorf("rate %v: panic %q", rate, got)
				}
			}()
			DropoutMask(z, 1, 2, rate)
		}()
	}
}

func BenchmarkVec(b *testing.B) {
	x, y := fill(1, 8192), fill(2, 8192)
	for _, name := range level.Present() {
		for _, o := range []struct {
			op    string
			bytes int64
			run   func()
		}{
			{"add", 12, func() { addAt(name, x, y) }},
			{"axpy", 12, func() { axpyAt(name, x, 1e-9, y) }},
			{"scale", 8, func() { scaleAt(name, x, 1) }},
			{"finite", 4, func() { finiteAt(name, x) }},
		} {
			b.Run(o.op+"/"+name, func(b *testing.B) {
				b.SetBytes(o.bytes * int64(len(x)))
				for b.Loop() {
					o.run()
				}
			})
		}
	}
}

func ExampleFinite() {
	gradient := []float32{0.5, float32(math.Inf(1)), 0.25}
	fmt.Println(Finite(gradient), Finite(gradient[2:]))
	// Output: 1 -1
}
