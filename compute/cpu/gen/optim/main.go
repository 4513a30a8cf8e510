// Command optim generates the AVX loops of package optim with avo. They
// perform the operations of its Go loops one for one, none fused, so that both give
// the same bits.
package main

import (
	"strings"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// width is how many elements an iteration takes: one vector.
const width = 8

func main() {
	ConstraintExpr("amd64")
	sgd()
	momentum()
	rmsprop()
	adam()
	squares()
	Generate()
}

// A loop is the frame of one optimizer: arrays that are walked together and
// scalars that fill a vector each.
type loop struct {
	n, scalars reg.Register
	names      []string
	arrays     map[string]reg.Register
}

// start begins a function over n elements (positive, a multiple of 8) of the
// named arrays. Its scalars are those of the struct in package optim, in their order.
func start(name string, names ...string) loop {
	TEXT(name, NOSPLIT, "func(n int, scalars, "+strings.Join(names, ", ")+" *float32)")
	Pragma("noescape")
	l := loop{n: Load(Param("n"), GP64()), scalars: Load(Param("scalars"), GP64()), names: names, arrays: map[string]reg.Register{}}
	for _, a := range names {
		l.arrays[a] = Load(Param(a), GP64())
	}
	return l
}

// The scalars; keep and take belong to the mean, keep2 and take2 to the mean square.
const (
	weight = iota
	high
	low
	decay
	lr
	keep
	take
	keep2
	take2
	scale
	epsilon
)

// scalar returns a vector full of scalar i.
func (l loop) scalar(i int) reg.VecVirtual {
	y := YMM()
	VBROADCASTSS(Mem{Base: l.scalars, Disp: 4 * i}, y)
	return y
}

func (l loop) at(array string) Mem { return Mem{Base: l.arrays[array]} }

// end closes the loop that began at label "loop".
func (l loop) end() {
	for _, a := range l.names {
		ADDQ(U8(4*width), l.arrays[a])
	}
	SUBQ(U8(width), l.n)
	JNZ(LabelRef("loop"))
	VZEROUPPER()
	RET()
}

// mean turns the sum of gradients into the mean gradient.
type mean struct{ weight, high, low, decay reg.VecVirtual }

func (l loop) mean() mean {
	return mean{l.scalar(weight), l.scalar(high), l.scalar(low), l.scalar(decay)}
}

// gradient emits g = clip(sum/weight) + decay·w. The minimum and maximum have g as their
// second source, which they return where one is NaN.
func (m mean) gradient(sum Mem, w, g, t reg.VecVirtual) {
	VMOVUPS(sum, g)
	VDIVPS(m.weight, g, g)
	VMINPS(g, m.high, g)
	VMAXPS(g, m.low, g)
	VMULPS(w, m.decay, t)
	VADDPS(t, g, g)
}

func sgd() {
	l := start("sgdAVX", "w", "out", "sum")
	m, eta := l.mean(), l.scalar(lr)
	w, g, t := YMM(), YMM(), YMM()
	Label("loop")
	VMOVUPS(l.at("w"), w)
	m.gradient(l.at("sum"), w, g, t)
	VMULPS(g, eta, g)
	VSUBPS(g, w, w)
	VMOVUPS(w, l.at("out"))
	l.end()
}

func momentum() {
	l := start("momentumAVX", "w", "out", "sum", "v", "vout")
	m, eta, mu := l.mean(), l.scalar(lr), l.scalar(keep)
	w, g, t := YMM(), YMM(), YMM()
	Label("loop")
	VMOVUPS(l.at("w"), w)
	m.gradient(l.at("sum"), w, g, t)
	VMULPS(l.at("v"), mu, t)
	VADDPS(g, t, g)
	VMOVUPS(g, l.at("vout"))
	VMULPS(g, eta, g)
	VSUBPS(g, w, w)
	VMOVUPS(w, l.at("out"))
	l.end()
}

func rmsprop() {
	l := start("rmspropAVX", "w", "out", "sum", "s", "sout")
	m, eta, rho, rest, eps := l.mean(), l.scalar(lr), l.scalar(keep2), l.scalar(take2), l.scalar(epsilon)
	w, g, t, s := YMM(), YMM(), YMM(), YMM()
	Label("loop")
	VMOVUPS(l.at("w"), w)
	m.gradient(l.at("sum"), w, g, t)
	VMULPS(l.at("s"), rho, s)
	VMULPS(g, g, t)
	VMULPS(t, rest, t)
	VADDPS(t, s, s)
	VMOVUPS(s, l.at("sout"))
	VADDPS(eps, s, s)
	VSQRTPS(s, s)
	VMULPS(g, eta, g)
	VDIVPS(s, g, g)
	VSUBPS(g, w, w)
	VMOVUPS(w, l.at("out"))
	l.end()
}

func adam() {
	l := start("adamAVX", "w", "out", "sum", "a", "aout", "s", "sout")
	m, eta, eps, root := l.mean(), l.scalar(lr), l.scalar(epsilon), l.scalar(scale)
	b1, r1, b2, r2 := l.scalar(keep), l.scalar(take), l.scalar(keep2), l.scalar(take2)
	w, g, t, s := YMM(), YMM(), YMM(), YMM()
	Label("loop")
	VMOVUPS(l.at("w"), w)
	m.gradient(l.at("sum"), w, g, t)
	VMULPS(l.at("s"), b2, s)
	VMULPS(g, g, t)
	VMULPS(t, r2, t)
	VADDPS(t, s, s)
	VMOVUPS(s, l.at("sout"))
	VSQRTPS(s, s)
	VMULPS(root, s, s)
	VADDPS(eps, s, s)
	VMULPS(l.at("a"), b1, t)
	VMULPS(g, r1, g)
	VADDPS(g, t, g)
	VMOVUPS(g, l.at("aout"))
	VMULPS(g, eta, g)
	VDIVPS(s, g, g)
	VSUBPS(g, w, w)
	VMOVUPS(w, l.at("out"))
	l.end()
}

// squares emits the sums of squaresGo in four lanes each: out takes the bits of all
// sums with either rounding constant, added up as integers, and the largest square.
func squares() {
	TEXT("squaresAVX2", NOSPLIT, "func(n int, by float64, x *float32, out *uint64)")
	Pragma("noescape")
	n, x, out := Load(Param("n"), GP64()), Load(Param("x"), GP64()), Load(Param("out"), GP64())
	by, one, rest := YMM(), YMM(), YMM()
	VBROADCASTSD(Load(Param("by"), XMM()), by)
	broadcast(oneBits, one)
	broadcast(restBits, rest)
	ones, rests, most := YMM(), YMM(), YMM()
	for _, sum := range []reg.VecVirtual{ones, rests, most} {
		VXORPD(sum, sum, sum)
	}
	Label("loop")
	for half := range 2 {
		y, whole := YMM(), YMM()
		VCVTPS2PD(Mem{Base: x, Disp: 16 * half}, y)
		VMULPD(by, y, y)
		VMULPD(y, y, y)
		VMAXPD(y, most, most)
		VADDPD(one, y, whole)
		VPADDQ(whole, ones, ones)
		VSUBPD(one, whole, whole)
		VSUBPD(whole, y, y)
		VADDPD(rest, y, y)
		VPADDQ(y, rests, rests)
	}
	ADDQ(U8(4*width), x)
	SUBQ(U8(width), n)
	JNZ(LabelRef("loop"))
	for i, sum := range []reg.VecVirtual{ones, rests, most} {
		VMOVUPD(sum, Mem{Base: out, Disp: 32 * i})
	}
	VZEROUPPER()
	RET()
}

// The bits of squares.go's rounding constants.
const (
	oneBits  = 0x4338000000000000
	restBits = 0x4018000000000000
)

// broadcast fills a vector with a 64-bit pattern.
func broadcast(bits uint64, y reg.VecVirtual) {
	r, t := GP64(), XMM()
	MOVQ(U64(bits), r)
	VMOVQ(r, t)
	VPBROADCASTQ(t, y)
}
