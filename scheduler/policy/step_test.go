package policy

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"optimus/scheduler/place"
)

// testView has equal gains and equal arrivals on purpose: only IDs break the ties.
func testView(jobs, nodes int) View {
	v := View{}
	for i := range nodes {
		v.Nodes = append(v.Nodes, place.Node{ID: fmt.Sprintf("n%02d", i), Capacity: place.Vector{16, 80}})
	}
	for i := range jobs {
		v.Jobs = append(v.Jobs, Job{ID: fmt.Sprintf("j%03d", i), Submitted: float64(i / 10), Generation: uint64(i),
			Demand: [2]place.Vector{{5, 10}, {5, 10}}, Remaining: 1000, Speed: table2Sync})
	}
	return v
}

// suited returns the view with jobs that a policy is for: without ps, and as many workers instead, where it says so.
func suited(p Policy, v View) View {
	err := p.Planner.Check(&Job{ID: "unknown"})
	if err == nil || !strings.Contains(err.Error(), "parameter servers") {
		return v
	}
	v.Jobs = slices.Clone(v.Jobs)
	for i := range v.Jobs {
		j := &v.Jobs[i]
		j.Ring, j.Min = true, place.Counts{place.Worker: j.Min.Total()}
	}
	return v
}

// check holds decisions to what is true of every policy: nothing is overbooked, and nobody gets part of a job.
func check(t *testing.T, p Policy, v View, st State, decisions []Decision) {
	t.Helper()
	if len(decisions) != len(v.Jobs) {
		t.Fatalf("%s: %d decisions for %d jobs", p.Name, len(decisions), len(v.Jobs))
	}
	jobs := map[string]Job{}
	for _, j := range v.Jobs {
		jobs[j.ID] = j
	}
	space, err := place.NewSpace(v.Nodes)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range decisions {
		j := jobs[d.Job]
		if d.Reason == "" || d.Generation != j.Generation {
			t.Errorf("%s: %v lacks its reason or generation", p.Name, d)
		}
		if got := roles(d.Members); got != d.Tasks {
			t.Errorf("%s: job %s has members %v, tasks %v", p.Name, d.Job, got, d.Tasks)
		}
		if least := j.least(); len(d.Members) > 0 && (d.Tasks[0] < least[0] || d.Tasks[1] < least[1] || !j.bounded(d.Tasks)) {
			t.Errorf("%s: job %s has %v, outside of its bounds", p.Name, d.Job, d.Tasks)
		}
		task := j.tasks(d.Tasks)
		if at, ok := PlacementOf(d.Members, space); !ok || !space.Take(&task, at) {
			t.Errorf("%s: job %s does not fit where it was put: %v", p.Name, d.Job, d.Members)
		}
	}
	if err := st.Validate(); err != nil {
		t.Error(err)
	}
}

func TestEveryPolicyKeepsTheRules(t *testing.T) {
	for _, p := range Policies() {
		t.Run(p.Name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(7, 8))
			st, v := State{}, suited(p, testView(40, 30))
			for range 8 {
				before, err := json.Marshal(st)
				if err != nil {
					t.Fatal(err)
				}
				next, decisions, err := Step(p, st, v)
				if err != nil {
					t.Fatal(err)
				}
				check(t, p, v, next, decisions)
				if after, _ := json.Marshal(st); string(after) != string(before) {
					t.Error("Step changed the state that it was given")
				}
				// The state survives storage, and another order of the lists changes nothing.
				var read State
				data, err := json.Marshal(next)
				if err != nil {
					t.Fatal(err)
				}
				if err := json.Unmarshal(data, &read); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(next, read); diff != "" {
					t.Error(diff)
				}
				rng.Shuffle(len(v.Jobs), func(a, b int) { v.Jobs[a], v.Jobs[b] = v.Jobs[b], v.Jobs[a] })
				rng.Shuffle(len(v.Nodes), func(a, b int) { v.Nodes[a], v.Nodes[b] = v.Nodes[b], v.Nodes[a] })
				again, same, err := Step(p, st, v)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(next, again) + cmp.Diff(decisions, same); diff != "" {
					t.Errorf("shuffled lists change the result: %s", diff)
				}
				// Jobs progress, end; a node fails.
				st, v.Jobs, v.Nodes = read, v.Jobs[2:], v.Nodes[1:]
				for i := range v.Jobs {
					v.Jobs[i].Remaining *= 0.5 + rng.Float64()/2
				}
			}
		})
	}
}

func TestNothingChangesNothing(t *testing.T) {
	p, err := ByName("optimus")
	if err != nil {
		t.Fatal(err)
	}
	v := testView(10, 30)
	st, _, err := Step(p, State{}, v)
	if err != nil {
		t.Fatal(err)
	}
	_, decisions, err := Step(p, st, v)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range decisions {
		if d.Action != Keep {
			t.Errorf("job %s: %s, want keep", d.Job, d.Action)
		}
	}
}

