package simd

import (
	"math"

	. "github.com/mmcloughlin/avo/build"
)

// The functions below perform the operations of their namesakes in package vec,
// where the method and the error of each are described.

// The constants of exp.
const (
	log2e = float32(math.Log2E)
	round = float32(3 << 22)        // adding it rounds to an integer
	ln2Hi = float32(0.693359375)    // ln 2 in nine bits …
	ln2Lo = float32(-2.12194440e-4) // … and the rest
	expHi = float32(89)             // where exp is infinite
	expLo = float32(-104)           // where exp is zero
)

var expPoly = []float32{1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1}

// poly evaluates a polynomial by Horner's rule, its highest coefficient first.
func (f *Func) poly(x V, c []float32) V {
	y := f.Mul(x, Const(c[0]))
	for _, c := range c[1 : len(c)-1] {
		y = f.Mul(f.Add(y, Const(c)), x)
	}
	return f.Add(y, Const(c[len(c)-1]))
}

// Exp returns e to the power of x.
func (f *Func) Exp(x V) V {
	x = f.Min(f.Set(Const(expHi)), x)
	x = f.Max(f.Set(Const(expLo)), x)
	t := f.Add(f.Mul(x, Const(log2e)), Const(round))
	n := f.Sub(t, Const(round))
	r := f.Sub(x, f.Mul(n, Const(ln2Hi)))
	r = f.Sub(r, f.Mul(n, Const(ln2Lo)))
	y := f.poly(r, expPoly)
	y = f.Mul(y, f.Mul(r, r))
	y = f.Add(f.Add(y, r), Const(1))
	if f.Wide { // one instruction does what follows, rounding once as well
		v := f.Reg()
		VSCALEFPS(n, y, v)
		return v
	}
	k := f.SubI(t, Const(round))
	half := f.Arith(k, 1)
	y = f.Mul(y, f.power(half))
	return f.Mul(y, f.power(f.SubI(k, half)))
}

// power returns 2 to the integer k.
func (f *Func) power(k V) V { return f.Left(f.AddI(k, Bits(127)), 23) }

// Sigmoid returns 1/(1+exp(-x)).
func (f *Func) Sigmoid(x V) V {
	e := f.Exp(f.Or(x, Bits(1<<31)))
	top := f.Select(Less, x, Const(0), e, f.Set(Const(1)))
	return f.Div(top, f.Add(e, Const(1)))
}

var tanhPoly = []float32{-5.70498872745e-3, 2.06390887954e-2, -5.37397155531e-2, 1.33314422036e-1, -3.33332819422e-1}

// Tanh returns the hyperbolic tangent of x.
func (f *Func) Tanh(x V) V {
	z := f.Mul(x, x)
	a := f.And(x, Bits(1<<31-1))
	small := f.Add(f.Mul(f.Mul(f.poly(z, tanhPoly), z), a), a)
	e := f.Add(f.Exp(f.Add(a, a)), Const(1))
	large := f.Sub(f.Set(Const(1)), f.Div(f.Set(Const(2)), e))
	y := f.Select(Less, a, Const(0.625), small, large)
	return f.Or(y, f.And(x, Bits(1<<31)))
}

var logPoly = []float32{7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1, -1.6668057665e-1, 2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1}

// Log returns the natural logarithm of x.
func (f *Func) Log(x V) V {
	tiny := Bits(0x00800000) // the least normal number
	m := f.Select(Less, x, tiny, f.Mul(x, Const(1<<23)), x)
	shift := f.Keep(Less, x, tiny, f.Set(Const(23)))
	// Of the bits of m above those of √½ the exponent is what counts.
	i := f.SubI(m, Const(sqrtHalf))
	e := f.Sub(f.Float(f.Arith(i, 23)), shift)
	m = f.AddI(f.And(i, Bits(1<<23-1)), Const(sqrtHalf))
	r := f.Sub(m, Const(1))
	z := f.Mul(r, r)
	y := f.Mul(f.Mul(f.poly(r, logPoly), r), z)
	y = f.Add(y, f.Mul(e, Const(ln2Lo)))
	y = f.Sub(y, f.Mul(z, Const(0.5)))
	y = f.Add(f.Add(r, y), f.Mul(e, Const(ln2Hi)))
	// Infinity and NaN return themselves, zero -Inf and what is below it NaN.
	inf := float32(math.Inf(1))
	y = f.Select(Less, x, Const(inf), y, x)
	y = f.Select(Equal, x, Const(0), Const(-inf), y)
	return f.Select(Less, x, Const(0), Bits(0x7fc00000), y)
}

const sqrtHalf = float32(0.70710678118654752440)
