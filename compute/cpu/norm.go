package cpu

import (
	"math"

	"optimus/compute/cpu/norm"
	"optimus/compute/cpu/plane"
)

// normalised is what the kernels of a batch norm share. Where it lies in planes a
// task is a block of 16 channels; where it lies in rows [N,C] the whole is one; the
// few pictures that lie in rows go channel by channel.
type normalised struct {
	ports
	res, dres     port
	e             *executable
	op            *normed
	gamma, dgamma []float32 // nil if γ is fixed
	beta, dbeta   []float32
	mean, dev     []float64 // per channel: μ, σ²
	affine        []norm.Affine
	moments       []norm.Moments
	sums          []norm.GradSums
	grads         []norm.InputGrad
}

func newNormed(e *executable, op *normed) kernel {
	k := &normalised{e: e, op: op, ports: e.ports(op, op.IO), res: e.port(op.Residual), dres: e.sink(op, op.DResidual)}
	if !op.FixGamma {
		k.gamma, k.dgamma = e.block(op.Gamma)
	}
	k.beta, k.dbeta = e.block(op.Beta)
	k.mean, k.dev = make([]float64, op.C), make([]float64, op.C)
	n := plane.Blocks(op.C)
	k.affine, k.moments, k.sums, k.grads = make([]norm.Affine, n), make([]norm.Moments, n), make([]norm.GradSums, n), make([]norm.InputGrad, n)
	switch {
	case k.x.pic != nil:
		return newNormPlanes(k)
	case len(e.p.Buffers[op.X].Shape) != 3:
		return &normRows{k}
	}
	return newNormPictures(k)
}

// count returns how many values a channel of the batch has.
func (k *normalised) count() int { return k.e.n * k.area() }

// area returns how many values a channel of an example has.
func (k *normalised) area() int { return k.op.Area * *k.x.steps }

// channels returns those of a block.
func (k *normalised) channels(b int) (lo, hi int) {
	return b * plane.Lanes, min((b+1)*plane.Lanes, k.op.C)
}

func slice(x []float32, lo, hi int) []float32 {
	if x == nil {
		return nil
	}
	return x[lo:hi]
}

// ready sets the forward pass of a block from its statistics: those of the batch,
// or in evaluation those of the whole run.
func (k *normalised) ready(b int) {
	lo, hi := k.channels(b)
	if k.e.train {
		k.moments[b].Statistics(k.count(), k.mean[lo:hi], k.dev[lo:hi])
		k.keep(lo, hi)
	} else {
		k.recall(lo, hi)
	}
	k.affine[b].Set(k.mean[lo:hi], k.dev[lo:hi], slice(k.gamma, lo, hi), k.beta[lo:hi], k.op.Eps)
}

// keep gives the statistics of channels to the auxiliary arrays; recall takes them
// from there.
func (k *normalised) keep(lo, hi int) {
	for c := lo; c < hi; c++ {
		k.e.auxSum[k.op.Mean][c], k.e.auxSum[k.op.Var][c] = float32(k.mean[c]), float32(k.dev[c])
	}
}

func (k *normalised) recall(lo, hi int) {
	for c := lo; c < hi; c++ {
		k.mean[c], k.dev[c] = float64(k.e.aux[k.op.Mean][c]), float64(k.e.aux[k.op.Var][c])
	}
}

// params adds a block's gradients of γ and β, and sets the input's.
func (k *normalised) params(b int) {
	lo, hi := k.channels(b)
	k.sums[b].Params(k.mean[lo:hi], k.dev[lo:hi], k.op.Eps, slice(k.dgamma, lo, hi), k.dbeta[lo:hi])
	k.grads[b].Set(&k.sums[b], k.count(), k.mean[lo:hi], k.dev[lo:hi], slice(k.gamma, lo, hi), k.op.Eps)
}

// normPlanes works on pictures in planes.
type normPlanes struct {
	*normalised
	fwd, bwd, par func(task, thread int)
}

