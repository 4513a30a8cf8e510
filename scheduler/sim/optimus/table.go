package optimus

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"
)

// MaxTasks is the most ps, and the most workers, that a job may have: beyond lies hardly a measurement.
const MaxTasks = 16

// grid is a value for each number of ps and workers.
type grid [MaxTasks + 1][MaxTasks + 1]float64

// point is a measured step time.
type point struct{ p, w, seconds float64 }

// interpolate fills a grid with step times: exact at the points, between them linear radial-basis interpolation of
// ln(seconds) over (ln p, ln w), as the simulator of the paper's author does for speeds. The stretch is that with which
// each measured configuration is predicted best from the others.
func interpolate(points []point, stretch float64) (*grid, error) {
	points = merge(points)
	n := len(points)
	if n < 3 {
		return nil, fmt.Errorf("%d measured configurations, at least 3 are needed", n)
	}
	// Σ wᵢ·|x − xᵢ| + c with Σ wᵢ = 0.
	a, b := mat.NewDense(n+1, n+1, nil), mat.NewVecDense(n+1, nil)
	for i, q := range points {
		for k, r := range points {
			a.Set(i, k, distance(stretch, q.p, q.w, r))
		}
		a.Set(i, n, 1)
		a.Set(n, i, 1)
		b.SetVec(i, math.Log(q.seconds))
	}
	var x mat.VecDense
	if err := x.SolveVec(a, b); err != nil {
		return nil, fmt.Errorf("interpolation of %d configurations: %w", n, err)
	}
	out := &grid{}
	for p := 1; p <= MaxTasks; p++ {
		for w := 1; w <= MaxTasks; w++ {
			sum := x.AtVec(n)
			for i, q := range points {
				sum += x.AtVec(i) * distance(stretch, float64(p), float64(w), q)
			}
			out[p][w] = math.Exp(sum)
		}
	}
	return out, nil
}

// distance is between two configurations. A change of w/p counts stretch times as much as one of w·p.
func distance(stretch, p, w float64, q point) float64 {
	dp, dw := math.Log(p/q.p), math.Log(w/q.w)
	return math.Hypot(stretch*(dw-dp), dw+dp)
}

// merge takes the geometric mean of what was measured twice.
func merge(points []point) []point {
	var out []point
	count := map[[2]float64]int{}
	index := map[[2]float64]int{}
	for _, q := range points {
		key := [2]float64{q.p, q.w}
		count[key]++
		if i, ok := index[key]; ok {
			out[i].seconds *= math.Pow(q.seconds/out[i].seconds, 1/float64(count[key]))
			continue
		}
		index[key] = len(out)
		out = append(out, q)
	}
	return out
}
