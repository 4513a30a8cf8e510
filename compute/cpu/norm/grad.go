package norm

import (
	"math"

	"optimus/compute/cpu/plane"
	"optimus/compute/cpu/vec"
)

// GradSums are the sums over a batch that gradients need, for a block of channels: with g = dy,
// or dy where y > 0 if there is a ReLU, those of g and of g·(x-Mean). The assembly knows its layout.
type GradSums struct {
	Mean  [lanes]float32
	G, GX [lanes]float64
}

// Start empties the sums. mean has the statistics of the block's channels.
func (s *GradSums) Start(mean []float64) {
	*s = GradSums{}
	for l, mu := range mean {
		s.Mean[l] = float32(mu)
	}
}

// Plane adds the pixels of a plane. y is the output of the forward pass; without a ReLU it has no data.
func (s *GradSums) Plane(dy, y, x plane.Plane) { s.planeAt(vec.Level(), dy, y, x) }

// GradSumsRow adds a row of a matrix; without a ReLU y is nil.
func GradSumsRow(s []GradSums, dy, y, x []float32) { gradSumsRowAt(vec.Level(), s, dy, y, x) }

// Merge adds the sums of another leaf.
func (s *GradSums) Merge(leaf *GradSums) {
	for l := range lanes {
		s.G[l] += leaf.G[l]
		s.GX[l] += leaf.GX[l]
	}
}

// Params adds the gradients of the block's parameters: Σ g·x̂ to dgamma, unless it is nil, and Σ g to dbeta.
func (s *GradSums) Params(mean, variance []float64, eps float64, dgamma, dbeta []float32) {
	for l, mu := range mean {
		if dgamma != nil {
			dgamma[l] += float32(s.product(l, mu) / math.Sqrt(variance[l]+eps))
		}
		dbeta[l] += float32(s.G[l])
	}
}

// product is Σ g·(x-mean) for the mean that float32 cannot hold.
func (s *GradSums) product(l int, mean float64) float64 {
	return s.GX[l] + float64((float64(s.Mean[l])-mean)*s.G[l])
}

// InputGrad is the backward pass of a block. With N values in each channel,
//
//	dx = γ/√(σ²+ε) · (g - Σg/N - x̂·Σ(g·x̂)/N) = g·A + (x-Mean)·B + C.
//
// The assembly knows its layout.
type InputGrad struct{ Mean, A, B, C [lanes]float32 }

// Set computes the numbers of a block from its sums over count values of each channel. A nil
// gamma is 1.
func (b *InputGrad) Set(s *GradSums, count int, mean, variance []float64, gamma []float32, eps float64) {
	positive("InputGrad.Set", count)
	*b = InputGrad{}
	n := float64(count)
	for l, mu := range mean {
		inv := 1 / math.Sqrt(variance[l]+eps)
		a := factor(gamma, l) * inv
		slope := -a * inv * inv * s.product(l, mu) / n
		b.Mean[l], b.A[l], b.B[l] = float32(mu), float32(a), float32(slope)
		b.C[l] = float32(float64(slope*(float64(b.Mean[l])-mu)) - a*s.G[l]/n)
	}
}

// Plane writes dx, or adds to it if addX. If dr has data, it is the gradient of the residual,
// g, which is written or added likewise. y is as in GradSums.Plane. dx or dr may be dy.
func (b *InputGrad) Plane(dx, dr, dy, y, x plane.Plane, addX, addR bool) {
	b.planeAt(vec.Level(), dx, dr, dy, y, x, addX, addR)
}

// InputGradRow is Plane for a row of a matrix; dr and y may be nil.
func InputGradRow(b []InputGrad, dx, dr, dy, y, x []float32, addX, addR bool) {
	inputGradRowAt(vec.Level(), b, dx, dr, dy, y, x, addX, addR)
}
