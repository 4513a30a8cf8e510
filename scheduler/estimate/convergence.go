package estimate

import (
	"errors"
	"fmt"
	"math"
)

// Convergence predicts when a job will have converged: when its loss, divided by
// the largest one, has fallen by less than Threshold from one epoch to the next
// for Patience epochs running (§2.1). Like its history it is a plain value.
type Convergence struct {
	History
	Threshold float64   // δ, as a fraction of the largest loss, per epoch
	Patience  int       // "several epochs"; 0 means 3
	Curve     LossCurve // the last fit, where the next one starts
	Searched  float64   // length of the curve, in epochs, when starts were last searched for
}

// Forecast is when a job is expected to converge.
type Forecast struct {
	Curve LossCurve
	// Scale is the largest loss, by which the curve is normalised.
	Scale float64
	// Total is the number of epochs from the start of training to convergence, never
	// less than those already done. Low and High enclose it with 90 % confidence; High
	// is +Inf where the losses do not tell.
	Total, Low, High float64
	// Remaining is Total less the epochs done, as epochs and as examples.
	Remaining         float64
	RemainingExamples float64
	Points            int // bins and steps that the fit used
	Outliers          int
}

// ErrTooFewPoints says that a fit was asked for before there was enough to fit.
var ErrTooFewPoints = errors.New("too few points")

const (
	minPoints       = 8
	defaultPatience = 3
	normal90        = 1.645
	searchAgain     = 1.1 // growth of the curve after which starts are searched for anew
)

// Forecast fits the curve to all points so far and solves it for the threshold.
// It starts from the last fit, so that calling it at every step is cheap; each time
// the curve has grown by a tenth it also searches for a better start.
func (c *Convergence) Forecast() (Forecast, error) {
	if !(c.Threshold > 0) {
		return Forecast{}, fmt.Errorf("convergence: threshold is %v; give the decrease of the normalised loss per epoch below which the job is done, such as 0.01", c.Threshold)
	}
	if c.Patience < 0 {
		return Forecast{}, fmt.Errorf("convergence: patience is %d epochs; give 1 or more, or 0 for %d", c.Patience, defaultPatience)
	}
	points := c.Points()
	if len(points) < minPoints {
		return Forecast{}, fmt.Errorf("convergence: %d steps since epoch %.4g, at least %d are needed: %w", len(points), c.From, minPoints, ErrTooFewPoints)
	}
	if c.Top == 0 {
		return Forecast{}, errors.New("convergence: all losses are 0; there is no curve to follow")
	}
	f := newLossFit(points, c.From, c.Top)
	var starts []LossCurve
	if c.Curve.Unit > 0 && c.Curve.From == c.From {
		starts = append(starts, c.Curve)
	}
	if grown := c.Done() - c.From; starts == nil || grown > searchAgain*c.Searched || grown < c.Searched {
		found, err := f.search()
		if err != nil {
			return Forecast{}, err
		}
		starts, c.Searched = append(starts, found...), grown
	}
	if err := f.run(starts); err != nil {
		return Forecast{}, err
	}
	c.Curve = f.curve
	return c.predict(f), nil
}

// predict solves the curve for the threshold and carries the covariance of the
// coefficients over to the total.
func (c *Convergence) predict(f *lossFit) Forecast {
	patience := float64(c.Patience)
	if c.Patience == 0 {
		patience = defaultPatience
	}
	b := [3]float64{f.curve.Beta0, f.curve.Beta1, f.curve.Beta2}
	scale, spread := c.scale(f, b)
	out := Forecast{Curve: f.curve, Scale: scale * f.curve.Unit, Points: len(f.rows), Outliers: c.Outliers}
	more := settled(b, c.Threshold*scale)
	var grad [3]float64
	for i := range b {
		up := b
		up[i] += max(b[i]*1e-4, 1e-9)
		s, _ := c.scale(f, up)
		grad[i] = (settled(up, c.Threshold*s) - more) / (up[i] - b[i])
	}
	variance := 0.0
	if spread > 0 {
		d := settled(b, c.Threshold*scale*(1+spread)) - more
		variance = d * d
	}
	for i, row := range f.covariance() {
		for j, v := range row {
			variance += grad[i] * grad[j] * v
		}
	}
	if math.IsNaN(variance) {
		variance = math.Inf(1)
	}
	total := f.curve.From + more + patience
	// The error is relative rather than absolute: the total goes with 1/√β₀.
	factor := math.Exp(normal90 * math.Sqrt(max(0, variance)) / total)
	done := c.Done()
	out.Total, out.Low, out.High = max(total, done), max(total/factor, done), max(total*factor, done)
	out.Remaining = out.Total - done
	out.RemainingExamples = out.Remaining * float64(c.EpochExamples)
	return out
}

// scale is the largest loss in the curve's unit, Top, and its relative standard
// error where the coefficients do not determine it. The curve's start says it best,
// unless the losses did not follow the curve there and were smaller; Top is a median
// of five noisy losses.
func (c *Convergence) scale(f *lossFit, b [3]float64) (scale, spread float64) {
	if start := 1/b[1] + b[2]; f.curve.From == 0 && start < 1 {
		return start, 0
	}
	return 1, f.noise * math.Sqrt(math.Pi/2/5)
}
