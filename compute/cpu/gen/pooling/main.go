// Command pooling generates the assembly of package pooling with avo.
//
// Each kernel does n outputs whose windows are kh·kw pixels of 16 channels; rows of the input are row bytes
// apart and windows step bytes.
package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	. "optimus/compute/cpu/gen/simd"
)

// pixel is the size of sixteen float32.
const pixel = 64

func main() {
	ConstraintExpr("amd64")
	maximum()
	maximumGrad()
	mean()
	meanGrad()
	Finish()
}

// A walk goes through windows in arrays that begin at the first pixel of the first window.
type walk struct {
	f         *Func
	step      reg.Register
	at, rows  []reg.Register // the arrays, and the distances between their rows
	here, cur []reg.Register // in the row; the row
}

func newWalk(f *Func, at, rows []reg.Register) *walk {
	w := &walk{f: f, step: Arg("step"), at: at, rows: rows}
	for range at {
		w.here, w.cur = append(w.here, GP64()), append(w.cur, GP64())
	}
	return w
}

// outputs repeats body for n windows, moving on the arrays of outputs by a pixel.
func (w *walk) outputs(n reg.Register, outputs []reg.Register, body func()) {
	Label("output")
	body()
	for _, p := range outputs {
		ADDQ(U8(pixel), p)
	}
	for _, p := range w.at {
		ADDQ(w.step, p)
	}
	DECQ(n)
	JNZ(LabelRef("output"))
	End()
}

// window repeats body for each pixel of a window, with here at it, between before and after for each row.
func (w *walk) window(before, body, after func()) {
	y, x := GP64(), GP64()
	for i, p := range w.at {
		MOVQ(p, w.cur[i])
	}
	Load(Param("kh"), y)
	Label("row")
	for i, p := range w.cur {
		MOVQ(p, w.here[i])
	}
	w.f.Halves(before)
	Load(Param("kw"), x)
	Label("pixel")
	w.f.Halves(body)
	for _, p := range w.here {
		ADDQ(U8(pixel), p)
	}
	DECQ(x)
	JNZ(LabelRef("pixel"))
	w.f.Halves(after)
	for i, p := range w.cur {
		ADDQ(w.rows[i], p)
	}
	DECQ(y)
	JNZ(LabelRef("row"))
}

func nothing() {}

func registers(f *Func) [2]V { return [2]V{f.Reg(), f.Reg()} }

// maximum starts with the first pixel and takes others that are greater.
func maximum() {
	Each("maximum", "func(n, kh, kw int, y, x *float32, row, step int)", func(f *Func) {
		n, y, x := Arg("n"), Arg("y"), Arg("x")
		w := newWalk(f, []reg.Register{x}, []reg.Register{Arg("row")})
		best := registers(f)
		w.outputs(n, []reg.Register{y}, func() {
			f.Halves(func() { VMOVUPS(f.At(x, 0), best[f.Half()]) })
			w.window(nothing, func() {
				b := best[f.Half()]
				VMAXPS(b, f.Load(w.here[0]), b)
			}, nothing)
			f.Halves(func() { f.Store(best[f.Half()], y) })
		})
	})
}

// maximumGrad adds dy to the first pixel of the window that equals y.
func maximumGrad() {
	Each("maximumGrad", "func(n, kh, kw int, dx, dy, y, x *float32, rowDX, row, step int)", func(f *Func) {
		n, dx, dy, y, x := Arg("n"), Arg("dx"), Arg("dy"), Arg("y"), Arg("x")
		w := newWalk(f, []reg.Register{dx, x}, []reg.Register{Arg("rowDX"), Arg("row")})
		g, top := registers(f), registers(f)
		w.outputs(n, []reg.Register{dy, y}, func() {
			f.Halves(func() {
				VMOVUPS(f.At(dy, 0), g[f.Half()])
				VMOVUPS(f.At(y, 0), top[f.Half()])
			})
			w.window(nothing, func() {
				h := f.Half()
				hit, rest := f.Divide(top[h], f.At(w.here[1], 0), g[h])
				f.Store(f.Add(hit, f.At(w.here[0], 0)), w.here[0])
				VMOVAPS(rest, g[h])
			}, nothing)
		})
	})
}

// mean adds the pixels of each row, then the rows, and divides by count.
func mean() {
	Each("mean", "func(n, kh, kw int, y, x *float32, row, step int, count float32)", func(f *Func) {
		n, y, x := Arg("n"), Arg("y"), Arg("x")
		w := newWalk(f, []reg.Register{x}, []reg.Register{Arg("row")})
		count := f.Fill("count", 56)
		all, line := registers(f), registers(f)
		clear := func(v V) { VXORPS(v, v, v) }
		w.outputs(n, []reg.Register{y}, func() {
			f.Halves(func() { clear(all[f.Half()]) })
			w.window(
				func() { clear(line[f.Half()]) },
				func() { VADDPS(f.At(w.here[0], 0), line[f.Half()], line[f.Half()]) },
				func() { VADDPS(line[f.Half()], all[f.Half()], all[f.Half()]) })
			f.Halves(func() { f.Store(f.Div(all[f.Half()], count), y) })
		})
	})
}

// meanGrad adds dy/count to every pixel of the window.
func meanGrad() {
	Each("meanGrad", "func(n, kh, kw int, dx, dy *float32, rowDX, step int, count float32)", func(f *Func) {
		n, dx, dy := Arg("n"), Arg("dx"), Arg("dy")
		w := newWalk(f, []reg.Register{dx}, []reg.Register{Arg("rowDX")})
		count, g := f.Fill("count", 56), registers(f)
		w.outputs(n, []reg.Register{dy}, func() {
			f.Halves(func() { VDIVPS(count, f.Load(dy), g[f.Half()]) })
			w.window(nothing, func() { f.Store(f.Add(g[f.Half()], f.At(w.here[0], 0)), w.here[0]) }, nothing)
		})
	})
}
