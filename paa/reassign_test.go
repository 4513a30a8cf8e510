package paa

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// bound is the fewest elements that must move so that no server holds more than ⌈total/p⌉.
func bound(old Assignment, survivors []int, p int) int {
	stats := old.Stats()
	total := 0
	for _, s := range stats.Servers {
		total += s.Parameters
	}
	n := total
	for _, s := range survivors {
		n -= min(stats.Servers[s].Parameters, (total+p-1)/p)
	}
	return n
}

// drawOld draws an assignment: one that a rule makes, or blocks cut and dealt anyhow.
func drawOld(t *rapid.T, sizes []int) Assignment {
	p := rapid.IntRange(1, 9).Draw(t, "old servers")
	if rule := rapid.SampledFrom(append(Rules(), "random")).Draw(t, "old rule"); rule != "random" {
		a, err := Assign(rule, sizes, p)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	a := Assignment{Servers: p}
	for b, n := range sizes {
		for offset := 0; offset < n; {
			m := rapid.IntRange(1, n-offset).Draw(t, "piece")
			a.Pieces = append(a.Pieces, Piece{b, offset, m, rapid.IntRange(0, p-1).Draw(t, "server")})
			offset += m
		}
	}
	return a
}

// drawServers draws which old servers survive, in which order, and how many servers there are then.
func drawServers(t *rapid.T, servers int) (survivors []int, p int) {
	all := make([]int, servers)
	for i := range all {
		all[i] = i
	}
	survivors = rapid.Permutation(all).Draw(t, "survivors")[:rapid.IntRange(0, servers).Draw(t, "stay")]
	return survivors, max(1, len(survivors)+rapid.IntRange(0, 9).Draw(t, "new"))
}

func TestReassignProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sizes := drawSizes(t)
		old := drawOld(t, sizes)
		survivors, p := drawServers(t, old.Servers)
		given := slices.Clone(old.Pieces)
		next, moves, err := Reassign(old, sizes, survivors, p)
		if err != nil {
			t.Fatal(err)
		}
		checkReassign(t, old, next, moves, sizes, survivors, p)
		if !slices.Equal(given, old.Pieces) {
			t.Fatal("Reassign changed its argument")
		}
		if again, _, _ := Reassign(old, sizes, survivors, p); gocmp.Diff(next, again) != "" {
			t.Fatal("Reassign is not deterministic")
		}
	})
}

// checkReassign checks all that Reassign promises.
func checkReassign(t interface{ Fatalf(string, ...any) }, old, next Assignment, moves []Move, sizes, survivors []int, p int) {
	if err := next.Validate(sizes); err != nil {
		t.Fatalf("%v", err)
	}
	if next.Servers != p {
		t.Fatalf("%d servers, want %d", next.Servers, p)
	}
	if diff := gocmp.Diff(Diff(old, next, survivors), moves); diff != "" {
		t.Fatalf("moves are not what Diff finds:\n%s", diff)
	}
	total, stats := 0, next.Stats()
	for _, n := range sizes {
		total += n
	}
	slack := int(Tolerance * float64(total/p))
	least := bound(old, survivors, p)
	if n := moved(moves); n > least || n < least-slack {
		t.Fatalf("moved %d elements, want %d and at most %d less", n, least, slack)
	}
	capacity, over := (total+p-1)/p, 0
	for s, v := range stats.Servers {
		over += max(0, v.Parameters-capacity)
		if v.Parameters > capacity+slack || v.Parameters <= capacity-slack-p && total > 0 {
			t.Fatalf("server %d has %d elements, want %d ± %d", s, v.Parameters, capacity, slack)
		}
	}
	if over > slack {
		t.Fatalf("%d elements are above the capacity, want at most %d", over, slack)
	}
	checkCuts(t, old, next, survivors, capacity)
}

// checkCuts checks that neighbours on one server are one piece, and that each server that gives is cut once at most,
// and each that takes twice.
func checkCuts(t interface{ Fatalf(string, ...any) }, old, next Assignment, survivors []int, capacity int) {
	for i := 1; i < len(next.Pieces); i++ {
		if a, b := next.Pieces[i-1], next.Pieces[i]; a.Block == b.Block && a.Server == b.Server {
			if a.end() == b.Offset {
				t.Fatalf("pieces %v and %v should be one", a, b)
			}
		}
	}
	cuts := 2 * (next.Servers - len(survivors))
	for _, s := range survivors {
		if n := old.Stats().Servers[s].Parameters; n > capacity {
			cuts++
		} else {
			cuts += 2
		}
	}
	if limit := len(old.Pieces) + cuts; len(next.Pieces) > limit {
		t.Fatalf("%d pieces after %d, want at most %d", len(next.Pieces), len(old.Pieces), limit)
	}
}

