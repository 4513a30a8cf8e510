package policy

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"testing"

	"optimus/internal/shared"
	"optimus/scheduler/estimate"
	"optimus/scheduler/place"
)

type goldenJob struct {
	NoModel     bool      `json:"no_model"`
	Perf        []float64 `json:"perf"`
	Sqr         float64   `json:"grad_sqr"`
	Var         float64   `json:"grad_var"`
	InitBatch   int       `json:"init_batch_size"`
	MaxBatch    int       `json:"max_batch_size"`
	MinPerGPU   int       `json:"min_atomic_bsz"`
	MaxPerGPU   int       `json:"max_atomic_bsz"`
	Accumulate  bool      `json:"accumulation"`
	NumRestarts int       `json:"num_restarts"`
	Age         float64   `json:"age"`
}

type goldenFitness struct {
	Nodes    int         `json:"num_nodes"`
	GPUs     int         `json:"gpus_per_node"`
	Jobs     []goldenJob `json:"jobs"`
	Base     [][]int     `json:"base_state"`
	States   [][][]int   `json:"states"`
	Speedups [][]float64 `json:"raw_speedups"`
	Fitness  []float64   `json:"fitness"`
	Utility  []float64   `json:"utility"`
}

type goldenRepair struct {
	Nodes    int       `json:"num_nodes"`
	GPUs     int       `json:"gpus_per_node"`
	States   [][][]int `json:"states"`
	Repaired [][][]int `json:"repaired"`
	Clean    [][][]int `json:"repaired_clean"`
}

func readGoldenSched(t *testing.T) (out struct {
	Fitness []goldenFitness `json:"fitness"`
	Repair  []goldenRepair  `json:"repair"`
}) {
	t.Helper()
	raw, err := os.ReadFile(shared.Dir(t, "pollux", "golden_sched.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &out); err != nil {
		t.Fatal(err)
	}
	if len(out.Fitness) != 40 || len(out.Repair) != 40 {
		t.Fatalf("%d fitness and %d repair cases, want 40 of each", len(out.Fitness), len(out.Repair))
	}
	return out
}

// polluxCluster is a round without jobs on equal nodes of one resource.
func polluxCluster(t *testing.T, nodes, gpus int) *Round {
	t.Helper()
	var list []place.Node
	for n := range nodes {
		list = append(list, place.Node{ID: fmt.Sprintf("n%02d", n), Capacity: place.Vector{int64(gpus)}})
	}
	space, err := place.NewSpace(list)
	if err != nil {
		t.Fatal(err)
	}
	return &Round{Space: space, Memory: &Memory{}}
}

// add adds a job that has the GPUs of a matrix row.
func (r *Round) add(j Job, gpus []int) {
	j.ID, j.Ring, j.Demand = fmt.Sprintf("j%02d", len(r.Jobs)), true, [2]place.Vector{{0}, {1}}
	var p place.Placement
	for n, g := range gpus {
		if g > 0 {
			p = append(p, place.Share{Node: n, Tasks: place.Counts{0, g}})
		}
	}
	r.Jobs, r.Placed = append(r.Jobs, j), append(r.Placed, p)
}

func matrix(nodes int, rows []row) [][]int {
	out := make([][]int, len(rows))
	for j, w := range rows {
		out[j] = make([]int, nodes)
		for _, s := range w {
			out[j][s.node] = s.gpus
		}
	}
	return out
}

func rowsOfMatrix(m [][]int) []row {
	return rowsOf(len(m), len(m[0]), slices.Concat(m...))
}

// linear is a goodput that grows with the GPUs, at a part of it on several nodes.
type linear float64

func (l linear) Best(nodes, gpus int) (float64, estimate.Batch) {
	g := float64(gpus)
	if nodes > 1 {
		g *= float64(l)
	}
	if math.IsNaN(float64(l)) {
		g = 0
	}
	return g, estimate.Batch{PerGPU: 8}
}

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > 1e-9*max(1e-3, math.Abs(want)) {
		t.Errorf("%s: %.12g, want %.12g", what, got, want)
	}
}

func TestPolluxPaper(t *testing.T) {
	artifact := Pollux{P: -1, Delay: 30, Quirks: Artifact()}
	t.Run("golden fitness and utility", func(t *testing.T) { goldenFitnessCases(t, artifact) })
	t.Run("interference avoidance, golden repair", func(t *testing.T) { goldenRepairCases(t, artifact) })
	t.Run("§4.2 FITNESS_p", fitnessOfP)
	t.Run("§4.2 SPEEDUP", fairShareOf)
	t.Run("§4.2 REALLOC_FACTOR", reallocFactor)
	t.Run("doubling rule", doubling)
}

