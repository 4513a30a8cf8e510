package policy

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"optimus/scheduler/place"
)

var (
	polluxDefault  = Pollux{P: -1, Delay: 30}
	polluxArtifact = Pollux{P: -1, Delay: 30, MaxGPUs: 64, MaxNodes: 16, Quirks: Artifact()}
)

// polluxView draws a cluster of unequal nodes with GPUs and memory, and jobs of several demands and bounds.
func polluxView(t *rapid.T) View {
	rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
	v := View{Now: 1e5}
	for n := range 1 + rng.IntN(6) {
		v.Nodes = append(v.Nodes, place.Node{ID: fmt.Sprint("n", n), Capacity: place.Vector{int64(rng.IntN(9)), int64(32 + rng.IntN(64))}})
	}
	for i := range rng.IntN(12) {
		j := Job{ID: fmt.Sprint("j", i), Submitted: v.Now - logUniform(rng, 1, 1e4), Ring: true,
			Demand: [2]place.Vector{{0, 0}, {int64(rng.IntN(3)), int64(1 + rng.IntN(16))}}, Min: place.Counts{0, rng.IntN(3)},
			Goodput: polluxGoodput(rng), Service: 1e4 * rng.Float64(), Restarts: rng.IntN(4), Pinned: rng.IntN(8) == 0}
		if rng.IntN(2) == 0 {
			j.Max[place.Worker] = max(1, j.Min[place.Worker]) + rng.IntN(6)
		}
		if rng.IntN(6) == 0 {
			j.Goodput = nil
		}
		v.Jobs = append(v.Jobs, j)
	}
	return v
}

// spanning returns the most jobs of several nodes that any node has.
func spanning(decisions []Decision) int {
	on, most := map[string]int{}, 0
	for _, d := range decisions {
		nodes := map[string]bool{}
		for _, m := range d.Members {
			nodes[m.Node] = true
		}
		for n := range nodes {
			if len(nodes) > 1 {
				on[n]++
				most = max(most, on[n])
			}
		}
	}
	return most
}

// TestPolluxKeepsTheRules follows random jobs over some rounds, in which nodes and jobs come and go: nothing is
// overbooked, bounds and the doubling rule hold, a pinned job stays, at most one job of several nodes is on a node; the
// state survives storage, and the order of the lists means nothing.
func TestPolluxKeepsTheRules(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		v, st, had := polluxView(rt), State{}, map[string]int{}
		p := Policy{"pollux", rapid.SampledFrom([]Pollux{polluxDefault, polluxArtifact, {P: 1, Delay: 30}, {P: math.Inf(-1)}}).Draw(rt, "policy")}
		rng := rand.New(rand.NewPCG(2, uint64(len(v.Jobs))))
		for range 4 {
			next, decisions, err := Step(p, st, v)
			if err != nil {
				rt.Fatal(err)
			}
			check(t, p, v, next, decisions)
			if n := spanning(decisions); n > 1 {
				rt.Errorf("%d jobs of several nodes on one node", n)
			}
			byID := map[string]Job{}
			for _, j := range v.Jobs {
				byID[j.ID] = j
			}
			for _, d := range decisions {
				k, j := d.Tasks[place.Worker], byID[d.Job]
				if k > max(2*had[d.Job], j.Min[place.Worker], 1) {
					rt.Errorf("job %s has %d GPUs after at most %d", d.Job, k, had[d.Job])
				}
				before, _ := PlacementOf(st.members(d.Job), mustSpace(rt, v.Nodes))
				if j.Pinned && len(before) > 0 && d.Action != Keep {
					rt.Errorf("pinned job %s: %s", d.Job, d.Action)
				}
				if k > 0 && j.Goodput != nil && d.Batch.PerGPU < 1 {
					rt.Errorf("job %s runs without a batch: %+v", d.Job, d.Batch)
				}
				had[d.Job] = max(had[d.Job], k)
			}
			data, err := json.Marshal(next)
			if err != nil {
				rt.Fatal(err)
			}
			var read State
			if err := json.Unmarshal(data, &read); err != nil {
				rt.Fatal(err)
			}
			rng.Shuffle(len(v.Jobs), func(a, b int) { v.Jobs[a], v.Jobs[b] = v.Jobs[b], v.Jobs[a] })
			rng.Shuffle(len(v.Nodes), func(a, b int) { v.Nodes[a], v.Nodes[b] = v.Nodes[b], v.Nodes[a] })
			again, same, err := Step(p, st, v)
			if err != nil {
				rt.Fatal(err)
			}
			if diff := cmp.Diff(next, read) + cmp.Diff(next, again) + cmp.Diff(decisions, same); diff != "" {
				rt.Error(diff)
			}
			st = read
			v.Now += 600
			if len(v.Nodes) > 1 && rng.IntN(3) == 0 {
				v.Nodes = v.Nodes[1:]
			}
			if len(v.Jobs) > 0 && rng.IntN(2) == 0 {
				v.Jobs = v.Jobs[1:]
			}
		}
	})
}

