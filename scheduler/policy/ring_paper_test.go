package policy

import (
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"

	"optimus/scheduler/place"
)

// gpuJob is a job without ps whose tasks take one GPU each.
func gpuJob(id string, examples float64, f func(w int) float64) Job {
	return Job{ID: id, Ring: true, Demand: [2]place.Vector{{0}, {1}}, Remaining: examples,
		Speed: SpeedFunc(func(_, w int) float64 { return f(w) })}
}

func sqrtSpeed(w int) float64 { return math.Sqrt(float64(w)) }

// kinked is slower with 9 GPUs than with 8, and faster with 16.
func kinked(w int) float64 {
	if w > 8 && w < 16 {
		return 7
	}
	return float64(w)
}

func TestRingSection3(t *testing.T) {
	for _, c := range []struct {
		name    string
		gpus    int
		f       func(int) float64
		jobs    int
		ring    []int
		ringAny []int // nil where it is not of interest
	}{
		{"one job, f increasing, C = 64", 64, sqrtSpeed, 1, []int{64}, []int{64}},
		{"two equal jobs, C = 64", 64, sqrtSpeed, 2, []int{32, 32}, []int{32, 32}},
		{"no gain stops", 64, func(w int) float64 { return 1 }, 1, []int{1}, []int{1}},
		{"a loss stops", 64, func(w int) float64 { return 1 / float64(w) }, 1, []int{1}, []int{1}},
		{"f(9) < f(8) < f(16)", 16, kinked, 1, []int{16}, []int{16}},
		{"C = 12, two equal jobs, the tie goes to the first", 12, sqrtSpeed, 2, []int{8, 4}, []int{6, 6}},
		{"C = 11, 3 stay idle where only doubling is allowed", 11, sqrtSpeed, 2, []int{4, 4}, []int{6, 5}},
		{"more jobs than GPUs", 2, sqrtSpeed, 3, []int{1, 1, 0}, []int{1, 1, 0}},
	} {
		t.Run(c.name, func(t *testing.T) {
			jobs := make([]Job, c.jobs)
			for i := range jobs {
				jobs[i] = gpuJob(fmt.Sprintf("job-%d", i), 1000, c.f)
			}
			for any, want := range map[bool][]int{false: c.ring, true: c.ringAny} {
				for i, a := range (Ring{Any: any}).Allocate(jobs, containers(t, c.gpus)) {
					if a.Tasks != (place.Counts{0, want[i]}) || a.Reason == "" {
						t.Errorf("any = %v, job %d: %v (%s), want %d workers", any, i, a.Tasks, a.Reason, want[i])
					}
				}
			}
		})
	}
	t.Run("steps of one stop at 8", func(t *testing.T) {
		got := Optimus{}.Allocate([]Job{gpuJob("a", 1000, kinked)}, containers(t, 16))[0].Tasks
		if got != (place.Counts{0, 8}) {
			t.Errorf("got %v, want 8 workers", got)
		}
	})
	t.Run("a bound is kept", func(t *testing.T) {
		job := gpuJob("a", 1000, sqrtSpeed)
		job.Max[place.Worker] = 6
		if got := (Ring{}).Allocate([]Job{job}, containers(t, 64))[0].Tasks; got != (place.Counts{0, 4}) {
			t.Errorf("doubling: %v, want 4 workers", got)
		}
		if got := (Ring{Any: true}).Allocate([]Job{job}, containers(t, 64))[0].Tasks; got != (place.Counts{0, 6}) {
			t.Errorf("any: %v, want 6 workers", got)
		}
	})
}

