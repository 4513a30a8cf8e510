package rnn

import (
	"testing"

	"optimus/compute/cpu/internal/turns"
)

// BenchmarkCells compares the levels; an element is one cell of one sequence.
func BenchmarkCells(b *testing.B) {
	tile := Tile{B: 32, H: 200}
	n := tile.B * tile.H
	x := func(width int) []float32 { return normal(1, n*width) }
	l := LSTM{x(4), x(1), x(1), x(1), x(1)}
	g := GRU{x(3), x(1), x(1), x(1)}
	ld, gd := LSTMGrad{x(4), x(1), x(1), x(1)}, GRUGrad{x(3), x(1), x(1), x(1)}
	for _, o := range []struct {
		op  string
		run func(name string)
	}{
		{"lstm", func(name string) { l.forwardAt(name, tile) }},
		{"lstmgrad", func(name string) { copy(ld.DC, l.C); l.backwardAt(name, tile, ld) }},
		{"gru", func(name string) { g.forwardAt(name, tile) }},
		{"grugrad", func(name string) { g.backwardAt(name, tile, gd) }},
	} {
		b.Run(o.op, func(b *testing.B) { turns.Levels(b, n, o.run) })
	}
}