func newNormPlanes(n *normalised) *normPlanes {
	k := &normPlanes{normalised: n}
	k.fwd, k.bwd, k.par = k.block, k.blockGrad, k.blockSums
	return k
}

func (k *normPlanes) forward()   { k.e.pool.run(len(k.affine), k.fwd) }
func (k *normPlanes) inputGrad() { k.e.pool.run(len(k.affine), k.bwd) }
func (k *normPlanes) paramGrad() { k.e.pool.run(len(k.affine), k.par) }

func (k *normPlanes) block(b, _ int) {
	if k.e.train {
		k.moments[b].Start(k.x.plane(0, b).Pixel(0, 0))
		for i := range k.e.n {
			k.moments[b].Plane(k.x.plane(i, b))
		}
	}
	k.ready(b)
	for i := range k.e.n {
		k.affine[b].Plane(k.y.target(i, b, false), k.x.plane(i, b), k.res.plane(i, b), k.op.ReLU)
	}
}

// output is the plane whose signs tell where the ReLU let something through.
func (k *normPlanes) output(i, b int) plane.Plane {
	if !k.op.ReLU {
		return plane.Plane{}
	}
	return k.y.plane(i, b)
}

func (k *normPlanes) blockSums(b, _ int) {
	lo, hi := k.channels(b)
	k.sums[b].Start(k.mean[lo:hi])
	for i := range k.e.n {
		k.sums[b].Plane(k.dy.plane(i, b), k.output(i, b), k.x.plane(i, b))
	}
	k.params(b)
}

func (k *normPlanes) blockGrad(b, _ int) {
	for i := range k.e.n {
		k.grads[b].Plane(k.dx.target(i, b, false), k.dres.target(i, b, false), k.dy.plane(i, b), k.output(i, b), k.x.plane(i, b), k.dx.add, k.dres.add)
	}
}

// normRows works on vectors, one for each example or time step.
type normRows struct{ *normalised }

func (k *normRows) row(p port, r int) []float32 {
	if p.data == nil {
		return nil
	}
	return p.data[r*k.op.C : (r+1)*k.op.C]
}

func (k *normRows) forward() {
	if k.e.train {
		for b := range k.moments {
			lo, hi := k.channels(b)
			k.moments[b].Start(k.x.data[lo:hi])
		}
		for r := range k.count() {
			norm.MomentsRow(k.moments, k.row(k.x, r))
		}
	}
	for b := range k.affine {
		k.ready(b)
	}
	for r := range k.count() {
		norm.AffineRow(k.affine, k.row(k.y, r), k.row(k.x, r), k.row(k.res, r), k.op.ReLU)
	}
}

func (k *normRows) output(r int) []float32 {
	if !k.op.ReLU {
		return nil
	}
	return k.row(k.y, r)
}

func (k *normRows) paramGrad() {
	for b := range k.sums {
		lo, hi := k.channels(b)
		k.sums[b].Start(k.mean[lo:hi])
	}
	for r := range k.count() {
		norm.GradSumsRow(k.sums, k.row(k.dy, r), k.output(r), k.row(k.x, r))
	}
	for b := range k.sums {
		k.params(b)
	}
}

func (k *normRows) inputGrad() {
	for r := range k.count() {
		norm.InputGradRow(k.grads, k.row(k.dx, r), k.row(k.dres, r), k.row(k.dy, r), k.output(r), k.row(k.x, r), k.dx.add, k.dres.add)
	}
}

// normPictures works on pictures in rows [C,Area]: those that a model reads.
type normPictures struct {
	*normalised
	sumG, sumGX   []float64 // per channel: Σ g, Σ g·(x-μ)
	fwd, bwd, par func(task, thread int)
}

func newNormPictures(n *normalised) *normPictures {
	k := &normPictures{normalised: n, sumG: make([]float64, n.op.C), sumGX: make([]float64, n.op.C)}
	k.fwd, k.bwd, k.par = k.channel, k.channelGrad, k.channelSums
	return k
}