// TestDiffElements compares Diff with a look at each element.
func TestDiffElements(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sizes := rapid.SliceOfN(rapid.IntRange(0, 12), 0, 4).Draw(t, "sizes")
		old, next := drawOld(t, sizes), drawOld(t, sizes)
		survivors, _ := drawServers(t, old.Servers)
		from, to, got := servers(old, sizes), servers(next, sizes), map[[2]int][2]int{}
		for _, m := range Diff(old, next, survivors) {
			for i := range m.Size {
				got[[2]int{m.Block, m.Offset + i}] = [2]int{m.From, m.To}
			}
		}
		want := map[[2]int][2]int{}
		for at, f := range from {
			if s := to[at]; s >= len(survivors) || survivors[s] != f {
				want[at] = [2]int{f, s}
			}
		}
		if diff := gocmp.Diff(want, got); diff != "" {
			t.Fatalf("moves of elements (-want +got):\n%s", diff)
		}
	})
}

// servers maps each (block, element) to its server.
func servers(a Assignment, sizes []int) map[[2]int]int {
	m := map[[2]int]int{}
	for _, p := range a.Pieces {
		for i := range p.Size {
			m[[2]int{p.Block, p.Offset + i}] = p.Server
		}
	}
	return m
}

// TestReassignBruteForce compares with all ways to deal a few elements: the elements moved are the fewest that any
// assignment with at most ⌈total/p⌉ per server has, and the pieces at most two more than the best of these.
func TestReassignBruteForce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sizes := rapid.SliceOfN(rapid.IntRange(0, 4), 1, 3).Draw(t, "sizes")
		for total := 0; ; total = 0 {
			for _, n := range sizes {
				total += n
			}
			if total <= 7 {
				break
			}
			sizes = sizes[1:]
		}
		old := drawOld(t, sizes)
		survivors, p := drawServers(t, old.Servers)
		p = min(p, 4)
		survivors = survivors[:min(p, len(survivors))]
		next, moves, err := Reassign(old, sizes, survivors, p)
		if err != nil {
			t.Fatal(err)
		}
		fewest, pieces := bruteForce(old, sizes, survivors, p)
		if n := moved(moves); n != fewest {
			t.Fatalf("moved %d, the fewest is %d", n, fewest)
		}
		if len(next.Pieces) > pieces+2 {
			t.Fatalf("%d pieces, %d are enough: %v", len(next.Pieces), pieces, next)
		}
	})
}

// bruteForce tries all assignments and returns the fewest elements moved and, with these, the fewest pieces.
func bruteForce(old Assignment, sizes, survivors []int, p int) (fewest, pieces int) {
	var elements []Piece
	for b, n := range sizes {
		for i := range n {
			elements = append(elements, Piece{Block: b, Offset: i, Size: 1})
		}
	}
	fewest = len(elements) + 1
	for {
		a := Assignment{p, arrange(slices.Clone(elements))}
		over := false
		for _, s := range a.Stats().Servers {
			over = over || s.Parameters > (len(elements)+p-1)/p
		}
		if !over {
			n := moved(Diff(old, a, survivors))
			if n < fewest {
				fewest, pieces = n, len(a.Pieces)
			} else if n == fewest {
				pieces = min(pieces, len(a.Pieces))
			}
		}
		i := 0 // count up in base p
		for ; i < len(elements); i++ {
			if elements[i].Server++; elements[i].Server < p {
				break
			}
			elements[i].Server = 0
		}
		if i == len(elements) {
			return fewest, pieces
		}
	}
}

// TestReassignChain rescales the catalog's models over and over. The elements must stay even, and blocks must not
// crumble: with at most 16 servers, three pieces per server above the number of blocks have proved enough.
func TestReassignChain(t *testing.T) {
	for _, m := range Catalog() {
		t.Run(m.Name, func(t *testing.T) {
			a, p := mustAssign(t, RulePAA, m.Sizes, 8), 8
			x := uint32(1) // a linear congruential generator
			for range 200 {
				x = x*1664525 + 1013904223
				q := 4 + int(x>>16)%13
				survivors := make([]int, min(p, q))
				for i := range survivors {
					survivors[i] = (i*5 + int(x>>8)) % p // leaves gaps where servers go
				}
				slices.Sort(survivors)
				survivors = slices.Compact(survivors)
				next, moves, err := Reassign(a, m.Sizes, survivors, q)
				if err != nil {
					t.Fatal(err)
				}
				checkReassign(t, a, next, moves, m.Sizes, survivors, q)
				if limit := len(m.Sizes) + 3*16; len(next.Pieces) > limit {
					t.Fatalf("%d pieces of %d blocks, want at most %d", len(next.Pieces), len(m.Sizes), limit)
				}
				a, p = next, q
			}
		})
	}
}

