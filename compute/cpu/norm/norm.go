// Package norm holds the passes of batch normalisation (Ioffe and Szegedy, 2015), fused with what stands
// around it in residual nets:
//
//	y = max(0, γ·(x-μ)/√(σ²+ε) + β + residual)
//
// where the residual and the ReLU may be left out, μ and σ² are taken over the
// batch in training, and γ may be fixed to 1 (a nil gamma).
//
// There are two layouts with the same arithmetic: pictures in planes of 16 channels (package plane) and rows
// of a matrix [N,C], as a recurrent net has them, one row for each time step of each sequence. What belongs
// to channels comes in blocks of 16: a plane takes one block, a row plane.Blocks(C) of them.
//
// # A step
//
// Forward: Start the Moments of each block, add all planes or rows, take the Statistics, set an Affine,
// apply it. Backward: Start the GradSums, add all planes or rows, set an InputGrad, apply it.
// Rows that do not count, such as the steps behind the end of a sequence, are
// left out by the caller, from the count as well.
//
// # Precision
//
// Sums run in float64 over x-shift, where the shift is an element of the channel itself. So a mean that is
// large compared with the deviation costs no digits, and a channel without variation has the variance 0
// exactly. In the passes x-μ comes first, with the part of μ that float32 cannot hold moved into the
// constant term.
//
// # Cores
//
// All work on a block is independent of other blocks. The sums of a block are added plane by plane in the
// order of calls; a caller that wants more tasks than blocks gives each leaf of the batch, say each
// example, sums of its own and merges them in order. Leaves chosen by the shape of the problem, never by
// the number of cores, give bits that do not depend on the cores. The other passes treat elements one by
// one. Every level of the processor gives the same bits.
package norm

import (
	"fmt"
	"math"

	"optimus/compute/cpu/plane"
	"optimus/compute/cpu/vec"
)

//go:generate go run -C ../gen ./norm -out ../norm/norm_amd64.s -stubs ../norm/norm_amd64.go -pkg norm

const lanes = plane.Lanes

// Moments are the running sums of a block of channels. The assembly knows its layout.
type Moments struct {
	Shift       [lanes]float32
	Sum, Square [lanes]float64 // of x-Shift
}

// Start empties the sums. The shift is first, the values of the block's channels at any one place of the
// batch; all leaves of a batch start with the same.
func (m *Moments) Start(first []float32) {
	*m = Moments{}
	copy(m.Shift[:], first)
}

// Plane adds the pixels of p.
func (m *Moments) Plane(p plane.Plane) { m.planeAt(vec.Level(), p) }

// MomentsRow adds a row of a matrix to the blocks of its channels.
func MomentsRow(m []Moments, x []float32) { momentsRowAt(vec.Level(), m, x) }

// Merge adds the sums of another leaf. It panics if its shift differs.
func (m *Moments) Merge(leaf *Moments) {
	for l := range lanes {
		if math.Float32bits(m.Shift[l]) != math.Float32bits(leaf.Shift[l]) {
			panic(fmt.Sprintf("norm: Merge: channel %d of the block is shifted by %v and by %v; start all leaves of a batch with the same values", l, m.Shift[l], leaf.Shift[l]))
		}
		m.Sum[l] += leaf.Sum[l]
		m.Square[l] += leaf.Square[l]
	}
}

// Statistics writes the mean and the (biased) variance of the first len(mean) channels of the block,
// which have count values each. It panics unless count is positive.
func (m *Moments) Statistics(count int, mean, variance []float64) {
	positive("Statistics", count)
	for l := range mean {
		d := m.Sum[l] / float64(count)
		mean[l] = float64(m.Shift[l]) + d
		variance[l] = max(m.Square[l]/float64(count)-float64(d*d), 0)
	}
}

func positive(op string, count int) {
	if count <= 0 {
		panic(fmt.Sprintf("norm: %s: %d values of each channel; there must be one at least", op, count))
	}
}

// Affine is the forward pass of a block, y = (x-Mean)·Scale + Bias. The assembly knows its
// layout.
type Affine struct{ Mean, Scale, Bias [lanes]float32 }

// Set computes the numbers of a block from the statistics of its channels, of a batch in training and
// of the whole run in evaluation. A nil gamma is 1. Lanes past the channels become 0.
func (a *Affine) Set(mean, variance []float64, gamma, beta []float32, eps float64) {
	*a = Affine{}
	for l, mu := range mean {
		scale := factor(gamma, l) / math.Sqrt(variance[l]+eps)
		a.Mean[l] = float32(mu)
		a.Scale[l] = float32(scale)
		a.Bias[l] = float32(float64(beta[l]) + float64((float64(a.Mean[l])-mu)*scale))
	}
}

func factor(gamma []float32, l int) float64 {
	if gamma == nil {
		return 1
	}
	return float64(gamma[l])
}

// Plane writes y from x and, unless it has no data, the residual. They are of one size; their halos may
// differ. y may be one of the others.
func (a *Affine) Plane(y, x, residual plane.Plane, relu bool) {
	a.planeAt(vec.Level(), y, x, residual, relu)
}

// AffineRow is Plane for a row of a matrix; residual may be nil.
func AffineRow(a []Affine, y, x, residual []float32, relu bool) {
	affineRowAt(vec.Level(), a, y, x, residual, relu)
}
