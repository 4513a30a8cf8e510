package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

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
// On the way the kernel fetches what later calls will read: for each unit, from ahead on, a line
// for every two pixels, step bytes apart; the next unit's begin au bytes further.
func outer(v isa, inputs, blocks int) {
	function(fmt.Sprintf("outer%sx%dx%d", v.name, inputs, 16*blocks),
		"func(units, tiles, images, rows, pixels int, x, dy *float32, xu, xs, xr, xn, yr, yn, obs int, dw, ahead *float32, au, step int)")
	perBlock := 16 / v.lanes
	columns := blocks * perBlock
	sum := make([][]reg.VecVirtual, inputs)
	for i := range sum {
		sum[i] = v.vectors(columns)
	}
	image, grad, rows, n, images := GP64(), GP64(), GP64(), GP64(), GP64()

	stride := load("step")
	Label("unit")
	ahead, tiles := load("ahead"), load("tiles")
	Label("tile")
	dw := load("dw")
	for i := range sum {
		for j := range sum[i] {
			VMOVUPS(Mem{Base: dw, Disp: v.size() * (i*columns + j)}, sum[i][j])
		}
	}
	ys, xv := v.vectors(columns), v.vectors(2)
	xs, obs, x, dy := load("xs"), load("obs"), GP64(), GP64()
	step := func(u int) {
		for j, y := range ys {
			m := Mem{Base: dy, Disp: pixel*u + v.size()*(j%perBlock)}
			if j >= perBlock {
				m.Index, m.Scale = obs, 1
			}
			VMOVUPS(m, y)
		}
		for i := range sum {
			m := Mem{Base: x, Disp: 4 * i}
			if u > 0 {
				m.Index, m.Scale = xs, uint8(u)
			}
			VBROADCASTSS(m, xv[i%2])
			for j, y := range ys {
				VFMADD231PS(xv[i%2], y, sum[i][j])
			}
		}
	}

	nextImage, nextGrad := load("x"), load("dy")
	MOVQ(argument("images"), images)
	Label("image")
	MOVQ(nextImage, image)
	MOVQ(nextGrad, grad)
	MOVQ(argument("rows"), rows)
	Label("row")
	MOVQ(image, x)
	MOVQ(grad, dy)
	MOVQ(argument("pixels"), n)
	SUBQ(U8(2), n)
	JLT(LabelRef("odd"))
	Label("pair")
	step(0)
	step(1)
	PREFETCHT1(Mem{Base: ahead})
	ADDQ(stride, ahead)
	LEAQ(Mem{Base: x, Index: xs, Scale: 2}, x)
	ADDQ(U32(2*pixel), dy)
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
	dw = load("dw")
	for i := range sum {
		for j := range sum[i] {
			VMOVUPS(sum[i][j], Mem{Base: dw, Disp: v.size() * (i*columns + j)})
		}
	}
	ADDQ(U8(4*inputs), argument("x"))
	ADDQ(U32(pixel*inputs*blocks), argument("dw"))
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