func goldenFitnessCases(t *testing.T, artifact Pollux) {
	for n, c := range readGoldenSched(t).Fitness {
		r := polluxCluster(t, c.Nodes, c.GPUs)
		for i, g := range c.Jobs {
			j := Job{Submitted: -g.Age, Restarts: g.NumRestarts}
			if !g.NoModel {
				p := g.Perf
				j.Goodput = estimate.Goodput{Throughput: estimate.Throughput{AlphaGrad: p[0], BetaGrad: p[1], AlphaNode: p[2],
					BetaNode: p[3], AlphaLocal: p[4], BetaLocal: p[5], Gamma: p[6]}, Sqr: g.Sqr, Var: g.Var,
					Limits: estimate.Limits{InitBatch: g.InitBatch, MaxBatch: g.MaxBatch, MinPerGPU: g.MinPerGPU,
						MaxPerGPU: g.MaxPerGPU, Accumulate: g.Accumulate}}
			}
			r.add(j, c.Base[i])
		}
		round := artifact.newRound(r)
		reference := newNSGA2(round, c.GPUs)
		for s, state := range c.States {
			x := &solution{rows: rowsOfMatrix(state)}
			for j := range round.jobs {
				near(t, fmt.Sprintf("case %d state %d job %d speedup", n, s, j),
					round.speedup(&round.jobs[j], len(x.rows[j]), x.rows[j].gpus()), c.Speedups[s][j])
			}
			near(t, fmt.Sprintf("case %d state %d fitness", n, s), round.fitness(round.speedups(x)), c.Fitness[s])
			// The slow reference, and what the search adds up, are the same numbers.
			rated := reference.rate(slices.Concat(state...))
			near(t, fmt.Sprintf("case %d state %d reference's fitness", n, s), rated.fitness, c.Fitness[s])
			near(t, fmt.Sprintf("case %d state %d reference's utility", n, s), rated.utility, c.Utility[s])
			sum := 0.0
			for j := range round.jobs {
				sum += round.termOf(&round.jobs[j], x.rows[j])
			}
			near(t, fmt.Sprintf("case %d state %d sum of terms", n, s), -float64(len(x.rows))/sum, c.Fitness[s])
		}
	}
}

// goldenRepairCases also shows what the clean repair is for: it keeps more of what was asked for.
func goldenRepairCases(t *testing.T, artifact Pollux) {
	kept := map[string]int{}
	for n, c := range readGoldenSched(t).Repair {
		r := polluxCluster(t, c.Nodes, c.GPUs)
		for range c.States[0] {
			r.add(Job{}, nil)
		}
		r.Memory.Pollux = &PolluxMemory{}
		for i := range r.Jobs { // the doubling rule does not bind
			r.Memory.Pollux.Jobs = append(r.Memory.Pollux.Jobs, PolluxJob{r.Jobs[i].ID, c.Nodes * c.GPUs})
		}
		judged := artifact
		judged.Quirks.EvictAll = false
		for s, state := range c.States {
			for _, v := range []struct {
				name   string
				policy Pollux
				want   [][]int
			}{{"artifact", artifact, c.Repaired[s]}, {"JudgeEarly alone", judged, c.Clean[s]}, {"default", Pollux{}, nil}} {
				x := v.policy.newRound(r).repair(rowsOfMatrix(state))
				for _, w := range x.rows {
					kept[v.name] += w.gpus()
				}
				if got := matrix(c.Nodes, x.rows); v.want != nil && !slices.EqualFunc(got, v.want, slices.Equal[[]int]) {
					t.Errorf("case %d state %d, %s: %v, want %v", n, s, v.name, got, v.want)
				}
			}
		}
	}
	t.Logf("GPUs that repair leaves: %v", kept)
	if kept["default"] <= kept["JudgeEarly alone"] || kept["JudgeEarly alone"] < kept["artifact"] {
		t.Errorf("GPUs that repair leaves: %v; want most by default, least with all quirks", kept)
	}
}

