package estimate

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"
)

// LossCurve is Eqn 1, l = 1/(β₀k + β₁) + β₂, with k in epochs since From and l the
// loss divided by Unit.
type LossCurve struct {
	Beta0 float64 // per epoch, ≥ 0
	Beta1 float64 // ≥ 0
	Beta2 float64 // ≥ 0: the loss that is approached
	From  float64 // epochs
	Unit  float64
}

// At returns the loss after a number of epochs since the start of training.
func (c LossCurve) At(epochs float64) float64 {
	return c.Unit * c.at(epochs-c.From)
}

func (c LossCurve) at(k float64) float64 { return 1/(c.Beta0*k+c.Beta1) + c.Beta2 }

// settled returns the epochs after which an epoch lowers the curve by delta or
// less: d(k) = β₀/((β₀k+β₁)(β₀(k+1)+β₁)) = δ, solved for k.
func settled(b [3]float64, delta float64) float64 {
	if b[0] <= 0 || delta <= 0 {
		return 0
	}
	x := (-b[0] + math.Sqrt(b[0]*b[0]+4*b[0]/delta)) / 2
	return max(0, (x-b[1])/b[0])
}

const (
	recency      = 0.5  // weight of the oldest point; it grows linearly to 1 for the newest
	huber        = 1.5  // standard deviations from which a residual counts linearly
	smallLoss    = 1e-3 // of the unit: below it, a loss counts with an absolute error
	maxSteps     = 60
	searchGroups = 32
)

// lossFit is a weighted robust least-squares fit of Eqn 1. Losses have a relative
// error, so a row's weight is that of its steps over the loss squared.
type lossFit struct {
	rows  []lossRow
	curve LossCurve
	sigma float64 // standard deviation of one unit of weight
	steps float64
	noise float64 // relative standard deviation of a single step
	a     *mat.Dense
	b     []float64
}

type lossRow struct {
	k, loss float64
	base    float64 // weight by number of steps and size of the loss: 1/variance
	weight  float64 // base × recency
	robust  float64 // Huber's factor, ≤ 1
}

// newLossFit takes points of a curve that began at from, with losses in a unit.
func newLossFit(points []Bin, from, unit float64) *lossFit {
	f := &lossFit{
		rows:  make([]lossRow, len(points)),
		curve: LossCurve{From: from, Unit: unit},
		a:     mat.NewDense(len(points), 3, nil),
		b:     make([]float64, len(points)),
	}
	weight := 0.0
	for _, p := range points {
		weight += p.Weight
		f.steps += float64(p.Steps)
	}
	last := points[len(points)-1].At - from
	for i, p := range points {
		k, loss := p.At-from, p.Loss/unit
		size := max(loss, smallLoss)
		base := p.Weight / weight / (size * size)
		f.rows[i] = lossRow{k: k, loss: loss, base: base, weight: base * (recency + (1-recency)*k/last), robust: 1}
	}
	return f
}

// run iterates to the minimum from the best of the given curves.
func (f *lossFit) run(starts []LossCurve) error {
	best := math.Inf(1)
	for _, c := range starts {
		c.Unit = f.curve.Unit // the largest loss may have grown since
		if cost := f.cost(c); cost < best {
			best, f.curve = cost, c
		}
	}
	if math.IsInf(best, 1) {
		return fmt.Errorf("convergence: no curve fits the %d points", len(f.rows))
	}
	cost := f.reweigh()
	for range maxSteps {
		next, err := f.step()
		if err != nil {
			return err
		}
		before := cost
		if !f.descend(next, cost) {
			return nil
		}
		if cost = f.reweigh(); math.Abs(before-cost) <= 1e-9*cost {
			return nil
		}
	}
	return nil // in a flat valley: what moves on does not change the losses
}

// with is the curve with other coefficients.
func (f *lossFit) with(beta0, beta1, beta2 float64) LossCurve {
	return LossCurve{Beta0: beta0, Beta1: beta1, Beta2: beta2, From: f.curve.From, Unit: f.curve.Unit}
}

// search profiles over β₂: for each of some values below the level reached, Eqn 1
// is linear, 1/(l−β₂) = β₀k + β₁, and solved by NNLS. It is a start, so a few groups
// of points do.
func (f *lossFit) search() ([]LossCurve, error) {
	var starts []LossCurve
	size := (len(f.rows) + searchGroups - 1) / searchGroups
	groups := slices.Collect(slices.Chunk(f.rows, size))
	a, b := mat.NewDense(len(groups), 2, nil), make([]float64, len(groups))
	for part := 1.0; part > 1.0/100; part /= 2 {
		beta2 := f.level() * (1 - part)
		for i, g := range groups {
			var k, loss, weight float64
			for _, r := range g {
				k, loss, weight = k+r.k*r.weight, loss+r.loss*r.weight, weight+r.weight
			}
			k, loss = k/weight, loss/weight
			gap := max(loss-beta2, 1e-3*loss, 1e-6)
			s := math.Sqrt(weight) * gap * gap
			a.Set(i, 0, s*k)
			a.Set(i, 1, s)
			b[i] = s / gap
		}
		s, err := NNLS(a, b)
		if err != nil {
			return nil, fmt.Errorf("convergence: start at β₂ = %v: %w", beta2, err)
		}
		starts = append(starts, f.with(s.X[0], s.X[1], beta2))
	}
	return starts, nil
}

