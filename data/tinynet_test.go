package data

import (
	"math"

	"optimus/internal/rng"
)

// tinyNet is the text CNN of Kim (2014) in plain Go, only as good as the tests
// of the generators need: embedding, filters of 3, 4 and 5 words, largest over
// time, one linear layer, logistic loss, RMSProp.
type tinyNet struct {
	e, f               int // embedding width, filters of each width
	rate               float64
	embed, filter, out *param
	bias               *param
}

type param struct{ w, g, s []float64 }

func newParam(n int, key rng.Key) *param {
	p := &param{make([]float64, n), make([]float64, n), make([]float64, n)}
	for i := range p.w {
		p.w[i] = 0.2*key.Float64(uint64(i)) - 0.1
	}
	return p
}

func (p *param) step(rate float64) {
	for i, g := range p.g {
		if g != 0 || p.s[i] != 0 {
			p.s[i] = 0.9*p.s[i] + 0.1*g*g
			p.w[i] -= rate * g / (math.Sqrt(p.s[i]) + 1e-8)
		}
		p.g[i] = 0
	}
}

const tinyTaps = 3 + 4 + 5 // one tap is one word's place in one width of filter

func newTinyNet(words, e, f int, rate float64) *tinyNet {
	return &tinyNet{e: e, f: f, rate: rate,
		embed:  newParam(words*e, 1),
		filter: newParam(tinyTaps*f*e, 2), // [tap][filter][e]
		out:    newParam(3*f, 3),
		bias:   newParam(3*f+1, 4),
	}
}

// run returns the score of a sentence (above 0: positive) and, where grow is
// not nil, adds the gradients of the logistic loss to it.
func (n *tinyNet) run(tokens []int32, taps func(int32) []float64, label int32, learn bool) float64 {
	score := n.bias.w[3*n.f]
	best := make([]float64, 3*n.f)
	where := make([]int, 3*n.f)
	for k, tap := 0, 0; k < 3; k++ {
		width := 3 + k
		for f := range n.f {
			top, at := 0.0, -1
			for t := 0; t+width <= len(tokens); t++ {
				v := n.bias.w[k*n.f+f]
				for j := range width {
					v += taps(tokens[t+j])[(tap+j)*n.f+f]
				}
				if v > top {
					top, at = v, t
				}
			}
			best[k*n.f+f], where[k*n.f+f] = top, at
			score += n.out.w[k*n.f+f] * top
		}
		tap += width
	}
	if !learn {
		return score
	}
	d := 1/(1+math.Exp(-score)) - float64(label)
	n.bias.g[3*n.f] += d
	for k, tap := 0, 0; k < 3; k++ {
		width := 3 + k
		for f := range n.f {
			u := k*n.f + f
			if where[u] < 0 {
				continue
			}
			n.out.g[u] += d * best[u]
			du := d * n.out.w[u]
			n.bias.g[u] += du
			for j := range width {
				word := int(tokens[where[u]+j]) * n.e
				filter := ((tap+j)*n.f + f) * n.e
				for e := range n.e {
					n.filter.g[filter+e] += du * n.embed.w[word+e]
					n.embed.g[word+e] += du * n.filter.w[filter+e]
				}
			}
		}
		tap += width
	}
	return score
}

// responses returns what every filter's every tap makes of a word, computed
// once per word and parameter version.
func (n *tinyNet) responses() func(int32) []float64 {
	known := map[int32][]float64{}
	return func(t int32) []float64 {
		r, ok := known[t]
		if !ok {
			r = make([]float64, tinyTaps*n.f)
			word := n.embed.w[int(t)*n.e : (int(t)+1)*n.e]
			for i := range r {
				filter := n.filter.w[i*n.e : (i+1)*n.e]
				for e, v := range word {
					r[i] += v * filter[e]
				}
			}
			known[t] = r
		}
		return r
	}
}

func (n *tinyNet) epoch(s Split, batch int, order []int) {
	var b Batch
	for lo := 0; lo < len(order); lo += batch {
		ids := order[lo:min(lo+batch, len(order))]
		if s.Fill(ids, &b) != nil {
			return
		}
		taps, length := n.responses(), b.Inputs[0].Shape[1]
		for i := range ids {
			n.run(b.Inputs[0].I[i*length:(i+1)*length], taps, b.Inputs[1].I[i], true)
		}
		for _, p := range []*param{n.embed, n.filter, n.out, n.bias} {
			for i := range p.g {
				p.g[i] /= float64(len(ids))
			}
			p.step(n.rate)
		}
	}
}

func (n *tinyNet) accuracy(s Split) float64 {
	var b Batch
	right, taps := 0, n.responses()
	for i := range s.Len() {
		if s.Fill([]int{i}, &b) != nil {
			return 0
		}
		if score := n.run(b.Inputs[0].I, taps, 0, false); (score > 0) == (b.Inputs[1].I[0] == 1) {
			right++
		}
	}
	return float64(right) / float64(s.Len())
}
