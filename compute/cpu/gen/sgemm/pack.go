package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// The packing routines count strides in bytes. Rows are written at full width,
// one after the other, so that a row's excess is overwritten by the next.

// rows512 copies k ≥ 1 rows of 16·vectors elements; those without a bit in mask
// are not read and become zero.
func rows512(vectors int) {
	function(fmt.Sprintf("rows512x%d", 16*vectors), "func(k int, src *float32, lds int, dst *float32, ldd int, mask uint64)")
	k, src, lds := Load(Param("k"), GP64()), Load(Param("src"), GP64()), Load(Param("lds"), GP64())
	dst, ldd := Load(Param("dst"), GP64()), Load(Param("ldd"), GP64())
	ks := masks(vectors)
	z := make([]reg.VecVirtual, vectors)
	for j := range z {
		z[j] = ZMM()
	}
	copyRows(k, src, lds, dst, ldd, func() {
		for j := range z {
			VMOVUPS_Z(Mem{Base: src, Disp: 64 * j}, ks[j], z[j])
		}
		for j := range z {
			VMOVUPS(z[j], Mem{Base: dst, Disp: 64 * j})
		}
	})
}

// rows256 copies k ≥ 1 rows of 16 elements of which the first n are read and the others become zero.
func rows256() {
	function("rows256x16", "func(k int, src *float32, lds int, dst *float32, ldd int, n int)")
	k, src, lds := Load(Param("k"), GP64()), Load(Param("src"), GP64()), Load(Param("lds"), GP64())
	dst, ldd := Load(Param("dst"), GP64()), Load(Param("ldd"), GP64())
	n := GP64()
	Load(Param("n"), n)
	count := YMM()
	VMOVD(n.As32(), count.AsX())
	VPBROADCASTD(count.AsX(), count)
	lanes := GLOBL("lanes", RODATA|NOPTR)
	for i := range 16 {
		DATA(4*i, U32(i))
	}
	m, y := [2]reg.VecVirtual{YMM(), YMM()}, [2]reg.VecVirtual{YMM(), YMM()}
	for j := range m {
		VPCMPGTD(lanes.Offset(32*j), count, m[j])
	}
	copyRows(k, src, lds, dst, ldd, func() {
		for j := range y {
			VMASKMOVPS(Mem{Base: src, Disp: 32 * j}, m[j], y[j])
		}
		for j := range y {
			VMOVUPS(y[j], Mem{Base: dst, Disp: 32 * j})
		}
	})
}

func copyRows(k, src, lds, dst, ldd reg.Register, row func()) {
	Label("row")
	row()
	ADDQ(lds, src)
	ADDQ(ldd, dst)
	DECQ(k)
	JNZ(LabelRef("row"))
	VZEROUPPER()
	RET()
}

const transposeSignature = "func(rows int, src *float32, lds int, dst *float32, ldd int)"

// square loads a square block, of which only rows ≥ 1 rows exist (the last one stands for the
// missing), transposes it in registers by shuffle and stores it.
func square(n int, vector func() reg.VecVirtual, shuffle func(r, t []reg.VecVirtual)) {
	rows := GP64()
	Load(Param("rows"), rows)
	src, dst, ldd := Load(Param("src"), GP64()), Load(Param("dst"), GP64()), Load(Param("ldd"), GP64())
	lds, zero := GP64(), GP64()
	Load(Param("lds"), lds)
	XORQ(zero, zero)
	r, t := make([]reg.VecVirtual, n), make([]reg.VecVirtual, n)
	for i := range r {
		r[i], t[i] = vector(), vector()
	}
	for i := range r {
		VMOVUPS(Mem{Base: src}, r[i])
		if i < n-1 {
			DECQ(rows)
			CMOVQEQ(zero, lds)
			ADDQ(lds, src)
		}
	}
	shuffle(r, t)
	for i := range r {
		VMOVUPS(r[i], Mem{Base: dst})
		if i < n-1 {
			ADDQ(ldd, dst)
		}
	}
	VZEROUPPER()
	RET()
}

// pairs transposes the 4×4 blocks of each 128-bit lane; the result is in r.
func pairs(r, t []reg.VecVirtual) {
	for i := 0; i < len(r); i += 2 {
		VUNPCKLPS(r[i+1], r[i], t[i])
		VUNPCKHPS(r[i+1], r[i], t[i+1])
	}
	for i := 0; i < len(r); i += 4 {
		VUNPCKLPD(t[i+2], t[i], r[i])
		VUNPCKHPD(t[i+2], t[i], r[i+1])
		VUNPCKLPD(t[i+3], t[i+1], r[i+2])
		VUNPCKHPD(t[i+3], t[i+1], r[i+3])
	}
}

func transpose16() {
	function("transpose16", transposeSignature)
	square(16, func() reg.VecVirtual { return ZMM() }, func(r, t []reg.VecVirtual) {
		pairs(r, t)
		for i := range 4 {
			VSHUFF32X4(U8(0x88), r[i+4], r[i], t[i])
			VSHUFF32X4(U8(0xdd), r[i+4], r[i], t[i+4])
			VSHUFF32X4(U8(0x88), r[i+12], r[i+8], t[i+8])
			VSHUFF32X4(U8(0xdd), r[i+12], r[i+8], t[i+12])
		}
		for i := range 8 {
			VSHUFF32X4(U8(0x88), t[i+8], t[i], r[i])
			VSHUFF32X4(U8(0xdd), t[i+8], t[i], r[i+8])
		}
	})
}

func transpose8() {
	function("transpose8", transposeSignature)
	square(8, func() reg.VecVirtual { return YMM() }, func(r, t []reg.VecVirtual) {
		pairs(r, t)
		for i := range 4 {
			VPERM2F128(U8(0x20), r[i+4], r[i], t[i])
			VPERM2F128(U8(0x31), r[i+4], r[i], t[i+4])
		}
		copy(r, t)
	})
}
