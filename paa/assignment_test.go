package paa

import (
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestValidate(t *testing.T) {
	good := func() Assignment {
		return Assignment{2, []Piece{{0, 0, 3, 1}, {0, 3, 2, 0}, {2, 0, 4, 1}}}
	}
	sizes := []int{5, 0, 4}
	tests := []struct {
		name   string
		change func(a *Assignment)
		want   string // part of the error, empty for none
	}{
		{"valid", func(a *Assignment) {}, ""},
		{"no server", func(a *Assignment) { a.Servers = 0 }, "0 servers"},
		{"server too high", func(a *Assignment) { a.Pieces[1].Server = 2 }, "piece 1 of block 0 is on server 2"},
		{"server negative", func(a *Assignment) { a.Pieces[1].Server = -1 }, "on server -1"},
		{"block too high", func(a *Assignment) { a.Pieces[2].Block = 3 }, "there are 3 blocks"},
		{"block negative", func(a *Assignment) { a.Pieces[0].Block = -1 }, "is of block -1"},
		{"empty piece", func(a *Assignment) { a.Pieces[0].Size = 0 }, "has size 0"},
		{"hole at the start", func(a *Assignment) { a.Pieces[0] = Piece{0, 1, 2, 1} }, "elements 0..0 of block 0 are on no server"},
		{"hole inside", func(a *Assignment) { a.Pieces[0].Size = 2 }, "elements 2..2 of block 0 are on no server"},
		{"hole at the end", func(a *Assignment) { a.Pieces[1].Size = 1 }, "elements 4..4 of block 0 are on no server"},
		{"hole at the very end", func(a *Assignment) { a.Pieces[2].Size = 1 }, "elements 1..3 of block 2 are on no server"},
		{"block missing", func(a *Assignment) { a.Pieces = a.Pieces[2:] }, "elements 0..4 of block 0 are on no server"},
		{"last block missing", func(a *Assignment) { a.Pieces = a.Pieces[:2] }, "elements 0..3 of block 2 are on no server"},
		{"overlap", func(a *Assignment) { a.Pieces[0].Size = 4 }, "element 3 of block 0 is in two pieces"},
		{"beyond the block", func(a *Assignment) { a.Pieces[1].Size = 3 }, "of block 0, which has 5"},
		{"overflowing", func(a *Assignment) { a.Pieces[1].Size = math.MaxInt }, "of block 0, which has 5"},
		{"negative offset", func(a *Assignment) { a.Pieces[0].Offset = -1 }, "from -1 on of block 0"},
		{"of an empty block", func(a *Assignment) { a.Pieces = slices.Insert(a.Pieces, 2, Piece{1, 0, 1, 0}) }, "of block 1, which has 0"},
		{"blocks not sorted", func(a *Assignment) { slices.Reverse(a.Pieces) }, "elements 0..4 of block 0 are on no server"},
		{"offsets not sorted", func(a *Assignment) { a.Pieces[0], a.Pieces[1] = a.Pieces[1], a.Pieces[0] }, "elements 0..2 of block 0"},
		{"block again", func(a *Assignment) { a.Pieces = append(a.Pieces, a.Pieces[0]) }, "comes after block 2"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a := good()
			tt.change(&a)
			err := a.Validate(sizes)
			switch {
			case tt.want == "" && err != nil:
				t.Errorf("got %v, want none", err)
			case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("got %v, want an error with %q", err, tt.want)
			case err != nil && !errors.Is(err, ErrAssignment) && !errors.Is(err, ErrServers):
				t.Errorf("%v wraps none of the errors of this package", err)
			}
		})
	}
	if err := good().Validate([]int{5, -1, 4}); !errors.Is(err, ErrSizes) {
		t.Errorf("negative size: got %v, want ErrSizes", err)
	}
}

// TestValidateCounts compares Validate with counting how often each element is covered.
func TestValidateCounts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sizes := rapid.SliceOfN(rapid.IntRange(0, 3), 0, 3).Draw(t, "sizes")
		piece := rapid.Custom(func(t *rapid.T) Piece {
			return Piece{rapid.IntRange(-1, 3).Draw(t, "block"), rapid.IntRange(-1, 4).Draw(t, "offset"),
				rapid.IntRange(-1, 4).Draw(t, "size"), rapid.IntRange(-1, 2).Draw(t, "server")}
		})
		a := Assignment{2, rapid.SliceOfN(piece, 0, 4).Draw(t, "pieces")}
		if rapid.Bool().Draw(t, "sort") {
			slices.SortFunc(a.Pieces, comparePieces)
		}
		if got, want := a.Validate(sizes) == nil, covers(a, sizes); got != want {
			t.Fatalf("Validate says %v (%v), counting says %v", got, a.Validate(sizes), want)
		}
	})
}

func covers(a Assignment, sizes []int) bool {
	count := map[[2]int]int{}
	for _, p := range a.Pieces {
		if p.Size < 1 || p.Server < 0 || p.Server >= a.Servers {
			return false
		}
		for i := range p.Size {
			count[[2]int{p.Block, p.Offset + i}]++
		}
	}
	total := 0
	for b, n := range sizes {
		total += n
		for i := range n {
			if count[[2]int{b, i}] != 1 {
				return false
			}
		}
	}
	return len(count) == total && slices.IsSortedFunc(a.Pieces, comparePieces)
}

func TestStats(t *testing.T) {
	tests := []struct {
		name string
		a    Assignment
		want Stats
	}{
		{"two servers", Assignment{2, []Piece{{0, 0, 3, 1}, {0, 3, 2, 0}, {2, 0, 4, 1}}},
			Stats{[]ServerStats{{2, 1}, {7, 2}}, 5, 3, 1, 14.0 / 9}},
		{"no elements", Assignment{2, nil}, Stats{make([]ServerStats, 2), 0, 0, 0, 1}},
		{"no servers", Assignment{}, Stats{[]ServerStats{}, 0, 0, 0, 1}},
		{"invalid server", Assignment{1, []Piece{{0, 0, 3, 1}, {0, 3, 2, -1}}}, Stats{make([]ServerStats, 1), 0, 0, 0, 1}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := gocmp.Diff(tt.want, tt.a.Stats()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestJSON(t *testing.T) {
	a := Assignment{1, []Piece{{Block: 0, Offset: 0, Size: 5, Server: 0}}}
	tests := []struct {
		name string
		v    any
		want string
	}{
		{"assignment", a, `{"servers":1,"pieces":[{"block":0,"offset":0,"size":5,"server":0}]}`},
		{"stats", a.Stats(), `{"servers":[{"parameters":5,"pieces":1}],"size_gap":0,"requests":1,"request_gap":0,"max_over_mean":1}`},
		{"move", Move{1, 2, 3, 4, 5}, `{"block":1,"offset":2,"size":3,"from":4,"to":5}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := json.Marshal(tt.v)
			if err != nil || string(got) != tt.want {
				t.Errorf("got %s, %v; want %s", got, err, tt.want)
			}
		})
	}
}
