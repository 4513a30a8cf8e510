package norm

import (
	"fmt"
	"math"
	"unsafe"

	"optimus/compute/cpu/plane"
)

// kernels are the assembly functions of a level; at the level plain there are none. Each takes any positive
// number of elements. The first index of those for sums says whether each group of 16 elements has a block
// of its own (a row) or all have the first (a plane).
type kernels struct {
	moments   [2]momentsFunc
	gradSums  [2][2]gradSumsFunc  // …, without or with a ReLU
	apply     [2]applyFunc        // without or with a residual
	inputGrad [2][2]inputGradFunc // ReLU, residual
}

type (
	momentsFunc   = func(n int, m, x *float32)
	gradSumsFunc  = func(n int, s, dy, y, x *float32)
	applyFunc     = func(n int, a *float32, step int, y, x, r *float32, floor float32)
	inputGradFunc = func(n int, b *float32, step int, dx, dr, dy, y, x *float32, keepX, keepR uint32)
)

var plain kernels

// A run is one call of a kernel: the blocks of the elements are step apart, 0 in a plane and 1 in a row.
// All its arrays are equally long, or nil.

func (m *Moments) planeAt(name string, p plane.Plane) {
	for y := range p.H {
		kernelsAt(name).momentsRun(unsafe.Slice(m, 1), 0, p.Row(y))
	}
}

func momentsRowAt(name string, m []Moments, x []float32) {
	checkRow("MomentsRow", len(m), x)
	kernelsAt(name).momentsRun(m, 1, x)
}

func (k *kernels) momentsRun(m []Moments, step int, x []float32) {
	if len(x) > 0 && k.moments[step] != nil {
		k.moments[step](len(x), &m[0].Shift[0], &x[0])
		return
	}
	for i, v := range x {
		m, l := &m[i/lanes*step], i%lanes
		d := float64(v - m.Shift[l])
		m.Sum[l] += d
		m.Square[l] += d * d // exact, fused or not
	}
}

func (s *GradSums) planeAt(name string, dy, y, x plane.Plane) {
	checkPlanes("GradSums.Plane", dy, x, y)
	for i := range dy.H {
		kernelsAt(name).gradSumsRun(unsafe.Slice(s, 1), 0, dy.Row(i), row(y, i), x.Row(i))
	}
}

func gradSumsRowAt(name string, s []GradSums, dy, y, x []float32) {
	checkRow("GradSumsRow", len(s), dy, x, y)
	kernelsAt(name).gradSumsRun(s, 1, dy, y, x)
}

func (k *kernels) gradSumsRun(s []GradSums, step int, dy, y, x []float32) {
	if f := k.gradSums[step][index(y != nil)]; len(dy) > 0 && f != nil {
		f(len(dy), &s[0].Mean[0], &dy[0], first(y), &x[0])
		return
	}
	for i, g := range dy {
		s, l := &s[i/lanes*step], i%lanes
		g := float64(masked(g, y, i))
		s.G[l] += g
		s.GX[l] += g * float64(x[i]-s.Mean[l]) // exact, fused or not
	}
}

// masked is dy, or 0 where a ReLU has cut y off.
func masked(dy float32, y []float32, i int) float32 {
	if y != nil && !(y[i] > 0) {
		return 0
	}
	return dy
}

func (a *Affine) planeAt(name string, y, x, residual plane.Plane, relu bool) {
	checkPlanes("Affine.Plane", y, x, residual)
	for i := range y.H {
		kernelsAt(name).applyRun(unsafe.Slice(a, 1), 0, y.Row(i), x.Row(i), row(residual, i), relu)
	}
}

func affineRowAt(name string, a []Affine, y, x, residual []float32, relu bool) {
	checkRow("AffineRow", len(a), y, x, residual)
	kernelsAt(name).applyRun(a, 1, y, x, residual, relu)
}

func (k *kernels) applyRun(a []Affine, step int, y, x, residual []float32, relu bool) {
	floor := float32(math.Inf(-1))
	if relu {
		floor = 0
	}
	if f := k.apply[index(residual != nil)]; len(y) > 0 && f != nil {
		f(len(y), &a[0].Mean[0], step*int(unsafe.Sizeof(Affine{})), &y[0], &x[0], first(residual), floor)
		return
	}
	for i, v := range x {
		a, l := &a[i/lanes*step], i%lanes
		v = float32((v-a.Mean[l])*a.Scale[l]) + a.Bias[l]
		if residual != nil {
			v += residual[i]
		}
		if floor > v {
			v = floor
		}
		y[i] = v + 0 // no -0
	}
}

func (b *InputGrad) planeAt(name string, dx, dr, dy, y, x plane.Plane, addX, addR bool) {
	checkPlanes("InputGrad.Plane", dx, dy, x, y, dr)
	for i := range dx.H {
		kernelsAt(name).inputGradRun(unsafe.Slice(b, 1), 0, dx.Row(i), row(dr, i), dy.Row(i), row(y, i), x.Row(i), addX, addR)
	}
}

func inputGradRowAt(name string, b []InputGrad, dx, dr, dy, y, x []float32, addX, addR bool) {
	checkRow("InputGradRow", len(b), dx, dy, x, y, dr)
	kernelsAt(name).inputGradRun(b, 1, dx, dr, dy, y, x, addX, addR)
}

func (k *kernels) inputGradRun(b []InputGrad, step int, dx, dr, dy, y, x []float32, addX, addR bool) {
	if f := k.inputGrad[index(y != nil)][index(dr != nil)]; len(dx) > 0 && f != nil {
		keepX, keepR := -uint32(index(addX)), -uint32(index(addR))
		f(len(dx), &b[0].Mean[0], step*int(unsafe.Sizeof(InputGrad{})), &dx[0], first(dr), &dy[0], first(y), &x[0], keepX, keepR)
		return
	}
	for i, g := range dy {
		b, l := &b[i/lanes*step], i%lanes
		g = masked(g, y, i)
		v := float32(g*b.A[l]) + float32((x[i]-b.Mean[l])*b.B[l]) + b.C[l]
		put(dx, i, v, addX)
		if dr != nil {
			put(dr, i, g, addR)
		}
	}
}

func put(x []float32, i int, v float32, add bool) {
	if !add {
		x[i] = 0
	}
	x[i] += v
}

func index(b bool) int {
	if b {
		return 1
	}
	return 0
}

func first(x []float32) *float32 {
	if x == nil {
		return nil
	}
	return &x[0]
}

// row is nil for a plane without data.
func row(p plane.Plane, i int) []float32 {
	if p.Data == nil {
		return nil
	}
	return p.Row(i)
}

// checkRow panics unless all arrays have the length of the first, but for the last two, which may be nil, and there are
// blocks for them.
func checkRow(op string, blocks int, arrays ...[]float32) {
	n := len(arrays[0])
	if blocks != plane.Blocks(n) {
		panic(fmt.Sprintf("norm: %s: %d blocks of %d channels for a row of %d; it takes %d", op, blocks, lanes, n, plane.Blocks(n)))
	}
	for _, a := range arrays {
		if a != nil && len(a) != n {
			panic(fmt.Sprintf("norm: %s: rows of %d and of %d channels; they must be equally long", op, n, len(a)))
		}
	}
}

// checkPlanes panics unless the planes that have data are of one size.
func checkPlanes(op string, planes ...plane.Plane) {
	p := planes[0]
	for _, q := range planes {
		if q.Data != nil && (q.H != p.H || q.W != p.W) {
			panic(fmt.Sprintf("norm: %s: planes of %d·%d and of %d·%d pixels; they must be equally large", op, p.H, p.W, q.H, q.W))
		}
	}
}
