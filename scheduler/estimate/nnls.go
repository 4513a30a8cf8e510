package estimate

import (
	"errors"
	"fmt"
	"math"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
)

// ErrIterations says that the active-set search hit its bound. The Solution that
// comes with it is feasible and the best seen, but not proved optimal: its KKT
// tells how far it may be off.
var ErrIterations = errors.New("bound on iterations reached before the solution was proved optimal")

// Solution is the outcome of NNLS.
type Solution struct {
	X        []float64 // coefficients, each ≥ 0
	Residual float64   // ‖A·X − b‖₂, computed afresh from A, X and b
	// KKT is the certificate: the largest violation of the conditions that hold at
	// the minimum and only there, (Aᵀ(b−AX))ⱼ ≤ 0, and = 0 where Xⱼ > 0. Each entry
	// is divided by ‖aⱼ‖·‖b‖, so that 1e-10 means optimal to rounding whatever the
	// units.
	KKT        float64
	Rank       int // number of columns with a coefficient in use
	Iterations int // least-squares problems solved
}

const rankTolerance = 1e-12 // of a column's norm: below it, the column adds no direction

// NNLS minimises ‖A·x − b‖₂ subject to x ≥ 0 by the active-set method of Lawson
// and Hanson (Solving Least Squares Problems, 1974, chapter 23). A has one row
// for each equation, b one entry for each row.
//
// Columns are scaled to unit norm, so units do not matter. Rank-deficient and
// wide systems are allowed: the minimal residual is found, with an x that uses
// independent columns only.
func NNLS(a mat.Matrix, b []float64) (Solution, error) {
	rows, cols := a.Dims()
	if rows != len(b) {
		return Solution{}, fmt.Errorf("nnls: matrix has %d rows but b has %d entries; give one entry for each row", rows, len(b))
	}
	s := Solution{X: make([]float64, cols)}
	norms, column := make([]float64, cols), make([]float64, rows)
	for j := range norms {
		for i := range rows {
			v := a.At(i, j)
			if math.IsNaN(v) || math.IsInf(v, 0) {
				return Solution{}, fmt.Errorf("nnls: entry (%d,%d) of the matrix is %v; leave such rows out", i, j, v)
			}
			column[i] = v
		}
		norms[j] = floats.Norm(column, 2)
	}
	for i, v := range b {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return Solution{}, fmt.Errorf("nnls: entry %d of b is %v; leave such rows out", i, v)
		}
	}
	normB := floats.Norm(b, 2)
	if math.IsInf(normB, 0) {
		return Solution{}, fmt.Errorf("nnls: b is too large for floating point; use larger units")
	}
	for j, n := range norms {
		if math.IsInf(n, 0) {
			return Solution{}, fmt.Errorf("nnls: column %d is too large for floating point; use larger units", j)
		}
	}
	if rows == 0 || cols == 0 || normB == 0 {
		s.Residual = normB
		return s, nil
	}
	p := newProblem(a, b, norms, normB)
	err := p.solve()
	for j, v := range p.x {
		if v > 0 {
			s.X[j] = v * normB / norms[j]
			s.Rank++
		}
	}
	s.Iterations = p.iterations
	s.certify(a, b, norms, normB)
	return s, err
}

// certify recomputes Residual and KKT from the original system.
func (s *Solution) certify(a mat.Matrix, b, norms []float64, normB float64) {
	r := make([]float64, len(b))
	for i := range r {
		r[i] = b[i]
		for j, x := range s.X {
			if x > 0 {
				r[i] -= a.At(i, j) * x
			}
		}
	}
	s.Residual = floats.Norm(r, 2)
	for j, n := range norms {
		if n == 0 {
			continue
		}
		dual := 0.0
		for i, v := range r {
			dual += a.At(i, j) / n * (v / normB)
		}
		if s.X[j] > 0 {
			dual = math.Abs(dual)
		}
		s.KKT = max(s.KKT, dual)
	}
}

// problem is a system with columns and right side of unit norm, reduced by one
// QR factorisation of [A b] to at most cols+1 rows; x and the residual's norm are
// unchanged by that, and the factorisations of the search become small.
type problem struct {
	a          *mat.Dense
	b          []float64
	x          []float64
	passive    []int  // columns in use, in the order in which they came
	used       []bool // j is in passive
	iterations int
}