func mustSpace(t *rapid.T, nodes []place.Node) *place.Space {
	s, err := place.NewSpace(nodes)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestPolluxAgainstNSGA2 compares the search with that of the authors, on rounds of 8 to 160 jobs on 64 GPUs. All 100
// of them are judged with OPTIMUS_SOAK=1.
func TestPolluxAgainstNSGA2(t *testing.T) {
	instances := 3
	if os.Getenv("OPTIMUS_SOAK") != "" {
		instances = 100
	}
	for _, c := range []struct {
		name   string
		policy Pollux
	}{{"pollux", polluxDefault}, {"pollux-artifact", polluxArtifact}} {
		t.Run(c.name, func(t *testing.T) {
			good, better, worst := 0, 0, 0.0
			for i := range instances {
				jobs := []int{12, 30, 60, 160, 8, 20, 40, 80}[i%8]
				r := polluxInstance(rand.New(rand.NewPCG(uint64(i), 7)), jobs, 16, 4)
				round := c.policy.newRound(r)
				fitness := round.fitness(round.speedups(round.search(nil)[0]))
				reference := newNSGA2(c.policy.newRound(r), 4).run()
				gain := math.Log(fitness / reference)
				if worst = min(worst, gain); gain >= -1e-9 {
					good++
				}
				if gain > 1e-9 {
					better++
				}
				t.Logf("%d jobs: fitness %.5f, NSGA-II %.5f", jobs, fitness, reference)
			}
			t.Logf("no worse in %d of %d, better in %d, at worst %.3f %%", good, instances, better, 100*worst)
			if good*100 < instances*95 {
				t.Errorf("no worse than NSGA-II in %d of %d, want 95 %%", good, instances)
			}
		})
	}
}

// TestPolluxAgainstExhaustive compares the search with all plans of up to 3 jobs on 2 nodes of 4 GPUs.
func TestPolluxAgainstExhaustive(t *testing.T) {
	const nodes, gpus, instances = 2, 4, 120
	optimal, worst := 0, 0.0
	for i := range instances {
		rng := rand.New(rand.NewPCG(uint64(i), 3))
		r := polluxInstance(rng, 1+i%3, nodes, gpus)
		p := []Pollux{polluxDefault, polluxArtifact, {P: 1, Delay: 30}, {P: -10, Delay: 30}}[i/3%4]
		round := p.newRound(r)
		got := round.fitness(round.speedups(round.search(nil)[0]))
		gap := math.Log(bestOfAll(newNSGA2(p.newRound(r), gpus)) / got)
		if worst = max(worst, gap); gap < 1e-9 {
			optimal++
		}
	}
	t.Logf("optimal in %d of %d, at worst %.4f %% below", optimal, instances, 100*worst)
	if optimal*100 < instances*95 || worst > 0.01 {
		t.Errorf("optimal in %d of %d, at worst %.4f below; want 95 %%, and 0.01", optimal, instances, worst)
	}
}

// bestOfAll returns the largest fitness of all matrices that keep the rules.
func bestOfAll(s *nsga2) float64 {
	m, best := make([]int, s.J*s.N), 0.0
	var fill func(i int)
	fill = func(i int) {
		if i == len(m) {
			if valid(s, m) {
				best = max(best, s.rate(m).fitness)
			}
			return
		}
		for m[i] = 0; m[i] <= s.gpus; m[i]++ {
			fill(i + 1)
		}
		m[i] = 0
	}
	fill(0)
	return best
}

func valid(s *nsga2, m []int) bool {
	spans, used := make([]int, s.N), make([]int, s.N)
	for j := range s.J {
		w := rowsOf(s.J, s.N, m)[j]
		if len(w) > 0 && (w.gpus() < s.jobs[j].least || w.gpus() > s.jobs[j].limit) {
			return false
		}
		for _, seat := range w {
			used[seat.node] += seat.gpus
			if len(w) > 1 {
				spans[seat.node]++
			}
		}
	}
	return slices.Max(used) <= s.gpus && slices.Max(spans) <= 1
}

// TestPolluxCarriesOver: a round starts from the solutions of the one before; new jobs have nothing in them, jobs and
// nodes that are gone are left out, nodes are matched by ID.
func TestPolluxCarriesOver(t *testing.T) {
	m := &PolluxMemory{Nodes: []string{"gone", "n00", "n01"}, Jobs: []PolluxJob{{"ended", 1}, {"j00", 4}},
		Solutions: [][]PolluxShare{{{0, 1, 2}, {1, 0, 1}, {1, 2, 3}}}}
	r := polluxCluster(t, 2, 4)
	r.add(Job{}, nil)
	r.add(Job{}, nil)
	r.Memory.Pollux = m
	round := polluxDefault.newRound(r)
	want := [][]row{{{{1, 3}}, nil}}
	if got := m.solutions(round); !slices.EqualFunc(got[0], want[0], slices.Equal[row]) || len(got) != 1 {
		t.Errorf("%v, want %v", got, want)
	}
	if round.jobs[0].limit != 8 || round.jobs[1].limit != 1 {
		t.Errorf("limits %d and %d, want 8 after 4 GPUs, and 1", round.jobs[0].limit, round.jobs[1].limit)
	}
}

func TestPolluxMemoryIsValidated(t *testing.T) {
	for _, c := range []struct{ state, want string }{
		{`{"pollux":{"nodes":["b","a"]}}`, "node \"a\""},
		{`{"pollux":{"jobs":[{"id":"a","most":1},{"id":"a","most":1}]}}`, "job \"a\""},
		{`{"pollux":{"jobs":[{"id":"a","most":-1}]}}`, "negative"},
		{`{"pollux":{"nodes":["n"],"jobs":[{"id":"a","most":1}],"solutions":[[[0,1,1]]]}}`, "range"},
		{`{"pollux":{"nodes":["n"],"jobs":[{"id":"a","most":1}],"solutions":[[[0,0,0]]]}}`, "range"},
		{`{"pollux":{"nodes":["n"],"jobs":[{"id":"a","most":1}],"solutions":[[[0,0,1],[0,0,1]]]}}`, "order"},
	} {
		var st State
		if err := json.Unmarshal([]byte(c.state), &st); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one with %q", c.state, err, c.want)
		}
	}
}

