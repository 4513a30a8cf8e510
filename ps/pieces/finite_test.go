package pieces

import (
	"math"
	"testing"
)

func TestFinite(t *testing.T) {
	for n := range 19 {
		x := make([]float32, n)
		for i := range x {
			x[i] = []float32{math.MaxFloat32, -math.MaxFloat32, 0, math.SmallestNonzeroFloat32}[i%4]
		}
		if !finite(x) {
			t.Fatalf("%v is finite", x)
		}
		for i := range x {
			for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), math.Copysign(math.NaN(), -1)} {
				y := append(make([]float32, 1), x...)[1:] // not aligned to pairs
				y[i] = float32(bad)
				if finite(y) {
					t.Fatalf("%v is not finite", y)
				}
			}
		}
	}
}

func BenchmarkFinite(b *testing.B) {
	x := ones(chunk)
	b.SetBytes(4 * chunk)
	for b.Loop() {
		if !finite(x) {
			b.Fatal("ones are finite")
		}
	}
}
