package policy

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"optimus/scheduler/place"
)

// gangs returns a cluster of nodes of 4 GPUs and jobs that need so many GPUs each, in order of arrival.
func gangs(nodes int, gpus ...int) View {
	v := View{}
	for i := range nodes {
		v.Nodes = append(v.Nodes, place.Node{ID: fmt.Sprintf("n%d", i), Capacity: place.Vector{4}})
	}
	for i, n := range gpus {
		v.Jobs = append(v.Jobs, Job{ID: fmt.Sprintf("j%d", i), Submitted: float64(i), Ring: true, Demand: [2]place.Vector{nil, {1}},
			Min: place.Counts{0, n}, Remaining: 1})
	}
	return v
}

// actions runs a round and returns what becomes of each job.
func actions(t *testing.T, st State, v View) (State, string) {
	t.Helper()
	p, err := ByName("tiresias")
	if err != nil {
		t.Fatal(err)
	}
	st, decisions, err := Step(p, st, v)
	if err != nil {
		t.Fatal(err)
	}
	check(t, p, v, st, decisions)
	var out []string
	for _, d := range decisions {
		out = append(out, string(d.Action))
	}
	return st, strings.Join(out, " ")
}

// A job that does not fit lets later, smaller ones pass. Who has had 16 GPU·h makes way for who has not, and goes
// behind those who had them before.
func TestTiresiasQueues(t *testing.T) {
	v := gangs(2, 6, 4, 2, 8)
	step := func(st State, want string, demoted ...string) State {
		t.Helper()
		st, got := actions(t, st, v)
		if got != want || !cmp.Equal(st.Demoted, demoted) {
			t.Errorf("%s with %q demoted, want %s with %q", got, st.Demoted, want, demoted)
		}
		return st
	}
	st := step(State{}, "start wait start wait")
	v.Jobs[2].Service = 57600
	st = step(st, "keep wait keep wait", "j2") // the others are too large for what is left
	v.Jobs[0].Service = 57600
	st = step(st, "pause start keep wait", "j2", "j0")
	v.Jobs[1].Service = 57599 // not yet
	step(st, "wait keep keep wait", "j2", "j0")
}

// The second queue is in the order of demotion, not of arrival, and forgets jobs that have ended.
func TestTiresiasDemotion(t *testing.T) {
	v := gangs(1, 4, 4)
	v.Jobs[1].Service = 60000
	st, got := actions(t, State{}, v)
	if got != "start wait" {
		t.Errorf("%s, want start wait", got)
	}
	v.Jobs[0].Service = 60000
	st, got = actions(t, st, v)
	if got != "pause start" || !cmp.Equal(st.Demoted, []string{"j1", "j0"}) {
		t.Errorf("%s with %q, want pause start with j1 before j0", got, st.Demoted)
	}
	v.Jobs = v.Jobs[:1]
	if st, got = actions(t, st, v); got != "start" || !cmp.Equal(st.Demoted, []string{"j0"}) {
		t.Errorf("%s with %q", got, st.Demoted)
	}
}

// New jobs take the nodes with the most free GPUs first, and others stay where they are.
func TestTiresiasPlacement(t *testing.T) {
	v := gangs(3, 6, 3)
	p, _ := ByName("tiresias")
	st, d, err := Step(p, State{}, v)
	if err != nil {
		t.Fatal(err)
	}
	space, _ := place.NewSpace(v.Nodes)
	at := func(d Decision) place.Placement { p, _ := PlacementOf(d.Members, space); return p }
	for i, want := range []place.Placement{
		{{Node: 0, Tasks: place.Counts{0, 4}}, {Node: 1, Tasks: place.Counts{0, 2}}},
		{{Node: 2, Tasks: place.Counts{0, 3}}},
	} {
		if diff := cmp.Diff(want, at(d[i])); diff != "" {
			t.Error(diff)
		}
	}
	v.Jobs = v.Jobs[1:]
	if _, d, err = Step(p, st, v); err != nil || d[0].Action != Keep {
		t.Errorf("%v, %v; want the job to stay", d, err)
	}
}

func TestTiresiasImpossible(t *testing.T) {
	if _, got := actions(t, State{}, gangs(2, 9, 8)); got != "impossible start" {
		t.Error(got)
	}
}

// Whatever comes and goes, the queues keep their order, and each job runs whole or not at all.
func TestTiresiasRandom(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	st, v := State{}, gangs(4)
	next := 0
	for range 200 {
		if rng.IntN(2) == 0 {
			j := gangs(0, rng.IntN(12)+1).Jobs[0]
			j.ID, j.Submitted = fmt.Sprintf("j%03d", next), float64(next)
			v.Jobs, next = append(v.Jobs, j), next+1
		}
		before := st.Demoted
		var got string
		st, got = actions(t, st, v)
		for i, a := range strings.Fields(got) {
			j := &v.Jobs[i]
			if a == "start" || a == "keep" || a == "move" {
				j.Service += 6000 * float64(j.Min[place.Worker])
			}
		}
		kept := 0
		for _, id := range before {
			if kept < len(st.Demoted) && st.Demoted[kept] == id {
				kept++
			}
		}
		if kept < len(before)-1 { // one job at most has left
			t.Errorf("second queue %q after %q", st.Demoted, before)
		}
		if len(v.Jobs) > 0 && rng.IntN(3) == 0 {
			gone := rng.IntN(len(v.Jobs))
			v.Jobs = append(v.Jobs[:gone:gone], v.Jobs[gone+1:]...)
		}
	}
}

func TestDemotedState(t *testing.T) {
	for data, want := range map[string]string{
		`{"demoted":["a","b"]}`: "",
		`{"demoted":["a","a"]}`: "named twice",
		`{"demoted":[""]}`:      "without a name",
	} {
		var st State
		if err := json.Unmarshal([]byte(data), &st); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", data, err, want)
		}
	}
}
