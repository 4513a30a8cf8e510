// Package rng holds the project's only source of randomness: a counter-based
// generator. A value is a pure function of a key and a counter, so any server
// can initialise its own piece of a block, and any worker can drop out its own
// share of a batch, with the bits that one machine would have drawn alone.
//
// The mixer is the finaliser of SplitMix64 (Steele, Lea and Flood, "Fast
// splittable pseudorandom number generators", OOPSLA 2014).
package rng

import (
	"math"
	"math/bits"
)

// Key names one stream of random values.
type Key uint64

// NewKey folds its parts, in order, into a key: NewKey(seed, epoch, layer).
func NewKey(parts ...uint64) Key {
	h := uint64(0x9e3779b97f4a7c15)
	for _, p := range parts {
		h = mix(h ^ mix(p+0x9e3779b97f4a7c15))
	}
	return Key(h)
}

// Uint64 returns value i of the stream.
func (k Key) Uint64(i uint64) uint64 {
	return mix(uint64(k) + (i+1)*0x9e3779b97f4a7c15)
}

// Float64 returns value i of the stream, uniform in [0,1), with 53 bits.
func (k Key) Float64(i uint64) float64 {
	return float64(k.Uint64(i)>>11) * (1.0 / (1 << 53))
}

// Normal returns value i of the stream, standard normal, by Marsaglia's polar
// method ("A convenient method for generating normal variables", SIAM Review
// 1964) on a stream of its own, so that value i depends on i alone.
func (k Key) Normal(i uint64) float64 {
	own := Key(k.Uint64(i))
	for j := uint64(0); ; j += 2 {
		u, v := 2*own.Float64(j)-1, 2*own.Float64(j+1)-1
		if s := float64(u*u) + float64(v*v); s > 0 && s < 1 {
			return u * math.Sqrt(-2*log(s)/s)
		}
	}
}

// log is the natural logarithm of a positive normal number. It exists because math.Log may
// differ in the last bit between processors and builds (fused multiply and add),
// and a block must start with the same bits everywhere; the conversions forbid fusing.
//
// x = f·2ᵉ with f in [√½,√2), and log f = 2(s + s³/3 + s⁵/5 + …) with s = (f−1)/(f+1),
// where |s| < 0.172: the first term left out is below 10⁻¹⁷ of the sum.
func log(x float64) float64 {
	f, e := math.Frexp(x)
	if f < math.Sqrt2/2 {
		f, e = 2*f, e-1
	}
	s := (f - 1) / (f + 1)
	z := float64(s * s)
	sum := 0.0
	for n := 21.0; n > 0; n -= 2 {
		sum = float64(sum*z) + 1/n
	}
	return float64(2*s*sum) + float64(float64(e)*math.Ln2)
}

// Intn returns value i of the stream, uniform in [0,n); n must be positive.
// The bias is below n/2^64.
func (k Key) Intn(i uint64, n int) int {
	hi, _ := bits.Mul64(k.Uint64(i), uint64(n))
	return int(hi)
}

func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
