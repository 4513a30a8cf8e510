package pollux

import (
	"maps"
	"math"
	"strings"
	"testing"
	"testing/fstest"

	"optimus/scheduler/place"
	"optimus/scheduler/policy"
	"optimus/scheduler/sim"
	"optimus/scheduler/trace"
)

// toy is a set of models of one application, whose passes take 1 s and 0.1 s for each example. Its gradient is all
// noise, so an example counts the same in every batch, until the third epoch, in which it is all signal.
func toy() fstest.MapFS {
	file := func(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s)} }
	return fstest.MapFS{
		"models.json": file(`{"toy":{"init_batch_size":10,"max_batch_size":40,"min_local_bsz":5,"max_local_bsz":20,"epochs":3,"gradient_accumulation":true}}`),
		"models/toy/placements.csv": file("placement,local_bsz,step_time,sync_time\n" +
			"1,5,1.5,0\n1,20,3,0\n2,5,2,0.5\n2,20,3.5,0.5\n11,5,2.5,1\n11,20,4,1\n4,5,2,0.5\n4,10,2.5,0.5\n13,5,3,1.5\n13,10,3.5,1.5\n"),
		"models/toy/interpolated-5-16-nodes.csv": file("num_nodes,num_replicas,local_bsz,step_time,sync_time\n5,5,5,9,7.5\n5,5,8,9.3,7.5\n"),
		"models/toy/validation-10.csv":           file("progress,iteration,metric,grad_sqr,grad_var\n100,100,1,0,1\n200,200,2,0,1\n300,300,3,1,0\n"),
		"models/toy/validation-40.csv":           file("progress,iteration,metric,grad_sqr,grad_var\n110,28,1,0,1\n210,50,2,0,1\n310,130,3,1,0\n"),
	}
}