// TestRingProperties: what every outcome must have, whatever the speeds.
func TestRingProperties(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		gpus := rapid.IntRange(1, 40).Draw(rt, "gpus")
		jobs := make([]Job, rapid.IntRange(1, 6).Draw(rt, "jobs"))
		for i := range jobs {
			f := rapid.SliceOfN(rapid.Float64Range(.1, 10), gpus+1, gpus+1).Draw(rt, "speed")
			jobs[i] = gpuJob(fmt.Sprint(i), rapid.Float64Range(1, 1e5).Draw(rt, "examples"), func(w int) float64 { return f[w] })
		}
		for _, r := range []Ring{{}, {Any: true}} {
			pool := newPool(containers(t, gpus))
			out := r.Allocate(jobs, containers(t, gpus))
			for i, a := range out {
				w := a.Tasks[place.Worker]
				if !pool.take(&jobs[i], a.Tasks) {
					rt.Fatalf("any = %v: more than %d GPUs given", r.Any, gpus)
				}
				if !r.Any && w&(w-1) != 0 {
					rt.Fatalf("doubling gave %d", w)
				}
				if one, _ := jobs[i].seconds(place.Counts{0, 1}); w > 1 {
					if now, _ := jobs[i].seconds(a.Tasks); now >= one {
						rt.Fatalf("any = %v: job %d is no faster on %d GPUs", r.Any, i, w)
					}
				}
			}
			for i, a := range out { // at the end nobody gains from a step that fits
				if s := r.best(&jobs[i], a.Tasks, pool); a.Tasks[place.Worker] > 0 && s.gain > 0 {
					rt.Fatalf("any = %v: job %d would still gain %v from %d more", r.Any, i, s.gain, s.add)
				}
			}
		}
	})
}

func TestRingSection4(t *testing.T) {
	v := View{Nodes: []place.Node{{ID: "a", Capacity: place.Vector{8}}, {ID: "b", Capacity: place.Vector{8}}}}
	for i := range 3 {
		v.Jobs = append(v.Jobs, gpuJob(fmt.Sprint(i), 1000, sqrtSpeed))
		v.Jobs[i].Submitted = float64(i)
	}
	workers := func(t *testing.T, name string, st State, v View) (State, []int) {
		t.Helper()
		p, err := ByName(name)
		if err != nil {
			t.Fatal(err)
		}
		st, decisions, err := Step(p, st, v)
		if err != nil {
			t.Fatal(err)
		}
		var out []int
		for _, d := range decisions {
			if d.Action == Impossible {
				t.Fatalf("%s: %s", name, d.Reason)
			}
			out = append(out, d.Tasks[place.Worker])
		}
		return st, out
	}
	for name, want := range map[string]string{"ring": "[8 4 4]", "ring-any": "[6 5 5]", "ring-eight": "[8 8 0]", "ring-four": "[4 4 4]", "ring-two": "[2 2 2]", "ring-one": "[1 1 1]"} {
		if _, got := workers(t, name, State{}, v); fmt.Sprint(got) != want {
			t.Errorf("%s: %v, want %s", name, got, want)
		}
	}
	t.Run("Exploratory", func(t *testing.T) {
		var st State
		v := View{Nodes: v.Nodes, Jobs: []Job{v.Jobs[0], v.Jobs[1], v.Jobs[2]}}
		for i := range v.Jobs {
			v.Jobs[i].Speed = nil // to be found out
		}
		for round, want := range []string{"[1 1 0]", "[2 2 0]", "[4 4 0]", "[8 8 0]", "[4 4 1]"} {
			for i := range 2 {
				v.Jobs[i].Restarts = max(0, round-1)
				if round == 4 {
					v.Jobs[i].Speed = SpeedFunc(func(_, w int) float64 { return sqrtSpeed(w) })
				}
			}
			var got []int
			if st, got = workers(t, "ring-explore", st, v); fmt.Sprint(got) != want {
				t.Errorf("round %d: %v, want %s", round, got, want)
			}
		}
	})
	t.Run("Exploratory, a job of at most 4", func(t *testing.T) {
		var st State
		v := View{Nodes: v.Nodes, Jobs: []Job{v.Jobs[0]}}
		v.Jobs[0].Max[place.Worker] = 4
		for round, want := range []string{"[1]", "[2]", "[4]", "[2]"} {
			v.Jobs[0].Restarts = min(2, max(0, round-1))
			if round == 3 { // through: it is known now to be as fast on 2
				v.Jobs[0].Speed = SpeedFunc(func(_, w int) float64 { return float64(min(w, 2)) })
			}
			var got []int
			if st, got = workers(t, "ring-explore", st, v); fmt.Sprint(got) != want {
				t.Errorf("round %d: %v, want %s", round, got, want)
			}
		}
	})
	t.Run("a job with ps gets as many of them", func(t *testing.T) {
		out := Ring{}.Allocate([]Job{containerJob("a", 1000, SpeedFunc(func(p, w int) float64 { return sqrtSpeed(w) }))}, containers(t, 20))
		if out[0].Tasks != (place.Counts{8, 8}) {
			t.Errorf("got %v, want 8 + 8", out[0].Tasks)
		}
	})
}
