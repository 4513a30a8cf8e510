package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

const outerSignature = "func(units, tiles, images, rows, pixels int, x, dy *float32, xu, xs, xr, xn, yr, yn, obs int, dw, ahead *float32, au, step int)"

// outer emits a kernel that adds to a tile of weight gradients the outer products
// of inputs and output gradients, pixel by pixel in the order of memory:
//
//	dw[i][o] += Σ_image Σ_row Σ_pixel x[i] · dy[o]
//
// For each of units there are tiles of inputs × 16·blocks below each other. From one
// pixel to the next x advances by xs bytes and dy by 64, from row to row by xr and
// yr, from image to image by xn and yn, from the last tile of a unit to the next unit
// by xu; obs bytes lie between blocks of dy, and rows of dw have 64·blocks bytes.
//
// On the way the kernel fetches what later calls will read: for each unit, from
// ahead on, a line for every two pixels, step bytes apart; the next unit's begin
// au bytes further.
func outer(v isa, inputs, blocks int) {
	function(fmt.Sprintf("outer%sx%dx%d", v.name, inputs, 16*blocks), outerSignature)
	perBlock := 16 / v.lanes
	o := product{isa: v}
	for range inputs {
		o.sum = append(o.sum, v.vectors(blocks*perBlock))
	}
	ys, xv, obs := v.vectors(blocks*perBlock), v.vectors(2), load("obs")
	o.loop(4*inputs, func(u int) {
		for j, y := range ys {
			m := Mem{Base: o.dy, Disp: pixel*u + v.size()*(j%perBlock)}
			if j >= perBlock {
				m.Index, m.Scale = obs, 1
			}
			VMOVUPS(m, y)
		}
		for i := range o.sum {
			m := Mem{Base: o.x, Disp: 4 * i}
			if u > 0 {
				m.Index, m.Scale = o.xs, uint8(u)
			}
			VBROADCASTSS(m, xv[i%2])
			for j, y := range ys {
				VFMADD231PS(xv[i%2], y, o.sum[i][j])
			}
		}
	})
}

// product is the state of an outer kernel in registers.
type product struct {
	isa
	sum       [][]reg.VecVirtual // in the order of dw
	x, dy, xs reg.GPVirtual
}

// loop emits the loops over units, tiles, images, rows and pixels; step(u) adds the
// u-th pixel of a pair. The inputs of tiles lie advance bytes apart.
func (o *product) loop(advance int, step func(u int)) {
	o.x, o.dy, o.xs = GP64(), GP64(), load("xs")
	image, grad, rows, n, images := GP64(), GP64(), GP64(), GP64(), GP64()
	stride := load("step")
	Label("unit")
	ahead, tiles := load("ahead"), load("tiles")
	Label("tile")
	o.each(func(m Mem, sum reg.VecVirtual) { VMOVUPS(m, sum) })
	nextImage, nextGrad := load("x"), load("dy")
	MOVQ(argument("images"), images)
	Label("image")
	MOVQ(nextImage, image)
	MOVQ(nextGrad, grad)
	MOVQ(argument("rows"), rows)
	Label("row")
	MOVQ(image, o.x)
	MOVQ(grad, o.dy)
	MOVQ(argument("pixels"), n)
	SUBQ(U8(2), n)
	JLT(LabelRef("odd"))
	Label("pair")
	step(0)
	step(1)
	PREFETCHT1(Mem{Base: ahead})
	ADDQ(stride, ahead)
	LEAQ(Mem{Base: o.x, Index: o.xs, Scale: 2}, o.x)
	ADDQ(U32(2*pixel), o.dy)
	SUBQ(U8(2), n)
	JGE(LabelRef("pair"))
	Label("odd")
	CMPQ(n, I8(-1))
	JNE(LabelRef("next"))
	step(0)
	Label("next")
	ADDQ(argument("xr"), image)
	ADDQ(argument("yr"), grad)
	DECQ(rows)
	JNZ(LabelRef("row"))
	ADDQ(argument("xn"), nextImage)
	ADDQ(argument("yn"), nextGrad)
	DECQ(images)
	JNZ(LabelRef("image"))
	o.each(func(m Mem, sum reg.VecVirtual) { VMOVUPS(sum, m) })
	ADDQ(U32(advance), argument("x"))
	ADDQ(U32(o.size()*len(o.sum)*len(o.sum[0])), argument("dw"))
	DECQ(tiles)
	JNZ(LabelRef("tile"))
	for _, s := range [][2]string{{"x", "xu"}, {"ahead", "au"}} {
		ADDQ(load(s[1]), argument(s[0]))
	}
	DECQ(argument("units"))
	JNZ(LabelRef("unit"))
	VZEROUPPER()
	RET()
}

// each visits the tile where it lies in dw.
func (o *product) each(do func(m Mem, sum reg.VecVirtual)) {
	dw, at := load("dw"), 0
	for _, row := range o.sum {
		for _, sum := range row {
			do(Mem{Base: dw, Disp: at}, sum)
			at += o.size()
		}
	}
}
