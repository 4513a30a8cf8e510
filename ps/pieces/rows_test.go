package pieces

import (
	"testing"

	"pgregory.net/rapid"

	"optimus/compute/optim"
)

// TestRowSpan: the pieces of a block divide each of its rows completely.
func TestRowSpan(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows, size := rapid.IntRange(1, 6).Draw(t, "rows"), rapid.IntRange(1, 5).Draw(t, "size")
		at := rapid.IntRange(0, rows*size).Draw(t, "cut")
		end := rapid.IntRange(at, rows*size).Draw(t, "end")
		id := ID{0, at, end - at}
		for row := range rows {
			lo, hi := RowSpan(size, id, row)
			if lo < 0 || hi < lo || hi > id.Size {
				t.Fatalf("row %d: [%d,%d) of %v", row, lo, hi, id)
			}
			for i := range size {
				global := row*size + i
				inside := global >= at && global < end
				if listed := global-at >= lo && global-at < hi; listed != inside {
					t.Fatalf("element %d of row %d in %v: listed %v, inside %v", i, row, id, listed, inside)
				}
			}
		}
	})
}

// TestWideTables: rows whose elements lie past 2³¹ are addressed without
// overflow (a piece near the end of a table too large for this machine).
func TestWideTables(t *testing.T) {
	const rows, size = 300000, 8192
	cfg := Config{Params: []optim.Param{{Name: "table", Shape: []int{rows, size}, Rows: true}}, Optimizer: optim.Config{Kind: optim.SGD, LR: 1}}
	for _, first := range []int{262143, 262144, 299998} {
		s, err := New(cfg)
		check(t, err)
		id := ID{0, first*size - 5, 2*size + 5}
		install(t, s, Generation{Number: 1, Workers: workers(1), Pieces: []ID{id}})
		check(t, s.Init(1, 0, 0))
		check(t, s.Commit(1))
		push(t, s, Push{Generation: 1, Step: 1, From: Worker{0, 1}, Piece: id, Rows: []int32{int32(first + 1)}, Values: ones(size), Weight: 1}, Accepted)
		a := pullNow(t, s, Request{Generation: 1, Step: 1, Piece: id, Rows: []int32{int32(first), int32(first + 1)}})
		if len(a.Values) != 2*size || a.Values[size-1] != 0 || a.Values[size] != -1 || a.Values[2*size-1] != -1 {
			t.Fatalf("row %d: %d values", first, len(a.Values))
		}
		if k := s.Counters(); k.BytesIn != 4*size || k.BytesOut != 8*size {
			t.Fatalf("%+v: traffic must follow the touched rows", k)
		}
	}
}

// TestRowsAreLazy: a row that nobody pushes keeps its value and its momentum.
func TestRowsAreLazy(t *testing.T) {
	cfg := Config{Params: []optim.Param{{Name: "table", Shape: []int{3, 1}, Rows: true}},
		Optimizer: optim.Config{Kind: optim.SGD, LR: 1, Momentum: 0.5}}
	s := open(t, cfg, 1)
	for step, rows := range [][]int32{{0, 1}, {1}, {0}} {
		push(t, s, Push{Generation: 1, Step: int64(step) + 1, From: Worker{0, 1}, Piece: ID{0, 0, 3}, Rows: rows, Values: ones(len(rows)), Weight: 1}, Accepted)
	}
	part, err := s.Extract(ID{0, 0, 3}, 3)
	check(t, err)
	for row, want := range [][2]float32{{-2.5, 1.5}, {-2.5, 1.5}, {0, 0}} {
		if part.Params[row] != want[0] || part.Slots[0][row] != want[1] {
			t.Fatalf("row %d is %v with momentum %v, want %v", row, part.Params[row], part.Slots[0][row], want)
		}
	}
	if part.Updates != 3 {
		t.Fatalf("%d updates", part.Updates)
	}
}
