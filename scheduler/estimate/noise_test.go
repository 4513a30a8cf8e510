package estimate

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"testing"

	"optimus/internal/shared"
)

type goldenNoise struct {
	Scenarios []struct {
		Kind      string
		InitBatch int   `json:"init_batch_size"`
		Dims      []int `json:"group_dims"`
		Steps     []struct {
			Replicas int           `json:"num_replicas"`
			Accum    int           `json:"accum_steps"`
			Batch    int           `json:"atomic_bsz"`
			Micro    [][][]float64 `json:"micro_gradients"`
			Divisor  [][]float64   `json:"precond_divisor"`
			Expect   struct {
				Sqr      float64   `json:"sqr_avg"`
				Var      float64   `json:"var_avg"`
				Sqrs     []float64 `json:"sqr_avg_groups"`
				Vars     []float64 `json:"var_avg_groups"`
				Gain     float64
				AdaScale []float64 `json:"lr_factor_adascale"`
				Adam     []float64 `json:"lr_factor_adam_gain"`
				Root     float64   `json:"lr_factor_sqrt"`
				Linear   float64   `json:"lr_factor_linear"`
				Progress float64
				Biased   bool
			}
		}
	}
	LEGW []struct {
		Scale     float64
		Warmup    float64 `json:"base_warmup_epochs"`
		Dataset   int     `json:"dataset_size"`
		InitBatch int     `json:"init_batch_size"`
		Progress  float64
		Factor    float64 `json:"lr_factor"`
	}
}

// norms computes what a trainer would report for a set of gradients.
func norms(samples [][][]float64, divisor [][]float64) (local, total []float64) {
	for g := range samples[0] {
		l, t := 0.0, 0.0
		for j := range samples[0][g] {
			d, mean := 1.0, 0.0
			if divisor != nil {
				d = divisor[g][j]
			}
			for _, s := range samples {
				x := s[g][j] / d
				l += x * x / float64(len(samples))
				mean += x / float64(len(samples))
			}
			t += mean * mean
		}
		local, total = append(local, l), append(total, t)
	}
	return local, total
}

func TestPolluxPaperNoiseScale(t *testing.T) {
	raw, err := os.ReadFile(shared.Dir(t, "pollux", "golden_gns.json"))
	if err != nil {
		t.Fatal(err)
	}
	var golden goldenNoise
	if err := json.Unmarshal(raw, &golden); err != nil {
		t.Fatal(err)
	}
	near := func(t *testing.T, what string, got, want float64) {
		t.Helper()
		if !(math.Abs(got-want) <= 1e-9*max(1, math.Abs(want))) {
			t.Errorf("%s %.15g, want %.15g", what, got, want)
		}
	}
	if len(golden.Scenarios) != 30 || len(golden.LEGW) != 30 {
		t.Fatalf("%d scenarios, %d warm-ups", len(golden.Scenarios), len(golden.LEGW))
	}
	for i, s := range golden.Scenarios {
		t.Run(fmt.Sprintf("§3.1 noise scale/%s %d", s.Kind, i), func(t *testing.T) {
			n := NoiseScale{InitBatch: s.InitBatch}
			var previous [][]float64
			for k, step := range s.Steps {
				count := step.Replicas * (step.Accum + 1)
				g := GradientNorms{Batch: step.Batch * count, Count: count}
				if samples := step.Micro; count > 1 {
					previous = nil
					g.Local, g.Total = norms(samples, step.Divisor)
				} else {
					if previous != nil {
						g.Local, g.Total = norms([][][]float64{previous, samples[0]}, step.Divisor)
					}
					previous = samples[0]
				}
				if err := n.Add(g); err != nil {
					t.Fatal(err)
				}
				at := fmt.Sprintf("step %d: ", k)
				sqr, variance := n.Sum()
				if n.Weight > 0 {
					near(t, at+"sqr", sqr, step.Expect.Sqr)
					near(t, at+"var", variance, step.Expect.Var)
					for j := range n.Sqr {
						near(t, at+"sqr of a group", n.Sqr[j]/n.Weight, step.Expect.Sqrs[j])
						near(t, at+"var of a group", n.Var[j]/n.Weight, step.Expect.Vars[j])
					}
				}
				if n.Single != step.Expect.Biased {
					t.Errorf("%snoise told by differences: %v, want %v", at, n.Single, step.Expect.Biased)
				}
				near(t, at+"square root", n.SquareRoot(g.Batch), step.Expect.Root)
				near(t, at+"linear", n.Scale(g.Batch), step.Expect.Linear)
				near(t, at+"gain", n.Gain(g.Batch), step.Expect.Gain)
				near(t, at+"progress", n.Progress, step.Expect.Progress)
				for j, want := range step.Expect.AdaScale {
					near(t, at+"AdaScale", n.AdaScale(j, g.Batch), want)
					near(t, at+"AdamScale", n.AdamScale(j, g.Batch), step.Expect.Adam[j])
				}
			}
		})
	}
	t.Run("LEGW", func(t *testing.T) {
		for _, c := range golden.LEGW {
			n := NoiseScale{InitBatch: c.InitBatch, Progress: c.Progress}
			near(t, "factor", n.LEGW(int(c.Scale*float64(c.InitBatch)), c.Warmup, c.Dataset), c.Factor)
		}
	})
	t.Run("gradients that are not finite leave the averages alone", func(t *testing.T) {
		n := NoiseScale{InitBatch: 8}
		for _, local := range []float64{2, math.NaN(), math.Inf(1)} {
			if err := n.Add(GradientNorms{Batch: 16, Count: 2, Local: []float64{local}, Total: []float64{1.5}}); err != nil {
				t.Fatal(err)
			}
		}
		sqr, _ := n.Sum()
		near(t, "sqr", sqr, 1)
		near(t, "progress", n.Progress, 3*n.Gain(16))
		if n.Add(GradientNorms{Batch: 16, Count: 2, Local: []float64{1, 1}, Total: []float64{1, 1}}) == nil {
			t.Error("another number of groups: no error")
		}
		if n.Add(GradientNorms{}) == nil {
			t.Error("no examples: no error")
		}
	})
}