// starts is what becomes of a job that fits on the nodes, but cannot be dealt over them with both surplus tasks on the
// first: the paper pauses it. Pollux's authors start no job in the second in which it comes.
func starts(p Policy) Action {
	if p.Name == "optimus-paper" || p.Name == "pollux-artifact" {
		return Wait
	}
	return Start
}

// TestTwoHalfPlacedJobs: of two jobs that fit only one at a time one runs and the other waits, and a third that never
// fits blocks neither.
func TestTwoHalfPlacedJobs(t *testing.T) {
	for _, p := range Policies() {
		v := View{Nodes: []place.Node{{ID: "a", Capacity: place.Vector{2}}, {ID: "b", Capacity: place.Vector{2}}}}
		for _, id := range []string{"one", "two"} {
			v.Jobs = append(v.Jobs, Job{ID: id, Demand: [2]place.Vector{{1}, {1}}, Min: place.Counts{1, 3}, Remaining: 10, Speed: table2Sync})
		}
		v.Jobs = append(v.Jobs, Job{ID: "big", Submitted: -1, Demand: [2]place.Vector{{1}, {1}}, Min: place.Counts{1, 4}, Remaining: 10, Speed: table2Sync})
		_, d, err := Step(p, State{}, suited(p, v))
		if err != nil {
			t.Fatal(err)
		}
		if d[0].Action != Impossible || d[1].Action != starts(p) || d[2].Action != Wait {
			t.Errorf("%s: %s %s %s, want impossible, %s, wait", p.Name, d[0].Action, d[1].Action, d[2].Action, starts(p))
		}
	}
}

func TestBadInput(t *testing.T) {
	constant := func(f float64) Speed { return SpeedFunc(func(int, int) float64 { return f }) }
	good := testView(2, 2)
	for _, c := range []struct {
		name   string
		change func(v *View)
		want   string // in the error of Step, or in the reason of job 0
		fails  bool
	}{
		{"no nodes", func(v *View) { v.Nodes = nil }, "no nodes", true},
		{"two nodes of a name", func(v *View) { v.Nodes[1].ID = v.Nodes[0].ID }, "two nodes are called", true},
		{"other resources", func(v *View) { v.Nodes[1].Capacity = place.Vector{1} }, "resource types", true},
		{"two jobs of a name", func(v *View) { v.Jobs[1].ID = v.Jobs[0].ID }, "used twice", true},
		{"submitted NaN", func(v *View) { v.Jobs[0].Submitted = math.NaN() }, "must be finite", true},
		{"speed NaN", func(v *View) { v.Jobs[0].Speed = constant(math.NaN()) }, "f(1,1) = NaN", false},
		{"speed 0", func(v *View) { v.Jobs[0].Speed = constant(0) }, "f(1,1) = 0", false},
		{"speed Inf", func(v *View) { v.Jobs[0].Speed = constant(math.Inf(1)) }, "f(1,1) = +Inf", false},
		{"no speed", func(v *View) { v.Jobs[0].Speed = nil }, "no speed estimate", false},
		{"remaining NaN", func(v *View) { v.Jobs[0].Remaining = math.NaN() }, "must be finite", false},
		{"task larger than a node", func(v *View) { v.Jobs[0].Demand[1] = place.Vector{17, 1} }, "more than any node has", false},
		{"job larger than the cluster", func(v *View) { v.Jobs[0].Min = place.Counts{1, 9} }, "more than the whole cluster", false},
		{"huge minimum", func(v *View) { v.Jobs[0].Min = place.Counts{1, math.MaxInt} }, "more than the whole cluster", false},
		{"bounds crossed", func(v *View) { v.Jobs[0].Min, v.Jobs[0].Max = place.Counts{2, 2}, place.Counts{1, 1} }, "at most", false},
		{"negative bound", func(v *View) { v.Jobs[0].Max = place.Counts{-1, 0} }, "negative bounds", false},
		{"no demand", func(v *View) { v.Jobs[0].Demand[1] = place.Vector{0, 0} }, "demands nothing", false},
		{"negative demand", func(v *View) { v.Jobs[0].Demand[1] = place.Vector{-1, 0} }, "must not be negative", false},
		{"short demand", func(v *View) { v.Jobs[0].Demand[1] = nil }, "resource types", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, p := range Policies() {
				if strings.Contains(c.name, "speed") && !needsSpeed(p) {
					continue
				}
				v := suited(p, View{Nodes: append([]place.Node(nil), good.Nodes...), Jobs: append([]Job(nil), good.Jobs...)})
				c.change(&v)
				_, d, err := Step(p, State{}, v)
				switch {
				case c.fails:
					if err == nil || !strings.Contains(err.Error(), c.want) {
						t.Errorf("%s: error %v, want one with %q", p.Name, err, c.want)
					}
				case err != nil:
					t.Errorf("%s: %v", p.Name, err)
				case d[0].Action != Impossible || !strings.Contains(d[0].Reason, c.want) || d[1].Action != starts(p):
					t.Errorf("%s: %s (%s), then %s; want impossible with %q, then %s", p.Name, d[0].Action, d[0].Reason, d[1].Action, c.want, starts(p))
				}
			}
		})
	}
	t.Run("speed unknown beyond a size", func(t *testing.T) {
		v := testView(1, 8)
		v.Jobs[0].Speed = SpeedFunc(func(p, w int) float64 {
			if p+w > 5 {
				return math.NaN()
			}
			return table2Sync(p, w)
		})
		_, d, err := Step(Policies()[0], State{}, v)
		if err != nil || d[0].Tasks.Total() != 5 || !strings.Contains(d[0].Reason, "is not known") {
			t.Errorf("%v, %v; want 5 tasks and the reason that no more are known", d, err)
		}
	})
}

