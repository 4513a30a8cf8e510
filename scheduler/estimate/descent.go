package estimate

import "math"

// bounds keep parameters in a box; equal ones freeze a parameter.
type bounds struct{ lo, hi params }

func (b *bounds) clip(p params) params {
	for i := range p {
		p[i] = min(max(p[i], b.lo[i]), b.hi[i])
	}
	return p
}

// free tells which parameters a descent along −g can change.
func (b *bounds) free(p, g *params) (free [paramCount]bool) {
	for i := range p {
		free[i] = b.lo[i] < b.hi[i] && !(p[i] <= b.lo[i] && g[i] >= 0) && !(p[i] >= b.hi[i] && g[i] <= 0)
	}
	return free
}

const (
	coarseSteps = 50
	fineSteps   = 500 // for each smoothing
	patience    = 8   // steps in a row without gain, over which the damping grows by 10⁸
)

// minimise finds the least loss within bounds. The loss has kinks where a fit is perfect, and several minima: the
// descent begins at all starts with the loss smoothed, and goes on from the best while the smoothing vanishes. It
// tells how many steps it took and whether it settled.
func (l *timing) minimise(starts []params, b *bounds) (p params, steps int, settled bool) {
	best := math.Inf(1)
	for _, q := range starts {
		q, n, _ := l.descend(q, b, 1e-3, 1e-4, coarseSteps)
		steps += n
		if loss := l.loss(q); loss < best {
			best, p = loss, q
		}
	}
	for _, eps := range []float64{1e-4, 1e-7, 1e-10} {
		var n int
		p, n, settled = l.descend(p, b, eps, 1e-11, fineSteps)
		steps += n
	}
	return p, steps, settled
}

// descend minimises the loss, smoothed by eps, within bounds: a projected quasi-Newton method. A step solves
// (H + λ·diag H)·d = −gradient over the parameters that are free to move, with two approximations H of the second
// derivative in turn, each with its own damping λ; the better of the two results is kept.
//
// The loss contains roots of sums of squares, √s. The first H bounds a root by √s₀ + (s−s₀)/(2√s₀), which is sound
// everywhere and exact in one step at the kink of a perfect fit, where s = 0. The second also has the curvature of the
// root itself, −∇s∇sᵀ/(4√s³), which is better where the errors stay.
//
// It ends when many steps in a row gain less than the given part of the loss, or at the limit of steps with false.
func (l *timing) descend(p params, b *bounds, eps, gain float64, limit int) (params, int, bool) {
	var parts, trial, best losses
	p = b.clip(p)
	l.at(&p, &parts)
	loss := parts.smoothed(eps)
	damping := [2]float64{1e-3, 1e-3}
	idle := 0
	for n := range limit {
		g := parts.gradient(eps)
		free := b.free(&p, &g)
		before, from := loss, p
		h := parts.majorant(eps)
		damp := h.diagonal()
		for kind := range damping {
			if kind == 1 {
				h.bend(&parts, eps)
			}
			lambda := &damping[kind]
			d, ok := h.solve(&g, &damp, &free, *lambda)
			q, v := b.clip(from.plus(d)), math.Inf(1)
			if ok {
				l.at(&q, &trial)
				v = trial.smoothed(eps)
			}
			if !(v < before) {
				*lambda = min(*lambda*10, 1e10)
				continue
			}
			*lambda = max(*lambda/10, 1e-8)
			if v < loss {
				loss, p, best = v, q, trial
			}
		}
		if loss < before {
			parts = best
		}
		if idle++; loss < before*(1-gain) {
			idle = 0
		}
		if idle == patience {
			return p, n + 1, true
		}
	}
	return p, limit, false
}

// matrix is symmetric; its lower triangle is used.
type matrix [paramCount]params

// majorant is the second derivative of the quadratic that bounds the smoothed loss from above, as far as its residuals
// are linear.
func (parts *losses) majorant(eps float64) (h matrix) {
	grads, lasts := math.Sqrt(parts.grads.value+eps*eps), math.Sqrt(parts.lasts.value+eps*eps)
	for i := range h {
		for j := range i + 1 {
			h[i][j] = parts.grads.curve[i][j]/grads + parts.lasts.curve[i][j]/lasts + 2*parts.preference.curve[i][j]
		}
	}
	return h
}

// bend adds the curvature of the roots.
func (h *matrix) bend(parts *losses, eps float64) {
	for _, s := range []*squares{&parts.grads, &parts.lasts} {
		cube := math.Pow(s.value+eps*eps, 1.5)
		for i := range h {
			for j := range i + 1 {
				h[i][j] -= s.slope[i] * s.slope[j] / cube
			}
		}
	}
}

func (h *matrix) diagonal() (d params) {
	for i := range d {
		d[i] = h[i][i]
	}
	return d
}

// solve returns the d of (h + lambda·damp)·d = −g over the free parameters by Cholesky's method, or false if the
// matrix is not positive definite.
func (h *matrix) solve(g, damp *params, free *[paramCount]bool, lambda float64) (d params, ok bool) {
	var l matrix // the factor; rows and columns that are not free are those of the unit matrix
	for i := range l {
		if !free[i] {
			l[i][i] = 1
			continue
		}
		for j := range i + 1 {
			if !free[j] {
				continue
			}
			s := h[i][j]
			if i == j {
				s += lambda * damp[i]
			}
			for k := range j {
				s -= l[i][k] * l[j][k]
			}
			if i != j {
				l[i][j] = s / l[j][j]
				continue
			}
			if !(s > 1e-14*damp[i]) {
				return params{}, false
			}
			l[i][i] = math.Sqrt(s)
		}
		d[i] = -g[i]
	}
	for i := range l {
		for k := range i {
			d[i] -= l[i][k] * d[k]
		}
		d[i] /= l[i][i]
	}
	for i := paramCount - 1; i >= 0; i-- {
		for k := i + 1; k < paramCount; k++ {
			d[i] -= l[k][i] * d[k]
		}
		d[i] /= l[i][i]
	}
	return d, true
}
