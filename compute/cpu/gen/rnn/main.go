// Command rnn generates the assembly of package rnn with avo: one row of a cell for one time step.
package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	. "optimus/compute/cpu/gen/simd"
)

func main() {
	ConstraintExpr("amd64")
	lstm()
	lstmGrad()
	gru()
	gruGrad()
	Finish()
}

// parts returns pointers to the count arrays of n elements that lie one behind the other at the argument.
func parts(name string, n reg.Register, count int) []reg.Register {
	out := []reg.Register{Arg(name)}
	for len(out) < count {
		next := GP64()
		LEAQ(Mem{Base: out[len(out)-1], Index: n, Scale: 4}, next)
		out = append(out, next)
	}
	return out
}

// gate returns v·(1-v), the derivative of a sigmoid of value v.
func gate(f *Func, v V) V { return f.Mul(v, f.Sub(f.Set(Const(1)), v)) }

// bell returns 1-v², the derivative of a tanh of value v.
func bell(f *Func, v V) V { return f.Sub(f.Set(Const(1)), f.Mul(v, v)) }

func lstm() {
	Each("lstm", "func(n int, gates, prev, c, h *float32)", func(f *Func) {
		n := Arg("n")
		g := parts("gates", n, 4)
		prev, c, h := Arg("prev"), Arg("c"), Arg("h")
		f.Loop(n, append(g[:4:4], prev, c, h), func() {
			in := f.Sigmoid(f.Load(g[0]))
			f.Store(in, g[0])
			update := f.Tanh(f.Load(g[2]))
			f.Store(update, g[2])
			update = f.Mul(in, update)
			forget := f.Sigmoid(f.Load(g[1]))
			f.Store(forget, g[1])
			cell := f.Add(f.Mul(forget, f.Load(prev)), update)
			f.Store(cell, c)
			cell = f.Tanh(cell)
			out := f.Sigmoid(f.Load(g[3]))
			f.Store(out, g[3])
			f.Store(f.Mul(out, cell), h)
		})
		End()
	})
}

func lstmGrad() {
	Each("lstmGrad", "func(n int, dgates, gates, prev, c, dc, dh *float32)", func(f *Func) {
		n := Arg("n")
		d, g := parts("dgates", n, 4), parts("gates", n, 4)
		prev, c, dc, dh := Arg("prev"), Arg("c"), Arg("dc"), Arg("dh")
		f.Loop(n, append(append(d[:4:4], g...), prev, c, dc, dh), func() {
			t := f.Tanh(f.Load(c))
			in, forget, update, out := f.Load(g[0]), f.Load(g[1]), f.Load(g[2]), f.Load(g[3])
			above := f.Load(dh)
			f.Store(f.Mul(f.Mul(above, t), gate(f, out)), d[3])
			cell := f.Add(f.Load(dc), f.Mul(f.Mul(above, out), bell(f, t)))
			f.Store(f.Mul(f.Mul(cell, update), gate(f, in)), d[0])
			f.Store(f.Mul(f.Mul(cell, f.Load(prev)), gate(f, forget)), d[1])
			f.Store(f.Mul(f.Mul(cell, in), bell(f, update)), d[2])
			f.Store(f.Mul(cell, forget), dc)
		})
		End()
	})
}

func gru() {
	Each("gru", "func(n int, x, u, prev, h *float32)", func(f *Func) {
		n := Arg("n")
		x := parts("x", n, 3)
		u, prev, h := Arg("u"), Arg("prev"), Arg("h")
		f.Loop(n, append(x[:3:3], u, prev, h), func() {
			reset := f.Sigmoid(f.Load(x[0]))
			f.Store(reset, x[0])
			fresh := f.Tanh(f.Add(f.Load(x[2]), f.Mul(reset, f.Load(u))))
			f.Store(fresh, x[2])
			update := f.Sigmoid(f.Load(x[1]))
			f.Store(update, x[1])
			rest := f.Mul(f.Sub(f.Set(Const(1)), update), fresh)
			f.Store(f.Add(rest, f.Mul(update, f.Load(prev))), h)
		})
		End()
	})
}

func gruGrad() {
	Each("gruGrad", "func(n int, dx, du, x, u, prev, dprev, dh *float32)", func(f *Func) {
		n := Arg("n")
		dx, x := parts("dx", n, 3), parts("x", n, 3)
		du, u, prev, dprev, dh := Arg("du"), Arg("u"), Arg("prev"), Arg("dprev"), Arg("dh")
		f.Loop(n, append(append(dx[:3:3], x...), du, u, prev, dprev, dh), func() {
			reset, update, fresh, above := f.Load(x[0]), f.Load(x[1]), f.Load(x[2]), f.Load(dh)
			f.Store(f.Mul(f.Mul(above, f.Sub(f.Load(prev), fresh)), gate(f, update)), dx[1])
			inner := f.Mul(f.Mul(above, f.Sub(f.Set(Const(1)), update)), bell(f, fresh))
			f.Store(f.Mul(f.Mul(inner, f.Load(u)), gate(f, reset)), dx[0])
			f.Store(inner, dx[2])
			f.Store(f.Mul(inner, reset), du)
			f.Store(f.Mul(above, update), dprev)
		})
		End()
	})
}
