package rng

import "testing"

// TestStream checks that a stream is its key's values in order, and that every order
// of four elements comes about as often as any other.
func TestStream(t *testing.T) {
	k := NewKey(7, 1)
	s := k.Stream()
	if a, b := s.Float64(), s.IntN(10); a != k.Float64(0) || b != k.Intn(1, 10) {
		t.Errorf("stream began with %v, %v", a, b)
	}
	orders := map[[4]int]int{}
	const draws = 24_000
	for range draws {
		order := [4]int{0, 1, 2, 3}
		s.Shuffle(4, func(i, j int) { order[i], order[j] = order[j], order[i] })
		orders[order]++
	}
	chi2 := 0.0
	for _, n := range orders {
		d := float64(n) - draws/24
		chi2 += d * d / (draws / 24)
	}
	if len(orders) != 24 || chi2 > 50 { // 23 degrees of freedom: 1 in 1000
		t.Errorf("%d orders, χ² = %v", len(orders), chi2)
	}
}