// TestPolluxOverlap: jobs that span nodes may share one only if they are allowed to.
func TestPolluxOverlap(t *testing.T) {
	for _, overlap := range []bool{false, true} {
		v := View{Now: 1e6}
		for n := range 3 {
			v.Nodes = append(v.Nodes, place.Node{ID: fmt.Sprint("n", n), Capacity: place.Vector{4}})
		}
		for _, id := range []string{"a", "b"} {
			v.Jobs = append(v.Jobs, Job{ID: id, Ring: true, Demand: [2]place.Vector{{0}, {1}}, Min: place.Counts{0, 6}, Goodput: linear(1)})
		}
		p := polluxDefault
		p.Overlap = overlap
		_, d, err := Step(Policy{"pollux", p}, State{}, v)
		if err != nil {
			t.Fatal(err)
		}
		if both := d[0].Action == Start && d[1].Action == Start; both != overlap {
			t.Errorf("Overlap %v: %s and %s", overlap, d[0].Action, d[1].Action)
		}
	}
}

func TestPolluxImpossible(t *testing.T) {
	good := Job{ID: "good", Ring: true, Demand: [2]place.Vector{{0}, {1}}, Goodput: linear(1)}
	for _, c := range []struct {
		want   string
		change func(j *Job)
	}{
		{"exponent", nil},
		{"parameter servers", func(j *Job) { j.Ring, j.Demand[place.PS] = false, place.Vector{1} }},
		{"at most 64", func(j *Job) { j.Min[place.Worker] = 65 }},
		{"no goodput", func(j *Job) { j.Goodput = linear(math.NaN()); j.Min[place.Worker] = 2 }},
		{"-1 restarts", func(j *Job) { j.Restarts = -1 }},
		{"NaN GPU", func(j *Job) { j.Service = math.NaN() }},
	} {
		v := View{Nodes: []place.Node{{ID: "n", Capacity: place.Vector{100}}}, Jobs: []Job{good, good}}
		v.Jobs[0].ID = "bad"
		p := polluxArtifact
		if c.change != nil {
			c.change(&v.Jobs[0])
		} else {
			p.P = 2
		}
		_, d, err := Step(Policy{"pollux", p}, State{}, v)
		if err != nil {
			t.Fatal(err)
		}
		if d[0].Action != Impossible || !strings.Contains(d[0].Reason, c.want) {
			t.Errorf("%s: %s; want impossible with %q", d[0].Action, d[0].Reason, c.want)
		}
	}
}

// BenchmarkPollux measures one round: search, decisions and the note for the next.
func BenchmarkPollux(b *testing.B) {
	for _, c := range []struct{ jobs, nodes, gpus int }{{160, 16, 4}, {1000, 256, 8}} {
		b.Run(fmt.Sprintf("jobs=%d/gpus=%d", c.jobs, c.nodes*c.gpus), func(b *testing.B) {
			r := polluxInstance(rand.New(rand.NewPCG(5, 5)), c.jobs, c.nodes, c.gpus)
			memory := *r.Memory
			for b.Loop() {
				*r.Memory = memory
				polluxDefault.Plan(r)
			}
		})
	}
}
