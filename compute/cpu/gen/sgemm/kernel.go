package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

type vec = reg.VecVirtual

// The fields of the struct that tells a microkernel what to do, by their
// offsets; see type call of package sgemm.
const (
	fieldK = 8 * iota
	fieldA
	fieldRowA
	fieldStepA
	fieldB
	fieldStepB
	fieldNextB
	fieldC
	fieldRowC
	fieldMask
	fieldAdd
	fieldPack
	fieldPanels
	fieldOffset
	fieldFetch
	fieldStepFetch
	fieldNextFetch
)

// ahead is how many rows of B are fetched before their use: from the second
// cache if they are packed, and from rows of the caller's matrix too far apart for
// the processor to foresee them if they are not.
const ahead = 8

// tile is a microkernel: it keeps a tile of C of rows × vectors in registers
// while it runs down k, then stores it and goes on to the next on the right.
type tile struct {
	rows, vectors int
	size          int                   // of a vector in bytes
	new           func() vec            // a register
	masks         []Op                  // of the columns that exist, by vector; nil if all do
	call          reg.Register          // the struct
	sum           [][]vec               // C
	b             []vec                 // a row of B
	x             [2]vec                // elements of A
	lines         map[int]reg.GPVirtual // A's first two rows
	strides       map[int]reg.GPVirtual // multiples of the distance between A's rows
	stepA         reg.GPVirtual
}

func (t *tile) emit() {
	for range t.rows {
		row := make([]vec, t.vectors)
		for j := range row {
			row[j] = t.new()
		}
		t.sum = append(t.sum, row)
	}
	for range t.vectors {
		t.b = append(t.b, t.new())
	}
	t.x = [2]vec{t.new(), t.new()}
	c, pack := t.field(fieldC), t.field(fieldPack)
	t.loadStrides()

	Label("panel")
	for _, row := range t.sum {
		for _, z := range row {
			t.clear(z)
		}
	}
	t.loadLines()
	b, stepB := t.field(fieldB), t.field(fieldStepB)
	ADDQ(t.at(fieldOffset), b)
	TESTQ(pack, pack)
	JNE(LabelRef("copying"))
	fetchAhead := func() {
		for line := 0; line < t.size*t.vectors; line += 64 {
			PREFETCHT0(Mem{Base: b, Index: stepB, Scale: ahead, Disp: line})
		}
	}
	fetch, stepFetch := t.field(fieldFetch), t.field(fieldStepFetch)
	t.loop("whole", func() {
		PREFETCHT1(Mem{Base: fetch})
		ADDQ(stepFetch, fetch)
		for j, z := range t.b {
			VMOVUPS(Mem{Base: b, Disp: t.size * j}, z)
		}
		fetchAhead()
		t.multiply()
		ADDQ(stepB, b)
	})
	Label("store")
	t.store(c)
	next := t.field(fieldNextB)
	ADDQ(next, t.at(fieldOffset))
	ADDQ(U32(t.size*t.vectors), c)
	nextFetch := t.field(fieldNextFetch)
	ADDQ(nextFetch, t.at(fieldFetch))
	DECQ(t.at(fieldPanels))
	JNE(LabelRef("panel"))
	VZEROUPPER()
	RET()

	// The same loop, which copies what it reads of B into a packed panel.
	Label("copying")
	t.loop("copy", func() {
		for j, z := range t.b {
			t.loadPart(Mem{Base: b, Disp: t.size * j}, j, z)
		}
		fetchAhead()
		for j, z := range t.b {
			VMOVUPS(z, Mem{Base: pack, Disp: t.size * j})
		}
		t.multiply()
		ADDQ(stepB, b)
		ADDQ(U32(t.size*t.vectors), pack)
	})
	JMP(LabelRef("store"))
}

func (t *tile) at(field int) Mem { return Mem{Base: t.call, Disp: field} }

func (t *tile) field(field int) reg.GPVirtual {
	r := GP64()
	MOVQ(t.at(field), r)
	return r
}

// loop emits the run down k.
func (t *tile) loop(label string, step func()) {
	k := t.field(fieldK)
	Label(label)
	step()
	DECQ(k)
	JNZ(LabelRef(label))
}

// Row i of A is addressed as one of two lines plus a stride times a scale, which
// takes the fewest registers.
var rowsOfA = []struct{ line, stride, scale int }{
	{0, 0, 0}, {0, 1, 1}, {0, 1, 2}, {0, 3, 1}, {0, 1, 4}, {0, 5, 1}, {0, 3, 2}, {1, 3, 2},
	{0, 1, 8}, {1, 1, 8}, {0, 5, 2}, {1, 5, 2}, {0, 3, 4}, {1, 3, 4},
}

