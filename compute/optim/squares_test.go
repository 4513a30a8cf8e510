package optim

import (
	"encoding/json"
	"math"
	"math/big"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"optimus/internal/level"
)

// number is a sum as one integer, of 2⁻⁵⁰.
func (s Squares) number() *big.Int {
	n := new(big.Int)
	for _, d := range s {
		n.Add(n.Lsh(n, 50), big.NewInt(d))
	}
	return n
}

// squared is the sum by its definition: each square, rounded to a multiple of 2⁻⁵⁰.
func squared(x []float32, weight int64, bound float64) *big.Int {
	sum := new(big.Int)
	for _, v := range x {
		z := float64(v) * (1 / (float64(weight) * bound))
		y := min(math.RoundToEven(z*z*digit), squareMost*digit) // scaling by a power of two is exact
		n, _ := big.NewFloat(y).Int(nil)
		sum.Add(sum, n)
	}
	return sum
}

// spread draws gradients whose elements may differ by many orders of magnitude.
func spread(t *rapid.T, n int) []float32 {
	low, high := rapid.IntRange(-60, 60).Draw(t, "low"), rapid.IntRange(0, 40).Draw(t, "span")
	x := make([]float32, n)
	Init{Kind: Normal, Scale: 1}.Fill(rapid.Uint64().Draw(t, "seed"), 0, 0, x)
	for i := range x {
		x[i] *= float32(math.Ldexp(1, low+i*7919%(high+1)))
	}
	return x
}

// TestSquares: cut and order change no bit of a sum, and it is what the definition says.
func TestSquares(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := spread(t, rapid.OneOf(rapid.IntRange(0, 200), rapid.IntRange(squareChunk-1, squareChunk+20)).Draw(t, "n"))
		weight := rapid.Int64Range(1, 1e9).Draw(t, "weight")
		bound := math.Ldexp(rapid.Float64Range(1, 2).Draw(t, "bound"), rapid.IntRange(-40, 20).Draw(t, "scale"))
		var whole, pieces Squares
		whole.Add(x, weight, bound)
		if whole[1] < 0 || whole[1] >= digit || whole[2] < 0 || whole[2] >= digit {
			t.Fatalf("digits %v", whole)
		}
		want := squared(x, weight, bound)
		if whole[0] == topMost {
			want = whole.number() // but for saturation
		}
		if whole.number().Cmp(want) != 0 {
			t.Fatalf("sum %v, want %v", whole.number(), want)
		}
		for at := len(x); at > 0; {
			from := rapid.IntRange(0, at-1).Draw(t, "from")
			var part Squares
			part.Add(x[from:at], weight, bound)
			pieces.Merge(part)
			at = from
		}
		if whole != pieces {
			t.Fatalf("%v in pieces, %v as a whole", pieces, whole)
		}
	})
}

// TestSquaresNorm compares with a norm in float64, over the range of norms and bounds
// that training meets.
func TestSquaresNorm(t *testing.T) {
	x := make([]float32, 100_000)
	for _, bound := range []float64{1e-8, 0.2, 5, 1e5} {
		for norm := 1e-8; norm < 2e5; norm *= 10 {
			Init{Kind: Normal, Scale: norm / math.Sqrt(float64(len(x)))}.Fill(3, 0, 0, x)
			var sum float64
			for i := range x {
				x[i] *= 77 // the weight
				sum += float64(x[i]) / 77 * float64(x[i]) / 77
			}
			var s Squares
			s.Add(x, 77, bound)
			want := max(1, math.Sqrt(sum)/bound)
			if got := s.Excess(); !(math.Abs(got/want-1) < 1e-7) {
				t.Errorf("norm %.0e, bound %v: excess %v, want %v", norm, bound, got, want)
			}
		}
	}
}

// TestSquaresLevels: the loops of all levels agree, one by one.
func TestSquaresLevels(t *testing.T) {
	x := make([]float32, 100)
	Init{Kind: Normal, Scale: 3}.Fill(1, 0, 0, x)
	for n := range x {
		one, rest, most := squaresGo(x[:n], 0.7)
		for _, name := range level.Present() {
			if o, r, m := squares(x[:n], 0.7, name); o != one || r != rest || m != most {
				t.Fatalf("%s, %d elements: %d, %d, %v; want %d, %d, %v", name, n, o, r, m, one, rest, most)
			}
		}
	}
}

// TestSquaresLimits: huge elements saturate and stay huge.
func TestSquaresLimits(t *testing.T) {
	var s Squares
	huge := slices.Repeat([]float32{math.MaxFloat32}, 3*squareChunk)
	s.Add(huge, 1, minClipNorm)
	for range 60 {
		s.Merge(s)
	}
	if s[0] != topMost || !(s.Excess() > 1e16) {
		t.Errorf("%v, excess %v", s, s.Excess())
	}
	var none Squares
	none.Add(huge[:5], math.MaxInt64, math.MaxFloat64)
	if none != (Squares{}) || none.Excess() != 1 {
		t.Errorf("%v below any bound, excess %v", none, none.Excess())
	}
	text, err := json.Marshal(s)
	var back Squares
	if err == nil {
		err = json.Unmarshal(text, &back)
	}
	if err != nil || back != s {
		t.Errorf("%v as JSON comes back as %v: %v", s, back, err)
	}
}

// BenchmarkSquares compares with the loop that adds up two contributions, which a
// server runs over the same elements.
func BenchmarkSquares(b *testing.B) {
	x, y := make([]float32, squareChunk), make([]float32, squareChunk)
	Init{Kind: Normal, Scale: 1e-3}.Fill(1, 0, 0, x)
	b.Run("squares", func(b *testing.B) {
		var s Squares
		for b.Loop() {
			s.Add(x, 35, 0.2)
		}
	})
	b.Run("sum", func(b *testing.B) {
		for b.Loop() {
			for i, v := range x {
				y[i] += v
			}
		}
	})
}
