package optimus

import (
	"math"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"optimus/internal/rng"
	"optimus/internal/shared"
	"optimus/scheduler/place"
	"optimus/scheduler/policy"
	"optimus/scheduler/sim"
	"optimus/scheduler/trace"
)

func tables(t testing.TB) []trace.SpeedTable {
	t.Helper()
	f, err := os.Open(shared.Dir(t, "speed", "testbed_speed.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	tables, _, err := trace.ReadSpeeds("testbed_speed.csv", f)
	if err != nil {
		t.Fatal(err)
	}
	return tables
}

var made *Truths // the tests run one after another

func truths(t testing.TB) *Truths {
	t.Helper()
	if made == nil {
		var err error
		if made, err = NewTruths(tables(t)); err != nil {
			t.Fatal(err)
		}
	}
	return made
}

func TestFig5(t *testing.T) {
	want := map[string][3]float64{ // as drawn, at 0, 10 and 100 %
		"ResNext-110": {.977, .630, .249}, "CNN-rand": {1, .506, .081}, "DSSM": {.989, .915, .817},
		"RNN-LSTM": {.941, .714, .460}, "Seq2Seq": {1, .435, .151}, "KAGGLE": {.934, .638, .192},
		"DeepSpeech2": {1, .862, .784}, "ResNet-50": {.999, .949, .876}, "Inception-BN": {1, .407, .059},
	}
	for _, k := range Kinds() {
		for i, at := range []float64{0, 10, 100} {
			if got := k.Loss(at); math.Abs(got-want[k.Name][i]) > .02 {
				t.Errorf("%s at %v %%: %.3f, want %.3f", k.Name, at, got, want[k.Name][i])
			}
		}
		late, early := k.Epochs(k.Threshold(minDelta)), k.Epochs(k.Threshold(maxDelta))
		if early < Patience || early > 10 || late < 20 || late > 30 {
			t.Errorf("%s converges after %.1f to %.1f epochs", k.Name, early, late)
		}
		// From the epoch on that the formula gives, no epoch lowers the loss by the threshold.
		at := late - Patience
		if d := k.curve(at) - k.curve(at+1); math.Abs(d-k.Threshold(minDelta)*k.Loss(0)) > 1e-9 {
			t.Errorf("%s: epoch %.1f lowers the loss by %v", k.Name, at, d)
		}
	}
}

// TestMeasured: where something was measured, the truth is that.
func TestMeasured(t *testing.T) {
	tr := truths(t)
	for i, k := range tr.kinds {
		for _, table := range tables(t) {
			if k.Sync != measured(table.Model) {
				continue
			}
			for _, p := range table.Probes {
				if p.Servers > MaxTasks || p.Workers > MaxTasks {
					continue
				}
				if f := tr.of[i][Sync].StepsPerSecond(p.Servers, p.Workers); math.Abs(f/p.Speed-1) > 1e-9 {
					t.Errorf("%s, p=%d w=%d: %v steps/s, measured %v", k.Name, p.Servers, p.Workers, f, p.Speed)
				}
			}
		}
		sync, async := tr.of[i][Sync], tr.of[i][Async]
		if a, b := sync.StepsPerSecond(1, 1), async.StepsPerSecond(1, 1); math.Abs(a/b-1) > 1e-9 {
			t.Errorf("%s: one worker does %v steps/s alone and %v asynchronously", k.Name, a, b)
		}
		for _, m := range tr.of[i] {
			for p := 1; p <= MaxTasks; p++ {
				for w := 1; w <= MaxTasks; w++ {
					if f := m.StepsPerSecond(p, w); !(f > 0) || math.IsInf(f, 0) || m.transfer[p][w] < 0 {
						t.Errorf("%s, %v, p=%d w=%d: %v steps/s", k.Name, m.mode, p, w, f)
					}
				}
			}
		}
		if k.Name == "ResNet-50" { // measured twice in Fig 9: 1.101 and 1.1011
			if got := async.StepsPerSecond(6, 12) / async.StepsPerSecond(12, 12); math.Abs(got-1.101/1.53125) > 2e-3 {
				t.Errorf("Fig 9: f(6,12)/f(12,12) = %.4f, want %.4f", got, 1.101/1.53125)
			}
		}
	}
}

// TestTheorem1: the fewer tasks are on other nodes, the faster, where the network is slower than a node.
func TestTheorem1(t *testing.T) {
	tr := truths(t)
	spread, err := spreads()
	if err != nil {
		t.Fatal(err)
	}
	one := place.Placement{{Node: 0, Tasks: place.Counts{4, 4}}}
	two := place.Placement{{Node: 0, Tasks: place.Counts{2, 2}}, {Node: 1, Tasks: place.Counts{2, 2}}}
	apart := place.Placement{{Node: 0, Tasks: place.Counts{4, 0}}, {Node: 1, Tasks: place.Counts{0, 4}}}
	for i, k := range tr.kinds {
		for _, m := range tr.of[i] {
			if f, want := m.speed(spread[4][4]), m.StepsPerSecond(4, 4); math.Abs(f/want-1) > 1e-12 {
				t.Errorf("%s, %v: %v steps/s where it was measured, want %v", k.Name, m.mode, f, want)
			}
			if a, b, c := m.speed(one), m.speed(two), m.speed(apart); k.Inter < k.Intra && m.transfer[4][4] > 0 && !(a > b && b > c) {
				t.Errorf("%s, %v: %v steps/s on one node, %v on two, %v with ps and workers apart", k.Name, m.mode, a, b, c)
			}
		}
	}
}

func TestStraggler(t *testing.T) {
	tr := truths(t)
	a := sim.Allocation{Tasks: place.Placement{{Node: 0, Tasks: place.Counts{1, 1}}, {Node: 1, Tasks: place.Counts{0, 1}}}, Slow: []float64{1, 2}}
	if got := tr.of[0][Sync].pace(&a); got != .5 {
		t.Errorf("synchronous: %v, want the pace of the slowest, 0.5", got)
	}
	if got := tr.of[0][Async].pace(&a); got != .75 {
		t.Errorf("asynchronous: %v, want 0.75: one of two workers at half speed", got)
	}
	a.Slow = []float64{2, 1}
	if got := tr.of[0][Async].pace(&a); got != .5 {
		t.Errorf("asynchronous, slow ps: %v, want 0.5", got)
	}
}

// TestEstimates: what the scheduler is shown is not the truth, and comes nearer to it as the job goes on.
func TestEstimates(t *testing.T) {
	tr := truths(t)
	at := sim.Allocation{Tasks: place.Placement{{Node: 0, Tasks: place.Counts{2, 2}}}, Generation: 1}
	var before, after, speed float64
	jobs := 0.0
	for kind := range tr.kinds {
		for _, mode := range []Mode{Sync, Async} {
			j := tr.newJob(kind, mode, .03, rng.NewKey(7, uint64(kind)))
			miss := func() float64 {
				var v policy.Job
				j.Show(&v)
				return math.Abs(v.Remaining/float64(j.kind.Steps)+j.done-j.total) / j.total
			}
			before += miss()
			rate := j.truth.speed(at.Tasks) / float64(j.kind.Steps)
			j.Advance(at, .8*j.total/rate)
			after += miss()
			var v policy.Job
			j.Show(&v)
			for p := 1; p <= 8; p *= 2 {
				if f := j.truth.StepsPerSecond(p, p); f == v.Speed.StepsPerSecond(p, p) {
					t.Errorf("%s, %v: the scheduler knows the true speed with %d ps", j.kind.Name, mode, p)
				} else {
					speed += math.Abs(v.Speed.StepsPerSecond(p, p)/f-1) / 4
				}
			}
			if ran, done := j.Advance(at, math.MaxFloat64); !done || math.Abs(ran-.2*j.total/rate) > 1e-6*ran {
				t.Errorf("%s, %v: ended %v after %v s, want %v s", j.kind.Name, mode, done, ran, .2*j.total/rate)
			}
			jobs++
		}
	}
	t.Logf("mean error of the total: %.1f %% at the start, %.1f %% at 80 %%; of speeds after one configuration more than the probes %.1f %%", 100*before/jobs, 100*after/jobs, 100*speed/jobs)
	if after/jobs > .25 || after > before/3 {
		t.Errorf("the error of the total is %.3f at 80 %% progress, it was %.3f", after/jobs, before/jobs)
	}
	if speed/jobs > .3 {
		t.Errorf("the mean error of the speed is %.3f", speed/jobs)
	}
}

func TestClone(t *testing.T) {
	j := truths(t).newJob(0, Async, .02, rng.NewKey(1))
	at := sim.Allocation{Tasks: place.Placement{{Node: 0, Tasks: place.Counts{1, 3}}}, Generation: 1}
	show := func(p sim.Process) (out [3]float64) {
		var v policy.Job
		p.Show(&v)
		return [3]float64{v.Remaining, v.Progress, v.Speed.StepsPerSecond(3, 3)}
	}
	j.Advance(at, 500)
	show(j)
	c := j.Clone()
	before := show(j)
	c.Advance(sim.Allocation{Tasks: at.Tasks, Generation: 2}, 300)
	show(c)
	if after := show(j); before != after {
		t.Errorf("the clone's progress changed the job: %v to %v", before, after)
	}
	j.Advance(sim.Allocation{Tasks: at.Tasks, Generation: 2}, 300)
	if a, b := show(j), show(c); a != b {
		t.Errorf("the same happened to both, but %v is not %v", a, b)
	}
}

func run(t testing.TB, tr *Truths, name string, w Workload) *sim.Result {
	t.Helper()
	p, err := policy.ByName(name)
	if err != nil {
		t.Fatal(err)
	}
	r, err := sim.Run(sim.Config{Policy: p, Nodes: Cluster(), Interval: 600, Restart: 15}, tr.Workload(w))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestDeterministic(t *testing.T) {
	tr := truths(t)
	w := Workload{Jobs: 12, Arrivals: trace.Poisson(3, 600), Seed: 3}
	a, b := run(t, tr, "optimus", w), run(t, tr, "optimus", w)
	if diff := cmp.Diff(a, b); diff != "" {
		t.Error(diff)
	}
	w.Seed++
	if c := run(t, tr, "optimus", w); c.MeanJCT == a.MeanJCT {
		t.Error("another seed makes the same workload")
	}
}

// TestFig11 is the order of Fig 11 on a few seeds; the whole figure, with intervals, is benchmarks/paper's.
func TestFig11(t *testing.T) {
	tr := truths(t)
	const seeds = 3
	names := []string{"optimus", "tetris", "drf", "fifo"}
	var jct, makespan [4]float64
	for seed := range uint64(seeds) {
		for i, name := range names {
			r := run(t, tr, name, Workload{Arrivals: trace.Uniform(12000), Seed: seed})
			jct[i] += r.MeanJCT / seeds
			makespan[i] += r.Makespan / seeds
		}
	}
	t.Logf("%v: JCT %.0f s, makespan %.0f s", names, jct, makespan)
	for i := 1; i < len(names); i++ {
		if jct[i] <= jct[i-1] || makespan[i] <= makespan[i-1] {
			t.Errorf("%s (%.0f s, %.0f s) is not behind %s (%.0f s, %.0f s)", names[i], jct[i], makespan[i], names[i-1], jct[i-1], makespan[i-1])
		}
	}
}

func TestNewTruthsErrors(t *testing.T) {
	if _, err := NewTruths(nil); err == nil || !strings.Contains(err.Error(), `no measured speeds of "resnext-110"`) {
		t.Errorf("without tables: %v", err)
	}
	all := tables(t)
	for i := range all {
		all[i].Probes = all[i].Probes[:2]
	}
	if _, err := NewTruths(all); err == nil || !strings.Contains(err.Error(), "at least 3") {
		t.Errorf("two measurements each: %v", err)
	}
}