func fitnessOfP(t *testing.T) {
	r := polluxCluster(t, 2, 4)
	for range 3 {
		r.add(Job{}, nil)
	}
	speedups := []float64{1 - floor, 2 - floor, 4 - floor}
	for _, c := range []struct{ p, want float64 }{
		{1, 7. / 3}, {-1, 3 / 1.75}, {0, 2}, {-2, math.Sqrt(3 / (1 + 1./4 + 1./16))}, {math.Inf(-1), 1},
	} {
		t.Run(fmt.Sprint("p = ", c.p), func(t *testing.T) {
			near(t, "fitness", Pollux{P: c.p}.newRound(r).fitness(speedups), c.want)
		})
	}
	// One job runs well on many GPUs, the other badly: the sum favours the first, the least speedup the second.
	t.Run("what p prefers", func(t *testing.T) {
		share := map[float64]int{}
		for _, p := range []float64{1, -1, math.Inf(-1)} {
			r := polluxCluster(t, 1, 8)
			for range 2 {
				r.add(Job{Submitted: -1e9}, []int{4})
			}
			r.Jobs[0].Goodput = linear(1)
			r.Jobs[1].Goodput = saturating{}
			r.Memory.Pollux = &PolluxMemory{Jobs: []PolluxJob{{"j00", 8}, {"j01", 8}}}
			share[p] = Pollux{P: p, Delay: 30}.Plan(r)[0].Placement.Total()[place.Worker]
		}
		if !(share[1] > share[-1] && share[-1] > share[math.Inf(-1)]) {
			t.Errorf("GPUs of the job that scales, by p: %v; want more for larger p", share)
		}
	})
}

// saturating grows with the square root of the GPUs.
type saturating struct{}

func (saturating) Best(_, gpus int) (float64, estimate.Batch) {
	return math.Sqrt(float64(gpus)), estimate.Batch{PerGPU: 8}
}

// fairShareOf: one job has the cluster for itself, which on 4 nodes is worth half of what one node of that size were.
func fairShareOf(t *testing.T) {
	for _, c := range []struct {
		name string
		q    Quirks
		want float64
	}{{"fewest nodes that hold it", Quirks{}, 1}, {"OneNode", Quirks{OneNode: true}, 0.5}} {
		t.Run(c.name, func(t *testing.T) {
			r := polluxCluster(t, 4, 4)
			r.add(Job{Goodput: linear(0.5)}, nil)
			round := Pollux{P: -1, Quirks: c.q}.newRound(r)
			near(t, "speedup on all", round.speedup(&round.jobs[0], 4, 16), c.want)
		})
	}
}

func reallocFactor(t *testing.T) {
	for _, c := range []struct {
		name     string
		age      float64
		restarts int
		has      []int
		q        Quirks
		want     float64
	}{
		{"T/(T+δ) without restarts", 270, 0, []int{1}, Quirks{}, 270. / 300},
		{"(T−R·δ)/(T+δ)", 270, 3, []int{1}, Quirks{}, 180. / 300},
		{"never below 0", 270, 10, []int{1}, Quirks{}, 0},
		{"a start has nothing to lose", 270, 3, nil, Quirks{}, 1},
		{"StartPays", 270, 3, nil, Quirks{StartPays: true}, 180. / 300},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := polluxCluster(t, 2, 4)
			r.add(Job{Submitted: -c.age, Restarts: c.restarts}, c.has)
			near(t, "factor", Pollux{P: -1, Delay: 30, Quirks: c.q}.newRound(r).jobs[0].retain, c.want)
		})
	}
	for _, q := range []Quirks{{}, {StartPays: true}} {
		t.Run(fmt.Sprintf("a job of age 0 on a free cluster, %+v", q), func(t *testing.T) {
			r := polluxCluster(t, 2, 4)
			r.add(Job{}, nil)
			starts := len(Pollux{P: -1, Delay: 30, Quirks: q}.Plan(r)[0].Placement) > 0
			if starts == q.StartPays {
				t.Errorf("starts: %v, want %v", starts, !q.StartPays)
			}
		})
	}
}

// doubling: a job that is alone gets 1, 2, 4, … GPUs.
func doubling(t *testing.T) {
	p := Policy{"pollux", Pollux{P: -1, Delay: 30}}
	v := View{Jobs: []Job{{ID: "a", Ring: true, Demand: [2]place.Vector{{0}, {1}}, Goodput: linear(0.8), Max: place.Counts{0, 12}}}}
	for n := range 4 {
		v.Nodes = append(v.Nodes, place.Node{ID: fmt.Sprint("n", n), Capacity: place.Vector{4}})
	}
	st := State{}
	for round, want := range []int{1, 2, 4, 8, 12, 12} {
		next, d, err := Step(p, st, v)
		if err != nil {
			t.Fatal(err)
		}
		if got := d[0].Tasks[place.Worker]; got != want {
			t.Errorf("round %d: %d GPUs, want %d (%s)", round, got, want, d[0].Reason)
		}
		if round == 1 && d[0].Reason != "speedup 0.0781 → 0.156 with 1 → 2 GPUs on 1 node; fitness 0.157" {
			t.Errorf("reason %q", d[0].Reason)
		}
		st = next
		v.Now += 1e5
		v.Jobs[0].Restarts = round
	}
}
