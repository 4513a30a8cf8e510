package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	. "optimus/compute/cpu/gen/simd"
)

// The multipliers of SplitMix64 (see internal/rng).
const golden, mix1, mix2 = 0x9e3779b97f4a7c15, 0xbf58476d1ce4e5b9, 0x94d049bb133111eb

// dropout emits mask[i] = scale where mix(z+(i+1)·golden) >> 11 > below, else 0.
func dropout() {
	Each("dropout", "func(n int, mask *float32, z uint64, below int64, scale float32)", func(f *Func) {
		n, mask := Arg("n"), Arg("mask")
		scale := f.Fill("scale", 32)
		q := quads{f: f, per: 4}
		if f.Wide {
			q.per = 8
		}
		below, step := q.reg(), q.constant(golden*uint64(q.per))
		VPBROADCASTQ(NewParamAddr("below", 24), below)
		z := q.counters()
		m1, m2 := q.constant(mix1), q.constant(mix2)
		f.Loop(n, []reg.Register{mask}, func() {
			var kept [2]reg.Register
			for i := range kept {
				r := q.mul(q.fold(z, 30), m1)
				r = q.mul(q.fold(r, 27), m2)
				r = q.shift(q.fold(r, 31), 11)
				VPADDQ(step, z, z)
				kept[i] = q.greater(r, below)
			}
			f.Store(q.pick(kept, scale), mask)
		})
		End()
	})
}

// quads does the arithmetic of 64-bit lanes.
type quads struct {
	f   *Func
	per int // lanes of a register
}

func (q quads) reg() V { return q.f.Reg() }

func (q quads) constant(c uint64) V {
	r, v := GP64(), q.reg()
	MOVQ(U64(c), r)
	VMOVQ(r, v.AsX())
	VPBROADCASTQ(v.AsX(), v)
	return v
}

// counters returns z+(i+1)·golden for the lanes i.
func (q quads) counters() V {
	v, offsets := q.reg(), GLOBL("offsets"+map[int]string{4: "4", 8: "8"}[q.per], RODATA|NOPTR)
	for i := range q.per {
		DATA(8*i, U64(uint64(i+1)*golden))
	}
	VPBROADCASTQ(NewParamAddr("z", 16), v)
	VPADDQ(offsets, v, v)
	return v
}

func (q quads) shift(v V, n uint64) V { r := q.reg(); VPSRLQ(U8(n), v, r); return r }

// fold returns v ^ v>>n.
func (q quads) fold(v V, n uint64) V {
	r := q.shift(v, n)
	if q.f.Wide {
		VPXORQ(v, r, r)
	} else {
		VPXOR(v, r, r)
	}
	return r
}

// mul returns the lower half of a·b, with AVX2 from products of 32 bits.
func (q quads) mul(a, b V) V {
	r := q.reg()
	if q.f.Wide {
		VPMULLQ(b, a, r)
		return r
	}
	s := q.shift(a, 32)
	VPMULUDQ(b, s, s)
	VPMULUDQ(q.shift(b, 32), a, r)
	VPADDQ(s, r, r)
	VPSLLQ(U8(32), r, r)
	low := q.reg()
	VPMULUDQ(b, a, low)
	VPADDQ(low, r, r)
	return r
}

// greater compares as signed numbers.
func (q quads) greater(a, b V) reg.Register {
	if q.f.Wide {
		k := K()
		VPCMPQ(U8(6), b, a, k) // not less or equal
		return k
	}
	m := YMM()
	VPCMPGTQ(b, a, m)
	return m
}

// pick returns v in the lanes of 32 bits whose comparison held, lower lanes first.
func (q quads) pick(kept [2]reg.Register, v V) V {
	r := q.reg()
	if q.f.Wide {
		KUNPCKBW(kept[0], kept[1], kept[1])
		VMOVAPS_Z(v, kept[1], r)
		return r
	}
	VSHUFPS(U8(0x88), kept[1], kept[0], r)
	VPERMQ(U8(0xd8), r, r)
	VANDPS(v, r, r)
	return r
}
