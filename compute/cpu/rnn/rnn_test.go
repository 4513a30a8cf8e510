package rnn

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"optimus/compute/cpu/internal/fence"
	"optimus/internal/level"
	"optimus/internal/rng"
)

func each(t *testing.T, f func(t *testing.T, name string)) {
	for _, name := range level.Present() {
		t.Run(name, func(t *testing.T) { f(t, name) })
	}
}

func normal(seed uint64, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(rng.NewKey(seed).Normal(uint64(i)))
	}
	return x
}

func sigmoid(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

// lstm64 and gru64 are one cell in float64 by the equations of the package.
func lstm64(a [4]float64, prev float64) (c, h float64) {
	c = sigmoid(a[1])*prev + sigmoid(a[0])*math.Tanh(a[2])
	return c, sigmoid(a[3]) * math.Tanh(c)
}

func gru64(x [3]float64, u, prev float64) float64 {
	r, z := sigmoid(x[0]), sigmoid(x[1])
	return (1-z)*math.Tanh(x[2]+r*u) + z*prev
}

// difference is the derivative of f by central differences.
func difference(f func(d float64) float64) float64 {
	const h = 1e-5
	return (f(h) - f(-h)) / (2 * h)
}

func near(t *testing.T, what string, got float32, want float64) {
	t.Helper()
	if !(math.Abs(float64(got)-want) <= 1e-6*(1+math.Abs(want))) {
		t.Fatalf("%s is %v, want %v", what, got, want)
	}
}

// TestLSTM compares values and derivatives of Σ h·dh + c·dc with the equations in float64.
func TestLSTM(t *testing.T) {
	const rows, cells = 3, 21
	each(t, func(t *testing.T, name string) {
		tile := Tile{B: rows, H: cells}
		n := rows * cells
		a, prev, dh, dc := normal(1, 4*n), normal(2, n), normal(3, n), normal(4, n)
		s := LSTM{Gates: slices.Clone(a), CPrev: prev, HPrev: make([]float32, n), C: make([]float32, n), H: make([]float32, n)}
		d := LSTMGrad{DGates: make([]float32, 4*n), DC: slices.Clone(dc), DH: dh, DHPrev: normal(5, n)}
		s.forwardAt(name, tile)
		s.backwardAt(name, tile, d)
		for b := range rows {
			for j := range cells {
				i := b*cells + j
				at := func(g int) int { return (b*4+g)*cells + j }
				in := [4]float64{float64(a[at(0)]), float64(a[at(1)]), float64(a[at(2)]), float64(a[at(3)])}
				c, h := lstm64(in, float64(prev[i]))
				near(t, "c", s.C[i], c)
				near(t, "h", s.H[i], h)
				loss := func(in [4]float64, prev float64) float64 {
					c, h := lstm64(in, prev)
					return c*float64(dc[i]) + h*float64(dh[i])
				}
				for g := range in {
					near(t, fmt.Sprintf("the gradient of gate %d", g), d.DGates[at(g)], difference(func(d float64) float64 {
						moved := in
						moved[g] += d
						return loss(moved, float64(prev[i]))
					}))
				}
				near(t, "the gradient of c'", d.DC[i], difference(func(d float64) float64 { return loss(in, float64(prev[i])+d) }))
				near(t, "what passes to h'", d.DHPrev[i], 0)
			}
		}
	})
}

func TestGRU(t *testing.T) {
	const rows, cells = 3, 21
	each(t, func(t *testing.T, name string) {
		tile := Tile{B: rows, H: cells}
		n := rows * cells
		x, u, prev, dh := normal(1, 3*n), normal(2, n), normal(3, n), normal(4, n)
		s := GRU{X: slices.Clone(x), U: slices.Clone(u), HPrev: prev, H: make([]float32, n)}
		d := GRUGrad{DX: make([]float32, 3*n), DU: make([]float32, n), DH: dh, DHPrev: make([]float32, n)}
		s.forwardAt(name, tile)
		s.backwardAt(name, tile, d)
		for b := range rows {
			for j := range cells {
				i := b*cells + j
				at := func(g int) int { return (b*3+g)*cells + j }
				xs := [3]float64{float64(x[at(0)]), float64(x[at(1)]), float64(x[at(2)])}
				near(t, "h", s.H[i], gru64(xs, float64(u[i]), float64(prev[i])))
				grad := func(f func(d float64) float64) float64 {
					return difference(func(d float64) float64 { return f(d) * float64(dh[i]) })
				}
				for g := range xs {
					near(t, fmt.Sprintf("the gradient of x %d", g), d.DX[at(g)], grad(func(d float64) float64 {
						moved := xs
						moved[g] += d
						return gru64(moved, float64(u[i]), float64(prev[i]))
					}))
				}
				near(t, "the gradient of u", d.DU[i], grad(func(d float64) float64 { return gru64(xs, float64(u[i])+d, float64(prev[i])) }))
				near(t, "what passes to h'", d.DHPrev[i], sigmoid(xs[1])*float64(dh[i]))
			}
		}
	})
}

// TestLevels draws tiles whose arrays lie against pages that must not be touched, with gradients in the
// places that the documentation allows, and asks for the bits of the Go loops.
func TestLevels(t *testing.T) {
	each(t, func(t *testing.T, name string) {
		f := fence.New(t, 10)
		rapid.Check(t, func(r *rapid.T) {
			tile := Tile{B: rapid.IntRange(0, 4).Draw(r, "rows"), H: rapid.IntRange(0, 50).Draw(r, "cells"), T: 3}
			if rapid.Bool().Draw(r, "lengths") {
				tile.Lengths = rapid.SliceOfN(rapid.Int32Range(2, 5), tile.B, tile.B).Draw(r, "of rows")
			}
			scale := rapid.SampledFrom([]float32{1, 30, 1e30}).Draw(r, "scale")
			front, inPlace := rapid.Bool().Draw(r, "front"), rapid.Bool().Draw(r, "in place")
			run := func(name string, fences bool) [][]float32 {
				var arrays [][]float32
				array := func(width int) []float32 {
					x := normal(uint64(len(arrays)), tile.B*tile.H*width)
					for i := range x {
						x[i] *= scale
					}
					if fences {
						x = f.Put(len(arrays), x, front)
					}
					arrays = append(arrays, x)
					return x
				}
				lstm := LSTM{Gates: array(4), CPrev: array(1), HPrev: array(1), C: array(1), H: array(1)}
				d := LSTMGrad{DGates: array(4), DC: array(1), DH: array(1), DHPrev: array(1)}
				if inPlace {
					d.DGates, d.DHPrev = lstm.Gates, d.DH
				}
				lstm.forwardAt(name, tile)
				lstm.backwardAt(name, tile, d)
				out := [][]float32{}
				for _, x := range arrays {
					out = append(out, slices.Clone(x))
				}
				arrays = nil
				gru := GRU{X: array(3), U: array(1), HPrev: array(1), H: array(1)}
				g := GRUGrad{DX: array(3), DU: array(1), DH: array(1), DHPrev: array(1)}
				if inPlace {
					g.DX, g.DU, g.DHPrev = gru.X, gru.U, g.DH
				}
				gru.forwardAt(name, tile)
				gru.backwardAt(name, tile, g)
				return append(out, arrays...)
			}
			want, got := run(level.Plain, false), run(name, true)
			for i := range want {
				for j := range want[i] {
					if w, g := want[i][j], got[i][j]; math.Float32bits(w) != math.Float32bits(g) && (w == w || g == g) {
						r.Fatalf("%+v: element %d of array %d is %v, the Go loop has %v", tile, j, i, g, w)
					}
				}
			}
		})
	})
}

// TestLengths runs sequences of different lengths in one tile and each alone, forward and backward, and expects the
// same bits of states and gradients.
func TestLengths(t *testing.T) {
	const cells, steps = 20, 4
	lengths := []int32{2, 4, 0, 1}
	type history struct{ H, C, DGates, DX, DU, First [][]float32 }
	run := func(name string, rows []int, lengths []int32, steps int) (out history) {
		tile := Tile{B: len(rows), H: cells, Lengths: lengths}
		draw := func(kind, t, width int) (x []float32) {
			for _, r := range rows {
				x = append(x, normal(uint64(1000*kind+10*t+r), cells*width)...)
			}
			return x
		}
		n := len(rows) * cells
		empty := func(width int) []float32 { return make([]float32, n*width) }
		c, h, v := draw(0, 0, 1), draw(1, 0, 1), draw(2, 0, 1)
		var ls []LSTM
		var gs []GRU
		for tile.T = range steps {
			l := LSTM{Gates: draw(3, tile.T, 4), CPrev: c, HPrev: h, C: empty(1), H: empty(1)}
			g := GRU{X: draw(4, tile.T, 3), U: draw(5, tile.T, 1), HPrev: v, H: empty(1)}
			l.forwardAt(name, tile)
			g.forwardAt(name, tile)
			ls, gs, c, h, v = append(ls, l), append(gs, g), l.C, l.H, g.H
		}
		out.H, out.C = [][]float32{h, v}, [][]float32{c}
		dc, dh, dv := draw(6, 0, 1), draw(7, 0, 1), draw(8, 0, 1)
		for tile.T = steps - 1; tile.T >= 0; tile.T-- {
			ld := LSTMGrad{DGates: normal(9, 4*n), DC: dc, DH: dh, DHPrev: dh}
			gd := GRUGrad{DX: normal(9, 3*n), DU: normal(9, n), DH: dv, DHPrev: dv}
			ls[tile.T].backwardAt(name, tile, ld)
			gs[tile.T].backwardAt(name, tile, gd)
			out.DGates, out.DX, out.DU = append(out.DGates, ld.DGates), append(out.DX, gd.DX), append(out.DU, gd.DU)
		}
		out.First = [][]float32{dc, dh, dv}
		return out
	}
	each(t, func(t *testing.T, name string) {
		all := run(name, []int{0, 1, 2, 3}, lengths, steps)
		for b, length := range lengths {
			alone := run(name, []int{b}, nil, int(length))
			part := func(x [][]float32, skip int) (out [][]float32) {
				for i, a := range x {
					a = a[b*len(a)/4 : (b+1)*len(a)/4]
					if i >= skip {
						out = append(out, a)
					} else if slices.ContainsFunc(a, func(v float32) bool { return v != 0 }) {
						t.Errorf("row %d has gradients behind its end", b)
					}
				}
				return out
			}
			behind := steps - int(length)
			got := history{part(all.H, 0), part(all.C, 0), part(all.DGates, behind), part(all.DX, behind), part(all.DU, behind), part(all.First, 0)}
			if diff := cmp.Diff(alone, got); diff != "" {
				t.Errorf("row %d of length %d differs in the tile (-alone +tile):\n%s", b, length, diff)
			}
		}
	})
}

func TestMisuseAndAllocations(t *testing.T) {
	x := func(n int) []float32 { return make([]float32, n) }
	tile := Tile{B: 2, H: 5, Lengths: []int32{1, 0}}
	l := LSTM{x(40), x(10), x(10), x(10), x(10)}
	g := GRU{x(30), x(10), x(10), x(10)}
	ld, gd := LSTMGrad{x(40), x(10), x(10), x(10)}, GRUGrad{x(30), x(10), x(10), x(10)}
	if n := testing.AllocsPerRun(10, func() {
		l.Forward(tile)
		l.Backward(tile, ld)
		g.Forward(tile)
		g.Backward(tile, gd)
	}); n != 0 {
		t.Errorf("a step makes %v allocations", n)
	}
	for want, f := range map[string]func(){
		"LSTM.Forward: HPrev has 9": func() { l.HPrev = x(9); l.Forward(tile) },
		"LSTM.Backward: DC has 0":   func() { ld.DC = nil; l.Backward(tile, ld) },
		"GRU.Forward: X has 40":     func() { g.X = x(40); g.Forward(tile) },
		"GRU.Backward: U has 3 e":   func() { g.X, g.U = x(30), x(3); g.Backward(tile, gd) },
		"a length for each row":     func() { tile.Lengths = tile.Lengths[:1]; g.Forward(tile) },
	} {
		func() {
			defer func() {
				if got := fmt.Sprint(recover()); !strings.Contains(got, want) {
					t.Errorf("panic %q, want one with %q", got, want)
				}
			}()
			saved := tile
			defer func() { tile = saved }()
			f()
		}()
	}
}
