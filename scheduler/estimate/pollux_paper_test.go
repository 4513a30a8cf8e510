package estimate

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"testing"

	"optimus/internal/shared"
)

// goldenGoodput are values of the authors' implementation. A model is its vector of parameters, the gradient's
// statistics and the limits; not every list has all.
type goldenGoodput struct {
	Points    []goldenPoint `json:"throughput_efficiency"`
	Optimize  []goldenBest
	Speedup   []goldenSpeedup
	Objective []goldenLoss
	Fit       []goldenFit
}

type goldenModel struct {
	Perf       params
	Sqr        float64 `json:"grad_sqr"`
	Var        float64 `json:"grad_var"`
	InitBatch  int     `json:"init_batch_size"`
	MaxBatch   int     `json:"max_batch_size"`
	MinPerGPU  int     `json:"min_atomic_bsz"`
	MaxPerGPU  int     `json:"max_atomic_bsz"`
	Accumulate bool    `json:"accumulation"`
	Nodes      int     `json:"num_nodes"`
	GPUs       int     `json:"num_replicas"`
	PerGPU     int     `json:"atomic_bsz"`
	Passes     int     `json:"accum_steps"`
	Goodput    float64
}

func (m goldenModel) model() Goodput {
	limits := Limits{m.InitBatch, m.MaxBatch, m.MinPerGPU, m.MaxPerGPU, m.Accumulate}
	return Goodput{m.Perf.throughput(), m.Sqr, m.Var, limits}
}

type goldenPoint struct {
	goldenModel
	Total      int     `json:"batch_size"`
	Grad       float64 `json:"accum_time"`
	Sync       float64 `json:"network_time"`
	Last       float64 `json:"optim_time"`
	Iter       float64 `json:"iter_time"`
	Throughput float64
	Efficiency float64
}

type goldenBest struct {
	goldenModel
	Margin *float64 `json:"relative_margin_to_next"`
}

type goldenSpeedup struct {
	goldenModel
	Base    float64      `json:"base_goodput_1x1"`
	Speedup [][3]float64 // nodes, GPUs, speedup
}

type goldenRecords struct {
	Nodes  []int     `json:"num_nodes"`
	GPUs   []int     `json:"num_replicas"`
	PerGPU []int     `json:"atomic_bsz"`
	Grad   []float64 `json:"accum_step_time"`
	Last   []float64 `json:"optim_step_time"`
}

func (g goldenRecords) records() (records []Record) {
	for i := range g.Nodes {
		records = append(records, Record{g.Nodes[i], g.GPUs[i], g.PerGPU[i], g.Grad[i], g.Last[i]})
	}
	return records
}

type goldenLoss struct {
	goldenRecords
	Perf      params
	Objective float64
	Gradient  params
}

type goldenFit struct {
	goldenRecords
	Stage     int
	Objective float64 `json:"objective_at_fit"`
}

