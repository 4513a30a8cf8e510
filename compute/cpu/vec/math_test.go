package vec

import (
	"math"
	"testing"
)

var functions = []struct {
	name  string
	one   func(float32) float32
	exact func(float64) float64
	ulps  float64 // no error is greater, over all arguments
}{
	{"exp", Exp32, math.Exp, 1},
	{"log", Log32, math.Log, 1},
	{"tanh", Tanh32, math.Tanh, 1.5},
	{"sigmoid", Sigmoid32, sigmoid64, 2.5},
}

func sigmoid64(x float64) float64 {
	if x < 0 {
		return math.Exp(x) / (1 + math.Exp(x))
	}
	return 1 / (1 + math.Exp(-x))
}

// ulps returns the error of got in units of the last place that want has in float32;
// infinite if only one of them is a NaN, an infinity or a zero that is exact.
func ulps(got float32, want float64) float64 {
	w := float32(want)
	switch {
	case got == w && math.Signbit(float64(got)) == math.Signbit(want), got != got && w != w:
		return 0
	case math.IsNaN(want), math.IsInf(float64(w), 0), want == 0:
		return math.Inf(1)
	}
	size := float32(math.Abs(float64(w)))
	unit := float64(size) - float64(math.Nextafter32(size, 0))
	return math.Abs(float64(got)-want) / max(unit, 0x1p-149)
}

// TestErrors walks through the bit patterns of float32 in steps, from zeros over
// denormal and normal numbers to infinities and NaNs, both signs.
func TestErrors(t *testing.T) {
	const step = 10007 // 429,000 arguments; a step of 97 has given the bounds
	for _, f := range functions {
		for b := uint64(0); b < 1<<32; b += step {
			x := math.Float32frombits(uint32(b))
			if e := ulps(f.one(x), f.exact(float64(x))); !(e <= f.ulps) {
				t.Fatalf("%s(%g) is %g, want %g: %.2f units of the last place, the bound is %g", f.name, x, f.one(x), f.exact(float64(x)), e, f.ulps)
			}
		}
	}
}

func TestSpecialValues(t *testing.T) {
	inf, nan, denormal := float32(math.Inf(1)), float32(math.NaN()), float32(math.SmallestNonzeroFloat32)
	negZero := float32(math.Copysign(0, -1))
	for _, c := range []struct {
		name    string
		f       func(float32) float32
		x, want float32
	}{
		{"exp", Exp32, inf, inf}, {"exp", Exp32, -inf, 0}, {"exp", Exp32, nan, nan}, {"exp", Exp32, 0, 1},
		{"exp", Exp32, denormal, 1}, {"exp", Exp32, 88.8, inf}, {"exp", Exp32, -104, 0}, {"exp", Exp32, -103.2, denormal},
		{"exp", Exp32, math.MaxFloat32, inf}, {"exp", Exp32, -math.MaxFloat32, 0},
		{"log", Log32, 0, -inf}, {"log", Log32, negZero, -inf}, {"log", Log32, -1, nan}, {"log", Log32, -denormal, nan}, {"log", Log32, -inf, nan},
		{"log", Log32, inf, inf}, {"log", Log32, nan, nan}, {"log", Log32, 1, 0}, {"log", Log32, denormal, -103.27893},
		{"tanh", Tanh32, inf, 1}, {"tanh", Tanh32, -inf, -1}, {"tanh", Tanh32, nan, nan}, {"tanh", Tanh32, negZero, negZero}, {"tanh", Tanh32, -denormal, -denormal},
		{"sigmoid", Sigmoid32, inf, 1}, {"sigmoid", Sigmoid32, -inf, 0}, {"sigmoid", Sigmoid32, nan, nan}, {"sigmoid", Sigmoid32, negZero, 0.5},
		{"sigmoid", Sigmoid32, -103.2, denormal},
		{"relu", relu, negZero, 0}, {"relu", relu, nan, nan}, {"relu", relu, inf, inf}, {"relu", relu, -inf, 0},
	} {
		if got := c.f(c.x); !equal(got, c.want) {
			t.Errorf("%s(%g) is %g, want %g", c.name, c.x, got, c.want)
		}
	}
}

// equal compares bits; all NaNs are equal.
func equal(a, b float32) bool {
	return math.Float32bits(a) == math.Float32bits(b) || a != a && b != b
}
