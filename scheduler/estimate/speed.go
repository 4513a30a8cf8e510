package estimate

import (
	"errors"
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"
)

// Probe is a measured speed of one configuration.
type Probe struct {
	Servers int     // p
	Workers int     // w
	Speed   float64 // f, steps/s: global steps of a synchronous job, all workers' steps of an asynchronous one
}

// SpeedFit is a fitted form. To keep it, keep the measurements: fitting is cheap.
type SpeedFit struct {
	Form     Form
	Theta    []float64
	Rejected []Rejected // measurements that were left out, and why
	Used     int        // measurements that the fit rests on
	Error    float64    // relative standard deviation of a measurement about the model
	// cov is the covariance of θ for Error = 1. Coefficients that came out 0 are in
	// it: they are known no better than the others.
	cov       *mat.Dense
	deviation *deviation // nil without Refine
}

// Rejected is a measurement that a fit left out.
type Rejected struct {
	Index  int // in the probes given
	Probe  Probe
	Reason string
}

// RankError says that the probes do not determine all coefficients of a form, and
// names a configuration whose measurement helps.
type RankError struct {
	Form         string
	Rank, Need   int
	Next         Probe // Speed is 0
	HaveNext     bool
	Measurements int
}

func (e *RankError) Error() string {
	s := fmt.Sprintf("speed fit: %d usable measurements determine %d of the %d coefficients of %s", e.Measurements, e.Rank, e.Need, e.Form)
	if e.HaveNext {
		s += fmt.Sprintf("; measure p=%d, w=%d next", e.Next.Servers, e.Next.Workers)
	}
	return s
}

const (
	// With few measurements more than coefficients, their scatter says little of the
	// error; it is mixed with two measurements' worth of the typical 5 %.
	priorError  = .05
	priorWeight = 2
	tryEach     = 32 // measurements up to which each is suspected in turn
	outlierF    = 16 // F value from which a slow measurement is left out
)

// FitSpeed fits a form by NNLS. Rows are weighted so that relative errors of the
// speed count: unweighted, slow configurations would rule the fit. Failed
// measurements (a speed that is not positive and finite) are left out, and so is a
// slow one that the others contradict. Probes that do not determine the
// coefficients give a *RankError.
func FitSpeed(form Form, probes []Probe) (SpeedFit, error) {
	fit := SpeedFit{Form: form}
	var good []int
	for i, p := range probes {
		if p.Servers < 1 || p.Workers < 1 {
			return SpeedFit{}, fmt.Errorf("speed fit: measurement %d has p=%d, w=%d; both are at least 1", i, p.Servers, p.Workers)
		}
		if !(p.Speed > 0) || math.IsInf(p.Speed, 0) {
			fit.Rejected = append(fit.Rejected, Rejected{i, p, fmt.Sprintf("speed is %v: a failed measurement", p.Speed)})
			continue
		}
		good = append(good, i)
	}
	s := newSpeedSystem(form, probes, good)
	if rank, need := s.rank(), len(form.Terms); rank < need {
		e := &RankError{Form: form.Name, Rank: rank, Need: need, Measurements: len(good)}
		e.Next, e.HaveNext = s.raisesRank(rank)
		return fit, e
	}
	theta, sse, err := s.solve(-1)
	if err != nil {
		return fit, err
	}
	if out := s.slowOutlier(theta, sse); out >= 0 {
		i := s.index[out]
		fit.Rejected = append(fit.Rejected, Rejected{i, probes[i], "far slower than the other measurements allow"})
		s = newSpeedSystem(form, probes, without(good, out))
		if theta, sse, err = s.solve(-1); err != nil {
			return fit, err
		}
	}
	fit.Theta, fit.Used = theta, len(s.b)
	free := float64(len(s.b) - len(theta))
	fit.Error = math.Sqrt((sse + priorWeight*priorError*priorError) / (max(free, 0) + priorWeight))
	fit.cov, err = inverseGram(s.a)
	return fit, err
}

// At returns the model's speed in steps/s at p, w ≥ 1, and the standard error of
// predicting a measurement there.
func (f SpeedFit) At(p, w int) (speed, stderr float64) {
	row := make([]float64, len(f.Theta))
	f.Form.row(row, float64(p), float64(w))
	t := dot(row, f.Theta)
	r := mat.NewVecDense(len(row), row)
	speed = f.Form.work(float64(w)) / t
	variance := f.Error * f.Error * (1 + max(0, mat.Inner(r, f.cov, r))/(t*t))
	if f.deviation != nil {
		factor, left := f.deviation.scale(Probe{Servers: p, Workers: w})
		speed *= factor
		variance = min(variance, left+probeError*probeError)
	}
	return speed, speed * math.Sqrt(variance)
}

