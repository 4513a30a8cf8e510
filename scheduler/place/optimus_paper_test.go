package place

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// servers returns n servers of so many slots.
func servers(t *testing.T, n int, slots int64) *Space {
	t.Helper()
	nodes := make([]Node, n)
	for i := range nodes {
		nodes[i] = Node{ID: fmt.Sprintf("server-%03d", i), Capacity: Vector{slots}}
	}
	s, err := NewSpace(nodes)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func slotJob(p, w int) *Job {
	return &Job{ID: "job", Tasks: Counts{p, w}, Demand: [2]Vector{{1}, {1}}}
}

func TestFig10(t *testing.T) {
	for _, c := range []struct {
		name string
		p    Placement
		want int
	}{
		{"a", Placement{{0, Counts{1, 1}}, {1, Counts{1, 1}}, {2, Counts{0, 2}}}, 3},
		{"b", Placement{{0, Counts{2, 1}}, {1, Counts{0, 3}}}, 3},
		{"c", Placement{{0, Counts{1, 2}}, {1, Counts{1, 2}}}, 2},
	} {
		t.Run("Fig 10 "+c.name, func(t *testing.T) {
			if got := Traffic(c.p); got != c.want {
				t.Errorf("traffic %d, want %d", got, c.want)
			}
		})
	}
	for _, o := range []Optimus{{}, {Paper: true}} {
		t.Run("Fig 10, the rule finds c, "+o.Name(), func(t *testing.T) {
			want := Placement{{0, Counts{1, 2}}, {1, Counts{1, 2}}}
			if diff := cmp.Diff(want, o.Place(servers(t, 3, 3), slotJob(2, 4))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestTheorem1(t *testing.T) {
	t.Run("fewest servers, the same share on each", func(t *testing.T) {
		for k := 1; k <= 6; k++ {
			p := Optimus{Paper: true}.Place(servers(t, 8, 5), slotJob(2*k, 3*k))
			if len(p) != k || p[0].Tasks != (Counts{2, 3}) {
				t.Errorf("K = %d: %v", k, p)
			}
		}
	})
	t.Run("caution i: an empty node does not count", func(t *testing.T) {
		if got := Traffic(Placement{{0, Counts{2, 4}}}); got != 0 {
			t.Errorf("traffic %d of a job on one node, want 0", got)
		}
		if got := Traffic(Placement{{0, Counts{2, 0}}, {1, Counts{0, 4}}}); got != 4 {
			t.Errorf("traffic %d of ps and workers apart, want 4", got)
		}
	})
	t.Run("caution ii: tasks of a node share its network", func(t *testing.T) {
		if got := NodeTraffic(Placement{{0, Counts{1, 2}}, {1, Counts{1, 2}}}); got != 4 {
			t.Errorf("%d pairs cross a node's boundary, want 1·2 + 2·1 = 4", got)
		}
	})
	t.Run("caution iii: surplus tasks", func(t *testing.T) {
		// The paper's deal is 2 + 2 and 1 + 1, too much for the first of two servers of 3 slots.
		want := Placement{{0, Counts{2, 1}}, {1, Counts{1, 2}}}
		if diff := cmp.Diff(want, Optimus{}.Place(servers(t, 2, 3), slotJob(3, 3))); diff != "" {
			t.Error(diff)
		}
		if p := (Optimus{Paper: true}).Place(servers(t, 2, 3), slotJob(3, 3)); p != nil {
			t.Errorf("paper: placed %v, want none: both surplus tasks go to the first server", p)
		}
	})
	t.Run("caution iv: servers of different shapes", func(t *testing.T) {
		nodes := []Node{{"cpu", Vector{16, 0}}, {"gpu-a", Vector{8, 2}}, {"gpu-b", Vector{8, 2}}}
		s, err := NewSpace(nodes)
		if err != nil {
			t.Fatal(err)
		}
		job := &Job{ID: "job", Tasks: Counts{2, 4}, Demand: [2]Vector{{3, 0}, {2, 1}}}
		want := Placement{{1, Counts{1, 2}}, {2, Counts{1, 2}}}
		if diff := cmp.Diff(want, Optimus{}.Place(s, job)); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("room to spare: gathering beats the even deal", func(t *testing.T) {
		even := Optimus{Paper: true}.Place(servers(t, 3, 16), slotJob(3, 30))
		best := Optimus{}.Place(servers(t, 3, 16), slotJob(3, 30))
		if Traffic(even) != 20 || Traffic(best) != 16 {
			t.Errorf("traffic %d of the even deal %v, %d of %v; want 20 and 16", Traffic(even), even, Traffic(best), best)
		}
	})
}

func TestBaselines(t *testing.T) {
	for _, c := range []struct {
		rule Strategy
		want Placement
	}{
		{Spread{}, Placement{{0, Counts{1, 1}}, {1, Counts{0, 2}}, {2, Counts{1, 1}}}},
		{Pack{}, Placement{{0, Counts{0, 4}}, {1, Counts{2, 0}}}},
		{MostFree{}, Placement{{0, Counts{1, 3}}, {1, Counts{1, 1}}}},
	} {
		t.Run(c.rule.Name(), func(t *testing.T) {
			if diff := cmp.Diff(c.want, c.rule.Place(servers(t, 3, 4), slotJob(2, 4))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestRulesLeaveNoTrace: a job that cannot be placed books nothing, and what was booked can be given back.
func TestRulesLeaveNoTrace(t *testing.T) {
	for _, rule := range Strategies() {
		s := servers(t, 3, 4)
		if p := rule.Place(s, slotJob(6, 7)); p != nil {
			t.Errorf("%s: placed 13 tasks on 12 slots: %v", rule.Name(), p)
		}
		job := slotJob(3, 9)
		p := rule.Place(s, job)
		if p.Total() != job.Tasks {
			t.Fatalf("%s: placed %v of %v", rule.Name(), p.Total(), job.Tasks)
		}
		s.Release(job, p)
		for i := range s.Len() {
			if s.Free(i)[0] != 4 {
				t.Errorf("%s: node %d has %d free, want 4", rule.Name(), i, s.Free(i)[0])
			}
		}
	}
}

func TestByName(t *testing.T) {
	for _, rule := range Strategies() {
		if got, err := ByName(rule.Name()); err != nil || got != rule {
			t.Errorf("%s: %v, %v", rule.Name(), got, err)
		}
	}
	if rule, err := ByName("tightest"); err == nil {
		t.Errorf("got %v for a name that is not known", rule)
	}
}