func (k *normPictures) forward()   { k.e.pool.run(k.op.C, k.fwd) }
func (k *normPictures) inputGrad() { k.e.pool.run(k.op.C, k.bwd) }
func (k *normPictures) paramGrad() { k.e.pool.run(k.op.C, k.par) }

// of returns channel c of example i; of an absent buffer nil.
func (k *normPictures) of(p port, i, c int) []float32 {
	if p.data == nil {
		return nil
	}
	area := k.area()
	return p.at(i)[c*area : (c+1)*area]
}

// scale returns γ/√(σ²+ε) of a channel.
func (k *normPictures) scale(c int) float64 {
	s := 1 / math.Sqrt(k.dev[c]+k.op.Eps)
	if k.gamma != nil {
		s *= float64(k.gamma[c])
	}
	return s
}

func (k *normPictures) channel(c, _ int) {
	if k.e.train {
		k.statistics(c)
		k.keep(c, c+1)
	} else {
		k.recall(c, c+1)
	}
	scale, mean, shift := float32(k.scale(c)), float32(k.mean[c]), k.beta[c]
	for i := range k.e.n {
		x, y, res := k.of(k.x, i, c), k.of(k.y, i, c), k.of(k.res, i, c)
		for j, v := range x {
			v = (v-mean)*scale + shift
			if res != nil {
				v += res[j]
			}
			if k.op.ReLU {
				v = max(v, 0)
			}
			y[j] = v
		}
	}
}

// statistics goes over a channel twice, so that a large mean does not eat the
// variance.
func (k *normPictures) statistics(c int) {
	count, total, squared := float64(k.count()), 0.0, 0.0
	for i := range k.e.n {
		total += sum(k.of(k.x, i, c))
	}
	k.mean[c] = total / count
	for i := range k.e.n {
		squared += squares(k.of(k.x, i, c), k.mean[c])
	}
	k.dev[c] = squared / count
}

// through returns what of a gradient the ReLU let through.
func (k *normPictures) through(g float32, y []float32, j int) float32 {
	if k.op.ReLU && y[j] <= 0 {
		return 0
	}
	return g
}

func (k *normPictures) channelSums(c, _ int) {
	k.sumG[c], k.sumGX[c] = 0, 0
	for i := range k.e.n {
		x, y, dy := k.of(k.x, i, c), k.of(k.y, i, c), k.of(k.dy, i, c)
		g, gx := 0.0, 0.0
		for j, v := range dy {
			v := float64(k.through(v, y, j))
			g += v
			gx += float64(v * (float64(x[j]) - k.mean[c]))
		}
		k.sumG[c], k.sumGX[c] = k.sumG[c]+g, k.sumGX[c]+gx
	}
	k.dbeta[c] += float32(k.sumG[c])
	if k.dgamma != nil {
		k.dgamma[c] += float32(k.sumGX[c] / math.Sqrt(k.dev[c]+k.op.Eps))
	}
}

// channelGrad is dx = γ/σ·(g - mean(g) - x̂·mean(g·x̂)), means over the batch.
func (k *normPictures) channelGrad(c, _ int) {
	count, mean := float64(k.count()), float32(k.mean[c])
	scale, meanG := float32(k.scale(c)), float32(k.sumG[c]/count)
	slope := float32(k.sumGX[c] / count / (k.dev[c] + k.op.Eps))
	for i := range k.e.n {
		x, y, dy, dx, dres := k.of(k.x, i, c), k.of(k.y, i, c), k.of(k.dy, i, c), k.of(k.dx, i, c), k.of(k.dres, i, c)
		for j, v := range dy {
			g := k.through(v, y, j)
			if dres != nil {
				k.dres.put(dres, j, g)
			}
			if dx != nil {
				k.dx.put(dx, j, scale*(g-meanG-(x[j]-mean)*slope))
			}
		}
	}
}

// sum and squares add in float64 on four independent chains, which hides the
// latency of an addition.
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
