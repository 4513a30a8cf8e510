package policy

import (
	"fmt"
	"strings"
	"testing"

	"optimus/scheduler/estimate"
	"optimus/scheduler/place"
)

// noisy is a job whose larger batches are worth the more, the noisier its gradients are: K GPUs are as good as
// K/(1 + K/noise) that scale perfectly.
type noisy float64

func (n noisy) Best(_, gpus int) (float64, estimate.Batch) {
	k := float64(gpus)
	return k / (1 + k/float64(n)), estimate.Batch{PerGPU: 8}
}

func autoscaleView(nodes int, g Goodput) (State, View) {
	v := View{Now: 1e6, Jobs: []Job{{ID: "a", Ring: true, Demand: [2]place.Vector{{0}, {1}}, Goodput: g}}}
	st := State{Jobs: []Assigned{{Job: "a"}}, Memory: Memory{Pollux: &PolluxMemory{Jobs: []PolluxJob{{"a", 4 * nodes}}}}}
	for n := range nodes {
		id := fmt.Sprintf("n%02d", n)
		v.Nodes = append(v.Nodes, place.Node{ID: id, Capacity: place.Vector{4}})
		for range 4 {
			st.Jobs[0].Members = append(st.Jobs[0].Members, Member{place.Worker, len(st.Jobs[0].Members), id})
		}
	}
	return st, v
}

// TestPolluxAutoscale: (1 + 1/n)/(1 + K/n) is the utility of one job on all K GPUs, n its noise.
func TestPolluxAutoscale(t *testing.T) {
	kind := place.Node{ID: "extra", Capacity: place.Vector{4}}
	a := Autoscale{Low: 0.5, Target: 0.5, High: 2. / 3, Min: 1, Max: 16}
	for _, c := range []struct {
		name  string
		noise noisy
		want  int
	}{
		{"within the band", 24, 4},          // 25/40
		{"little noise: fewer nodes", 6, 2}, // 7/14 on 2
		{"more noise: more nodes", 34, 9},   // 35/70 on 9, 35/50 now
		{"much noise: the doubling rule", 1e6, 8},
	} {
		t.Run(c.name, func(t *testing.T) {
			st, v := autoscaleView(4, c.noise)
			if c.want == 9 { // let it grow further than twofold
				st.Pollux.Jobs[0].Most = 64
			}
			got, reason, err := a.Nodes(Policy{"pollux", polluxDefault}, st, v, kind)
			if err != nil || got != c.want {
				t.Errorf("%d nodes (%s), error %v; want %d", got, reason, err, c.want)
			}
			t.Log(reason)
		})
	}
	t.Run("no jobs", func(t *testing.T) {
		_, v := autoscaleView(4, noisy(1))
		v.Jobs = nil
		if got, _, err := a.Nodes(Policy{"pollux", polluxDefault}, State{}, v, kind); err != nil || got != 1 {
			t.Errorf("%d nodes, error %v; want the least", got, err)
		}
	})
	t.Run("band out of order", func(t *testing.T) {
		st, v := autoscaleView(4, noisy(1))
		_, _, err := Autoscale{Low: 0.6, Target: 0.5, High: 0.7, Min: 1, Max: 2}.Nodes(Policy{"pollux", polluxDefault}, st, v, kind)
		if err == nil || !strings.Contains(err.Error(), "in order") {
			t.Errorf("error %v, want one that says so", err)
		}
	})
}
