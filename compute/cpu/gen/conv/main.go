// Command conv generates the microkernels of package conv with avo. It lives in
// a module of its own, so that users of the project never need avo.
package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

func main() {
	ConstraintExpr("amd64")
	for _, t := range []struct{ blocks, pixels int }{{1, 14}, {2, 14}, {4, 7}} {
		for pixels := 1; pixels <= t.pixels; pixels++ {
			gather(avx512, pixels, t.blocks)
		}
	}
	for pixels := 1; pixels <= 6; pixels++ {
		gather(avx2, pixels, 1)
	}
	for inputs := 1; inputs <= 8; inputs++ {
		outer(avx512, inputs, 1)
		outer(avx512, inputs, 2)
	}
	for inputs := 1; inputs <= 4; inputs++ {
		outer(avx2, inputs, 1)
	}
	for s := 1; s <= 8; s *= 2 {
		lanes := lanesOf(avx512, s)
		for pixels := 1; pixels <= 8; pixels++ {
			gatherSmall(avx512, pixels, s, lanes)
		}
		outerSmall(avx512, 1, s, lanes)
		if s <= 4 {
			outerSmall(avx512, 3, s, lanes)
		}
	}
	for s := 1; s <= 4; s *= 2 {
		lanes := lanesOf(avx2, s)
		for pixels := 1; pixels <= 4; pixels++ {
			gatherSmall(avx2, pixels, s, lanes)
		}
		outerSmall(avx2, 1, s, lanes)
	}
	Generate()
}

// isa is what the two instruction sets differ in.
type isa struct {
	name      string
	lanes     int // of a vector
	registers int
	vector    func() reg.VecVirtual
	zero      func(reg.VecVirtual)
}

var (
	avx512 = isa{"512", 16, 32, ZMM, func(z reg.VecVirtual) { VPXORD(z, z, z) }}
	avx2   = isa{"256", 8, 16, YMM, func(y reg.VecVirtual) { VXORPS(y, y, y) }}
)

// vectors allocates n vectors.
func (v isa) vectors(n int) []reg.VecVirtual {
	out := make([]reg.VecVirtual, n)
	for i := range out {
		out[i] = v.vector()
	}
	return out
}

// size of a vector in bytes.
func (v isa) size() int { return 4 * v.lanes }

// pixel is the size in bytes of the 16 channels of a pixel.
const pixel = 64

// function starts a function; none of them keeps its pointers.
func function(name, signature string) {
	TEXT(name, NOSPLIT, signature)
	Pragma("noescape")
}

// load returns an argument in a register.
func load(name string) reg.GPVirtual {
	r := GP64()
	Load(Param(name), r)
	return r
}

// argument returns where an argument lies in memory: what only the outer loops
// change stays there, because the inner loop needs the registers.
func argument(name string) Mem {
	b, err := Param(name).Resolve()
	if err != nil {
		panic(err)
	}
	return b.Addr
}

// ladder addresses items that lie stride bytes apart through one base register
// for every two of them.
type ladder struct {
	stride reg.GPVirtual
	bases  []reg.GPVirtual
}

// ladderOver makes the ladder of n items.
func ladderOver(n int, stride reg.GPVirtual) ladder {
	l := ladder{stride: stride}
	for range (n + 1) / 2 {
		l.bases = append(l.bases, GP64())
	}
	return l
}

// set computes the bases from the first.
func (l ladder) set() {
	for i, b := range l.bases[1:] {
		LEAQ(Mem{Base: l.bases[i], Index: l.stride, Scale: 2}, b)
	}
}

func (l ladder) at(i, disp int) Mem {
	m := Mem{Base: l.bases[i/2], Disp: disp}
	if i%2 > 0 {
		m.Index, m.Scale = l.stride, 1
	}
	return m
}

func (l ladder) advance(bytes int) {
	for _, b := range l.bases {
		ADDQ(U8(bytes), b)
	}
}