func newProblem(a mat.Matrix, b, norms []float64, normB float64) *problem {
	rows, cols := a.Dims()
	both := mat.NewDense(rows, cols+1, nil)
	for i := range rows {
		for j, n := range norms {
			if n > 0 {
				both.Set(i, j, a.At(i, j)/n)
			}
		}
		both.Set(i, cols, b[i]/normB)
	}
	if rows > cols+1 {
		var qr mat.QR
		qr.Factorize(both)
		var r mat.Dense
		qr.RTo(&r)
		rows = cols + 1
		both = mat.DenseCopyOf(r.Slice(0, rows, 0, rows))
	}
	p := &problem{
		a:    mat.DenseCopyOf(both.Slice(0, rows, 0, cols)),
		b:    make([]float64, rows),
		x:    make([]float64, cols),
		used: make([]bool, cols),
	}
	for i := range p.b {
		p.b[i] = both.At(i, cols)
	}
	return p
}

// solve runs the search. Each round of the outer loop lets the column into the
// passive set that lowers the residual fastest; the inner loop takes out those
// whose coefficient would turn negative. A column is refused for the round when
// it depends on those in use, or would come out negative itself: only rounding
// can propose such a one, and taking it makes the search cycle.
func (p *problem) solve() error {
	cols := len(p.x)
	refused := make([]bool, cols)
	limit := 10*cols + 20
	for {
		j := p.steepest(refused)
		if j < 0 {
			return nil
		}
		p.passive = append(p.passive, j)
		p.used[j] = true
		z, ok := p.leastSquares()
		if !ok || z[len(z)-1] <= 0 {
			p.drop(j)
			refused[j] = true
			continue
		}
		clear(refused)
		for !p.move(z) {
			if p.iterations >= limit {
				return fmt.Errorf("nnls: %d columns, %d iterations: %w", cols, p.iterations, ErrIterations)
			}
			if z, ok = p.leastSquares(); !ok {
				return fmt.Errorf("nnls: %d columns: dependent columns in use after %d iterations: %w", cols, p.iterations, ErrIterations)
			}
		}
		if p.iterations >= limit {
			return fmt.Errorf("nnls: %d columns, %d iterations: %w", cols, p.iterations, ErrIterations)
		}
	}
}

// steepest returns the unused column with the largest positive dual value, −1 if
// there is none, which proves x optimal.
func (p *problem) steepest(refused []bool) int {
	r := make([]float64, len(p.b))
	for i := range r {
		r[i] = p.b[i]
		for _, j := range p.passive {
			r[i] -= p.a.At(i, j) * p.x[j]
		}
	}
	best, at := 1e-14, -1
	for j := range p.x {
		if p.used[j] || refused[j] {
			continue
		}
		dual := 0.0
		for i, v := range r {
			dual += p.a.At(i, j) * v
		}
		if dual > best {
			best, at = dual, j
		}
	}
	return at
}

// leastSquares solves for the passive columns without the sign constraint. It
// answers false when the last of them depends on the others.
func (p *problem) leastSquares() ([]float64, bool) {
	p.iterations++
	n := len(p.passive)
	if n == 0 {
		return nil, true
	}
	if n > len(p.b) {
		return nil, false
	}
	sub := mat.NewDense(len(p.b), n, nil)
	for k, j := range p.passive {
		for i := range p.b {
			sub.Set(i, k, p.a.At(i, j))
		}
	}
	var qr mat.QR
	qr.Factorize(sub)
	var r mat.Dense
	qr.RTo(&r)
	for k := range n {
		if math.Abs(r.At(k, k)) <= rankTolerance {
			return nil, false
		}
	}
	var z mat.VecDense
	// A poor condition number is reported here; the certificate judges the result.
	if err := qr.SolveVecTo(&z, false, mat.NewVecDense(len(p.b), p.b)); err != nil && z.Len() == 0 {
		return nil, false
	}
	return z.RawVector().Data, true
}

// move goes from x towards z, the passive columns' least-squares solution, as far
// as all stay ≥ 0. It answers true when z was reached; else the columns that
// became 0 are out of the passive set.
func (p *problem) move(z []float64) bool {
	step := 1.0
	for k, j := range p.passive {
		if z[k] <= 0 {
			step = min(step, p.x[j]/(p.x[j]-z[k]))
		}
	}
	var out []int
	for k, j := range p.passive {
		blocks := z[k] <= 0 && p.x[j]/(p.x[j]-z[k]) <= step
		p.x[j] += step * (z[k] - p.x[j])
		if blocks || p.x[j] <= 0 && z[k] <= 0 {
			out = append(out, j)
		}
		if step == 1 {
			p.x[j] = max(0, z[k])
		}
	}
	for _, j := range out {
		p.drop(j)
	}
	return len(out) == 0
}

func (p *problem) drop(j int) {
	p.x[j], p.used[j] = 0, false
	for k, v := range p.passive {
		if v == j {
			p.passive = append(p.passive[:k], p.passive[k+1:]...)
			return
		}
	}
}
