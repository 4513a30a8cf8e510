package simd

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Sums are sixteen running sums in float64.
type Sums []V

// Sums returns running sums that start at zero.
func (f *Func) Sums() Sums {
	n := 4
	if f.Wide {
		n = 2
	}
	s := make(Sums, n)
	for i := range s {
		s[i] = f.Zero()
	}
	return s
}

// LoadSums reads sixteen float64 at p.
func (f *Func) LoadSums(p reg.Register, disp int) Sums {
	s := f.Sums()
	for i := range s {
		VMOVUPD(Mem{Base: p, Disp: disp + 128/len(s)*i}, s[i])
	}
	return s
}

// StoreSums writes them back.
func (f *Func) StoreSums(s Sums, p reg.Register, disp int) {
	for i := range s {
		VMOVUPD(s[i], Mem{Base: p, Disp: disp + 128/len(s)*i})
	}
}

// Double widens the lanes of v: the lower ones, then the upper ones.
func (f *Func) Double(v V) [2]V {
	lo, hi := f.Reg(), f.Reg()
	if f.Wide {
		upper := YMM()
		VEXTRACTF64X4(U8(1), v, upper)
		VCVTPS2PD(v.AsY(), lo)
		VCVTPS2PD(upper, hi)
	} else {
		upper := XMM()
		VEXTRACTF128(U8(1), v, upper)
		VCVTPS2PD(v.AsX(), lo)
		VCVTPS2PD(upper, hi)
	}
	return [2]V{lo, hi}
}

// Part returns the running sums of the half being described.
func (f *Func) Part(s Sums) [2]V { return [2]V{s[2*f.half], s[2*f.half+1]} }

// LoadPart reads that half of the sixteen float64 at p+disp; StorePart writes it back.
func (f *Func) LoadPart(p reg.Register, disp int) [2]V {
	s := [2]V{f.Reg(), f.Reg()}
	for i, v := range s {
		VMOVUPD(f.part(p, disp, i), v)
	}
	return s
}

func (f *Func) StorePart(s [2]V, p reg.Register, disp int) {
	for i, v := range s {
		VMOVUPD(v, f.part(p, disp, i))
	}
}

func (f *Func) part(p reg.Register, disp, i int) Mem {
	size := 32
	if f.Wide {
		size = 64
	}
	return Mem{Base: p, Disp: disp + size*(2*f.half+i)}
}

// Accumulate adds v to running sums.
func (f *Func) Accumulate(s, v [2]V) {
	for i, t := range s {
		VADDPD(v[i], t, t)
	}
}

// AccumulateProduct adds a·b. The product of two float32 is exact in float64, so it makes
// no difference that it is fused with the addition.
func (f *Func) AccumulateProduct(s, a, b [2]V) {
	for i, t := range s {
		VFMADD231PD(b[i], a[i], t)
	}
}

// Total adds the sixteen sums: l and l+8, then l and l+4, l+2, l+1.
func (f *Func) Total(s Sums) reg.Register {
	n := len(s) / 2
	for i := range n {
		VADDPD(s[i+n], s[i], s[i])
	}
	y := s[0].AsY()
	upper := YMM()
	if f.Wide {
		VEXTRACTF64X4(U8(1), s[0], upper)
		VADDPD(upper, y, y)
	} else {
		VADDPD(s[1], y, y)
	}
	x, other := s[0].AsX(), XMM()
	VEXTRACTF128(U8(1), y, other)
	VADDPD(other, x, x)
	VUNPCKHPD(x, x, other)
	VADDSD(other, x, x)
	return x
}