// TestReassignThereAndBack adds a server and takes it away again: the pieces join and the elements come back even.
func TestReassignThereAndBack(t *testing.T) {
	tests := []struct {
		model       string
		p, q        int
		there, back int // pieces
	}{
		{"dssm", 2, 3, 3, 3},
		{"dssm", 1, 4, 4, 1},
		{"resnet-50", 4, 5, 159, 159},
		{"resnet-50", 4, 8, 159, 157},
		{"resnext-101", 4, 8, 317, 317},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprintf("%s %d %d", tt.model, tt.p, tt.q), func(t *testing.T) {
			sizes := mustLookup(t, tt.model).Sizes
			survivors := make([]int, tt.p)
			for i := range survivors {
				survivors[i] = i
			}
			a := mustAssign(t, RulePAA, sizes, tt.p)
			there, out, err := Reassign(a, sizes, survivors, tt.q)
			if err != nil {
				t.Fatal(err)
			}
			back, in, err := Reassign(there, sizes, survivors, tt.p)
			if err != nil {
				t.Fatal(err)
			}
			checkReassign(t, a, there, out, sizes, survivors, tt.q)
			checkReassign(t, there, back, in, sizes, survivors, tt.p)
			if len(there.Pieces) > tt.there || len(back.Pieces) > tt.back {
				t.Errorf("%d pieces there, %d back; want at most %d, %d", len(there.Pieces), len(back.Pieces), tt.there, tt.back)
			}
		})
	}
}

// TestReassignRequests checks that the numbers of pieces come out even where small pieces leave the choice.
func TestReassignRequests(t *testing.T) {
	tests := []struct {
		model string
		p, q  int
		gap   int
	}{
		{"resnet-50", 4, 8, 2}, {"resnet-50", 8, 4, 2}, {"resnext-101", 4, 5, 3}, {"resnext-101", 8, 4, 2},
		{"inception-bn", 4, 5, 3}, {"resnext-110", 2, 3, 2}, {"resnext-110", 1, 2, 2},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprintf("%s %d %d", tt.model, tt.p, tt.q), func(t *testing.T) {
			sizes := mustLookup(t, tt.model).Sizes
			survivors := make([]int, min(tt.p, tt.q))
			for i := range survivors {
				survivors[i] = i
			}
			next, _, err := Reassign(mustAssign(t, RulePAA, sizes, tt.p), sizes, survivors, tt.q)
			if err != nil {
				t.Fatal(err)
			}
			if s := next.Stats(); s.RequestGap > tt.gap {
				t.Errorf("request gap %d, want at most %d: %v", s.RequestGap, tt.gap, s.Servers)
			}
		})
	}
}

func TestReassignEdges(t *testing.T) {
	tests := []struct {
		name      string
		old       Assignment
		sizes     []int
		survivors []int
		p         int
		want      []Piece
	}{
		{"no blocks", Assignment{2, nil}, nil, []int{1}, 2, nil},
		{"only empty blocks", Assignment{2, nil}, []int{0, 0}, []int{1, 0}, 3, nil},
		{"nobody stays", Assignment{1, []Piece{{0, 0, 4, 0}}}, []int{4}, nil, 2, []Piece{{0, 0, 2, 0}, {0, 2, 2, 1}}},
		{"order changes", Assignment{2, []Piece{{0, 0, 4, 0}, {1, 0, 4, 1}}}, []int{4, 4}, []int{1, 0}, 2,
			[]Piece{{0, 0, 4, 1}, {1, 0, 4, 0}}},
		{"more servers than elements", Assignment{1, []Piece{{0, 0, 2, 0}}}, []int{2}, []int{0}, 4, []Piece{{0, 0, 1, 0}, {0, 1, 1, 1}}},
		{"one has all, the other is empty", Assignment{2, []Piece{{0, 0, 6, 0}}}, []int{6}, []int{0, 1}, 2,
			[]Piece{{0, 0, 3, 0}, {0, 3, 3, 1}}},
		{"neighbours on one server", Assignment{2, []Piece{{0, 0, 1, 0}, {0, 1, 2, 0}, {1, 0, 3, 1}}}, []int{3, 3}, []int{0, 1}, 2,
			[]Piece{{0, 0, 3, 0}, {1, 0, 3, 1}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			next, moves, err := Reassign(tt.old, tt.sizes, tt.survivors, tt.p)
			if err != nil {
				t.Fatal(err)
			}
			checkReassign(t, tt.old, next, moves, tt.sizes, tt.survivors, tt.p)
			if diff := gocmp.Diff(tt.want, next.Pieces); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestReassignErrors(t *testing.T) {
	sizes := []int{4, 4}
	old := mustAssign(t, RulePAA, sizes, 2)
	tests := []struct {
		name      string
		old       Assignment
		survivors []int
		p         int
		want      error
		part      string
	}{
		{"no servers", old, nil, 0, ErrServers, "0 servers"},
		{"too many survivors", old, []int{0, 1}, 1, ErrServers, "2 survivors among 1 servers"},
		{"unknown survivor", old, []int{2}, 1, ErrServers, "survivor 0 is server 2"},
		{"negative survivor", old, []int{0, -1}, 2, ErrServers, "survivor 1 is server -1"},
		{"same survivor twice", old, []int{1, 1}, 2, ErrServers, "server 1 survives twice"},
		{"old misses a block", Assignment{2, old.Pieces[:1]}, nil, 1, ErrAssignment, "old assignment"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, _, err := Reassign(tt.old, sizes, tt.survivors, tt.p)
			if !errors.Is(err, tt.want) || !strings.Contains(err.Error(), tt.part) {
				t.Errorf("got %v, want %v with %q", err, tt.want, tt.part)
			}
		})
	}
}
