package optim

import "math"

//go:generate go run -C ../cpu/gen ./optim -out ../../optim/loops_amd64.s -stubs ../../optim/loops_amd64.go -pkg optim

// scalars is what one update applies to every element. The assembly reads it as
// an array of float32 in this order.
type scalars struct {
	weight, high, low, decay, lr float32
	keep, take                   float32 // of the mean, or momentum in keep
	keep2, take2                 float32 // of the mean square
	scale                        float32 // adam: 1/√(1−β₂ᵗ)
	epsilon                      float32
}

// scalars rounds the settings to float32 once; adam's bias corrections become
// one factor of the learning rate and one of the root.
func (c Config) scalars(u Update) scalars {
	k := scalars{weight: float32(u.Weight), high: float32(c.Clip), lr: float32(u.LR), epsilon: float32(c.Epsilon)}
	if u.Excess > 1 {
		k.weight = float32(float64(u.Weight) * u.Excess) // the one division serves both
	}
	if c.Clip == 0 {
		k.high = float32(math.Inf(1))
	}
	k.low = -k.high
	if u.Decay {
		k.decay = float32(c.WeightDecay)
	}
	switch c.Kind {
	case SGD:
		k.keep = float32(c.Momentum)
	case RMSProp:
		k.keep2, k.take2 = float32(c.Rho), float32(1-c.Rho)
	case Adam:
		k.keep, k.take = float32(c.Beta1), float32(1-c.Beta1)
		k.keep2, k.take2 = float32(c.Beta2), float32(1-c.Beta2)
		k.lr = float32(u.LR / (1 - power(c.Beta1, u.T)))
		k.scale = float32(1 / math.Sqrt(1-power(c.Beta2, u.T)))
	}
	return k
}

// power returns bⁿ by squaring: unlike math.Pow it rounds alike on every machine.
func power(b float64, n int64) float64 {
	p := 1.0
	for ; n > 0; n >>= 1 {
		if n&1 != 0 {
			p *= b
		}
		b *= b
	}
	return p
}

// gradient returns clip(sum/weight) + decay·w. A NaN passes through.
//
// Here and in the loops, each conversion float32(x*y) forbids the compiler to
// fuse the product with a sum, which it does on some machines: all round alike.
func (k *scalars) gradient(sum, w float32) float32 {
	g := sum / k.weight
	if g > k.high {
		g = k.high
	}
	if g < k.low {
		g = k.low
	}
	return g + float32(k.decay*w)
}

func (k *scalars) sgd(w, out, sum []float32) {
	out, sum = out[:len(w)], sum[:len(w)]
	for i, x := range w {
		out[i] = x - float32(k.lr*k.gradient(sum[i], x))
	}
}

func (k *scalars) momentum(w, out, sum, v, vout []float32) {
	out, sum, v, vout = out[:len(w)], sum[:len(w)], v[:len(w)], vout[:len(w)]
	for i, x := range w {
		y := float32(k.keep*v[i]) + k.gradient(sum[i], x)
		vout[i] = y
		out[i] = x - float32(k.lr*y)
	}
}

func (k *scalars) rmsprop(w, out, sum, s, sout []float32) {
	out, sum, s, sout = out[:len(w)], sum[:len(w)], s[:len(w)], sout[:len(w)]
	for i, x := range w {
		g := k.gradient(sum[i], x)
		y := float32(k.keep2*s[i]) + float32(k.take2*float32(g*g))
		sout[i] = y
		out[i] = x - float32(k.lr*g)/sqrt(y+k.epsilon)
	}
}

func (k *scalars) adam(w, out, sum, a, aout, s, sout []float32) {
	out, sum, a, aout, s, sout = out[:len(w)], sum[:len(w)], a[:len(w)], aout[:len(w)], s[:len(w)], sout[:len(w)]
	for i, x := range w {
		g := k.gradient(sum[i], x)
		y := float32(k.keep*a[i]) + float32(k.take*g)
		z := float32(k.keep2*s[i]) + float32(k.take2*float32(g*g))
		aout[i], sout[i] = y, z
		out[i] = x - float32(k.lr*y)/(float32(sqrt(z)*k.scale)+k.epsilon)
	}
}

// sqrt is one instruction where the processor has it, and correctly rounded everywhere.
func sqrt(x float32) float32 { return float32(math.Sqrt(float64(x))) }
