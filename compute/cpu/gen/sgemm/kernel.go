package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// A microkernel computes a tile of C from a panel of A, packed with the tile's
// rows side by side for each k, and rows of B that lie ldb bytes apart; the
// rows of C lie ldc bytes apart. add = 0 sets C, 1 adds to it.
const kernelSignature = "func(k int, a, b, c *float32, ldb, ldc int, mask uint64, add int)"

// pointers are the arguments that both kinds of microkernel share.
type pointers struct{ k, a, b, c, ldb, ldc, add reg.Register }

func loadPointers() pointers {
	arg := func(name string) reg.Register { return Load(Param(name), GP64()) }
	return pointers{arg("k"), arg("a"), arg("b"), arg("c"), arg("ldb"), arg("ldc"), arg("add")}
}

// loop emits the run down k, four elements at a time and then singly; step(u)
// multiplies the u-th element after a and advances b.
func (p pointers) loop(rows int, step func(u int)) {
	const unroll = 4
	CMPQ(p.k, U8(unroll))
	JLT(LabelRef("tail"))
	Label("four")
	for u := range unroll {
		step(u)
	}
	ADDQ(U32(4*unroll*rows), p.a)
	SUBQ(U8(unroll), p.k)
	CMPQ(p.k, U8(unroll))
	JGE(LabelRef("four"))
	Label("tail")
	TESTQ(p.k, p.k)
	JE(LabelRef("store"))
	Label("one")
	step(0)
	ADDQ(U32(4*rows), p.a)
	DECQ(p.k)
	JNZ(LabelRef("one"))
}

// store emits the end of a microkernel: both ways to write each row of C.
func (p pointers) store(rows int, add, set func(row int)) {
	Label("store")
	TESTQ(p.add, p.add)
	JE(LabelRef("set"))
	p.each(rows, add)
	Label("set")
	p.each(rows, set)
}

func (p pointers) each(rows int, write func(row int)) {
	for i := range rows {
		write(i)
		if i < rows-1 {
			ADDQ(p.ldc, p.c)
		}
	}
	VZEROUPPER()
	RET()
}

// masks splits the bits of an argument into one mask for each vector.
func masks(n int) []reg.OpmaskVirtual {
	bits := GP64()
	Load(Param("mask"), bits)
	ks := make([]reg.OpmaskVirtual, n)
	for j := range ks {
		ks[j] = K()
		KMOVW(bits.As32(), ks[j])
		if j < n-1 {
			SHRQ(U8(16), bits)
		}
	}
	return ks
}

// kernel512 emits a tile of rows × 16·vectors with AVX-512. mask has a bit for
// each column that exists; the others are neither read nor written.
func kernel512(rows, vectors int) {
	function(fmt.Sprintf("kernel512x%dx%d", rows, 16*vectors), kernelSignature)
	p := loadPointers()
	ks := masks(vectors)
	sum := make([][]reg.VecVirtual, rows)
	for i := range sum {
		for range vectors {
			z := ZMM()
			VPXORD(z, z, z)
			sum[i] = append(sum[i], z)
		}
	}
	bs := make([]reg.VecVirtual, vectors)
	for j := range bs {
		bs[j] = ZMM()
	}
	x := [2]reg.VecVirtual{ZMM(), ZMM()}
	p.loop(rows, func(u int) {
		for j := range bs {
			VMOVUPS_Z(Mem{Base: p.b, Disp: 64 * j}, ks[j], bs[j])
		}
		for i := range rows {
			VBROADCASTSS(Mem{Base: p.a, Disp: 4 * (u*rows + i)}, x[i%2])
			for j := range bs {
				VFMADD231PS(x[i%2], bs[j], sum[i][j])
			}
		}
		ADDQ(p.ldb, p.b)
	})
	set := func(i int) {
		for j := range bs {
			VMOVUPS(sum[i][j], ks[j], Mem{Base: p.c, Disp: 64 * j})
		}
	}
	p.store(rows, func(i int) {
		for j := range bs {
			VMOVUPS_Z(Mem{Base: p.c, Disp: 64 * j}, ks[j], bs[j])
			VADDPS(bs[j], sum[i][j], sum[i][j])
		}
		set(i)
	}, set)
}

// kernel256 emits a tile of rows × 16 with AVX2 and FMA. It reads and writes
// all 16 columns and ignores mask.
func kernel256(rows int) {
	function(fmt.Sprintf("kernel256x%dx16", rows), kernelSignature)
	p := loadPointers()
	sum := make([][2]reg.VecVirtual, rows)
	for i := range sum {
		for j := range sum[i] {
			sum[i][j] = YMM()
			VXORPS(sum[i][j], sum[i][j], sum[i][j])
		}
	}
	bs, x := [2]reg.VecVirtual{YMM(), YMM()}, [2]reg.VecVirtual{YMM(), YMM()}
	p.loop(rows, func(u int) {
		for j := range bs {
			VMOVUPS(Mem{Base: p.b, Disp: 32 * j}, bs[j])
		}
		for i := range rows {
			VBROADCASTSS(Mem{Base: p.a, Disp: 4 * (u*rows + i)}, x[i%2])
			for j := range bs {
				VFMADD231PS(x[i%2], bs[j], sum[i][j])
			}
		}
		ADDQ(p.ldb, p.b)
	})
	set := func(i int) {
		for j := range bs {
			VMOVUPS(sum[i][j], Mem{Base: p.c, Disp: 32 * j})
		}
	}
	p.store(rows, func(i int) {
		for j := range bs {
			VADDPS(Mem{Base: p.c, Disp: 32 * j}, sum[i][j], sum[i][j])
		}
		set(i)
	}, set)
}
