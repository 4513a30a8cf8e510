package estimate

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"testing"

	"gonum.org/v1/gonum/mat"

	"optimus/internal/shared"
)

func dense(rows [][]float64, cols int) *mat.Dense {
	if len(rows) == 0 || cols == 0 {
		return &mat.Dense{}
	}
	a := mat.NewDense(len(rows), cols, nil)
	for i, r := range rows {
		a.SetRow(i, r)
	}
	return a
}

func TestNNLSGolden(t *testing.T) {
	raw, err := os.ReadFile(shared.Dir(t, "golden_nnls.json"))
	if err != nil {
		t.Fatal(err)
	}
	var file map[string]json.RawMessage
	if err := json.Unmarshal(raw, &file); err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Kind   string
		A      [][]float64
		B, X   []float64
		Norm   float64 `json:"residual_norm"`
		Unique bool    `json:"solution_unique"`
		Cond   float64 `json:"cond_support"`
	}
	if err := json.Unmarshal(file["cases"], &cases); err != nil {
		t.Fatal(err)
	}
	if len(cases) < 100 {
		t.Fatalf("only %d cases", len(cases))
	}
	for i, c := range cases {
		t.Run(fmt.Sprintf("%s/%d", c.Kind, i), func(t *testing.T) {
			s, err := NNLS(dense(c.A, len(c.A[0])), c.B)
			if err != nil {
				t.Fatal(err)
			}
			if math.Abs(s.Residual-c.Norm) > 1e-9*(1+norm(c.B)) {
				t.Errorf("residual %.17g, want %.17g", s.Residual, c.Norm)
			}
			if s.KKT > 1e-10 {
				t.Errorf("KKT %g", s.KKT)
			}
			for j, x := range s.X {
				if x < 0 {
					t.Errorf("x[%d] = %g < 0", j, x)
				}
				tol := max(1e-7, c.Cond*1e-15*100) * max(1, norm(c.X))
				if c.Unique && math.Abs(x-c.X[j]) > tol {
					t.Errorf("x[%d] = %.12g, want %.12g (condition %g)", j, x, c.X[j], c.Cond)
				}
			}
		})
	}
}

func norm(v []float64) float64 {
	s := 0.0
	for _, x := range v {
		s = math.Hypot(s, x)
	}
	return s
}

// enumerate is the slow, obvious solver: least squares on every subset of the
// columns; the best one without a negative coefficient is the minimum.
func enumerate(a *mat.Dense, b []float64) float64 {
	rows, cols := a.Dims()
	best := norm(b)
	for set := 1; set < 1<<cols; set++ {
		var js []int
		for j := range cols {
			if set>>j&1 == 1 {
				js = append(js, j)
			}
		}
		if len(js) > rows {
			continue
		}
		sub := mat.NewDense(rows, len(js), nil)
		for k, j := range js {
			for i := range rows {
				sub.Set(i, k, a.At(i, j))
			}
		}
		var x mat.VecDense
		if err := x.SolveVec(sub, mat.NewVecDense(rows, b)); err != nil {
			continue // dependent: a smaller subset spans the same
		}
		r := mat.NewVecDense(rows, nil)
		r.MulVec(sub, &x)
		r.SubVec(r, mat.NewVecDense(rows, b))
		if mat.Min(&x) >= 0 {
			best = min(best, mat.Norm(r, 2))
		}
	}
	return best
}

func TestNNLSEqualsEnumeration(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 1000 {
		rows, cols := 1+rng.IntN(8), 1+rng.IntN(5)
		a, b := random(rng, rows, cols)
		s, err := NNLS(a, b)
		if err != nil {
			t.Fatal(err)
		}
		if want := enumerate(a, b); math.Abs(s.Residual-want) > 1e-9*(1+norm(b)) {
			t.Fatalf("residual %g, enumeration %g for\n%v\nb = %v", s.Residual, want, mat.Formatted(a), b)
		}
	}
}

func random(rng *rand.Rand, rows, cols int) (*mat.Dense, []float64) {
	a := mat.NewDense(rows, cols, nil)
	b := make([]float64, rows)
	for i := range rows {
		for j := range cols {
			a.Set(i, j, rng.NormFloat64()*math.Pow(10, float64(j-2)))
		}
		b[i] = rng.NormFloat64()
	}
	if cols > 2 && rng.IntN(4) == 0 { // two equal columns
		a.SetCol(0, mat.Col(nil, 1, a))
	}
	return a, b
}

func check(t *testing.T, a mat.Matrix, b []float64) Solution {
	t.Helper()
	s, err := NNLS(a, b)
	if err != nil {
		t.Fatal(err)
	}
	again := 0.0
	rows, _ := a.Dims()
	for i := range rows {
		r := b[i]
		for j, x := range s.X {
			if x < 0 {
				t.Fatalf("x = %v", s.X)
			}
			r -= a.At(i, j) * x
		}
		again = math.Hypot(again, r)
	}
	if math.Abs(again-s.Residual) > 1e-12*(1+norm(b)) {
		t.Errorf("reported residual %g, recomputed %g", s.Residual, again)
	}
	if s.KKT > 1e-8 {
		t.Errorf("KKT %g at x = %v", s.KKT, s.X)
	}
	return s
}

