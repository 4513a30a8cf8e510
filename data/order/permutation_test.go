package order

import (
	"fmt"
	"math"
	"testing"
)

// lessThan checks a chi-square value against its mean (the degrees of freedom)
// and five of its standard deviations.
func lessThan(t *testing.T, what string, chi float64, freedom int) {
	t.Helper()
	if limit := float64(freedom) + 5*math.Sqrt(2*float64(freedom)); chi > limit {
		t.Errorf("%s: chi-square %.0f, want below %.0f", what, chi, limit)
	}
}

// grid returns the chi-square of the counts of pairs (x, y) of 0..n-1 in a
// field of 32 by 32.
func grid(x, y []int, n int) float64 {
	const side = 32
	var count [side][side]float64
	for i := range x {
		count[x[i]*side/n][y[i]*side/n]++
	}
	want, chi := float64(len(x))/(side*side), 0.0
	for _, row := range count {
		for _, c := range row {
			chi += (c - want) * (c - want) / want
		}
	}
	return chi
}

func TestPermutationHasNoPattern(t *testing.T) {
	for _, n := range []int{10007, 1 << 14, 50_000} {
		for seed := range uint64(3) {
			p := Plan{Seed: seed, Examples: n, Batch: 1}
			first, second := p.Range(0, 0, n, nil), p.Range(1, 0, n, nil)
			where := make([]int, n)
			for i := range where {
				where[i] = i
			}
			name := fmt.Sprintf("n=%d seed=%d ", n, seed)
			lessThan(t, name+"position and id", grid(where, first, n), 31*31)
			lessThan(t, name+"id and next id", grid(first[:n-1], first[1:], n), 32*32-1)
			lessThan(t, name+"ids of two epochs", grid(first, second, n), 31*31)

			moved, strides := 0.0, map[int]int{}
			most, fixed := 0, 0
			for i, id := range first {
				moved += math.Abs(float64(id - i))
				if id == i {
					fixed++
				}
				if i > 0 {
					d := (id - first[i-1] + n) % n
					strides[d]++
					most = max(most, strides[d])
				}
			}
			// The mean distance is n/3; its deviation is about n/sqrt(18·n).
			if got, sigma := moved/float64(n), float64(n)/math.Sqrt(18*float64(n)); math.Abs(got-float64(n)/3) > 5*sigma {
				t.Errorf("%smoved %.0f on average, want %d", name, got, n/3)
			}
			// Both counts are Poisson of mean 1, the strides' the largest of n.
			if most > 14 || fixed > 10 {
				t.Errorf("%sone stride comes %d times, %d ids stay", name, most, fixed)
			}
		}
	}
}

// Over many epochs every order of a small set comes equally often.
func TestSmallPermutationsAreUniform(t *testing.T) {
	for n, orders := range map[int]int{2: 2, 3: 6, 4: 24, 5: 120, 6: 720} {
		const per = 200
		count := map[string]int{}
		p := Plan{Seed: 9, Examples: n, Batch: n}
		for epoch := range per * orders {
			count[fmt.Sprint(p.Range(epoch, 0, n, nil))]++
		}
		chi := float64((orders - len(count)) * per)
		for _, c := range count {
			chi += float64((c-per)*(c-per)) / per
		}
		lessThan(t, fmt.Sprintf("orders of %d", n), chi, orders-1)
	}
}

// Over many epochs every id comes at every position, and after every other id,
// equally often.
func TestPlacesAreUniform(t *testing.T) {
	for _, n := range []int{3, 10, 16, 64, 257, 400} {
		p := Plan{Seed: 4, Examples: n, Batch: n}
		epochs := 20 * n
		place, follow := make([]float64, n*n), make([]float64, n*n)
		var ids []int
		for epoch := range epochs {
			ids = p.Range(epoch, 0, n, ids)
			for i, id := range ids {
				place[i*n+id]++
				if i > 0 {
					follow[ids[i-1]*n+id]++
				}
			}
		}
		chi, chiFollow := 0.0, 0.0
		want := float64(epochs) / float64(n)
		for i := range place {
			chi += (place[i] - want) * (place[i] - want) / want
			if i/n != i%n { // no id follows itself
				chiFollow += (follow[i] - want) * (follow[i] - want) / want
			}
		}
		lessThan(t, fmt.Sprintf("n=%d places", n), chi, (n-1)*(n-1))
		lessThan(t, fmt.Sprintf("n=%d neighbours", n), chiFollow, n*(n-1))
	}
}

func BenchmarkIDs(b *testing.B) {
	for _, n := range []int{10_662, 1_281_167} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			p := Plan{Seed: 1, Examples: n, Batch: 256}
			var ids []int
			b.ReportAllocs()
			step := int64(0)
			for b.Loop() {
				step++
				ids = p.IDs(step, ids)
			}
			b.ReportMetric(float64(b.N*256)/b.Elapsed().Seconds(), "ids/s")
		})
	}
}
