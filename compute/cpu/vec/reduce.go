package vec

import "math"

// lanes is how many running sums a reduction keeps: sum l is that of the
// elements 16i+l. A tree adds them at the end: l and l+8, then l and l+4, and so on.
const lanes = 16

// Sum returns the sum of x. It adds in float64, so up to 2²⁹ elements of one size lose
// no more than their rounding to float32 would.
func Sum(x []float32) float64 { return sumAt(kernelsAt(Level()), x) }

// Dot returns the sum of x·y. The products are exact and are added in float64.
func Dot(x, y []float32) float64 {
	same("Dot", len(x), len(y))
	return dotAt(kernelsAt(Level()), x, y)
}

// Max returns the greatest element and where it is first found. NaNs are passed over; if there is
// nothing else, it is x[0]. Of no elements the maximum is -Inf at -1.
func Max(x []float32) (float32, int) { return maxAt(kernelsAt(Level()), x) }

func sumAt(k *kernels, x []float32) float64 {
	if len(x) > 0 && k.sum != nil {
		return k.sum(len(x), &x[0])
	}
	var s [lanes]float64
	for i, v := range x {
		s[i%lanes] += float64(v)
	}
	return total(&s)
}

func dotAt(k *kernels, x, y []float32) float64 {
	if len(x) > 0 && k.dot != nil {
		return k.dot(len(x), &x[0], &y[0])
	}
	var s [lanes]float64
	for i, v := range x {
		s[i%lanes] += float64(v) * float64(y[i])
	}
	return total(&s)
}

func total(s *[lanes]float64) float64 {
	for n := lanes / 2; n > 0; n /= 2 {
		for l := range n {
			s[l] += s[l+n]
		}
	}
	return s[0]
}

func maxAt(k *kernels, x []float32) (float32, int) {
	if len(x) == 0 {
		return float32(math.Inf(-1)), -1
	}
	best := float32(math.Inf(-1))
	if k.maximum != nil {
		best = k.maximum(len(x), &x[0])
	} else {
		for _, v := range x {
			if v > best {
				best = v
			}
		}
	}
	from := 0
	if whole := len(x) &^ (lanes - 1); whole > 0 && k.index != nil {
		from = whole - k.index(whole, &x[0], best)
	}
	for i, v := range x[from:] {
		if v == best {
			return v, from + i
		}
	}
	return x[0], 0 // all are NaN
}
