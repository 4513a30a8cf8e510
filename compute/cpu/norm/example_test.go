package norm_test

import (
	"fmt"

	"optimus/compute/cpu/norm"
)

// A step of batch normalisation over three rows of a matrix with two channels.
func Example() {
	rows := [][]float32{{1, 10}, {2, 20}, {3, 30}}
	m, a := make([]norm.Moments, 1), make([]norm.Affine, 1)
	m[0].Start(rows[0])
	for _, x := range rows {
		norm.MomentsRow(m, x)
	}
	mean, variance := make([]float64, 2), make([]float64, 2)
	m[0].Statistics(len(rows), mean, variance)
	a[0].Set(mean, variance, nil, []float32{0, 0}, 1e-5)
	for _, x := range rows {
		y := make([]float32, 2)
		norm.AffineRow(a, y, x, nil, false)
		fmt.Printf("%.3f\n", y)
	}
	// Output:
	// [-1.225 -1.225]
	// [0.000 0.000]
	// [1.225 1.225]
}