// needsSpeed reports whether a policy refuses jobs of unknown speed.
func needsSpeed(p Policy) bool {
	err := p.Planner.Check(&Job{ID: "unknown"})
	return err != nil && strings.Contains(err.Error(), "speed")
}

func TestByName(t *testing.T) {
	for _, p := range Policies() {
		if got, err := ByName(p.Name); err != nil || got.Name != p.Name {
			t.Errorf("%s: %v, %v", p.Name, got.Name, err)
		}
	}
	if _, err := ByName("optimum"); err == nil || !strings.Contains(err.Error(), `"optimum"`) {
		t.Errorf("error %v, want one that names it", err)
	}
}

func FuzzState(f *testing.F) {
	f.Add(`{"round":3,"jobs":[{"job":"a","members":[{"role":"ps","index":0,"node":"n"}]}]}`)
	f.Add(`{"jobs":[{"job":"a","members":[]}]}`)
	f.Fuzz(func(t *testing.T, data string) {
		var st State
		if json.Unmarshal([]byte(data), &st) == nil {
			if _, _, err := Step(Policies()[0], st, testView(2, 2)); err != nil {
				t.Errorf("a state that was read is refused: %v", err)
			}
		}
	})
}

// TestFragments: tasks of 5 cores leave a core of each 16 unused. The allocator first counts on it; no job may have to
// wait for that reason while others have more than their least.
func TestFragments(t *testing.T) {
	v := fig12View(100, 1000)
	for i := range v.Jobs {
		v.Jobs[i].Demand = [2]place.Vector{{5, 10}, {5, 10}}
	}
	for _, p := range Policies() {
		if two, ok := p.Planner.(TwoStage); !ok || !two.Shrink {
			continue
		}
		st, decisions, err := Step(p, State{}, v)
		if err != nil {
			t.Fatal(err)
		}
		check(t, p, v, st, decisions)
		waiting, tasks := 0, 0
		for _, d := range decisions {
			tasks += d.Tasks.Total()
			if d.Action == Wait {
				waiting++
			}
		}
		t.Logf("%s: %d tasks on room for 3000, %d of 100 jobs wait", p.Name, tasks, waiting)
		if p.Name == "optimus" && (waiting > 0 || tasks < 2900) {
			t.Errorf("%s: %d jobs wait, %d tasks run; want none, and at least 2900", p.Name, waiting, tasks)
		}
	}
}

// TestOracle follows Optimus+Oracle of the Pollux paper on jobs without ps: one GPU each in order, then one by one to
// the largest gain, the first job on ties; what keeps its size keeps its place.
func TestOracle(t *testing.T) {
	p, err := ByName("optimus+oracle")
	if err != nil {
		t.Fatal(err)
	}
	speed := SpeedFunc(func(_, w int) float64 { return float64(w) / (1 + 0.1*float64(w)) })
	v := View{Nodes: []place.Node{{ID: "a", Capacity: place.Vector{4}}, {ID: "b", Capacity: place.Vector{3}}}}
	for i, steps := range []float64{100, 100, 900} {
		v.Jobs = append(v.Jobs, Job{ID: fmt.Sprint("job-", i), Ring: true, Demand: [2]place.Vector{nil, {1}}, Max: place.Counts{0, 4},
			Remaining: steps, Speed: speed})
	}
	st, d, err := Step(p, State{}, v)
	if err != nil {
		t.Fatal(err)
	}
	check(t, p, v, st, d)
	// t = Q/w + Q/10: the gains of job 2 are 450, 150 and 75 s, those of the others 50 s.
	want := []place.Counts{{0, 2}, {0, 1}, {0, 4}}
	for i := range d {
		if d[i].Tasks != want[i] {
			t.Errorf("%s: %v, want %v", d[i].Job, d[i].Tasks, want[i])
		}
	}
	v.Jobs = v.Jobs[1:] // job 0 ends: job 1 grows, job 2 is at its bound and stays
	_, d, err = Step(p, st, v)
	if err != nil {
		t.Fatal(err)
	}
	if d[0].Action != Rescale || d[0].Tasks != (place.Counts{0, 3}) || d[1].Action != Keep {
		t.Errorf("%s with %v, %s; want rescale with 3 workers, keep", d[0].Action, d[0].Tasks, d[1].Action)
	}
}
