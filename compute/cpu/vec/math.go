package vec

import "math"

// The functions of one element. They are what the kernels compute lane by lane,
// with the same bits; a conversion float32(x*y) forbids the compiler to fuse the
// product with a sum. The constants and polynomials are those of Moshier's Cephes
// library. At every 97th of all arguments, denormal ones included, the error is below one unit of the last
// place for exp and log, 1.4 for tanh and 2.3 for sigmoid; infinities and NaNs are as in package math.

const (
	log2e = float32(math.Log2E)
	round = float32(3 << 22)        // adding it rounds to an integer, in the lowest bits
	ln2Hi = float32(0.693359375)    // ln 2 in ten bits: its products with exponents are exact
	ln2Lo = float32(-2.12194440e-4) // the rest of ln 2
	expHi = float32(89)             // exp is infinite here
	expLo = float32(-104)           // exp is below half the least positive number here
)

// Exp32 returns e to the power of x: exp(n·ln 2 + r) = 2ⁿ·exp(r) with |r| ≤ ln 2 / 2.
// Overflow gives +Inf, underflow a denormal number or 0.
func Exp32(x float32) float32 {
	if expHi < x {
		x = expHi
	}
	if expLo > x {
		x = expLo
	}
	t := float32(x*log2e) + round
	n := t - round
	r := x - float32(n*ln2Hi)
	r -= float32(n * ln2Lo)
	y := float32(1.9875691500e-4)
	y = float32(y*r) + 1.3981999507e-3
	y = float32(y*r) + 8.3334519073e-3
	y = float32(y*r) + 4.1665795894e-2
	y = float32(y*r) + 1.6666665459e-1
	y = float32(y*r) + 5.0000001201e-1
	y = float32(y*float32(r*r)) + r + 1
	// 2ⁿ is applied in halves, for it may itself be out of range.
	k := int32(math.Float32bits(t) - math.Float32bits(round))
	half := k >> 1
	return y * power(half) * power(k-half)
}

// power returns 2ᵏ.
func power(k int32) float32 { return math.Float32frombits(uint32(k+127) << 23) }

const (
	tiny     = float32(0x1p-126) // the least normal number
	sqrtHalf = float32(math.Sqrt2 / 2)
	fraction = 1<<23 - 1
)

// Log32 returns the natural logarithm of x: log(2ᵉ·m) = e·ln 2 + log(m) with m between √½
// and √2. It is -Inf at 0 and NaN below.
func Log32(x float32) float32 {
	switch {
	case x < 0:
		return float32(math.NaN())
	case x == 0:
		return float32(math.Inf(-1))
	case !(x < float32(math.Inf(1))):
		return x
	}
	m, shift := x, float32(0)
	if x < tiny {
		m, shift = x*(1<<23), 23
	}
	i := int32(math.Float32bits(m) - math.Float32bits(sqrtHalf))
	e := float32(i>>23) - shift
	r := math.Float32frombits(uint32(i)&fraction+math.Float32bits(sqrtHalf)) - 1
	z := float32(r * r)
	y := float32(7.0376836292e-2)
	y = float32(y*r) - 1.1514610310e-1
	y = float32(y*r) + 1.1676998740e-1
	y = float32(y*r) - 1.2420140846e-1
	y = float32(y*r) + 1.4249322787e-1
	y = float32(y*r) - 1.6668057665e-1
	y = float32(y*r) + 2.0000714765e-1
	y = float32(y*r) - 2.4999993993e-1
	y = float32(y*r) + 3.3333331174e-1
	y = float32(float32(y*r)*z) + float32(e*ln2Lo)
	y -= float32(z * 0.5)
	return r + y + float32(e*ln2Hi)
}

// Sigmoid32 returns 1/(1+exp(-x)), computed from exp(-|x|), which cannot overflow; so the
// lower tail keeps its digits.
func Sigmoid32(x float32) float32 {
	e := Exp32(math.Float32frombits(math.Float32bits(x) | sign))
	if x < 0 {
		return e / (e + 1)
	}
	return 1 / (e + 1)
}

const sign = 1 << 31

// Tanh32 returns the hyperbolic tangent of x: an odd polynomial near 0, which keeps the digits
// there, and 1 - 2/(exp(2|x|)+1) with the sign of x elsewhere.
func Tanh32(x float32) float32 {
	bits := math.Float32bits(x)
	a := math.Float32frombits(bits &^ sign)
	var y float32
	if a < 0.625 {
		z := float32(x * x)
		y = float32(-5.70498872745e-3)
		y = float32(y*z) + 2.06390887954e-2
		y = float32(y*z) - 5.37397155531e-2
		y = float32(y*z) + 1.33314422036e-1
		y = float32(y*z) - 3.33332819422e-1
		y = float32(float32(y*z)*a) + a
	} else {
		y = 1 - 2/(Exp32(a+a)+1)
	}
	return math.Float32frombits(math.Float32bits(y) | bits&sign)
}
