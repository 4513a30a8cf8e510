package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

const gatherSignature = "func(tiles, taps int, tap *int, kin int, x, w, y *float32, xs, ys, obs, init int, bias, ahead *float32, step int)"

// gather emits a kernel that computes tiles of pixels × 16·blocks outputs, one
// after the other along a row. An output is the sum over taps, and over the kin
// values of a tap, of input times weight:
//
//	y[p][o] = init + Σ_tap Σ_k x[tap.x + p·xs + 4k] · w[blocks·tap.w][k][o]
//
// xs, ys are the bytes from one pixel to the next, obs those between blocks of 16
// output channels. init: 0 starts from zero, 1 from the bias, 2 from y itself.
// A tap of kind 1 leaves out the first pixel of the tile, one of kind 2 the last:
// there the input lies in the padding. Kinds other than 0 need kin = 16.
//
// On the way the kernel fetches one line for every four values, from ahead on, step
// bytes apart: what later calls will read.
func gather(v isa, pixels, blocks int) {
	function(fmt.Sprintf("gather%sx%dx%d", v.name, pixels, 16*blocks), gatherSignature)
	perBlock := 16 / v.lanes
	columns := blocks * perBlock
	t := tile{isa: v, columns: columns}
	for range pixels {
		t.sum = append(t.sum, v.vectors(columns))
	}
	free := v.registers - pixels*columns
	t.weights = v.vectors(min(columns, free-2))
	t.inputs = v.vectors(min(2, free-len(t.weights)))

	t.ahead, t.stride = load("ahead"), load("step")
	Label("tile")
	t.start(perBlock)
	tap, taps := load("tap"), load("taps")
	t.x, t.w = ladderOver(pixels, load("xs")), GP64()
	TESTQ(taps, taps)
	JZ(LabelRef("store"))
	Label("tap")
	t.aim(tap, blocks)
	if pixels > 1 {
		kind := GP64()
		MOVQ(Mem{Base: tap, Disp: 16}, kind)
		CMPQ(kind, U8(1))
		JEQ(LabelRef("noFirst"))
		JGT(LabelRef("noLast"))
	}
	t.run(0, pixels)
	if pixels > 1 {
		JMP(LabelRef("next"))
		Label("noFirst")
		t.sixteen("first", 1, pixels)
		JMP(LabelRef("next"))
		Label("noLast")
		t.sixteen("last", 0, pixels-1)
	}
	t.finish(tap, taps, pixels, perBlock)
}

// tile is the state of a gather kernel in registers.
type tile struct {
	isa
	columns         int // vectors of a pixel
	sum             [][]reg.VecVirtual
	weights, inputs []reg.VecVirtual
	x               ladder
	w               reg.GPVirtual
	ahead, stride   reg.GPVirtual
}

// aim points at the inputs and weights of a tap.
func (t *tile) aim(tap reg.GPVirtual, blocks int) {
	MOVQ(argument("x"), t.x.bases[0])
	ADDQ(Mem{Base: tap}, t.x.bases[0])
	t.x.set()
	IMUL3Q(U8(blocks), Mem{Base: tap, Disp: 8}, t.w)
	ADDQ(argument("w"), t.w)
}

// finish emits the ends of the loops over taps and over tiles.
func (t *tile) finish(tap, taps reg.GPVirtual, pixels, perBlock int) {
	Label("next")
	ADDQ(U8(24), tap)
	DECQ(taps)
	JNZ(LabelRef("tap"))
	Label("store")
	t.each(perBlock, func(i, j int, m Mem) { VMOVUPS(t.sum[i][j], m) })
	for _, step := range [][2]string{{"x", "xs"}, {"y", "ys"}} {
		bytes := load(step[1])
		IMUL3Q(U8(pixels), bytes, bytes)
		ADDQ(bytes, argument(step[0]))
	}
	DECQ(argument("tiles"))
	JNZ(LabelRef("tile"))
	VZEROUPPER()
	RET()
}