func readGoldenGoodput(t testing.TB) (golden goldenGoodput) {
	t.Helper()
	raw, err := os.ReadFile(shared.Dir(t, "pollux", "golden_goodput.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &golden); err != nil {
		t.Fatal(err)
	}
	for _, n := range [][2]int{{len(golden.Points), 200}, {len(golden.Optimize), 200}, {len(golden.Speedup), 30}, {len(golden.Objective), 60}, {len(golden.Fit), 80}} {
		if n[0] != n[1] {
			t.Fatalf("%d golden values where %d are known", n[0], n[1])
		}
	}
	return golden
}

func TestPolluxPaper(t *testing.T) {
	golden := readGoldenGoodput(t)
	near := func(t *testing.T, what string, got, want float64) {
		t.Helper()
		if !(math.Abs(got-want) <= 1e-9*math.Abs(want)) {
			t.Errorf("%s %.15g, want %.15g", what, got, want)
		}
	}
	t.Run("§3 goodput, §3.1 efficiency, §3.2 throughput: 200 points", func(t *testing.T) {
		for i, c := range golden.Points {
			at := fmt.Sprintf("point %d: ", i)
			c.MaxBatch = c.Total
			g, b := c.model(), Batch{c.PerGPU, c.Passes}
			if b.Total(c.GPUs) != c.Total {
				t.Fatalf("%s%d examples, want %d", at, b.Total(c.GPUs), c.Total)
			}
			near(t, at+"T_grad", g.Throughput.Grad(float64(c.PerGPU)), c.Grad)
			near(t, at+"T_sync", g.Throughput.Sync(c.Nodes, c.GPUs), c.Sync)
			near(t, at+"last pass", g.Throughput.Iter(c.Nodes, c.GPUs, Batch{PerGPU: c.PerGPU}), c.Last)
			near(t, at+"T_iter", g.Throughput.Iter(c.Nodes, c.GPUs, b), c.Iter)
			near(t, at+"throughput", g.Throughput.ExamplesPerSecond(c.Nodes, c.GPUs, b), c.Throughput)
			near(t, at+"efficiency", g.Efficiency(c.Total), c.Efficiency)
			near(t, at+"goodput", g.At(c.Nodes, c.GPUs, b), c.Goodput)
		}
	})
	t.Run("§4.1 best batch: 200 searches", func(t *testing.T) {
		compared := 0
		for i, c := range golden.Optimize {
			at := fmt.Sprintf("search %d: ", i)
			v, b := c.model().Best(c.Nodes, c.GPUs)
			near(t, at+"goodput", v, c.Goodput)
			if c.Goodput > 0 && (c.Margin == nil || *c.Margin > 1e-9) {
				compared++
				if want := (Batch{c.PerGPU, c.Passes}); b != want {
					t.Errorf("%s%+v, want %+v", at, b, want)
				}
			}
		}
		if compared < 150 {
			t.Errorf("only %d batches compared", compared)
		}
	})
	t.Run("§4.2 speedup: 30 tables", func(t *testing.T) {
		for i, c := range golden.Speedup {
			at := fmt.Sprintf("table %d: ", i)
			base, _ := c.model().Best(1, 1)
			near(t, at+"base", base, c.Base)
			for _, s := range c.Speedup {
				v, _ := c.model().Best(int(s[0]), int(s[1]))
				near(t, fmt.Sprintf("%s%v GPUs on %v nodes", at, s[1], s[0]), v/base, s[2])
			}
		}
	})
	t.Run("§4.1 loss: 60 values and gradients", func(t *testing.T) {
		for i, c := range golden.Objective {
			var parts losses
			newTiming(c.records()).at(&c.Perf, &parts)
			near(t, fmt.Sprintf("loss %d", i), parts.smoothed(0), c.Objective)
			for k, v := range parts.gradient(0) {
				if math.Abs(c.Gradient[k]) > 1e-13 || math.Abs(v) > 1e-13 { // else what rounding leaves of terms that cancel
					near(t, fmt.Sprintf("loss %d, derivative by %s", i, paramNames[k]), v, c.Gradient[k])
				}
			}
		}
	})
	t.Run("§4.1 fit: 80 fits no worse than the authors'", func(t *testing.T) {
		var slightly, clearly int
		most := 1.0
		for i, c := range golden.Fit {
			fit, err := FitThroughput(c.records())
			if err != nil {
				t.Errorf("fit %d: %v", i, err)
			}
			if err := fit.Throughput.Check(); err != nil {
				t.Errorf("fit %d: %v", i, err)
			}
			if !(fit.Loss <= c.Objective) {
				t.Errorf("fit %d, stage %d: loss %.12g, the authors' %.12g", i, c.Stage, fit.Loss, c.Objective)
			}
			ratio := c.Objective / fit.Loss
			most = max(most, ratio)
			if ratio > 1.001 {
				slightly++
			}
			if ratio > 1.1 {
				clearly++
			}
		}
		t.Logf("of %d losses of the authors, %d are over 0.1 %% above ours, %d over 10 %%, the worst is %.0f times ours", len(golden.Fit), slightly, clearly, most)
	})
}
