package estimate

import "gonum.org/v1/gonum/mat"

// shareError is the standard deviation of a coefficient before any measurement,
// relative to one that gives its term an equal share of the step time.
const shareError = .3

// NextProbe chooses which of the candidates to measure next: the one after which
// the predictions at all candidates have the least mean relative variance
// (I-optimality). Candidates among the probes are passed over, also those whose
// measurement failed; false says that none is left. Only the probes' places count,
// not their speeds, so a whole design can be drawn up before the first measurement.
//
// The paper draws at random. D-optimal designs, which serve the coefficients rather
// than the predictions, measure corners only, and trust the form entirely. Here the
// form is in doubt (see Refine): a second probe beside the first is worth little,
// so the probes fill the space.
func NextProbe(form Form, probes, candidates []Probe) (Probe, bool) {
	seen := map[[2]int]bool{}
	points := append([]Probe(nil), candidates...)
	for _, p := range probes {
		seen[[2]int{p.Servers, p.Workers}] = true
		if p.Speed > 0 {
			points = append(points, p)
		}
	}
	cov := priorCovariance(form, points, len(candidates))
	for i := len(candidates); i < len(points); i++ {
		observe(cov, i)
	}
	most, at := 0.0, -1
	for i, c := range candidates {
		if seen[[2]int{c.Servers, c.Workers}] {
			continue
		}
		gain := 0.0
		for j := range candidates {
			gain += cov.At(i, j) * cov.At(i, j)
		}
		if gain /= cov.At(i, i) + probeError*probeError; gain > most {
			most, at = gain, i
		}
	}
	if at < 0 {
		return Probe{}, false
	}
	return Probe{Servers: candidates[at].Servers, Workers: candidates[at].Workers}, true
}

// priorCovariance is that of the relative step times before any measurement. The
// first n points, the candidates, say how large each term is.
func priorCovariance(form Form, points []Probe, n int) *mat.SymDense {
	rows := make([][]float64, len(points))
	mean := make([]float64, len(form.Terms))
	for i, c := range points {
		rows[i] = make([]float64, len(mean))
		form.row(rows[i], float64(c.Servers), float64(c.Workers))
		for j, v := range rows[i] {
			if i < n {
				mean[j] += v
			}
		}
	}
	for _, r := range rows {
		total := 0.0
		for j := range r {
			r[j] /= mean[j]
			total += r[j]
		}
		for j := range r {
			r[j] *= shareError / total
		}
	}
	cov := mat.NewSymDense(len(points), nil)
	for i, a := range points {
		for j, b := range points[:i+1] {
			cov.SetSym(i, j, dot(rows[i], rows[j])+smooth(a, b))
		}
	}
	return cov
}

// observe conditions the covariance on a measurement of point i.
func observe(cov *mat.SymDense, i int) {
	n := cov.SymmetricDim()
	c := mat.NewVecDense(n, nil)
	for j := range n {
		c.SetVec(j, cov.At(i, j))
	}
	cov.SymRankOne(cov, -1/(c.AtVec(i)+probeError*probeError), c)
}
