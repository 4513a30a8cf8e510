// Package rnn holds the cells of recurrent nets, LSTM and GRU: one time step of a tile of sequences,
// everything behind the matrix products in one pass over memory, forward and backward.
//
// The caller multiplies; a cell takes the sums of products and biases before the nonlinearities. Here ⊙ is
// the product of elements and σ the sigmoid.
//
// LSTM (Hochreiter and Schmidhuber, 1997, with forget gates), gates in MXNet's order i, f, g, o:
//
//	a = W·x + R·h' + b    i, f, o = σ(a₀), σ(a₁), σ(a₃)    g = tanh(a₂)
//	c = f⊙c' + i⊙g        h = o⊙tanh(c)
//
// GRU (Cho et al., 2014) in the variant of cuDNN and MXNet, which resets behind the product, gates in the
// order r, z, n:
//
//	a = W·x + b    u = R·h' + b'
//	r, z = σ(a₀+u₀), σ(a₁+u₁)    n = tanh(a₂ + r⊙u₂)    h = (1-z)⊙n + z⊙h'
//
// The caller adds up the first two of a and u; only the third of u comes by itself.
//
// # Sequences of different lengths
//
// A row whose sequence has ended keeps its state: c = c' and h = h'. Its gradients pass through
// unchanged and those of its gates are zero, so that products and sums over whole tiles stay right. Run
// backwards in time, a row keeps its first state until its sequence begins.
//
// Rows are independent: a caller splits a tile among cores by rows. Every level of the processor gives the
// same bits.
package rnn

import (
	"fmt"

	"optimus/compute/cpu/vec"
)

//go:generate go run -C ../gen ./rnn -out ../rnn/rnn_amd64.s -stubs ../rnn/rnn_amd64.go -pkg rnn

// Tile says which rows of a time step are at work: row b is while T < Lengths[b]; all are if Lengths is
// nil. There are B rows of H cells.
type Tile struct {
	B, H    int
	Lengths []int32
	T       int
}

func (t Tile) works(b int) bool { return t.Lengths == nil || t.T < int(t.Lengths[b]) }

// rows is how many rows there is something to do in.
func (t Tile) rows() int {
	if t.H == 0 {
		return 0
	}
	return t.B
}

// row is row b of an array with width·H elements in each.
func (t Tile) row(x []float32, b, width int) []float32 {
	n := t.H * width
	return x[b*n : (b+1)*n : (b+1)*n]
}

// An array is an argument to be checked: its name and how many times H elements a row has.
type array struct {
	name  string
	data  []float32
	width int
}

// check panics unless all arrays have B rows.
func (t Tile) check(op string, arrays ...array) {
	if t.B < 0 || t.H < 0 || t.Lengths != nil && len(t.Lengths) != t.B {
		panic(fmt.Sprintf("rnn: %s: %d rows of %d cells with %d lengths; give a length for each row or none", op, t.B, t.H, len(t.Lengths)))
	}
	for _, a := range arrays {
		if len(a.data) != t.B*t.H*a.width {
			panic(fmt.Sprintf("rnn: %s: %s has %d elements; %d rows of %d·%d make %d", op, a.name, len(a.data), t.B, a.width, t.H, t.B*t.H*a.width))
		}
	}
}

// LSTM is a time step of LSTM cells; all but the gates are [B,H].
type LSTM struct {
	Gates        []float32 // [B,4H]: in a, out i, f, g, o
	CPrev, HPrev []float32 // c', h'
	C, H         []float32 // out; c may be c' and h be h' where these are not needed for a gradient
}

// Forward computes a step.
func (s LSTM) Forward(t Tile) { s.forwardAt(vec.Level(), t) }

// LSTMGrad is a time step of the backward pass; all but the gates are [B,H].
type LSTMGrad struct {
	DGates []float32 // [B,4H]: out, the gradient of a; may be the Gates
	DC     []float32 // in the gradient of c from later steps, out that of c'
	DH     []float32 // the gradient of h
	// DHPrev becomes the part of the gradient of h' that does not pass through the gates: zero, or DH in rows
	// that have ended. The caller adds Rᵀ·DGates. It may be DH.
	DHPrev []float32
}

// Backward computes the gradients of a step from what Forward has left.
func (s LSTM) Backward(t Tile, d LSTMGrad) { s.backwardAt(vec.Level(), t, d) }

// GRU is a time step of GRU cells.
type GRU struct {
	X     []float32 // [B,3H]: in a₀+u₀, a₁+u₁, a₂, out r, z, n
	U     []float32 // [B,H]: u₂, which Backward needs again
	HPrev []float32 // [B,H]: h'
	H     []float32 // [B,H]: out; may be h' where that is not needed for a gradient
}

// Forward computes a step.
func (s GRU) Forward(t Tile) { s.forwardAt(vec.Level(), t) }

// GRUGrad is a time step of the backward pass.
type GRUGrad struct {
	DX, DU []float32 // [B,3H], [B,H]: out, the gradients of X and U, in whose place they may be
	DH     []float32 // [B,H]: the gradient of h
	// DHPrev [B,H] becomes the part of the gradient of h' that does not pass through u: z⊙DH, or DH in rows
	// that have ended. The caller adds Rᵀ times the gradients of u. It may be DH.
	DHPrev []float32
}

// Backward computes the gradients of a step from what Forward has left.
func (s GRU) Backward(t Tile, d GRUGrad) { s.backwardAt(vec.Level(), t, d) }