// start fills the sums.
func (t *tile) start(perBlock int) {
	init := load("init")
	CMPQ(init, U8(1))
	JEQ(LabelRef("bias"))
	JGT(LabelRef("add"))
	for i := range t.sum {
		for _, s := range t.sum[i] {
			t.zero(s)
		}
	}
	t.own(perBlock)
	JMP(LabelRef("started"))
	Label("bias")
	bias := load("bias")
	for i := range t.sum {
		for j, s := range t.sum[i] {
			VMOVUPS(Mem{Base: bias, Disp: t.size() * j}, s)
		}
	}
	t.own(perBlock)
	JMP(LabelRef("started"))
	Label("add")
	t.each(perBlock, func(i, j int, m Mem) { VMOVUPS(m, t.sum[i][j]) })
	Label("started")
}

// own asks for the lines of the outputs, so that they are there when the tile is
// done.
func (t *tile) own(perBlock int) {
	t.each(perBlock, func(_, j int, m Mem) {
		if j%perBlock == 0 {
			PREFETCHT0(m)
		}
	})
}

// each visits the vectors of the tile where they lie in y.
func (t *tile) each(perBlock int, do func(i, j int, m Mem)) {
	ys, obs, block, p := load("ys"), load("obs"), load("y"), GP64()
	for b := range t.columns / perBlock {
		MOVQ(block, p)
		for i := range t.sum {
			for k := range perBlock {
				do(i, b*perBlock+k, Mem{Base: p, Disp: t.size() * k})
			}
			if i < len(t.sum)-1 {
				ADDQ(ys, p)
			}
		}
		if b < t.columns/perBlock-1 {
			ADDQ(obs, block)
		}
	}
}

// run emits the loop over the values of a tap, four at a time and then singly.
func (t *tile) run(from, to int) {
	const unroll = 4
	k := load("kin")
	SUBQ(U8(unroll), k)
	JLT(LabelRef("rest"))
	Label("four")
	for u := range unroll {
		t.step(u, from, to)
	}
	t.advance(unroll)
	PREFETCHT1(Mem{Base: t.ahead})
	ADDQ(t.stride, t.ahead)
	SUBQ(U8(unroll), k)
	JGE(LabelRef("four"))
	Label("rest")
	ADDQ(U8(unroll), k)
	JZ(LabelRef("next"))
	Label("one")
	t.step(0, from, to)
	t.advance(1)
	DECQ(k)
	JNZ(LabelRef("one"))
}

// sixteen emits the loop over the 16 channels of a block.
func (t *tile) sixteen(label string, from, to int) {
	const unroll = 2
	k := GP64()
	MOVQ(U32(16/unroll), k)
	Label(label)
	for u := range unroll {
		t.step(u, from, to)
	}
	t.advance(unroll)
	DECQ(k)
	JNZ(LabelRef(label))
}

// step multiplies the u-th value; as many weights at once as there are registers.
// Where it can, half of the inputs are broadcast within the multiplication: fewer
// instructions for the core's front end, yet not more loads than it can do.
func (t *tile) step(u, from, to int) {
	n := len(t.weights)
	for first := 0; first < t.columns; first += n {
		for j, w := range t.weights {
			VMOVUPS(Mem{Base: t.w, Disp: t.size() * (u*t.columns + first + j)}, w)
		}
		for i := from; i < to; i++ {
			m := t.x.at(i, 4*u)
			if t.lanes == 16 && m.Index == nil {
				for j, w := range t.weights {
					VFMADD231PS_BCST(m, w, t.sum[i][first+j])
				}
				continue
			}
			x := t.inputs[i%len(t.inputs)]
			VBROADCASTSS(m, x)
			for j, w := range t.weights {
				VFMADD231PS(x, w, t.sum[i][first+j])
			}
		}
	}
}

func (t *tile) advance(n int) {
	t.x.advance(4 * n)
	ADDQ(U32(t.size()*t.columns*n), t.w)
}
