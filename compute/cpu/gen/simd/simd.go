// Package simd lets a generator describe a kernel once and get it for AVX2 and
// for AVX-512.
//
// A kernel walks arrays of float32 sixteen elements at a time. With AVX-512 a
// group is one register; with AVX2 it is two, and the description runs twice, the
// second time 32 bytes further on. The elements that are left over are one more group,
// under a mask: lanes behind the end are read as zero and not written, so a
// kernel takes any length and touches nothing outside.
//
// Nothing is fused: there are products and sums, each rounded, as in the Go code
// with the same meaning. Reductions keep sixteen running sums in float64, lane l
// that of the elements 16i+l, and add them as a tree at the end. Hence all
// levels give the same bits.
//
// Values are written in single-assignment style: each operation returns a fresh
// register, and avo finds out when one is free again.
package simd

import (
	"math"
	"slices"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Lanes is how many elements a group has.
const Lanes = 16

// V is a register of the level's width: 16 or 8 float32, or bits of that size.
type V = reg.VecVirtual

// A Func is one kernel at one level while it is being emitted.
type Func struct {
	Wide bool // AVX-512

	half   int  // which half of a group is described now; 0 if Wide
	masked bool // the group is the last, incomplete one
	lanes  V    // AVX2: the mask of this half
	k      reg.OpmaskVirtual
}

// Each emits a kernel for both levels: name+"AVX2" and name+"AVX512".
func Each(name, signature string, body func(f *Func)) {
	for _, wide := range []bool{false, true} {
		suffix := "AVX2"
		if wide {
			suffix = "AVX512"
		}
		TEXT(name+suffix, NOSPLIT, signature)
		Pragma("noescape")
		body(&Func{Wide: wide})
	}
}

// Arg loads an integer or pointer argument.
func Arg(name string) reg.Register { return Load(Param(name), GP64()) }

// End ends a kernel.
func End() {
	VZEROUPPER()
	RET()
}

// Loop describes each group of n elements by body and moves the pointers on, and does what after
// says, between groups. It uses n up.
func (f *Func) Loop(n reg.Register, pointers []reg.Register, body func(), after ...func()) {
	Label("group")
	CMPQ(n, U8(Lanes))
	JLT(LabelRef("rest"))
	f.Halves(body)
	for _, p := range pointers {
		ADDQ(U8(4*Lanes), p)
	}
	for _, do := range after {
		do()
	}
	SUBQ(U8(Lanes), n)
	JMP(LabelRef("group"))
	Label("rest")
	TESTQ(n, n)
	JZ(LabelRef("done"))
	f.masked = true
	if f.Wide {
		bits, count := GP64(), n
		MOVQ(U32(1), bits)
		SHLXQ(count, bits, bits)
		DECQ(bits)
		f.k = K()
		KMOVW(bits.As32(), f.k)
		f.Halves(body)
	} else {
		at := GP64()
		LEAQ(masks(), at)
		SHLQ(U8(2), n)
		SUBQ(n, at)
		f.Halves(func() {
			f.lanes = YMM()
			VMOVUPS(Mem{Base: at, Disp: 4*Lanes + 32*f.half}, f.lanes)
			body()
		})
	}
	f.masked = false
	Label("done")
}

// Halves describes the parts of one group of sixteen elements.
func (f *Func) Halves(body func()) {
	for f.half = range 2 {
		body()
		if f.Wide {
			break
		}
	}
	f.half = 0
}

// Half says which half of a group body describes; always 0 with AVX-512.
func (f *Func) Half() int { return f.half }

// Reg returns a fresh register.
func (f *Func) Reg() V {
	if f.Wide {
		return ZMM()
	}
	return YMM()
}

// At addresses the part of sixteen elements at p+disp that belongs to this half.
func (f *Func) At(p reg.Register, disp int) Mem { return Mem{Base: p, Disp: disp + 32*f.half} }

// Load reads the group at p.
func (f *Func) Load(p reg.Register) V {
	v := f.Reg()
	switch {
	case !f.masked:
		VMOVUPS(f.At(p, 0), v)
	case f.Wide:
		VMOVUPS_Z(f.At(p, 0), f.k, v)
	default:
		VMASKMOVPS(f.At(p, 0), f.lanes, v)
	}
	return v
}

// Store writes the group at p.
func (f *Func) Store(v V, p reg.Register) {
	switch {
	case !f.masked:
		VMOVUPS(v, f.At(p, 0))
	case f.Wide:
		VMOVUPS(v, f.k, f.At(p, 0))
	default:
		VMASKMOVPS(v, f.lanes, f.At(p, 0))
	}
}

// Existing returns v with zeros in the lanes behind the end.
func (f *Func) Existing(v V) V {
	if !f.masked {
		return v
	}
	out := f.Reg()
	if f.Wide {
		VMOVAPS_Z(v, f.k, out)
	} else {
		VANDPS(v, f.lanes, out)
	}
	return out
}

// Else returns v with the lanes behind the end taken from other.
func (f *Func) Else(v, other V) V {
	if !f.masked {
		return v
	}
	out := f.Reg()
	if f.Wide {
		VBLENDMPS(v, other, f.k, out)
	} else {
		VBLENDVPS(f.lanes, v, other, out)
	}
	return out
}

// Fill returns a register with the float32 argument at this offset of the frame in each lane.
func (f *Func) Fill(name string, offset int) V {
	v := f.Reg()
	VBROADCASTSS(NewParamAddr(name, offset), v)
	return v
}

// Zero returns a register of zeros.
func (f *Func) Zero() V {
	v := f.Reg()
	if f.Wide {
		VPXORD(v, v, v)
	} else {
		VXORPS(v, v, v)
	}
	return v
}

// Set loads a constant into a register.
func (f *Func) Set(c Mem) V {
	v := f.Reg()
	VMOVUPS(c, v)
	return v
}

// The arithmetic. The second argument is a register or a constant in memory.

func (f *Func) Add(a V, b Op) V { v := f.Reg(); VADDPS(b, a, v); return v }
func (f *Func) Sub(a V, b Op) V { v := f.Reg(); VSUBPS(b, a, v); return v }
func (f *Func) Mul(a V, b Op) V { v := f.Reg(); VMULPS(b, a, v); return v }
func (f *Func) Div(a V, b Op) V { v := f.Reg(); VDIVPS(b, a, v); return v }

// Max returns a where a > b, else b: b where one is NaN or both are zeros. Min likewise.
func (f *Func) Max(a V, b Op) V { v := f.Reg(); VMAXPS(b, a, v); return v }
func (f *Func) Min(a V, b Op) V { v := f.Reg(); VMINPS(b, a, v); return v }

func (f *Func) And(a V, b Op) V  { v := f.Reg(); VANDPS(b, a, v); return v }
func (f *Func) Or(a V, b Op) V   { v := f.Reg(); VORPS(b, a, v); return v }
func (f *Func) AddI(a V, b Op) V { v := f.Reg(); VPADDD(b, a, v); return v }
func (f *Func) SubI(a V, b Op) V { v := f.Reg(); VPSUBD(b, a, v); return v }

// Left and Arith shift the 32 bits of each lane; Arith to the right, copying the sign.
func (f *Func) Left(a V, n int) V  { v := f.Reg(); VPSLLD(U8(n), a, v); return v }
func (f *Func) Arith(a V, n int) V { v := f.Reg(); VPSRAD(U8(n), a, v); return v }

// Float converts the integers of a.
func (f *Func) Float(a V) V { v := f.Reg(); VCVTDQ2PS(a, v); return v }

// The comparisons, all false for NaN but the last, which is true where one is NaN.
const (
	Equal     = U8(0)
	Less      = U8(17)
	Greater   = U8(30)
	Unordered = U8(3)
)

// Select returns yes where a p b holds, else no.
func (f *Func) Select(p U8, a V, b Op, yes Op, no V) V {
	v := f.Reg()
	if f.Wide {
		k := K()
		VCMPPS(p, b, a, k)
		VBLENDMPS(yes, no, k, v)
		return v
	}
	m := YMM()
	VCMPPS(p, b, a, m)
	VBLENDVPS(m, yes, no, v)
	return v
}

// Keep returns v where a p b holds, else zero.
func (f *Func) Keep(p U8, a V, b Op, v V) V {
	out := f.Reg()
	if f.Wide {
		k := K()
		VCMPPS(p, b, a, k)
		VMOVAPS_Z(v, k, out)
		return out
	}
	VCMPPS(p, b, a, out)
	VANDPS(v, out, out)
	return out
}

// JumpIf jumps to the label if a p b holds in any lane.
func (f *Func) JumpIf(p U8, a V, b Op, label string) {
	if f.Wide {
		k := K()
		VCMPPS(p, b, a, k)
		KORTESTW(k, k)
	} else {
		m, bits := YMM(), GP32()
		VCMPPS(p, b, a, m)
		VMOVMSKPS(m, bits)
		TESTL(bits, bits)
	}
	JNZ(LabelRef(label))
}

// Divide returns v where a == b and zero elsewhere, and the other way round.
func (f *Func) Divide(a V, b Op, v V) (yes, no V) {
	yes, no = f.Reg(), f.Reg()
	if f.Wide {
		k, other := K(), K()
		VCMPPS(Equal, b, a, k)
		KNOTW(k, other)
		VMOVAPS_Z(v, k, yes)
		VMOVAPS_Z(v, other, no)
		return yes, no
	}
	m := YMM()
	VCMPPS(Equal, b, a, m)
	VANDPS(v, m, yes)
	VANDNPS(v, m, no)
	return yes, no
}

// ReLU returns max(v, 0), with +0 for -0 and NaN for NaN.
func (f *Func) ReLU(v V, zero V) V { return f.Add(f.Max(zero, v), zero) }

// data collects the constants of a file; each fills a register of 64 bytes.
var data struct {
	table []uint32
	ref   Mem
	tail  *Mem
}

// Const returns the constant c in every lane.
func Const(c float32) Mem { return Bits(math.Float32bits(c)) }

// Bits is Const for a pattern of bits.
func Bits(c uint32) Mem {
	i := slices.Index(data.table, c)
	if i < 0 {
		i = len(data.table)
		data.table = append(data.table, c)
	}
	return constant(4 * Lanes * i)
}

// constant addresses the table of constants, which Generate writes.
func constant(disp int) Mem {
	return Mem{Symbol: Symbol{Name: "constants", Static: true}, Base: reg.StaticBase, Disp: disp}
}

// masks is 16 lanes of ones and 16 of zeros, for the masks of AVX2.
func masks() Mem {
	if data.tail == nil {
		m := Mem{Symbol: Symbol{Name: "masks", Static: true}, Base: reg.StaticBase}
		data.tail = &m
	}
	return *data.tail
}

// Finish writes the tables and the file.
func Finish() {
	if len(data.table) > 0 {
		GLOBL("constants", RODATA|NOPTR)
		for i, c := range data.table {
			for lane := range Lanes {
				DATA(4*(Lanes*i+lane), U32(c))
			}
		}
	}
	if data.tail != nil {
		GLOBL("masks", RODATA|NOPTR)
		for lane := range 2 * Lanes {
			ones := U32(0)
			if lane < Lanes {
				ones = 0xffffffff
			}
			DATA(4*lane, ones)
		}
	}
	Generate()
}
