package nn_test

import (
	"math"
	"slices"

	"optimus/compute"
)

// length returns how many time steps of a buffer are example i's own.
func (r *reference) length(input int, b compute.Buf, i int) int {
	if input == compute.None {
		return r.of(b)
	}
	return r.follow(r.p.Buffers[b].Axis, int(r.batch.Inputs[input].I[i]))
}

func (r *reference) follow(axis compute.Axis, n int) int {
	a := r.p.Axes[axis-1]
	if a.Of == 0 {
		return n
	}
	n = r.follow(a.Of, n)
	return int(math.Max(0, math.Floor(float64(n+2*a.Pad-a.Window)/float64(a.Stride))+1))
}

// gates returns the products of x with the blocks of a recurrent layer.
func (r *reference) gates(list []compute.Gates, h int, x []float64) (y []float64) {
	for _, g := range list {
		y = append(y, r.affine(g.W, g.B, x, g.G*h)...)
	}
	return y
}

// affine returns W·x + b.
func (r *reference) affine(w, b int, x []float64, out int) []float64 {
	y := make([]float64, out)
	for o := range y {
		y[o] = r.bias(b, o)
		for j, v := range x {
			y[o] += v * r.params[w][o*len(x)+j]
		}
	}
	return y
}

func sigmoid(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

// recurrent runs a layer over the steps of example i; step makes a state [h, and
// maybe c] of the products and the state before.
func (r *reference) recurrent(op *compute.Recurrent, i int, step func(a, u, state []float64) []float64) {
	x, y, n := r.at(op.X, i), r.at(op.Y, i), r.length(op.Lengths, op.X, i)
	order := make([]int, n)
	for t := range order {
		order[t] = t
	}
	if op.Reverse {
		slices.Reverse(order)
	}
	state := make([]float64, 2*op.H)
	for _, t := range order {
		state = step(r.gates(op.Input, op.H, x[t*op.In:(t+1)*op.In]), r.gates(op.State, op.H, state[:op.H]), state)
		copy(y[t*op.H:(t+1)*op.H], state)
	}
}

func (r *reference) lstm(a, u, state []float64) []float64 {
	h := len(state) / 2
	next := make([]float64, 2*h)
	for j := range h {
		gate := func(k int) float64 { return a[k*h+j] + u[k*h+j] }
		c := sigmoid(gate(1))*state[h+j] + sigmoid(gate(0))*math.Tanh(gate(2))
		next[j], next[h+j] = sigmoid(gate(3))*math.Tanh(c), c
	}
	return next
}

func (r *reference) gru(a, u, state []float64) []float64 {
	h := len(state) / 2
	next := make([]float64, 2*h)
	for j := range h {
		reset, z := sigmoid(a[j]+u[j]), sigmoid(a[h+j]+u[h+j])
		next[j] = (1-z)*math.Tanh(a[2*h+j]+reset*u[2*h+j]) + z*state[j]
	}
	return next
}

// attend runs an attention decoder over the steps of example i.
func (r *reference) attend(op *compute.AttentionDecoder, i int) {
	h, n := op.H, r.length(op.Lengths, op.Memory, i)
	x, y, memory := r.at(op.X, i), r.at(op.Y, i), r.at(op.Memory, i)
	state, last := slices.Concat(r.at(op.H0, i), r.at(op.C0, i)), make([]float64, h)
	for t := range r.of(op.X) {
		in := slices.Concat(x[t*op.In:(t+1)*op.In], last)
		state = r.lstm(r.affine(op.Input.W, op.Input.B, in, 4*h), r.affine(op.State.W, op.State.B, state[:h], 4*h), state)
		q := r.affine(op.Query, compute.None, state[:h], h)
		context, total := make([]float64, h), 0.0
		for s := range n {
			score := 0.0
			for j, v := range q {
				score += v * memory[s*h+j]
			}
			total += math.Exp(score)
			for j := range context {
				context[j] += math.Exp(score) * memory[s*h+j]
			}
		}
		for j := range context {
			context[j] /= math.Max(total, 1e-300)
		}
		last = r.affine(op.Combine, op.Bias, slices.Concat(context, state[:h]), h)
		for j, v := range last {
			last[j] = math.Tanh(v)
		}
		copy(y[t*h:], last)
	}
}

// paths is the probability of all paths that make the labels of example i: the labels
// that a beginning of a path has made, and the class of its last step, are its state.
func (r *reference) paths(op *compute.CTC, i int) float64 {
	most := r.steps[r.p.Inputs[op.Labels].Axis]
	labels := r.batch.Inputs[op.Labels].I[i*most:][:r.batch.Inputs[op.LabelLengths].I[i]]
	type state struct{ made, last int }
	states := map[state]float64{{0, op.Blank}: 1}
	for t := range r.length(op.Lengths, op.X, i) {
		x, total := r.at(op.X, i)[t*op.Classes:(t+1)*op.Classes], 0.0
		for _, v := range x {
			total += math.Exp(v)
		}
		next := map[state]float64{}
		for s, p := range states {
			for class, v := range x {
				to := state{s.made, class}
				if class != op.Blank && class != s.last {
					if s.made == len(labels) || int(labels[s.made]) != class {
						continue
					}
					to.made++
				}
				next[to] += p * math.Exp(v) / total
			}
		}
		states = next
	}
	p := 0.0
	for s, v := range states {
		if s.made == len(labels) {
			p += v
		}
	}
	return p
}
