package estimate

import "math"

// timing is the loss of the throughput model on measured times, that of the authors' implementation (the paper has
// the second error only): the root mean square of log(predicted/measured) of the passes, plus that of the last passes,
// plus 10⁻³(γ−1)² + 10⁻²[(β_node/α_node)² + (β_local/α_local)²], which prefers little overlap and good scaling where
// the measurements do not tell.
type timing struct {
	rows []timingRow
	// tied says that no row has an exchange between nodes. Its α and β count as farther times those within a node,
	// whatever p says.
	tied bool
}

type timingRow struct {
	m, beyond float64 // examples, GPUs beyond two
	alpha     int     // index of the exchange's α, its β is the next; 0 for a single GPU
	grad      float64 // logarithms of the measured times
	last      float64
}

const farther = 1.1

func newTiming(records []Record) *timing {
	l := &timing{rows: make([]timingRow, len(records))}
	for i, r := range records {
		row := timingRow{float64(r.PerGPU), beyondTwo(r.GPUs), 0, math.Log(r.Grad), math.Log(r.Last)}
		if r.Nodes > 1 {
			row.alpha = alphaNode
		} else if r.GPUs > 1 {
			row.alpha = alphaLocal
		}
		l.rows[i] = row
	}
	return l
}

// squares is a mean of squared residuals with half its gradient and the Gauss–Newton approximation of half its second
// derivative, of which the lower triangle is used.
type squares struct {
	value float64
	slope params
	curve [paramCount]params
}

// add takes a residual of some weight and its derivatives by the parameters of the given indices, in ascending order.
func (s *squares) add(weight, residual float64, index []int, by []float64) {
	s.value += weight * residual * residual
	for i, k := range index {
		d := weight * by[i]
		s.slope[k] += residual * d
		for j, n := range index[:i+1] {
			s.curve[k][n] += d * by[j]
		}
	}
}

// losses are the three parts of the loss, before the roots of the first two are taken.
type losses struct{ grads, lasts, preference squares }

// at evaluates the parts at p.
func (l *timing) at(p *params, parts *losses) {
	*parts = losses{}
	t, weight := p.throughput(), 1/float64(len(l.rows))
	for _, r := range l.rows {
		grad := t.Grad(r.m)
		logGrad := math.Log(grad)
		parts.grads.add(weight, logGrad-r.grad, []int{alphaGrad, betaGrad}, []float64{1 / grad, r.m / grad})

		sync := noSync
		if r.alpha > 0 {
			sync = p[r.alpha] + p[r.alpha+1]*r.beyond
		}
		logSync := math.Log(sync)
		last, share := t.overlap(logGrad, logSync)
		byGrad, bySync := share/grad, (1-share)/sync
		byGamma := (share*(logGrad-last) + (1-share)*(logSync-last)) / t.Gamma
		if r.alpha > 0 {
			parts.lasts.add(weight, last-r.last, []int{alphaGrad, betaGrad, r.alpha, r.alpha + 1, gamma},
				[]float64{byGrad, byGrad * r.m, bySync, bySync * r.beyond, byGamma})
		} else {
			parts.lasts.add(weight, last-r.last, []int{alphaGrad, betaGrad, gamma}, []float64{byGrad, byGrad * r.m, byGamma})
		}
	}
	parts.preference.add(1e-3, p[gamma]-1, []int{gamma}, []float64{1})
	for _, a := range []int{alphaNode, alphaLocal} {
		if l.tied {
			a = alphaLocal
		}
		ratio := p[a+1] / p[a]
		parts.preference.add(1e-2, ratio, []int{a, a + 1}, []float64{-ratio / p[a], 1 / p[a]})
	}
}

// smoothed is the loss with its roots √x replaced by √(x+ε²); ε = 0 is the loss itself.
func (parts *losses) smoothed(eps float64) float64 {
	return math.Sqrt(parts.grads.value+eps*eps) + math.Sqrt(parts.lasts.value+eps*eps) + parts.preference.value
}

func (l *timing) loss(p params) float64 {
	var parts losses
	l.at(&p, &parts)
	return parts.smoothed(0)
}

// gradient of the smoothed loss.
func (parts *losses) gradient(eps float64) (g params) {
	grads, lasts := math.Sqrt(parts.grads.value+eps*eps), math.Sqrt(parts.lasts.value+eps*eps)
	for k := range g {
		g[k] = parts.grads.slope[k]/grads + parts.lasts.slope[k]/lasts + 2*parts.preference.slope[k]
	}
	return g
}