func TestBO38NNLSNeverWrong(t *testing.T) {
	near := func(t *testing.T, got, want []float64, tol float64) {
		t.Helper()
		for j := range want {
			if math.Abs(got[j]-want[j]) > tol {
				t.Fatalf("x = %v, want %v", got, want)
			}
		}
	}
	t.Run("a/second column alone", func(t *testing.T) {
		s := check(t, dense([][]float64{{3, 1}, {1, 1}, {1, 2}}, 2), []float64{0, 2, 5})
		near(t, s.X, []float64{0, 2}, 1e-12)
		near(t, []float64{s.Residual}, []float64{2.236068}, 1e-6)
	})
	t.Run("b/empty active set", func(t *testing.T) {
		s := check(t, dense([][]float64{{1, 0}, {0, 1}}, 2), []float64{-1, -2})
		near(t, s.X, []float64{0, 0}, 0)
		near(t, []float64{s.Residual}, []float64{math.Sqrt(5)}, 1e-12)
	})
	t.Run("c/b zero", func(t *testing.T) {
		near(t, check(t, dense([][]float64{{1, 2}, {3, 4}}, 2), []float64{0, 0}).X, []float64{0, 0}, 0)
	})
	t.Run("d/zero, equal and nearly equal columns", func(t *testing.T) {
		b := []float64{1, 2, 4}
		zero := check(t, dense([][]float64{{0, 1}, {0, 2}, {0, 3}}, 2), b)
		equal := check(t, dense([][]float64{{1, 1}, {2, 2}, {3, 3}}, 2), b)
		close := check(t, dense([][]float64{{1, 1 + 1e-12}, {2, 2}, {3, 3}}, 2), b)
		near(t, []float64{equal.Residual, close.Residual}, []float64{zero.Residual, zero.Residual}, 1e-9)
	})
	t.Run("e/wide", func(t *testing.T) {
		rng := rand.New(rand.NewPCG(3, 4))
		for range 200 {
			a, b := random(rng, 3, 5)
			check(t, a, b)
		}
	})
	t.Run("f/random, also transposed views", func(t *testing.T) {
		rng := rand.New(rand.NewPCG(5, 6))
		for range 10000 {
			a, b := random(rng, 1+rng.IntN(8), 1+rng.IntN(8))
			s := check(t, a, b)
			twin := mat.DenseCopyOf(a.T())
			if v := check(t, twin.T(), b); v.Residual != s.Residual {
				t.Fatalf("residual %g through a transposed view, %g without", v.Residual, s.Residual)
			}
		}
	})
	t.Run("f2/no rows, no columns", func(t *testing.T) {
		check(t, &mat.Dense{}, nil)
		s, err := NNLS(noColumns(2), []float64{3, 4})
		if err != nil || s.Residual != 5 || len(s.X) != 0 {
			t.Fatalf("%+v, %v", s, err)
		}
	})
	t.Run("g/speed rows", func(t *testing.T) {
		truth := []float64{4, .5, .3, .02, 0}
		var rows [][]float64
		var b []float64
		for _, c := range [][2]float64{{1, 1}, {1, 2}, {2, 2}, {2, 4}, {4, 4}, {4, 8}, {2, 8}, {1, 8}} {
			p, w := c[0], c[1]
			rows = append(rows, []float64{1 / w, 1, w / p, w, p})
			v := 0.0
			for j, x := range rows[len(rows)-1] {
				v += x * truth[j]
			}
			b = append(b, v)
		}
		near(t, check(t, dense(rows, 5), b).X, truth, 1e-6)
	})
	t.Run("limit/best so far and an error", func(t *testing.T) {
		p := newProblem(dense([][]float64{{3, 1}, {1, 1}, {1, 2}}, 2), []float64{0, 2, 5}, []float64{1, 1}, 1)
		p.iterations = 1000
		if err := p.solve(); !errors.Is(err, ErrIterations) {
			t.Fatalf("error %v", err)
		}
		if mat.Min(mat.NewVecDense(2, p.x)) < 0 || mat.Norm(mat.NewVecDense(2, p.x), 1) == 0 {
			t.Fatalf("best so far %v", p.x)
		}
	})
}

type noColumns int

func (n noColumns) Dims() (int, int)  { return int(n), 0 }
func (noColumns) At(int, int) float64 { panic("no columns") }
func (n noColumns) T() mat.Matrix     { return mat.Transpose{Matrix: n} }

func TestNNLSBadInput(t *testing.T) {
	for name, c := range map[string]struct {
		a mat.Matrix
		b []float64
	}{
		"length": {dense([][]float64{{1}}, 1), []float64{1, 2}},
		"nan":    {dense([][]float64{{math.NaN()}}, 1), []float64{1}},
		"inf":    {dense([][]float64{{1}}, 1), []float64{math.Inf(1)}},
		"huge":   {dense([][]float64{{1e308}, {1e308}, {1e308}, {1e308}}, 1), []float64{1, 1, 1, 1}},
	} {
		if s, err := NNLS(c.a, c.b); err == nil {
			t.Errorf("%s: no error, %+v", name, s)
		}
	}
}

func FuzzNNLS(f *testing.F) {
	f.Add(uint8(2), []byte{3, 1, 0, 1, 1, 2, 1, 2, 5})
	f.Add(uint8(3), []byte{0, 0, 0, 1, 1, 1, 1, 1})
	f.Fuzz(func(t *testing.T, cols uint8, data []byte) {
		n := 1 + int(cols%8)
		rows := min(len(data)/(n+1), 12)
		if rows == 0 {
			return
		}
		a, b := mat.NewDense(rows, n, nil), make([]float64, rows)
		for i := range rows {
			for j := range n {
				a.Set(i, j, float64(int8(data[i*(n+1)+j])))
			}
			b[i] = float64(int8(data[i*(n+1)+n]))
		}
		check(t, a, b)
	})
}
