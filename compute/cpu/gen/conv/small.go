package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Groups of s = 1, 2, 4 or 8 channels lie side by side in a block of 16. Output lane
// l takes the inputs l/s·s + r of its group, r < s: one permutation of a pixel's
// lanes for each r.

// lanesOf returns the permutations as a table of s rows of lanes indices.
func lanesOf(v isa, s int) Mem {
	table := GLOBL(fmt.Sprintf("lanes%sx%d", v.name, s), RODATA|NOPTR)
	for r := range s {
		for l := range v.lanes {
			DATA(4*(r*v.lanes+l), U32(l/s*s+r))
		}
	}
	return table
}

// gatherSmall emits the kernel of gather for a block of small groups: the kin values
// of a tap are the s permutations, its weights s vectors of a block. It computes what
// lies in the padding, which is zero, like the rest.
func gatherSmall(v isa, pixels, s int, lanes Mem) {
	function(fmt.Sprintf("gatherSmall%sx%dx%d", v.name, pixels, s), gatherSignature)
	t := tile{isa: v, columns: 16 / v.lanes}
	for range pixels {
		t.sum = append(t.sum, v.vectors(t.columns))
	}
	weights, index, x := v.vectors(t.columns), v.vector(), v.vectors(2)
	Label("tile")
	t.start(t.columns)
	tap, taps := load("tap"), load("taps")
	t.x, t.w = ladderOver(pixels, load("xs")), GP64()
	TESTQ(taps, taps)
	JZ(LabelRef("store"))
	Label("tap")
	t.aim(tap, 1)
	for r := range s {
		if s > 1 {
			VMOVUPS(lanes.Offset(r*v.size()), index)
		}
		for j, w := range weights {
			VMOVUPS(Mem{Base: t.w, Disp: pixel*r + v.size()*j}, w)
		}
		for i := range pixels {
			for j, w := range weights {
				m := t.x.at(i, v.size()*j)
				if s == 1 {
					VFMADD231PS(m, w, t.sum[i][j])
					continue
				}
				VPERMPS(m, index, x[(i+j)%2])
				VFMADD231PS(x[(i+j)%2], w, t.sum[i][j])
			}
		}
	}
	t.finish(tap, taps, pixels, t.columns)
}

// outerSmall emits the kernel of outer for a block of small groups: the tile is
// the s·16 gradients of each of places that lie side by side in a row of the filter.
func outerSmall(v isa, places, s int, lanes Mem) {
	function(fmt.Sprintf("outerSmall%sx%dx%d", v.name, places, s), outerSignature)
	columns := 16 / v.lanes
	var sum [][]reg.VecVirtual // [place·s + r][column]
	for range places * s {
		sum = append(sum, v.vectors(columns))
	}
	o := product{isa: v, sum: sum}
	ys, x := v.vectors(columns), v.vectors(2)
	index := v.vectors(1)
	if s > 1 && v.lanes == 16 {
		index = v.vectors(s)
		for r := range index {
			VMOVUPS(lanes.Offset(r*v.size()), index[r])
		}
	}
	o.loop(0, func(u int) {
		for j, y := range ys {
			VMOVUPS(Mem{Base: o.dy, Disp: pixel*u + v.size()*j}, y)
		}
		for p := range places {
			for r := range s {
				if s > 1 && len(index) == 1 {
					VMOVUPS(lanes.Offset(r*v.size()), index[0])
				}
				for j, y := range ys {
					m := Mem{Base: o.x, Disp: pixel*p + v.size()*j}
					if u > 0 {
						m.Index, m.Scale = o.xs, uint8(u)
					}
					if s == 1 {
						VFMADD231PS(m, y, sum[p][j])
						continue
					}
					VPERMPS(m, index[r%len(index)], x[(r+j)%2])
					VFMADD231PS(x[(r+j)%2], y, sum[p*s+r][j])
				}
			}
		}
	})
}
