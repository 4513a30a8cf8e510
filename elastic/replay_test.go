package elastic

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"optimus/paa"
)

func TestReplay(t *testing.T) {
	got := Replay([]Entry{
		{Kind: "command", Servers: 2, Workers: 3},
		{Kind: "prepare", Gen: 4, Incarnation: 9},
		{Kind: "commit", Gen: 4, Incarnation: 9, Servers: 2, Workers: 3},
		{Kind: "snapshot", Gen: 4, Snapshot: 7}, // armed, never whole: its folder may exist
		{Kind: "checkpoint", Snapshot: 6},
		{Kind: "command", Servers: 3, Workers: 1},
		{Kind: "prepare", Gen: 5, Incarnation: 10},
		{Kind: "abort", Gen: 5},
		{Kind: "state", State: Stopped},
	})
	want := Past{Generation: 5, Incarnation: 10, Snapshot: 7, Servers: 3, Workers: 1, State: Stopped}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestMoves checks that every element of the next generation is either kept or
// moved, once, and that a replacement under the same id keeps nothing.
func TestMoves(t *testing.T) {
	address := func(id int, incarnation uint64) Address {
		return Address{Member: Member{Server, id, incarnation}}
	}
	sizes, aux := []int{5, 9}, []int{3}
	generation := func(blocks paa.Assignment, servers ...Address) *Generation {
		whole, err := paa.Whole(aux, len(servers))
		if err != nil {
			t.Fatal(err)
		}
		return &Generation{Servers: servers, Learned: len(sizes), Blocks: blocks, Aux: whole}
	}
	two, err := paa.Assign(paa.RulePAA, sizes, 2)
	if err != nil {
		t.Fatal(err)
	}
	three, _, err := paa.Reassign(two, sizes, []int{0, 1}, 3)
	if err != nil {
		t.Fatal(err)
	}
	old := generation(two, address(0, 1), address(1, 2))
	for _, test := range []struct {
		name string
		next *Generation
		stay []int
	}{
		{"same", generation(two, address(0, 1), address(1, 2)), []int{0, 1}},
		{"one more", generation(three, address(0, 1), address(1, 2), address(2, 3)), []int{0, 1}},
		{"second replaced", generation(two, address(0, 1), address(1, 4)), []int{0}},
		{"first replaced", generation(two, address(0, 4), address(1, 2)), nil},
	} {
		if diff := cmp.Diff(test.stay, Survivors(old, test.next)); diff != "" {
			t.Errorf("%s: survivors: %s", test.name, diff)
		}
		had := owners(old)
		moved := map[elem]bool{}
		for _, m := range Moves(old, test.next) {
			for i := range m.Size {
				e := elem{m.Block, m.Offset + i}
				if moved[e] || old.Index(had[e].Member) != m.From || m.Aux != (m.Block >= len(sizes)) {
					t.Errorf("%s: move %+v is wrong at %v", test.name, m, e)
				}
				moved[e] = true
			}
		}
		now := owners(test.next)
		if len(now) != total(sizes)+total(aux) {
			t.Fatalf("%s: %d elements are owned", test.name, len(now))
		}
		for e, a := range now {
			if kept := had[e].Member == a.Member && test.next.Index(a.Member) < len(test.stay); kept == moved[e] {
				t.Errorf("%s: element %v: kept %v, moved %v", test.name, e, kept, moved[e])
			}
		}
	}
}

// owners maps every element to its server.
func owners(g *Generation) map[elem]Address {
	list := map[elem]Address{}
	for i, a := range g.Servers {
		for _, p := range Owned(g, i) {
			for k := range p.Size {
				list[elem{p.Block, p.Offset + k}] = a
			}
		}
	}
	return list
}
