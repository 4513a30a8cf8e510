package main

import (
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	. "optimus/compute/cpu/gen/simd"
)

func reductions() {
	Each("sum", "func(n int, x *float32) float64", func(f *Func) {
		n, x := Arg("n"), Arg("x")
		s := f.Sums()
		f.Loop(n, []reg.Register{x}, func() { f.Accumulate(f.Part(s), f.Double(f.Load(x))) })
		Store(f.Total(s), ReturnIndex(0))
		End()
	})
	Each("dot", "func(n int, x, y *float32) float64", func(f *Func) {
		n, x, y := Arg("n"), Arg("x"), Arg("y")
		s := f.Sums()
		f.Loop(n, []reg.Register{x, y}, func() {
			f.AccumulateProduct(f.Part(s), f.Double(f.Load(x)), f.Double(f.Load(y)))
		})
		Store(f.Total(s), ReturnIndex(0))
		End()
	})
	expSum("expSum", true)
	expSum("expTotal", false)
	maximum()
	index()
}

// expSum writes y = exp(x-top), if it is to be kept, and returns the sum of y.
func expSum(name string, keep bool) {
	Each(name, "func(n int, y, x *float32, top float32) float64", func(f *Func) {
		n, y, x := Arg("n"), Arg("y"), Arg("x")
		top, s := f.Fill("top", 24), f.Sums()
		f.Loop(n, []reg.Register{y, x}, func() {
			e := f.Exp(f.Sub(f.Load(x), top))
			if keep {
				f.Store(e, y)
			}
			f.Accumulate(f.Part(s), f.Double(f.Existing(e)))
		})
		Store(f.Total(s), ReturnIndex(0))
		End()
	})
}

// maximum returns the greatest element; NaNs are passed over.
func maximum() {
	Each("maximum", "func(n int, x *float32) float32", func(f *Func) {
		n, x := Arg("n"), Arg("x")
		least := f.Set(Const(float32(math.Inf(-1))))
		best := [2]V{f.Reg(), f.Reg()}
		for _, b := range best {
			VMOVAPS(least, b)
		}
		f.Loop(n, []reg.Register{x}, func() {
			b := best[f.Half()]
			VMAXPS(b, f.Else(f.Load(x), least), b)
		})
		v := best[0]
		if f.Wide {
			upper := YMM()
			VEXTRACTF64X4(U8(1), v, upper)
			VMAXPS(upper, v.AsY(), v.AsY())
		} else {
			VMAXPS(best[1], v, v)
		}
		x4, other := v.AsX(), XMM()
		VEXTRACTF128(U8(1), v.AsY(), other)
		VMAXPS(other, x4, x4)
		for _, swap := range []uint64{0x4e, 0xb1} { // the pairs, then their members
			VPERMILPS(U8(swap), x4, other)
			VMAXPS(other, x4, x4)
		}
		Store(x4, ReturnIndex(0))
		End()
	})
}

// index returns how many elements are left, counted from the first group of 16 that
// holds v; 0 if there is none. n is a multiple of 16.
func index() {
	Each("index", "func(n int, x *float32, v float32) int", func(f *Func) {
		n, x := Arg("n"), Arg("x")
		v := f.Fill("v", 16)
		f.Loop(n, []reg.Register{x}, func() { f.JumpIf(Equal, f.Load(x), v, "done") })
		Store(n, ReturnIndex(0))
		End()
	})
}
