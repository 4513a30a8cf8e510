package paa

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// drawSizes draws block lists with empty, tiny, equal and huge blocks.
func drawSizes(t *rapid.T) []int {
	size := rapid.OneOf(rapid.IntRange(0, 3), rapid.SampledFrom([]int{64, 256, 2304}), rapid.IntRange(0, 5000), rapid.IntRange(900_000, 3_000_000))
	return rapid.SliceOfN(size, 0, 40).Draw(t, "sizes")
}

func TestAssignProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sizes := drawSizes(t)
		p := rapid.IntRange(1, 24).Draw(t, "p")
		rule := rapid.SampledFrom(Rules()).Draw(t, "rule")
		given := slices.Clone(sizes)
		a, err := Assign(rule, sizes, p)
		if err != nil {
			t.Fatal(err)
		}
		if err := a.Validate(sizes); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(given, sizes) {
			t.Fatal("Assign changed its argument")
		}
		seen := map[[2]int]bool{}
		for _, piece := range a.Pieces {
			if k := [2]int{piece.Block, piece.Server}; seen[k] {
				t.Fatalf("server %d has two pieces of block %d", piece.Server, piece.Block)
			} else {
				seen[k] = true
			}
		}
		if again, _ := Assign(rule, sizes, p); gocmp.Diff(a, again) != "" {
			t.Fatal("Assign is not deterministic")
		}
		if rule == RulePAA {
			checkPAA(t, a, sizes, p)
		}
	})
}

// checkPAA checks what RulePAA promises for every input: only blocks above the average are cut, and these alone fill no
// server by more than one element above it.
func checkPAA(t *rapid.T, a Assignment, sizes []int, p int) {
	average := Model{Sizes: sizes}.Parameters() / p
	large := make([]int, p)
	for _, piece := range a.Pieces {
		n := sizes[piece.Block]
		if n <= average && piece.Size != n {
			t.Fatalf("block %d of %d elements is cut, the average is %d", piece.Block, n, average)
		}
		if n > average {
			large[piece.Server] += piece.Size
		}
	}
	if n := slices.Max(large); n > average+1 {
		t.Fatalf("a server has %d elements of large blocks, the average is %d", n, average)
	}
}

func TestMXNet(t *testing.T) {
	tests := []struct {
		name  string
		sizes []int
		p     int
		want  []Piece
	}{
		{"hash of the index", []int{5, 6, 7}, 4, []Piece{{0, 0, 5, 0}, {1, 0, 6, 1}, {2, 0, 7, 2}}},
		{"hash wraps", []int{5, 6, 7}, 10, []Piece{{0, 0, 5, 0}, {1, 0, 6, 3}, {2, 0, 7, 6}}},
		{"empty block has no piece but an index", []int{0, 6}, 10, []Piece{{1, 0, 6, 3}}},
		{"just under the bound", []int{999_999}, 2, []Piece{{0, 0, 999_999, 0}}},
		{"at the bound", []int{1_000_000}, 2, []Piece{{0, 0, 500_000, 0}, {0, 500_000, 500_000, 1}}},
		{"halves round away from zero", []int{1_000_001}, 2, []Piece{{0, 0, 500_001, 0}, {0, 500_001, 500_000, 1}}},
		{"thirds", []int{1_000_000}, 3, []Piece{{0, 0, 333_333, 0}, {0, 333_333, 333_334, 1}, {0, 666_667, 333_333, 2}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := gocmp.Diff(tt.want, mustAssign(t, RuleMXNet, tt.sizes, tt.p).Pieces); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
	// More servers than elements of a cut block: the empty slices are left out.
	a := mustAssign(t, RuleMXNet, []int{1_000_000}, 1_500_000)
	if n := len(a.Pieces); n < 900_000 || n > 1_000_000 {
		t.Errorf("%d pieces of one element or more, want about one per element", n)
	}
}

func TestAssignErrors(t *testing.T) {
	tests := []struct {
		name  string
		rule  string
		sizes []int
		p     int
		want  error
		part  string
	}{
		{"no servers", RulePAA, []int{1}, 0, ErrServers, "0 servers"},
		{"negative servers", RuleMXNet, []int{1}, -3, ErrServers, "-3 servers"},
		{"unknown rule", "pea", []int{1}, 1, ErrRule, "use one of: mxnet, paa"},
		{"negative size", RulePAA, []int{1, -1}, 1, ErrSizes, "block 1 has size -1"},
		{"too many elements", RulePAA, []int{math.MaxInt, 1}, 1, ErrSizes, "0..1 add up to more than"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Assign(tt.rule, tt.sizes, tt.p)
			if !errors.Is(err, tt.want) || !strings.Contains(err.Error(), tt.part) {
				t.Errorf("got %v, want %v with %q", err, tt.want, tt.part)
			}
		})
	}
}

func TestWhole(t *testing.T) {
	a, err := Whole([]int{4, 0, 5, 6}, 3)
	if err != nil {
		t.Fatal(err)
	}
	want := Assignment{3, []Piece{{0, 0, 4, 0}, {2, 0, 5, 2}, {3, 0, 6, 0}}}
	if diff := gocmp.Diff(want, a); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if err := a.Validate([]int{4, 0, 5, 6}); err != nil {
		t.Error(err)
	}
	if _, err := Whole([]int{1}, 0); !errors.Is(err, ErrServers) {
		t.Errorf("no servers: got %v, want ErrServers", err)
	}
	if _, err := Whole([]int{-1}, 1); !errors.Is(err, ErrSizes) {
		t.Errorf("negative size: got %v, want ErrSizes", err)
	}
}
