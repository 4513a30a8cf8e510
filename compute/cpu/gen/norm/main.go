// Command norm generates the assembly of package norm with avo.
//
// Each kernel walks n elements in groups of 16 and applies to each group the numbers of a block of
// channels. In a plane (NCHW16c) all groups belong to one block; in a row of a matrix each has its own.
package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	. "optimus/compute/cpu/gen/simd"
)

func main() {
	ConstraintExpr("amd64")
	for _, rows := range []bool{false, true} {
		moments(rows)
		gradSums(rows, false)
		gradSums(rows, true)
	}
	apply(false)
	apply(true)
	for _, relu := range []bool{false, true} {
		for _, residual := range []bool{false, true} {
			inputGrad(relu, residual)
		}
	}
	Finish()
}

// The structs of package norm, in bytes: Moments and GradSums have sixteen float32 and twice sixteen
// float64; the others only have float32.
const first, second, sumsSize = 64, 192, 320

func title(name string, parts ...any) string {
	for i := 0; i < len(parts); i += 2 {
		if parts[i].(bool) {
			name += parts[i+1].(string)
		}
	}
	return name
}

// sums runs add on each group with its running sums: they stay in registers in a plane, and in the
// struct from row to row.
func sums(f *Func, rows bool, n, block reg.Register, arrays []reg.Register, add func(a, b [2]V)) {
	if rows {
		f.Loop(n, arrays, func() {
			a, b := f.LoadPart(block, first), f.LoadPart(block, second)
			add(a, b)
			f.StorePart(a, block, first)
			f.StorePart(b, block, second)
		}, func() { ADDQ(U32(sumsSize), block) })
		return
	}
	a, b := f.LoadSums(block, first), f.LoadSums(block, second)
	f.Loop(n, arrays, func() { add(f.Part(a), f.Part(b)) })
	f.StoreSums(a, block, first)
	f.StoreSums(b, block, second)
}

// moments adds x-shift and its square.
func moments(rows bool) {
	Each(title("moments", rows, "Row"), "func(n int, m, x *float32)", func(f *Func) {
		n, m, x := Arg("n"), Arg("m"), Arg("x")
		sums(f, rows, n, m, []reg.Register{x}, func(sum, square [2]V) {
			d := f.Double(f.Existing(f.Sub(f.Load(x), f.At(m, 0))))
			f.Accumulate(sum, d)
			f.AccumulateProduct(square, d, d)
		})
		End()
	})
}

// gradSums adds dy, where y > 0 if there is a ReLU, and its product with x-mean.
func gradSums(rows, relu bool) {
	Each(title("gradSums", rows, "Row", relu, "ReLU"), "func(n int, s, dy, y, x *float32)", func(f *Func) {
		n, s, dy, y, x := Arg("n"), Arg("s"), Arg("dy"), Arg("y"), Arg("x")
		sums(f, rows, n, s, []reg.Register{dy, y, x}, func(sum, product [2]V) {
			d := f.Existing(f.Sub(f.Load(x), f.At(s, 0)))
			g := f.Double(masked(f, relu, dy, y))
			f.Accumulate(sum, g)
			f.AccumulateProduct(product, g, f.Double(d))
		})
		End()
	})
}

// masked loads dy, where y > 0 if there is a ReLU.
func masked(f *Func, relu bool, dy, y reg.Register) V {
	g := f.Load(dy)
	if relu {
		g = f.Keep(Greater, f.Load(y), Const(0), g)
	}
	return g
}

// apply writes y = max((x-mean)·scale + bias + residual, floor). Blocks lie step bytes apart.
func apply(residual bool) {
	Each(title("apply", residual, "Residual"), "func(n int, a *float32, step int, y, x, r *float32, floor float32)", func(f *Func) {
		n, a, step, y, x, r := Arg("n"), Arg("a"), Arg("step"), Arg("y"), Arg("x"), Arg("r")
		floor, zero := f.Fill("floor", 48), f.Zero()
		f.Loop(n, []reg.Register{y, x, r}, func() {
			v := f.Sub(f.Load(x), f.At(a, 0))
			v = f.Add(f.Mul(v, f.At(a, 64)), f.At(a, 128))
			if residual {
				v = f.Add(v, f.Load(r))
			}
			f.Store(f.Add(f.Max(floor, v), zero), y)
		}, func() { ADDQ(step, a) })
		End()
	})
}

// inputGrad writes dx = g·a + (x-mean)·b + c with g as in gradSums, and dr = g. What was in dx and dr is
// kept, and added to, as far as the masks have ones.
func inputGrad(relu, residual bool) {
	name := title("inputGrad", relu, "ReLU", residual, "Residual")
	Each(name, "func(n int, b *float32, step int, dx, dr, dy, y, x *float32, keepX, keepR uint32)", func(f *Func) {
		n, b, step := Arg("n"), Arg("b"), Arg("step")
		dx, dr, dy, y, x := Arg("dx"), Arg("dr"), Arg("dy"), Arg("y"), Arg("x")
		keepX, keepR := f.Fill("keepX", 64), f.Fill("keepR", 68)
		f.Loop(n, []reg.Register{dx, dr, dy, y, x}, func() {
			g := masked(f, relu, dy, y)
			v := f.Add(f.Mul(g, f.At(b, 64)), f.Mul(f.Sub(f.Load(x), f.At(b, 0)), f.At(b, 128)))
			v = f.Add(v, f.At(b, 192))
			f.Store(f.Add(f.And(f.Load(dx), keepX), v), dx)
			if residual {
				f.Store(f.Add(f.And(f.Load(dr), keepR), g), dr)
			}
		}, func() { ADDQ(step, b) })
		End()
	})
}