func dot(a, b []float64) float64 {
	s := 0.0
	for i := range a {
		s += a[i] * b[i]
	}
	return s
}

// speedSystem has a row f/work · terms = 1 for each measurement: its residual is
// the relative error of the step time.
type speedSystem struct {
	form   Form
	probes []Probe
	index  []int // of each row in probes
	a      *mat.Dense
	b      []float64
}

func newSpeedSystem(form Form, probes []Probe, use []int) speedSystem {
	s := speedSystem{form: form, probes: probes, index: use, b: make([]float64, len(use))}
	if len(use) == 0 {
		return s
	}
	s.a = mat.NewDense(len(use), len(form.Terms), nil)
	for k, i := range use {
		w := float64(probes[i].Workers)
		row := s.a.RawRowView(k)
		form.row(row, float64(probes[i].Servers), w)
		for j := range row {
			row[j] *= probes[i].Speed / form.work(w)
		}
		s.b[k] = 1
	}
	return s
}

// solve returns θ and the sum of squared residuals without row skip; −1 skips none.
func (s speedSystem) solve(skip int) ([]float64, float64, error) {
	a, b := mat.Matrix(s.a), s.b
	if skip >= 0 {
		t := newSpeedSystem(s.form, s.probes, without(s.index, skip))
		a, b = t.a, t.b
	}
	x, err := NNLS(a, b)
	if err != nil {
		return nil, 0, fmt.Errorf("speed fit: %w", err)
	}
	return x.X, x.Residual * x.Residual, nil
}

// slowOutlier returns the row whose removal lowers the squared residuals most, if
// it is slower than the rest say and an F test calls it foreign; else −1. One of
// few rows can bend the fit so far that its own residual is not the largest, so
// each is tried; among many that cannot happen.
func (s speedSystem) slowOutlier(theta []float64, sse float64) int {
	free := len(s.b) - 1 - len(s.form.Terms)
	if free < 1 {
		return -1
	}
	from, to := 0, len(s.b)
	if to > tryEach {
		slowest := 0.0
		for k := range s.b {
			if late := 1 - dot(s.a.RawRowView(k), theta); late > slowest {
				slowest, from, to = late, k, k+1
			}
		}
	}
	best, least := -1, math.Inf(1)
	for k := from; k < to; k++ {
		theta, rest, err := s.solve(k)
		if err == nil && rest < least && dot(s.a.RawRowView(k), theta) < 1 {
			best, least = k, rest
		}
	}
	floor := priorError * priorError * priorWeight
	if best < 0 || (sse-least)/((least+floor)/(float64(free)+priorWeight)) < outlierF {
		return -1
	}
	return best
}

func without(v []int, k int) []int {
	return append(append(make([]int, 0, len(v)), v[:k]...), v[k+1:]...)
}

// rank counts the independent columns, by singular values of the columns scaled to
// norm 1.
func (s speedSystem) rank() int {
	if s.a == nil {
		return 0
	}
	unit := mat.DenseCopyOf(s.a)
	rows, cols := unit.Dims()
	for j := range cols {
		n := max(mat.Norm(unit.ColView(j), 2), 1e-300)
		for i := range rows {
			unit.Set(i, j, unit.At(i, j)/n)
		}
	}
	var svd mat.SVD
	if !svd.Factorize(unit, mat.SVDNone) {
		return 0
	}
	return svd.Rank(1e-9)
}

// raisesRank looks for the smallest configuration that adds a direction, other than
// those tried in vain.
func (s speedSystem) raisesRank(rank int) (Probe, bool) {
	tried := map[[2]int]bool{}
	for _, p := range s.probes {
		tried[[2]int{p.Servers, p.Workers}] = true
	}
	for total := 2; total <= 16; total++ {
		for p := 1; p < total; p++ {
			c := Probe{Servers: p, Workers: total - p, Speed: 1}
			if tried[[2]int{c.Servers, c.Workers}] {
				continue
			}
			use := append(append([]int(nil), s.index...), len(s.probes))
			if newSpeedSystem(s.form, append(s.probes[:len(s.probes):len(s.probes)], c), use).rank() > rank {
				c.Speed = 0
				return c, true
			}
		}
	}
	return Probe{}, false
}

// inverseGram returns (AᵀA)⁻¹.
func inverseGram(a *mat.Dense) (*mat.Dense, error) {
	var gram, inv mat.Dense
	gram.Mul(a.T(), a)
	if err := inv.Inverse(&gram); err != nil {
		var c mat.Condition
		if !errors.As(err, &c) || math.IsInf(float64(c), 1) {
			return nil, fmt.Errorf("speed fit: covariance of the coefficients: %w", err)
		}
	}
	return &inv, nil
}
