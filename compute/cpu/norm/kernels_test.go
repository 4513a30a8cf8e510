package norm

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"optimus/compute/cpu/internal/fence"
	"optimus/compute/cpu/plane"
	"optimus/internal/level"
)

func numbers(r *rapid.T, label string, n int) []float32 {
	return rapid.SliceOfN(rapid.OneOf(
		rapid.Float32Range(-3, 3),
		rapid.SampledFrom([]float32{0, float32(math.Copysign(0, -1)), float32(math.Inf(1)), float32(math.NaN()), math.MaxFloat32, 1e-40}),
	), n, n).Draw(r, label)
}

// TestRows compares every kernel with the Go loop, bit for bit, on rows of all lengths that lie against
// pages that must not be touched. The other layout uses the same kernels or differs in the running sums alone.
func TestRows(t *testing.T) {
	each(t, func(t *testing.T, name string) {
		k, f := kernelsAt(name), fence.New(t, 5)
		rapid.Check(t, func(r *rapid.T) {
			n, front := rapid.IntRange(0, 70).Draw(r, "n"), rapid.Bool().Draw(r, "front")
			add, relu, residual := rapid.Bool().Draw(r, "add"), rapid.Bool().Draw(r, "relu"), rapid.Bool().Draw(r, "residual")
			in := make([][]float32, 5)
			for i, label := range []string{"x", "y", "r", "dy", "dx"} {
				in[i] = numbers(r, label, n)
			}
			step := rapid.IntRange(0, 1).Draw(r, "step") // 0: n elements of a plane
			c := numbers(r, "constants", 64)
			run := func(k *kernels, array func(i int) []float32) any {
				x, y, res, dy, dx := array(0), array(1), array(2), array(3), array(4)
				blocks := max(plane.Blocks(n), 1)
				m, s, a, g := make([]Moments, blocks), make([]GradSums, blocks), make([]Affine, blocks), make([]InputGrad, blocks)
				for b := range blocks {
					m[b].Start(c[:16])
					copy(s[b].Mean[:], c[16:])
					a[b] = Affine{[16]float32(c), [16]float32(c[16:]), [16]float32(c[32:])}
					g[b] = InputGrad{[16]float32(c), [16]float32(c[16:]), [16]float32(c[32:]), [16]float32(c[48:])}
				}
				mask := y
				if !relu {
					mask = nil
				}
				if !residual {
					res = nil
				}
				k.momentsRun(m, step, x)
				k.gradSumsRun(s, step, dy, mask, x)
				k.inputGradRun(g, step, dx, res, dy, mask, x, add, !add)
				k.applyRun(a, step, y, x, res, relu)
				return []any{m, s, bits(y), bits(dx), bits(res)}
			}
			want := run(&plain, func(i int) []float32 { return append([]float32{}, in[i]...) })
			got := run(k, func(i int) []float32 { return f.Put(i, in[i], front) })
			if diff := cmp.Diff(want, got, cmpopts.EquateNaNs()); diff != "" {
				r.Fatalf("%s differs (-%s +%s):\n%s", name, level.Plain, name, diff)
			}
		})
	})
}

// bits makes zeros of different signs differ and all NaNs equal.
func bits(x []float32) []uint32 {
	out := make([]uint32, len(x))
	for i, v := range x {
		if v == v {
			out[i] = math.Float32bits(v)
		} else {
			out[i] = math.MaxUint32
		}
	}
	return out
}

func TestAllocations(t *testing.T) {
	s := plane.Shape{H: 3, W: 3, HaloH: 1, HaloW: 1}
	p, none := plane.Of(s, make([]float32, s.Len())), plane.Plane{}
	m, a, g, b := new(Moments), new(Affine), new(GradSums), new(InputGrad)
	mean, variance := make([]float64, 16), make([]float64, 16)
	beta := make([]float32, 16)
	if n := testing.AllocsPerRun(10, func() {
		m.Start(p.Pixel(0, 0))
		m.Plane(p)
		m.Statistics(9, mean, variance)
		a.Set(mean, variance, nil, beta, eps)
		a.Plane(p, p, p, true)
		g.Start(mean)
		g.Plane(p, p, p)
		g.Params(mean, variance, eps, nil, beta)
		b.Set(g, 9, mean, variance, nil, eps)
		b.Plane(p, none, p, p, p, false, false)
	}); n != 0 {
		t.Errorf("a step makes %v allocations", n)
	}
}
