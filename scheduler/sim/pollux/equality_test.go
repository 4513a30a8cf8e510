package pollux

import (
	stdcmp "cmp"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"optimus/internal/shared"
	"optimus/scheduler/policy"
	"optimus/scheduler/sim"
	"optimus/scheduler/trace"
)

var models = sync.OnceValues(func() (Models, error) {
	root, err := shared.Root()
	if err != nil {
		return nil, err
	}
	return Load(os.DirFS(filepath.Join(root, "data", "pollux")))
})

// loaded returns the models, or skips the test where the data are not.
func loaded(t testing.TB) Models {
	t.Helper()
	shared.Dir(t, "pollux")
	m, err := models()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

var (
	workloads = []string{"workload-1", "workload-2", "workload-4", "workload-5", "workload-6", "workload-8"}
	folders   = map[string]string{"0.5": "workloads-0.5", "1.0": "workloads", "1.5": "workloads-1.5", "2.0": "workloads-2.0", "realistic": "workloads-realistic"}
)

// workload reads one of the paper's workloads.
func workload(t testing.TB, load, name string) []trace.PolluxJob {
	t.Helper()
	file := shared.Dir(t, "pollux", folders[load], name+".csv")
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	jobs, err := trace.ReadPollux(file, f, loaded(t).Names())
	if err != nil {
		t.Fatal(err)
	}
	return jobs
}

// simulate runs a workload as the paper's simulator does.
func simulate(t testing.TB, w []trace.PolluxJob, policyName string, change ...func(*sim.Config)) *sim.Result {
	t.Helper()
	p, err := policy.ByName(policyName)
	if err != nil {
		t.Fatal(err)
	}
	jobs, err := Jobs(loaded(t), w, KindFor(policyName))
	if err != nil {
		t.Fatal(err)
	}
	cfg := sim.Config{Policy: p, Nodes: Cluster(MaxNodes), Interval: 60, Restart: 30}
	for _, c := range change {
		c(&cfg)
	}
	r, err := sim.Run(cfg, jobs)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// published is what the authors' simulator gave: by experiment, then by workload.
type published map[string]map[string]struct {
	Mean float64            `json:"avg_jct"`
	JCT  map[string]float64 `json:"jct"`
}

func readPublished(t testing.TB) published {
	t.Helper()
	data, err := os.ReadFile(shared.Dir(t, "pollux", "expected", "jct.json"))
	if err != nil {
		t.Fatal(err)
	}
	var all published
	if err := json.Unmarshal(data, &all); err != nil {
		t.Fatal(err)
	}
	return all
}

// artifact is what the authors call the deterministic policies.
var artifact = map[string]string{"tiresias": "tiresias", "optimus+oracle": "optimus"}

// The deterministic policies give every job of every workload the published completion time. With -short one workload
// of each load is enough.
func TestCompletionTimes(t *testing.T) {
	all := readPublished(t)
	names := workloads
	if testing.Short() {
		names = []string{"workload-6"}
	}
	for policyName, theirs := range artifact {
		for load := range folders {
			key := fmt.Sprintf("jobload/%s-%s", theirs, load)
			if load == "realistic" {
				key = fmt.Sprintf("realistic/%s-1.0", theirs)
			}
			for _, name := range names {
				t.Run(fmt.Sprintf("%s/%s/%s", policyName, load, name), func(t *testing.T) {
					t.Parallel()
					want, got := all[key][name], map[string]float64{}
					for _, j := range simulate(t, workload(t, load, name), policyName).Jobs {
						got[j.Name] = j.JCT
					}
					if diff := cmp.Diff(want.JCT, got); diff != "" || len(got) == 0 {
						t.Errorf("job completion times in s, published and ours: %s", diff)
					}
				})
			}
		}
	}
}

// The allocations of workload 6 are the published ones, change by change.
func TestAllocations(t *testing.T) {
	type change struct {
		At    float64
		Job   string
		Nodes string // of each GPU
	}
	less := func(a, b change) int { return stdcmp.Or(stdcmp.Compare(a.At, b.At), stdcmp.Compare(a.Job, b.Job)) }
	for policyName, theirs := range artifact {
		t.Run(policyName, func(t *testing.T) {
			t.Parallel()
			data, err := os.ReadFile(shared.Dir(t, "pollux", "expected", "events-"+theirs+"-workload-6.json"))
			if err != nil {
				t.Fatal(err)
			}
			var events struct {
				Events [][3]json.RawMessage `json:"events"`
			}
			if err := json.Unmarshal(data, &events); err != nil {
				t.Fatal(err)
			}
			var want, got []change
			for _, e := range events.Events {
				var c change
				var gpus []int
				for i, into := range []any{&c.At, &c.Job, &gpus} {
					if err := json.Unmarshal(e[i], into); err != nil {
						t.Fatal(err)
					}
				}
				if len(gpus) > 0 {
					slices.Sort(gpus)
					c.Nodes = fmt.Sprint(gpus)
					want = append(want, c)
				}
			}
			index := map[string]int{}
			for i, n := range Cluster(MaxNodes) {
				index[n.ID] = i
			}
			for _, s := range simulate(t, workload(t, "1.0", "workload-6"), policyName).Timeline {
				var gpus []int
				for _, n := range s.Nodes {
					gpus = append(gpus, slices.Repeat([]int{index[n.Node]}, n.Tasks.Total())...)
				}
				got = append(got, change{s.Start, s.Job, fmt.Sprint(gpus)})
			}
			slices.SortFunc(want, less)
			slices.SortFunc(got, less)
			if diff := cmp.Diff(want, got); diff != "" || len(got) == 0 {
				t.Error(diff)
			}
		})
	}
}

// The statistics of workload 6, as published: to 0.1 h.
func TestStatistics(t *testing.T) {
	for policyName, want := range map[string][3]float64{ // mean in s, 99th percentile and makespan in h
		"tiresias": {3469.69375, 12.9, 21.8}, "optimus+oracle": {5301.875, 12.4, 18.4},
	} {
		r := simulate(t, workload(t, "1.0", "workload-6"), policyName)
		hours := func(s float64) float64 { return math.Round(s/360) / 10 }
		if got := [3]float64{r.MeanJCT, hours(r.P99JCT), hours(r.Makespan)}; got != want {
			t.Errorf("%s: mean, p99 and makespan %v, want %v", policyName, got, want)
		}
	}
}
