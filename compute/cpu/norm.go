package cpu

import (
	"math"

	"optimus/compute"
)

// batchNorm keeps the batch's statistics and the sums of the backward pass.
type batchNorm struct {
	ports
	e                          *executable
	op                         *compute.BatchNorm
	gamma, dgamma, beta, dbeta []float32
	mean, inv                  []float64 // per channel: μ, 1/√(σ²+ε)
	sumDY, sumDYX              []float64 // Σ dy, Σ dy·x̂
	fwd, bwd, par              func(task, thread int)
}

func newBatchNorm(e *executable, op *compute.BatchNorm) kernel {
	k := &batchNorm{e: e, op: op, ports: e.ports(op, op.IO)}
	k.gamma, k.dgamma = e.block(op.Gamma)
	k.beta, k.dbeta = e.block(op.Beta)
	for _, s := range []*[]float64{&k.mean, &k.inv, &k.sumDY, &k.sumDYX} {
		*s = make([]float64, op.C)
	}
	k.fwd, k.bwd, k.par = k.normalise, k.channelGrad, k.sums
	return k
}

func (k *batchNorm) forward()   { k.e.pool.run(k.op.C, k.fwd) }
func (k *batchNorm) inputGrad() { k.e.pool.run(k.op.C, k.bwd) }
func (k *batchNorm) paramGrad() { k.e.pool.run(k.op.C, k.par) }

// plane is channel c of example i.
func (k *batchNorm) plane(p port, i, c int) []float32 {
	area := k.area()
	return p.at(i)[c*area : (c+1)*area]
}

// area returns how many values a channel of an example has.
func (k *batchNorm) area() int { return k.op.Area * *k.x.steps }

// scale returns γ of channel c.
func (k *batchNorm) scale(c int) float64 {
	if k.op.FixGamma {
		return 1
	}
	return float64(k.gamma[c])
}

func (k *batchNorm) normalise(c, _ int) {
	variance := 0.0
	if k.e.train {
		variance = k.statistics(c)
	} else {
		k.mean[c], variance = float64(k.e.aux[k.op.Mean][c]), float64(k.e.aux[k.op.Var][c])
	}
	k.inv[c] = 1 / math.Sqrt(variance+k.op.Eps)
	scale := float32(k.scale(c) * k.inv[c])
	mean, shift := float32(k.mean[c]), k.beta[c]
	for i := range k.e.n {
		x, y := k.plane(k.x, i, c), k.plane(k.y, i, c)
		for j, v := range x {
			y[j] = (v-mean)*scale + shift
		}
	}
}

// statistics computes mean and variance of channel c in two passes, so that a
// large mean does not eat the variance.
func (k *batchNorm) statistics(c int) (variance float64) {
	count := float64(k.e.n * k.area())
	total := 0.0
	for i := range k.e.n {
		total += sum(k.plane(k.x, i, c))
	}
	mean := total / count
	for i := range k.e.n {
		variance += squares(k.plane(k.x, i, c), mean)
	}
	variance /= count
	k.mean[c] = mean
	k.e.auxSum[k.op.Mean][c], k.e.auxSum[k.op.Var][c] = float32(mean), float32(variance)
	return variance
}

func (k *batchNorm) sums(c, _ int) {
	mean, inv := k.mean[c], k.inv[c]
	dy1, dyx := 0.0, 0.0
	for i := range k.e.n {
		a, b := dots(k.plane(k.dy, i, c), k.plane(k.x, i, c), mean)
		dy1, dyx = dy1+a, dyx+b
	}
	k.sumDY[c], k.sumDYX[c] = dy1, dyx*inv
	k.dbeta[c] += float32(dy1)
	if !k.op.FixGamma {
		k.dgamma[c] += float32(dyx * inv)
	}
}

// channelGrad is dx = γ/σ·(dy - mean(dy) - x̂·mean(dy·x̂)), means over the batch.
func (k *batchNorm) channelGrad(c, _ int) {
	count := float64(k.e.n * k.area())
	scale := float32(k.scale(c) * k.inv[c])
	mean := float32(k.mean[c])
	meanDY, slope := float32(k.sumDY[c]/count), float32(k.sumDYX[c]/count*k.inv[c])
	for i := range k.e.n {
		x, dy, dx := k.plane(k.x, i, c), k.plane(k.dy, i, c), k.plane(k.dx, i, c)
		for j, g := range dy {
			k.dx.put(dx, j, scale*(g-meanDY-(x[j]-mean)*slope))
		}
	}
}

// sum, squares and dots add in float64 on four independent chains, which hides
// the latency of an addition. dots returns Σ a and Σ a·(b-mean).
func sum(x []float32) float64 {
	var s [4]float64
	for ; len(x) >= 4; x = x[4:] {
		s[0] += float64(x[0])
		s[1] += float64(x[1])
		s[2] += float64(x[2])
		s[3] += float64(x[3])
	}
	for _, v := range x {
		s[0] += float64(v)
	}
	return (s[0] + s[1]) + (s[2] + s[3])
}

func squares(x []float32, mean float64) float64 {
	var s [4]float64
	for ; len(x) >= 4; x = x[4:] {
		for l := range 4 {
			d := float64(x[l]) - mean
			s[l] += float64(d * d)
		}
	}
	for _, v := range x {
		d := float64(v) - mean
		s[0] += float64(d * d)
	}
	return (s[0] + s[1]) + (s[2] + s[3])
}

func dots(a, b []float32, mean float64) (plain, weighted float64) {
	var s, w [2]float64
	b = b[:len(a)]
	for ; len(a) >= 2; a, b = a[2:], b[2:] {
		for l := range 2 {
			g := float64(a[l])
			s[l] += g
			w[l] += float64(g * (float64(b[l]) - mean))
		}
	}
	for l, g := range a {
		s[0] += float64(g)
		w[0] += float64(float64(g) * (float64(b[l]) - mean))
	}
	return s[0] + s[1], w[0] + w[1]
}
