// Command vec generates the assembly of package vec with avo.
package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"optimus/compute/cpu/gen/simd"
)

// width is how many elements an iteration takes: four vectors of eight.
const width, vectors = 32, 4

func main() {
	ConstraintExpr("amd64")
	add()
	axpy()
	scale()
	finite()
	elementwise()
	reductions()
	dropout()
	simd.Finish()
}

// function starts a function; none of them keeps its pointers.
func function(name, signature string) {
	TEXT(name, NOSPLIT, signature)
	Pragma("noescape")
}

// loop emits body once for each 32 elements; n is positive and a multiple of 32.
func loop(n reg.Register, pointers []reg.Register, body func(j, disp int)) {
	Label("loop")
	for j := range vectors {
		body(j, 32*j)
	}
	for _, p := range pointers {
		ADDQ(U32(4*width), p)
	}
	SUBQ(U8(width), n)
	JNZ(LabelRef("loop"))
	VZEROUPPER()
	RET()
}

func pointer(name string) reg.Register { return Load(Param(name), GP64()) }

func ymms() (y [vectors]reg.VecVirtual) {
	for j := range y {
		y[j] = YMM()
	}
	return y
}

func add() {
	function("addAVX", "func(n int, dst, src *float32)")
	n, dst, src, y := pointer("n"), pointer("dst"), pointer("src"), ymms()
	loop(n, []reg.Register{dst, src}, func(j, disp int) {
		VMOVUPS(Mem{Base: dst, Disp: disp}, y[j])
		VADDPS(Mem{Base: src, Disp: disp}, y[j], y[j])
		VMOVUPS(y[j], Mem{Base: dst, Disp: disp})
	})
}

// axpy rounds the product before the sum, as the Go loop does.
func axpy() {
	function("axpyAVX", "func(n int, dst *float32, factor float32, src *float32)")
	n, dst, src, y := pointer("n"), pointer("dst"), pointer("src"), ymms()
	x := YMM()
	VBROADCASTSS(NewParamAddr("factor", 16), x)
	loop(n, []reg.Register{dst, src}, func(j, disp int) {
		VMULPS(Mem{Base: src, Disp: disp}, x, y[j])
		VADDPS(Mem{Base: dst, Disp: disp}, y[j], y[j])
		VMOVUPS(y[j], Mem{Base: dst, Disp: disp})
	})
}

func scale() {
	function("scaleAVX", "func(n int, dst *float32, factor float32)")
	n, dst, y := pointer("n"), pointer("dst"), ymms()
	x := YMM()
	VBROADCASTSS(NewParamAddr("factor", 16), x)
	loop(n, []reg.Register{dst}, func(j, disp int) {
		VMULPS(Mem{Base: dst, Disp: disp}, x, y[j])
		VMOVUPS(y[j], Mem{Base: dst, Disp: disp})
	})
}

// finite returns how many elements are left, counted from the first group of 32 that holds
// an infinity or NaN (all bits of the exponent set); 0 if there is none.
func finite() {
	function("finiteAVX2", "func(n int, x *float32) int")
	n, x, y := pointer("n"), pointer("x"), ymms()
	exponent := YMM()
	bits := GP32()
	MOVL(U32(0x7f800000), bits)
	VMOVD(bits, exponent.AsX())
	VPBROADCASTD(exponent.AsX(), exponent)
	found := GP32()
	Label("loop")
	for j := range y {
		VPAND(Mem{Base: x, Disp: 32 * j}, exponent, y[j])
		VPCMPEQD(exponent, y[j], y[j])
	}
	VPOR(y[1], y[0], y[0])
	VPOR(y[3], y[2], y[2])
	VPOR(y[2], y[0], y[0])
	VPMOVMSKB(y[0], found)
	TESTL(found, found)
	JNZ(LabelRef("done"))
	ADDQ(U32(4*width), x)
	SUBQ(U8(width), n)
	JNZ(LabelRef("loop"))
	Label("done")
	VZEROUPPER()
	Store(n, ReturnIndex(0))
	RET()
}
