package rnn

import "optimus/compute/cpu/vec"

// kernels are the functions of a level, each for one row of cells. The arrays of gates, and of a GRU x, have
// four and three times as many elements as the others.
type kernels struct {
	lstm     func(gates, prev, c, h []float32)
	lstmGrad func(dgates, gates, prev, c, dc, dh []float32)
	gru      func(x, u, prev, h []float32)
	gruGrad  func(dx, du, x, u, prev, dprev, dh []float32)
}

var plain = kernels{lstmGo, lstmGradGo, gruGo, gruGradGo}

// split returns part p of an array of several times n elements.
func split(x []float32, n, p int) []float32 { return x[p*n : (p+1)*n] }

// gate and bell are the derivatives of a sigmoid and of a tanh with the value v.
func gate(v float32) float32 { return v * (1 - v) }
func bell(v float32) float32 { return 1 - float32(v*v) }

func lstmGo(gates, prev, c, h []float32) {
	n := len(c)
	in, forget, update, out := split(gates, n, 0), split(gates, n, 1), split(gates, n, 2), split(gates, n, 3)
	for j, was := range prev {
		i, f, g, o := vec.Sigmoid32(in[j]), vec.Sigmoid32(forget[j]), vec.Tanh32(update[j]), vec.Sigmoid32(out[j])
		in[j], forget[j], update[j], out[j] = i, f, g, o
		c[j] = float32(f*was) + float32(i*g)
		h[j] = o * vec.Tanh32(c[j])
	}
}

func lstmGradGo(dgates, gates, prev, c, dc, dh []float32) {
	n := len(dc)
	for j, above := range dh {
		i, f, g, o, t := gates[j], gates[n+j], gates[2*n+j], gates[3*n+j], vec.Tanh32(c[j])
		cell := dc[j] + float32(float32(above*o)*bell(t))
		dgates[j] = float32(cell*g) * gate(i)
		dgates[n+j] = float32(cell*prev[j]) * gate(f)
		dgates[2*n+j] = float32(cell*i) * bell(g)
		dgates[3*n+j] = float32(above*t) * gate(o)
		dc[j] = cell * f
	}
}

func gruGo(x, u, prev, h []float32) {
	n := len(h)
	for j, was := range prev {
		r, z := vec.Sigmoid32(x[j]), vec.Sigmoid32(x[n+j])
		fresh := vec.Tanh32(x[2*n+j] + float32(r*u[j]))
		x[j], x[n+j], x[2*n+j] = r, z, fresh
		h[j] = float32((1-z)*fresh) + float32(z*was)
	}
}

func gruGradGo(dx, du, x, u, prev, dprev, dh []float32) {
	n := len(dh)
	for j, above := range dh {
		r, z, fresh := x[j], x[n+j], x[2*n+j]
		update := float32(above*(prev[j]-fresh)) * gate(z)
		inner := float32(above*(1-z)) * bell(fresh)
		dx[j], dx[n+j], dx[2*n+j] = float32(inner*u[j])*gate(r), update, inner
		du[j] = inner * r
		dprev[j] = above * z
	}
}
