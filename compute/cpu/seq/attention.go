package seq

import (
	"fmt"

	"optimus/compute/cpu/vec"
)

// MaskedSoftmax writes the softmax of the first n elements of x to y and zeros behind them. y may be x; of
// no elements all are zero.
func MaskedSoftmax(y, x []float32, n int) {
	sized("MaskedSoftmax", "y", y, len(x))
	masked("MaskedSoftmax", n, len(x))
	vec.Softmax(y[:n], x[:n])
	clear(y[n:])
}

// MaskedSoftmaxGrad writes dx = y⊙(dy - Σ y·dy) for y = MaskedSoftmax(x): zero behind the first n. dx may be dy.
func MaskedSoftmaxGrad(dx, dy, y []float32, n int) {
	sized("MaskedSoftmaxGrad", "dx", dx, len(y))
	sized("MaskedSoftmaxGrad", "dy", dy, len(y))
	masked("MaskedSoftmaxGrad", n, len(y))
	mean := float32(vec.Dot(y[:n], dy[:n]))
	for i, p := range y[:n] {
		dx[i] = p * (dy[i] - mean)
	}
	clear(dx[n:])
}

// Attend is dot attention (Luong et al., 2015) of one query q over the first n of S source positions with
// the states memory [S,H]:
//
//	weights = softmax(memory·q)   context = Σ weights[i]·memory[i]
//
// The weights [S] are kept for the gradient; behind the first n they are zero.
func Attend(context, weights, q, memory []float32, n int) {
	h := len(q)
	sized("Attend", "context", context, h)
	sized("Attend", "memory", memory, len(weights)*h)
	masked("Attend", n, len(weights))
	for i := range n {
		weights[i] = float32(vec.Dot(memory[i*h:(i+1)*h], q))
	}
	MaskedSoftmax(weights, weights, n)
	clear(context)
	for i, w := range weights[:n] {
		vec.AXPY(context, w, memory[i*h:(i+1)*h])
	}
}

// AttendGrad adds the gradients of q and of memory for that of the context. scratch has S elements.
func AttendGrad(dq, dmemory, dcontext, weights, q, memory, scratch []float32, n int) {
	h := len(q)
	sized("AttendGrad", "dq", dq, h)
	sized("AttendGrad", "dcontext", dcontext, h)
	sized("AttendGrad", "memory", memory, len(weights)*h)
	sized("AttendGrad", "dmemory", dmemory, len(memory))
	sized("AttendGrad", "scratch", scratch, len(weights))
	masked("AttendGrad", n, len(weights))
	for i := range n {
		scratch[i] = float32(vec.Dot(memory[i*h:(i+1)*h], dcontext))
	}
	MaskedSoftmaxGrad(scratch, scratch, weights, n)
	for i, score := range scratch[:n] {
		state, dstate := memory[i*h:(i+1)*h], dmemory[i*h:(i+1)*h]
		vec.AXPY(dq, score, state)
		vec.AXPY(dstate, score, q)
		vec.AXPY(dstate, weights[i], dcontext)
	}
}

func sized(op, name string, x []float32, want int) {
	if len(x) != want {
		panic(fmt.Sprintf("seq: %s: %s has %d elements; it takes %d", op, name, len(x), want))
	}
}

func masked(op string, n, positions int) {
	if n < 0 || n > positions {
		panic(fmt.Sprintf("seq: %s: %d of %d positions; give from 0 to all", op, n, positions))
	}
}
