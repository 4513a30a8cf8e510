package main

import (
	"github.com/mmcloughlin/avo/reg"

	. "optimus/compute/cpu/gen/simd"
)

// unary emits y = op(x).
func unary(name string, op func(f *Func, x V) V) {
	Each(name, "func(n int, y, x *float32)", func(f *Func) {
		n, y, x := Arg("n"), Arg("y"), Arg("x")
		f.Loop(n, []reg.Register{y, x}, func() { f.Store(op(f, f.Load(x)), y) })
		End()
	})
}

func elementwise() {
	unary("exp", (*Func).Exp)
	unary("log", (*Func).Log)
	unary("tanh", (*Func).Tanh)
	unary("sigmoid", (*Func).Sigmoid)
	unary("relu", func(f *Func, x V) V { return f.ReLU(x, f.Zero()) })
	binary("reluGrad", func(f *Func, dy, y V) V { return f.Keep(Greater, y, Const(0), dy) })
	binary("tanhGrad", func(f *Func, dy, y V) V {
		return f.Mul(dy, f.Sub(f.Set(Const(1)), f.Mul(y, y)))
	})
	binary("mul", func(f *Func, a, b V) V { return f.Mul(a, b) })
	greater()
}

// greater emits y = x and place = at where x > y or x is NaN.
func greater() {
	Each("greater", "func(n int, y *float32, place *int32, x *float32, at int32)", func(f *Func) {
		n, y, place, x := Arg("n"), Arg("y"), Arg("place"), Arg("x")
		at := f.Fill("at", 32)
		f.Loop(n, []reg.Register{y, place, x}, func() {
			v, old := f.Load(x), f.Load(y)
			choose := func(yes, no V) V { return f.Select(Unordered, v, v, yes, f.Select(Greater, v, old, yes, no)) }
			f.Store(choose(v, old), y)
			f.Store(choose(at, f.Load(place)), place)
		})
		End()
	})
}

// binary emits y = op(a, b).
func binary(name string, op func(f *Func, a, b V) V) {
	Each(name, "func(n int, y, a, b *float32)", func(f *Func) {
		n, y, a, b := Arg("n"), Arg("y"), Arg("a"), Arg("b")
		f.Loop(n, []reg.Register{y, a, b}, func() { f.Store(op(f, f.Load(a), f.Load(b)), y) })
		End()
	})
}
