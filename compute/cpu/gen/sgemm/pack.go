package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
)

// The packing routines count strides in bytes and use AVX2 alone: their
// shuffles and inserts find more units in 256 bits than in 512.

// rows16 copies k ≥ 1 rows of up to 16 elements. Only the first n of a row are
// read; all 16 are written, the others as zero, for the next row to overwrite if rows are
// nearer than that.
func rows16() {
	function("rows16", "func(k int, src *float32, lds int, dst *float32, ldd int, n int)")
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
	m, y := [2]vec{YMM(), YMM()}, [2]vec{YMM(), YMM()}
	for j := range m {
		VPCMPGTD(lanes.Offset(32*j), count, m[j])
	}
	Label("row")
	for j := range y {
		VMASKMOVPS(Mem{Base: src, Disp: 32 * j}, m[j], y[j])
	}
	for j := range y {
		VMOVUPS(y[j], Mem{Base: dst, Disp: 32 * j})
	}
	ADDQ(lds, src)
	ADDQ(ldd, dst)
	DECQ(k)
	JNZ(LabelRef("row"))
	VZEROUPPER()
	RET()
}

// transpose8 writes n groups of four rows of eight elements: row p holds element
// p of each of eight sources. Four elements of two sources fill a register, so that
// only the 4×4 blocks in its halves are left to transpose.
func transpose8() {
	function("transpose8", "func(n int, src **float32, dst *float32, ldd int)")
	n, table := Load(Param("n"), GP64()), Load(Param("src"), GP64())
	dst, ldd := Load(Param("dst"), GP64()), Load(Param("ldd"), GP64())
	var src [8]Mem
	offset := GP64()
	XORQ(offset, offset)
	for i := range src {
		p := GP64()
		MOVQ(Mem{Base: table, Disp: 8 * i}, p)
		src[i] = Mem{Base: p, Index: offset, Scale: 1}
	}
	r, t := make([]vec, 4), make([]vec, 4)
	for i := range r {
		r[i], t[i] = YMM(), YMM()
	}
	Label("group")
	for i := range r {
		VMOVUPS(src[i], r[i].AsX())
		VINSERTF128(U8(1), src[i+4], r[i], r[i])
	}
	for i := 0; i < 4; i += 2 {
		VUNPCKLPS(r[i+1], r[i], t[i])
		VUNPCKHPS(r[i+1], r[i], t[i+1])
	}
	VUNPCKLPD(t[2], t[0], r[0])
	VUNPCKHPD(t[2], t[0], r[1])
	VUNPCKLPD(t[3], t[1], r[2])
	VUNPCKHPD(t[3], t[1], r[3])
	for i := range r {
		VMOVUPS(r[i], Mem{Base: dst})
		ADDQ(ldd, dst)
	}
	ADDQ(U8(16), offset)
	DECQ(n)
	JNZ(LabelRef("group"))
	VZEROUPPER()
	RET()
}
