package estimate

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"
)

// What a form leaves out — blocks spread unevenly over the servers, tasks that
// share a network card, unequal parts of a batch — is taken as a smooth deviation
// of the speed: a Gaussian process over (log p, log w) with these parameters.
// Design and refinement share them.
const (
	modelError  = .10        // its standard deviation, relative to the speed
	modelLength = .7         // distance over which it changes
	probeError  = priorError // standard deviation of a measurement
)

// smooth is the deviation's covariance between two configurations.
func smooth(a, b Probe) float64 {
	dp := math.Log(float64(a.Servers) / float64(b.Servers))
	dw := math.Log(float64(a.Workers) / float64(b.Workers))
	return modelError * modelError * math.Exp(-(dp*dp+dw*dw)/(2*modelLength*modelLength))
}

// deviation is the process conditioned on the measurements that a fit used.
type deviation struct {
	at      []Probe
	factor  mat.Cholesky  // of the measurements' covariance
	weights *mat.VecDense // covariance⁻¹ × log(measured/form)
}

// Refine fits a form as FitSpeed does and adds the smooth deviation from it that the
// measurements show. Near measured configurations it predicts better than the form
// alone; far from them it returns to the form.
func Refine(form Form, probes []Probe) (SpeedFit, error) {
	fit, err := FitSpeed(form, probes)
	if err != nil {
		return fit, err
	}
	left := map[int]bool{}
	for _, r := range fit.Rejected {
		left[r.Index] = true
	}
	d := &deviation{}
	for i, p := range probes {
		if !left[i] {
			d.at = append(d.at, p)
		}
	}
	cov := mat.NewSymDense(len(d.at), nil)
	logs := mat.NewVecDense(len(d.at), nil)
	for i, a := range d.at {
		for j, b := range d.at[:i+1] {
			cov.SetSym(i, j, smooth(a, b))
		}
		cov.SetSym(i, i, smooth(a, a)+probeError*probeError)
		f, _ := fit.At(a.Servers, a.Workers)
		logs.SetVec(i, math.Log(a.Speed/f))
	}
	if !d.factor.Factorize(cov) {
		return fit, fmt.Errorf("speed fit: covariance of %d measurements is not positive definite", len(d.at))
	}
	d.weights = mat.NewVecDense(len(d.at), nil)
	if err := d.factor.SolveVecTo(d.weights, logs); err != nil {
		return fit, fmt.Errorf("speed fit: deviation from the form: %w", err)
	}
	fit.deviation = d
	return fit, nil
}

// scale returns the factor on the form's speed at c and the variance that is left.
func (d *deviation) scale(c Probe) (factor, variance float64) {
	k := mat.NewVecDense(len(d.at), nil)
	for i, p := range d.at {
		k.SetVec(i, smooth(c, p))
	}
	var z mat.VecDense
	if err := d.factor.SolveVecTo(&z, k); err != nil {
		return 1, smooth(c, c)
	}
	return math.Exp(mat.Dot(k, d.weights)), max(0, smooth(c, c)-mat.Dot(k, &z))
}
