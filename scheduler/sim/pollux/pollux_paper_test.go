package pollux

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"optimus/internal/shared"
)

// golden is golden_sim.json: look-ups in the paper's simulator.
type golden struct {
	Apps map[string]struct {
		InitBatch int `json:"init_batch_size"`
		MaxBatch  int `json:"max_batch_size"`
		MinPerGPU int `json:"min_local_bsz"`
		MaxPerGPU int `json:"max_local_bsz"`
		Epochs    int `json:"max_epochs"`

		Placements   []lookUp `json:"placement_lookup"`
		Triangulated []lookUp `json:"triangulated"`
		Curves       []struct {
			Batch      float64  `json:"batch_size"`
			Epoch      int      `json:"epoch"`
			Sqr        float64  `json:"grad_sqr"`
			Var        float64  `json:"grad_var"`
			Metric     *float64 `json:"best_metric"`
			Iterations float64  `json:"iteration"`
			Last       int      `json:"completion_epoch"`
		} `json:"curves"`
		Ends  []float64 `json:"progress_at_epoch_end"`
		Tuned []struct {
			GPUs  int     `json:"num_replicas"`
			Batch int     `json:"batch_size"`
			JCT   float64 `json:"isolated_jct"`
		} `json:"tuned_configurations"`
	} `json:"apps"`
}

type lookUp struct {
	Placement []int   `json:"placement"`
	PerGPU    int     `json:"local_bsz"`
	Step      float64 `json:"step_time"`
	Sync      float64 `json:"sync_time"`
}

func TestGolden(t *testing.T) {
	data, err := os.ReadFile(shared.Dir(t, "pollux", "golden_sim.json"))
	if err != nil {
		t.Fatal(err)
	}
	var g golden
	if err := json.Unmarshal(data, &g); err != nil {
		t.Fatal(err)
	}
	models := loaded(t)
	if len(g.Apps) != len(models) {
		t.Fatalf("%d applications, want those of the golden file: %d", len(models), len(g.Apps))
	}
	for name, want := range g.Apps {
		a := models[name]
		within := func(t *testing.T, tolerance float64, what string, got, want float64) {
			t.Helper()
			if !(math.Abs(got-want) <= tolerance*math.Abs(want)) {
				t.Errorf("%s %s is %v, want %v", name, what, got, want)
			}
		}
		close := func(t *testing.T, what string, got, want float64) {
			t.Helper()
			within(t, 1e-9, what, got, want)
		}
		look := func(t *testing.T, l lookUp, tolerance float64) {
			t.Helper()
			step, sync, ok := a.timings.at(l.Placement, l.PerGPU)
			if !ok {
				t.Errorf("%s: no time with %d examples on %v", name, l.PerGPU, l.Placement)
			}
			within(t, tolerance, fmt.Sprint("step with ", l.PerGPU, " on ", l.Placement), step, l.Step)
			within(t, tolerance, fmt.Sprint("sync with ", l.PerGPU, " on ", l.Placement), sync, l.Sync)
		}
		t.Run(name+"/limits", func(t *testing.T) {
			l := a.Limits
			if got, want := [5]int{l.InitBatch, l.MaxBatch, l.MinPerGPU, l.MaxPerGPU, a.Epochs},
				[5]int{want.InitBatch, want.MaxBatch, want.MinPerGPU, want.MaxPerGPU, want.Epochs}; got != want {
				t.Errorf("limits %v, want %v", got, want)
			}
		})
		t.Run(name+"/placements", func(t *testing.T) {
			for _, l := range want.Placements {
				look(t, l, 1e-9)
			}
		})
		t.Run(name+"/more than 4 nodes", func(t *testing.T) {
			tolerance := 1e-9
			if name == "ncf" { // of which the files hold two interpolations; it never runs on so many nodes
				tolerance = 0.1
			}
			for _, l := range want.Triangulated {
				look(t, l, tolerance)
			}
		})
		t.Run(name+"/curves", func(t *testing.T) {
			for _, c := range want.Curves {
				sqr, variance := a.gradient(c.Batch, c.Epoch)
				close(t, "sqr", sqr, c.Sqr)
				close(t, "var", variance, c.Var)
				close(t, "iterations", a.iterations(c.Batch, c.Epoch), c.Iterations)
				if c.Last != a.Epochs-1 {
					t.Errorf("last epoch %d, want %d", a.Epochs-1, c.Last)
				}
				best, ok := a.BestMetric(c.Batch, c.Epoch)
				if ok != (c.Metric != nil) {
					t.Errorf("best metric before epoch %d: %v, want %v", c.Epoch, ok, c.Metric)
				} else if ok {
					close(t, "best metric", best, *c.Metric)
				}
			}
		})
		t.Run(name+"/epochs", func(t *testing.T) {
			if len(want.Ends) != len(a.ends) {
				t.Fatalf("%d ends of epochs, want %d", len(a.ends), len(want.Ends))
			}
			for e, end := range want.Ends {
				close(t, fmt.Sprint("progress at the end of epoch ", e), a.ends[e], end)
			}
		})
		t.Run(name+"/tuned configurations", func(t *testing.T) {
			for _, c := range want.Tuned {
				// Chosen with the batch rounded up for all GPUs, and in one pass on a single GPU.
				limits := a.Limits
				limits.InitBatch, limits.MaxBatch = c.Batch, 2*c.Batch
				b, ok := limits.Fixed(c.Batch, c.GPUs)
				step, sync, measured := a.timings.at(packed(c.GPUs), b.PerGPU)
				if !ok || !measured {
					t.Fatalf("%d GPUs with batch %d cannot run", c.GPUs, c.Batch)
				}
				iteration := step + float64(b.Accumulation)*(step-sync)
				close(t, "time alone", a.iterations(float64(c.Batch), a.Epochs-1)*iteration, c.JCT)
			}
		})
	}
}

// Outside of what was measured there is no time.
func TestNotMeasured(t *testing.T) {
	a := loaded(t)["bert"]
	for _, c := range []struct {
		placement []int
		perGPU    int
	}{{[]int{4}, 3}, {[]int{4}, 13}, {[]int{5}, 8}, {nil, 8}, {[]int{4, 4, 4, 4, 5}, 3}} {
		if _, _, ok := a.timings.at(c.placement, c.perGPU); ok {
			t.Errorf("a time with %d examples on %v", c.perGPU, c.placement)
		}
	}
	if !strings.Contains(fmt.Sprint(loaded(t).Names()), "bert cifar10") {
		t.Errorf("names %v", loaded(t).Names())
	}
}