func toyModels(t testing.TB) Models {
	t.Helper()
	m, err := Load(toy())
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// toyJob makes a job of the toy with the user's GPUs and batch.
func toyJob(t testing.TB, kind Kind, gpus, batch int) sim.Job {
	t.Helper()
	jobs, err := Jobs(toyModels(t), []trace.PolluxJob{{Name: "job", Application: "toy", GPUs: gpus, Batch: batch}}, kind)
	if err != nil {
		t.Fatal(err)
	}
	return jobs[0]
}

// on returns an allocation with so many GPUs on each node.
func on(gpus ...int) sim.Allocation {
	a := sim.Allocation{Nodes: Cluster(len(gpus))}
	for i, n := range gpus {
		a.Tasks = append(a.Tasks, place.Share{Node: i, Tasks: place.Counts{0, n}})
	}
	return a
}

func TestBadModels(t *testing.T) {
	for want, change := range map[string]func(fstest.MapFS){
		"models.json":             func(m fstest.MapFS) { delete(m, "models.json") },
		"models.json: unexpected": func(m fstest.MapFS) { m["models.json"].Data = []byte("{") },
		"initial batch is 0":      func(m fstest.MapFS) { m["models.json"].Data = []byte(`{"toy":{"epochs":1}}`) },
		"toy/placements.csv":      func(m fstest.MapFS) { delete(m, "models/toy/placements.csv") },
		"interpolated":            func(m fstest.MapFS) { delete(m, "models/toy/interpolated-5-16-nodes.csv") },
		"no validation-BATCH.csv": func(m fstest.MapFS) {
			maps.DeleteFunc(m, func(n string, _ *fstest.MapFile) bool { return strings.Contains(n, "valid") })
		},
		"must be validation-BATCH": func(m fstest.MapFS) { m["models/toy/validation-x.csv"] = m["models/toy/validation-10.csv"] },
		"1 of 3 epochs":            func(m fstest.MapFS) { shorten(m["models/toy/validation-40.csv"], 2) },
		"listed once each": func(m fstest.MapFS) {
			m["models/toy/placements.csv"].Data = append(m["models/toy/placements.csv"].Data, "31,5,3,1\n"...)
		},
		"5 GPUs on 5 nodes": func(m fstest.MapFS) {
			f := m["models/toy/interpolated-5-16-nodes.csv"]
			f.Data = append(f.Data, "5,5,5,3,1\n"...)
		},
		`line 3: field "step_time"`: func(m fstest.MapFS) {
			f := m["models/toy/placements.csv"]
			shorten(f, 2)
			f.Data = append(f.Data, "1,6,x,0\n"...)
		},
	} {
		fsys := toy()
		change(fsys)
		if _, err := Load(fsys); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
}

// shorten keeps the first lines of a file.
func shorten(f *fstest.MapFile, lines int) {
	f.Data = []byte(strings.Join(strings.SplitAfter(string(f.Data), "\n")[:lines], ""))
}

func TestBadJobs(t *testing.T) {
	if _, err := Jobs(toyModels(t), []trace.PolluxJob{{Name: "job", Application: "gpt"}}, Elastic); err == nil || !strings.Contains(err.Error(), `"gpt"`) {
		t.Errorf("error %v, want one that names the application", err)
	}
	for _, c := range []struct {
		kind        Kind
		gpus, batch int
		want        string
	}{
		{Rigid, 1, 9, "batch_size 9"}, {Elastic, 1, 41, "batch_size 41"}, {Rigid, 65, 40, "num_replicas 65"}, {Rigid, 5, 24, "at least"},
		{Rigid, 4, 20, ""}, {Elastic, 100, 20, ""}, {Adaptive, 100, 1000, ""},
	} {
		j := toyJob(t, c.kind, c.gpus, c.batch)
		if (j.Impossible == "") != (c.want == "") || !strings.Contains(j.Impossible, c.want) || (j.Process == nil) != (c.want != "") {
			t.Errorf("%+v: impossible because %q", c, j.Impossible)
		}
	}
}

// The seconds of a whole job by hand. Epochs end at 100, 200 and 300 iterations at M₀.
func TestAdvance(t *testing.T) {
	slow := on(2)
	slow.Slowdown, slow.Slow = 0.5, []float64{2}
	for _, c := range []struct {
		name    string
		kind    Kind
		batch   int
		a       sim.Allocation
		seconds float64
	}{
		// m = 10 on one GPU: 2 s for a gain of 1.
		{"M₀", Elastic, 10, on(1), 3 * 100 * 2},
		// m = 10, twice: 4 s for a gain of 2, and of 1 while all is signal.
		{"accumulation", Elastic, 20, on(1), 2*100*2 + 100*4},
		// m = 10: 2.5 s for a gain of 2, then of 1.
		{"two GPUs", Elastic, 20, on(2), 2*100*1.25 + 100*2.5},
		{"two nodes", Rigid, 20, on(1, 1), 2*100*1.5 + 100*3},
		{"any rotation", Elastic, 40, on(3, 1), 2*100*0.875 + 100*3.5}, // 87.5 is rounded to 88, the other way to even
		{"disturbed", Elastic, 20, slow, 4 * (2*100*1.25 + 100*2.5)},
		{"many nodes", Elastic, 40, on(1, 1, 1, 1, 1), 2*100*2.325 + 100*9.3}, // 40 on 5 is 8 each
	} {
		t.Run(c.name, func(t *testing.T) {
			j := toyJob(t, c.kind, 2, c.batch)
			at := j.Process.Clone()
			ran, done := at.Advance(c.a, 1e6)
			if !done || ran < c.seconds-1.5 || ran > c.seconds+1.5 {
				t.Errorf("%v s, done %v; want %v", ran, done, c.seconds)
			}
			// In pieces it is the same, up to the whole seconds at which epochs end.
			total, pieces := 0.0, j.Process.Clone()
			for done = false; !done && total < 1e6; total += ran {
				ran, done = pieces.Advance(c.a, 7)
			}
			if total < c.seconds-1.5 || total > c.seconds+1.5 {
				t.Errorf("in pieces %v s, want %v", total, c.seconds)
			}
		})
	}
}

// A job does nothing where nothing was measured.
func TestAdvanceUnmeasured(t *testing.T) {
	for _, a := range []sim.Allocation{on(3), on(1, 1, 1, 1, 1, 1), on(4, 4)} {
		j := toyJob(t, Elastic, 1, 40)
		if ran, done := j.Process.Advance(a, 1e6); done || ran != 1e6 {
			t.Errorf("%v: ran %v s, done %v", a.Tasks, ran, done)
		}
	}
}

func TestShow(t *testing.T) {
	show := func(p sim.Process) (j policy.Job) { p.Show(&j); return j }
	rigid := show(toyJob(t, Rigid, 4, 20).Process)
	if rigid.Min[1] != 4 || rigid.Max[1] != 4 || !rigid.Ring {
		t.Errorf("rigid: %+v", rigid)
	}
	p := toyJob(t, Elastic, 4, 20).Process
	elastic := show(p)
	// Batch 20 is a third of the way from 10 to 40: 76 iterations for the first epoch, 243⅓ for all three. 4 GPUs
	// take 5 examples each, more cannot.
	if elastic.Max[1] != 4 || elastic.Min[1] != 0 || math.Abs(elastic.Remaining-(243+1.0/3-76)) > 1e-9 {
		t.Errorf("elastic: %+v", elastic)
	}
	if f := elastic.Speed.StepsPerSecond(0, 2); f != 1/2.5 {
		t.Errorf("speed %v, want that of 10 examples on each of 2 GPUs", f)
	}
	if f := elastic.Speed.StepsPerSecond(0, 9); f != 0 {
		t.Errorf("speed %v on more GPUs than there are examples for", f)
	}
	p.Advance(on(2), 300)
	if later := show(p); later.Remaining != 1 || later.Progress <= 0.6 || later.Progress >= 1 {
		t.Errorf("in the last epoch: %+v", later)
	}
}

// An adaptive job tries one GPU first, then twice as many as it has been on, and learns what they are worth.
func TestAgent(t *testing.T) {
	p := toyJob(t, Adaptive, 7, 33).Process
	show := func() (j policy.Job) { p.Show(&j); return j }
	if j := show(); j.Max[1] != 1 || j.Min[1] != 0 {
		t.Errorf("at first: %v to %v GPUs", j.Min, j.Max)
	}
	p.Advance(on(1), 10)
	first := show()
	if v, b := first.Goodput.Best(1, 1); first.Max[1] != 2 || v <= 0 || b.Total(1) < 10 {
		t.Errorf("after one GPU: %v, goodput %v with %v", first.Max, v, b)
	}
	other := p.Clone()
	other.Advance(on(2), 10)
	p.Advance(on(4), 10)
	if j := show(); j.Max[1] != 8 {
		t.Errorf("after 4 GPUs at most %d", j.Max[1])
	}
	var j policy.Job
	if other.Show(&j); j.Max[1] != 4 {
		t.Errorf("the clone learned from the other: %d", j.Max[1])
	}
	p.Advance(on(1), 1)
	one, _ := show().Goodput.Best(1, 1)
	four, b := show().Goodput.Best(1, 4)
	if four <= 1.5*one || b.Total(4) > 40 {
		t.Errorf("goodput %v on 4 GPUs with %v, %v on one; noise alone makes large batches worth it", four, b, one)
	}
}