func (t *tile) loadStrides() {
	t.strides = map[int]reg.GPVirtual{1: t.field(fieldRowA)}
	for _, row := range rowsOfA[:t.rows] {
		if s := row.stride; s > 1 && t.strides[s] == nil {
			t.strides[s] = GP64()
			LEAQ(Mem{Base: t.strides[1], Index: t.strides[1], Scale: uint8(s - 1)}, t.strides[s])
		}
	}
	t.stepA = t.field(fieldStepA)
}

func (t *tile) loadLines() {
	t.lines = map[int]reg.GPVirtual{0: t.field(fieldA)}
	if t.rows > 7 {
		t.lines[1] = GP64()
		LEAQ(Mem{Base: t.lines[0], Index: t.strides[1], Scale: 1}, t.lines[1])
	}
}

func (t *tile) rowA(i int) Mem {
	r := rowsOfA[i]
	m := Mem{Base: t.lines[r.line]}
	if r.scale > 0 {
		m.Index, m.Scale = t.strides[r.stride], uint8(r.scale)
	}
	return m
}

// multiply adds the product of A's column and B's row and goes on to the next column.
func (t *tile) multiply() {
	for i, row := range t.sum {
		if t.vectors == 1 && t.size == 64 {
			VFMADD231PS_BCST(t.rowA(i), t.b[0], row[0])
			continue
		}
		VBROADCASTSS(t.rowA(i), t.x[i%2])
		for j, z := range row {
			VFMADD231PS(t.x[i%2], t.b[j], z)
		}
	}
	for line := range len(t.lines) {
		ADDQ(t.stepA, t.lines[line])
	}
}

// store sets the tile of C or adds to it.
func (t *tile) store(c reg.Register) {
	to, rowC, add := GP64(), t.field(fieldRowC), t.field(fieldAdd)
	MOVQ(c, to)
	TESTQ(add, add)
	JE(LabelRef("set"))
	for i, row := range t.sum {
		for j, z := range row {
			t.loadPart(Mem{Base: to, Disp: t.size * j}, j, t.b[j])
			VADDPS(t.b[j], z, z)
		}
		if i < t.rows-1 {
			ADDQ(rowC, to)
		}
	}
	MOVQ(c, to)
	Label("set")
	for i, row := range t.sum {
		for j, z := range row {
			t.storePart(z, Mem{Base: to, Disp: t.size * j}, j)
		}
		if i < t.rows-1 {
			ADDQ(rowC, to)
		}
	}
}

func (t *tile) clear(z vec) {
	if t.size == 64 {
		VPXORD(z, z, z)
	} else {
		VXORPS(z, z, z)
	}
}

// loadPart loads the columns of vector j that exist; the others become zero.
func (t *tile) loadPart(from Mem, j int, z vec) {
	if t.masks == nil {
		VMOVUPS(from, z)
	} else {
		VMOVUPS_Z(from, t.masks[j], z)
	}
}

// storePart stores the columns of vector j that exist.
func (t *tile) storePart(z vec, to Mem, j int) {
	if t.masks == nil {
		VMOVUPS(z, to)
	} else {
		VMOVUPS(z, t.masks[j], to)
	}
}

// avx512 emits a tile of rows × 16·vectors. The struct's mask has a bit for each
// column that exists; no other is read or written in B and C, but for B's when it is not copied.
func avx512(rows, vectors int) {
	function(fmt.Sprintf("kernel512x%dx%d", rows, 16*vectors), "func(c *byte)")
	t := tile{rows: rows, vectors: vectors, size: 64, new: func() vec { return ZMM() }, call: Load(Param("c"), GP64())}
	bits := t.field(fieldMask)
	for j := range vectors {
		k := K()
		KMOVW(bits.As32(), k)
		t.masks = append(t.masks, k)
		if j < vectors-1 {
			SHRQ(U8(16), bits)
		}
	}
	t.emit()
}

// avx2 emits a tile of rows × 16 with AVX2 and FMA, all of whose columns exist.
func avx2(rows int) {
	function(fmt.Sprintf("kernel256x%dx16", rows), "func(c *byte)")
	t := tile{rows: rows, vectors: 2, size: 32, new: func() vec { return YMM() }, call: Load(Param("c"), GP64())}
	t.emit()
}

// peak emits a loop of independent fused multiply-adds, 12 for each n: enough to
// hide the latency of two units.
func peak(name string, register func() vec) {
	function(name, "func(n int)")
	n := Load(Param("n"), GP64())
	var sum [12]vec
	for i := range sum {
		sum[i] = register()
		VXORPS(sum[i].AsX(), sum[i].AsX(), sum[i].AsX())
	}
	x := register()
	VXORPS(x.AsX(), x.AsX(), x.AsX())
	Label("loop")
	for _, s := range sum {
		VFMADD231PS(x, x, s)
	}
	DECQ(n)
	JNZ(LabelRef("loop"))
	VZEROUPPER()
	RET()
}