// level is what the losses have come down to: a mean over the newest eighth, since
// the smallest single loss lies low by chance.
func (f *lossFit) level() float64 {
	sum, n := 0.0, max(1, len(f.rows)/8)
	for _, r := range f.rows[len(f.rows)-n:] {
		sum += r.loss
	}
	return sum / float64(n)
}

// step linearises the curve about the present coefficients, l ≈ 2/z₀ − (β₀k + β₁)/z₀²
// + β₂ with z₀ = β₀k + β₁ as it is now, and solves for the new ones by NNLS, all three
// at once. Unlike a regression of 1/(l−β₂) this has no bias from noise.
func (f *lossFit) step() (LossCurve, error) {
	for i, r := range f.rows {
		z := f.curve.Beta0*r.k + f.curve.Beta1
		s := math.Sqrt(r.weight * r.robust)
		f.a.Set(i, 0, -s*r.k/(z*z))
		f.a.Set(i, 1, -s/(z*z))
		f.a.Set(i, 2, s)
		f.b[i] = s * (r.loss - 2/z)
	}
	s, err := NNLS(f.a, f.b)
	if err != nil {
		return LossCurve{}, fmt.Errorf("convergence: %w", err)
	}
	return f.with(s.X[0], s.X[1], s.X[2]), nil
}

// descend goes towards next as far as the cost falls; false if it does not.
func (f *lossFit) descend(next LossCurve, cost float64) bool {
	from := f.curve
	for t := 1.0; t > 1e-4; t /= 2 {
		c := f.with(from.Beta0+t*(next.Beta0-from.Beta0),
			from.Beta1+t*(next.Beta1-from.Beta1),
			from.Beta2+t*(next.Beta2-from.Beta2))
		if f.cost(c) < cost {
			f.curve = c
			return true
		}
	}
	return false
}

// cost is the weighted sum of squared residuals at the present robust weights.
func (f *lossFit) cost(c LossCurve) float64 {
	sum := 0.0
	for _, r := range f.rows {
		d := r.loss - c.at(r.k)
		sum += r.weight * r.robust * d * d
	}
	if math.IsNaN(sum) {
		return math.Inf(1)
	}
	return sum
}

// reweigh sets Huber's factors from the residuals of the present curve and returns
// the cost with them.
func (f *lossFit) reweigh() float64 {
	deviations := make([]float64, len(f.rows))
	for i, r := range f.rows {
		deviations[i] = math.Abs(r.loss-f.curve.at(r.k)) * math.Sqrt(r.base)
	}
	f.sigma = max(madToSigma*median(slices.Clone(deviations)), 1e-12)
	f.noise = f.sigma * math.Sqrt(f.steps)
	for i, d := range deviations {
		f.rows[i].robust = min(1, huber*f.sigma/max(d, 1e-300))
	}
	return f.cost(f.curve)
}

// covariance is that of the coefficients, (JᵀWJ)⁻¹ JᵀW V W J (JᵀWJ)⁻¹ with the
// residuals' variance V: the weights are not the inverse of V, as they favour
// recent points.
func (f *lossFit) covariance() [3][3]float64 {
	h, meat := mat.NewSymDense(3, nil), mat.NewSymDense(3, nil)
	for _, r := range f.rows {
		z := f.curve.Beta0*r.k + f.curve.Beta1
		j := [3]float64{-r.k / (z * z), -1 / (z * z), 1}
		w := r.weight * r.robust
		v := w * w * f.sigma * f.sigma / r.base
		for a := range 3 {
			for b := a; b < 3; b++ {
				h.SetSym(a, b, h.At(a, b)+w*j[a]*j[b])
				meat.SetSym(a, b, meat.At(a, b)+v*j[a]*j[b])
			}
		}
	}
	var out [3][3]float64
	var inverse, left, cov mat.Dense
	if err := inverse.Inverse(h); err != nil {
		var c mat.Condition
		if !errors.As(err, &c) || math.IsInf(float64(c), 1) {
			for i := range out { // nothing is known of a direction
				out[i][i] = math.Inf(1)
			}
			return out
		}
	}
	left.Mul(&inverse, meat)
	cov.Mul(&left, &inverse)
	for i := range 3 {
		for j := range 3 {
			out[i][j] = cov.At(i, j)
		}
	}
	return out
}
