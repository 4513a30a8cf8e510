package trace

import (
	"bytes"
	"errors"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"optimus/internal/shared"
	"optimus/scheduler/estimate"
)

func open(t testing.TB, elem ...string) *os.File {
	f, err := os.Open(shared.Dir(t, elem...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func TestReadPhilly(t *testing.T) {
	jobs, err := ReadPhilly("philly.csv", strings.NewReader("timestamp,duration,num_gpus,gpu_time,cluster\n"+
		"2017-10-09 07:01:55,66.0,1,66.0,11cb48\n2017-10-09 06:01:55,2951.0,8,23608,6214e9\n"))
	want := []PhillyJob{{0, 2951, 8, "6214e9"}, {3600, 66, 1, "11cb48"}}
	if err != nil || !cmp.Equal(want, jobs) {
		t.Errorf("%v, %v", jobs, err)
	}
	t.Run("the whole trace", func(t *testing.T) {
		jobs, err := ReadPhilly("philly.csv", open(t, "traces", "philly.csv"))
		if err != nil || len(jobs) != 82247 || jobs[0].Submit != 0 {
			t.Errorf("%d jobs, %v", len(jobs), err)
		}
	})
}

func TestReadGavel(t *testing.T) {
	jobs, err := ReadGavel("g.csv", strings.NewReader("job_type,total_steps,scale_factor,mode,priority_weight,slo,duration_s,arrival_s\n"+
		"LM (batch size 10),134583,4,gns,2,-1.000000,1418,3.5\nA3C,7,1,static,1,60,9,0\n"))
	want := []GavelJob{
		{Kind: GavelKind{"A3C", 0}, Steps: 7, GPUs: 1, Weight: 1, SLO: 60, Mode: "static", Duration: 9},
		{Kind: GavelKind{"LM", 10}, Steps: 134583, Submit: 3.5, GPUs: 4, Weight: 2, Mode: "gns", Duration: 1418},
	}
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, jobs); diff != "" {
		t.Error(diff)
	}
	for file, n := range map[string]int{"gavel/msr_seed0.csv": 15264, "gavel/max_min_fairness.csv": 96, "shockwave/460_jobs_dynamic.csv": 460} {
		if jobs, err := ReadGavel(file, open(t, "traces", file)); err != nil || len(jobs) != n {
			t.Errorf("%s: %d jobs, %v; want %d", file, len(jobs), err, n)
		}
	}
}

func TestReadGavelSpeeds(t *testing.T) {
	speeds, err := ReadGavelSpeeds("t.json", strings.NewReader(`{"v100":{"('LM (batch size 5)', 2)":{"null":7.5,"('X (batch size 1)', 1)":[1,2]},"('LM (batch size 5)', 1)":{"null":4}}}`))
	want := []GavelSpeed{{"v100", GavelKind{"LM", 5}, 1, 4}, {"v100", GavelKind{"LM", 5}, 2, 7.5}}
	if err != nil || !cmp.Equal(want, speeds) {
		t.Errorf("%v, %v", speeds, err)
	}
	all, err := ReadGavelSpeeds("t.json", open(t, "traces", "gavel", "simulation_throughputs.json"))
	if err != nil {
		t.Fatal(err)
	}
	sizes := map[int]bool{}
	for _, s := range all {
		if s.GPU == "v100" && s.Kind == (GavelKind{"ResNet-18", 128}) {
			sizes[s.GPUs] = s.Speed > 0
		}
	}
	if !cmp.Equal(sizes, map[int]bool{1: true, 2: true, 4: true, 8: true}) {
		t.Errorf("ResNet-18 on v100: %v", sizes)
	}
}

func TestReadSpeeds(t *testing.T) {
	tables, rejected, err := ReadSpeeds("s.csv", strings.NewReader("model,mode,global_batch,ps,workers,samples_per_s,worker_samples_per_s\n"+
		"a,dist_sync,32,1,2,64,30;34\na,dist_sync,32,2,2,64,64;0\na,dist_sync,32,2,3,NaN,1;2;3\nb,dist_sync,8,1,1,4,4\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := []SpeedTable{
		{"a", "dist_sync", 32, []estimate.Probe{{Servers: 1, Workers: 2, Speed: 2}}, []int{2}},
		{"b", "dist_sync", 8, []estimate.Probe{{Servers: 1, Workers: 1, Speed: .5}}, []int{5}},
	}
	if diff := cmp.Diff(want, tables); diff != "" {
		t.Error(diff)
	}
	if len(rejected) != 2 || rejected[0].Line != 3 || rejected[1].Line != 4 || !strings.Contains(rejected[0].Problem, "worker 1") {
		t.Errorf("rejected %+v", rejected)
	}
	tables, rejected, err = ReadSpeeds("testbed_speed.csv", open(t, "speed", "testbed_speed.csv"))
	if err != nil || len(tables) != 6 || len(rejected) != 9 {
		t.Errorf("%d tables, %d rejected, %v; want 6 and vgg-16's 9", len(tables), len(rejected), err)
	}
}

// TestBadTraces: one clear error that names file, line and field.
func TestBadTraces(t *testing.T) {
	philly := func(s string) error { _, err := ReadPhilly("f", strings.NewReader(s)); return err }
	gavel := func(s string) error { _, err := ReadGavel("f", strings.NewReader(s)); return err }
	speeds := func(s string) error { _, _, err := ReadSpeeds("f", strings.NewReader(s)); return err }
	throughputs := func(s string) error { _, err := ReadGavelSpeeds("f", strings.NewReader(s)); return err }
	const p, g = "timestamp,duration,num_gpus,cluster\n", "job_type,total_steps,scale_factor,arrival_s\n"
	for _, c := range []struct {
		name string
		err  error
		want string
	}{
		{"empty", philly(""), "trace: f: the file is empty; its first line must name the columns"},
		{"missing column", philly("timestamp,duration,cluster\n"), `trace: f: line 1: field "num_gpus": the column is missing`},
		{"a column twice", gavel("job_type,job_type\n"), `trace: f: line 1: field "job_type": the column is there twice`},
		{"short line", philly(p + "a,b\n"), "trace: f: line 2: wrong number of fields"},
		{"negative time", philly(p + "2017-10-09 07:01:55,-1,1,a\n"), `trace: f: line 2: field "duration": it is -1, but must be at least 0`},
		{"not a time", philly(p + "now,1,1,a\n"), `trace: f: line 2: field "timestamp": "now" is not a time such as "2006-01-02 15:04:05"`},
		{"no GPUs", philly(p + "2017-10-09 07:01:55,1,0,a\n"), `trace: f: line 2: field "num_gpus": it is 0, but must be at least 1`},
		{"NaN", gavel(g + "\nA (batch size 1),1,1,0\nA (batch size 1),1,1,NaN\n"), `trace: f: line 4: field "arrival_s": "NaN" is not a finite number`},
		{"half a step", gavel(g + "A,1.5,1,0\n"), `trace: f: line 2: field "total_steps": "1.5" is not a whole number below 2³¹`},
		{"no batch", gavel(g + "A (batch size 0),1,1,0\n"), `trace: f: line 2: field "job_type": "A (batch size 0)" has a batch size that is not a number from 1`},
		{"unknown mode", gavel("job_type,total_steps,scale_factor,arrival_s,mode\nA,1,1,0,fast\n"), `trace: f: line 2: field "mode": "fast" is neither "static", "accordion" nor "gns"`},
		{"no servers", speeds("model,mode,global_batch,ps,workers,samples_per_s\na,b,1,0,1,5\n"), `trace: f: line 2: field "ps": it is 0, but must be at least 1`},
		{"no JSON", throughputs("v100"), "trace: f: not a table of throughputs: invalid character 'v' looking for beginning of value"},
		{"no key", throughputs(`{"v100":{"A":{"null":1}}}`), `trace: f: field "v100.A": the key is not like ('model (batch size B)', GPUs)`},
		{"no speed", throughputs(`{"v100":{"('A', 1)":{}}}`), `trace: f: field "v100.('A', 1)": it has no "null", the speed of the job alone`},
		{"negative speed", throughputs(`{"v100":{"('A', 1)":{"null":-1}}}`), `trace: f: field "v100.('A', 1)": the speed -1 is not a finite number ≥ 0`},
	} {
		var e *FieldError
		if !errors.As(c.err, &e) || c.err.Error() != c.want {
			t.Errorf("%s:\ngot  %v\nwant %s", c.name, c.err, c.want)
		}
	}
}

func TestArrivals(t *testing.T) {
	const n = 3000
	for _, name := range []string{"uniform", "poisson", "google"} {
		a, err := Named(name)
		if err != nil {
			t.Fatal(err)
		}
		x, again, other := a.Draw(n, 1), a.Draw(n, 1), a.Draw(n, 2)
		if len(x) != n || !slices.IsSorted(x) || x[0] < 0 || !slices.Equal(x, again) || slices.Equal(x, other) {
			t.Errorf("%s: not %d increasing times that depend on the seed alone", name, n)
		}
	}
	if _, err := Named("bursty"); err == nil {
		t.Error("a name that is not known was taken")
	}
	t.Run("means of 20 seeds", func(t *testing.T) {
		middle, gap := 0.0, 0.0
		for seed := range uint64(20) {
			x := Uniform(12000).Draw(n, seed)
			middle += sum(x) / n / 20
			if x[n-1] > 12000 {
				t.Errorf("uniform: a job at %.0f s", x[n-1])
			}
			gap += Poisson(3, 600).Draw(n, seed)[n-1] / n / 20
		}
		if math.Abs(middle-6000) > 50 || math.Abs(gap-200) > 3 {
			t.Errorf("uniform: mean %.0f s, want 6000; poisson: mean gap %.1f s, want 200", middle, gap)
		}
	})
	t.Run("google", func(t *testing.T) {
		inSlot := map[int]int{}
		for _, at := range Google(7*3600, 600, n).Draw(n, 3) {
			inSlot[int(at/600)]++
		}
		if mean := float64(n-inSlot[1]) / 41; float64(inSlot[1]) < 15*mean || float64(inSlot[1]) > 30*mean {
			t.Errorf("%d jobs in the spike, %.1f in a usual slot", inSlot[1], mean)
		}
		for slot, m := range inSlot {
			if slot > 41 {
				t.Errorf("%d jobs after 7 h", m)
			}
		}
		capped := map[int]int{}
		for _, at := range Google(7*3600, 600, 15).Draw(60, 3) {
			if capped[int(at/600)]++; capped[int(at/600)] > 15 {
				t.Errorf("more than 15 jobs in slot %d", int(at/600))
			}
		}
	})
}

func sum(x []float64) float64 {
	s := 0.0
	for _, v := range x {
		s += v
	}
	return s
}

func FuzzReadPhilly(f *testing.F) {
	f.Add([]byte("timestamp,duration,num_gpus,cluster\n2017-10-09 07:01:55,66.0,1,11cb48\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		jobs, err := ReadPhilly("f", bytes.NewReader(data))
		for _, j := range jobs {
			if err != nil || j.GPUs < 1 || !(j.Duration >= 0) || !(j.Submit >= 0) || j.Cluster == "" {
				t.Fatalf("%+v, %v", j, err)
			}
		}
	})
}

func FuzzReadGavel(f *testing.F) {
	f.Add([]byte("job_type,total_steps,scale_factor,arrival_s,slo\nA (batch size 1),1,1,0,-1\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		jobs, err := ReadGavel("f", bytes.NewReader(data))
		for _, j := range jobs {
			if err != nil || j.GPUs < 1 || j.Steps < 1 || !(j.Submit >= 0) || !(j.SLO >= 0) || j.Kind.Model == "" {
				t.Fatalf("%+v, %v", j, err)
			}
		}
	})
}

func FuzzReadGavelSpeeds(f *testing.F) {
	f.Add([]byte(`{"v100":{"('LM (batch size 5)', 2)":{"null":7.5}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		speeds, err := ReadGavelSpeeds("f", bytes.NewReader(data))
		for _, s := range speeds {
			if err != nil || s.GPUs < 1 || !(s.Speed >= 0) || math.IsInf(s.Speed, 0) {
				t.Fatalf("%+v, %v", s, err)
			}
		}
	})
}

func FuzzReadSpeeds(f *testing.F) {
	f.Add([]byte("model,mode,global_batch,ps,workers,samples_per_s\na,dist_sync,32,1,2,64\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		tables, _, err := ReadSpeeds("f", bytes.NewReader(data))
		for _, table := range tables {
			for _, p := range table.Probes {
				if err != nil || p.Servers < 1 || p.Workers < 1 || !(p.Speed > 0) {
					t.Fatalf("%+v, %v", p, err)
				}
			}
		}
	})
}
