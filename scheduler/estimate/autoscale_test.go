package estimate

import (
	"encoding/json"
	"fmt"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestPolluxPaperAutoscale(t *testing.T) {
	// A job of ImageNet's size on nodes of four GPUs, whose noise scale grows as it trains.
	job := func(noise float64) func(int) float64 {
		g := Goodput{
			Throughput: Throughput{.01, .004, .15, .0005, .05, .001, 2},
			Sqr:        1, Var: noise,
			Limits: Limits{200, 12800, 50, 200, true},
		}
		return func(nodes int) float64 {
			v, _ := g.Best(nodes, 4*nodes)
			return v
		}
	}
	t.Run("§5.4.1 nodes are added as the noise scale grows", func(t *testing.T) {
		nodes, changes := 1, 0
		for noise := 1.0; noise < 1e4; noise *= 1.1 {
			goodput := job(noise)
			scaling := func(n int) float64 { return goodput(n) / (float64(n) * goodput(1)) }
			next := PaperScaleOut.Nodes(goodput, nodes, 16)
			switch {
			case next < nodes:
				t.Fatalf("noise %.0f: %d nodes after %d", noise, next, nodes)
			case scaling(nodes) <= 2./3 && next != nodes:
				t.Errorf("noise %.0f: %d nodes scale with %.2f, yet %d are next", noise, nodes, scaling(nodes), next)
			case next > nodes:
				changes++
				for n := nodes + 1; n <= 16; n++ {
					if math.Abs(scaling(n)-.5) < math.Abs(scaling(next)-.5) {
						t.Errorf("noise %.0f: %d nodes scale with %.2f, %d with %.2f", noise, next, scaling(next), n, scaling(n))
					}
				}
			}
			nodes = next
		}
		if nodes != 16 || changes < 3 {
			t.Errorf("%d nodes in the end, after %d changes", nodes, changes)
		}
	})
	t.Run("§5.4.1 a job that cannot run on one node keeps what it has", func(t *testing.T) {
		if n := PaperScaleOut.Nodes(func(int) float64 { return 0 }, 2, 16); n != 2 {
			t.Errorf("%d nodes", n)
		}
	})
}

func TestAutoscalerKeepsTheBand(t *testing.T) {
	utility := func(load float64) func(int) float64 {
		return func(nodes int) float64 { return min(1, load/float64(nodes)) }
	}
	a := Autoscaler{Low: .35, High: .65, Min: 1, Max: 64, Rounds: 15}
	step := func(nodes int, load float64) int {
		t.Helper()
		next, err := a.Step(nodes, utility(load)(nodes), utility(load))
		if err != nil {
			t.Fatal(err)
		}
		return next
	}
	nodes := 4
	for round := range 15 {
		if next := step(nodes, 10); (next != nodes) != (round == 14) {
			t.Fatalf("round %d: %d nodes", round, next)
		} else {
			nodes = next
		}
	}
	if nodes != 20 || a.Recent != nil {
		t.Fatalf("%d nodes for a load of 10, then %v", nodes, a.Recent)
	}
	for range 40 { // in the band
		if next := step(nodes, 9); next != nodes {
			t.Fatalf("%d nodes", next)
		}
	}
	if len(a.Recent) != 15 {
		t.Errorf("%d rounds kept", len(a.Recent))
	}
	raw, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	var restored Autoscaler
	if err := json.Unmarshal(raw, &restored); err != nil || !cmp.Equal(a, restored) {
		t.Fatalf("%v: %s", err, cmp.Diff(a, restored))
	}
	for range 15 {
		nodes = step(nodes, 2)
	}
	if nodes != 4 {
		t.Errorf("%d nodes for a load of 2", nodes)
	}
	for range 15 {
		nodes = step(nodes, 1000)
	}
	if nodes != 64 {
		t.Errorf("%d nodes for a load of 1000", nodes)
	}
}

func TestAutoscalerFindsTheClosest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := make([]float64, rapid.IntRange(1, 200).Draw(t, "nodes")+1)
		values[0] = 2
		for n := range values[1:] {
			values[n+1] = values[n] * rapid.Float64Range(.5, 1).Draw(t, "falls by")
		}
		target, calls := rapid.Float64Range(0, 2).Draw(t, "target"), 0
		most := len(values) - 1
		got := closest(target, 1, most, func(n int) float64 { calls++; return values[n] })
		for _, v := range values[1:] {
			if math.Abs(v-target) < math.Abs(values[got]-target) {
				t.Fatalf("%d has %v, another has %v; target %v", got, values[got], v, target)
			}
		}
		if limit := int(math.Log2(float64(most))) + 3; calls > limit {
			t.Fatalf("%d calls for %d numbers", calls, most)
		}
	})
}

func TestAutoscalerRefuses(t *testing.T) {
	good := Autoscaler{Low: .35, High: .65, Min: 2, Max: 4, Rounds: 1}
	for i, c := range []struct {
		change  func(*Autoscaler)
		utility float64
	}{
		{func(a *Autoscaler) { a.Low = a.High }, .5},
		{func(a *Autoscaler) { a.High = math.NaN() }, .5},
		{func(a *Autoscaler) { a.Min = 0 }, .5},
		{func(a *Autoscaler) { a.Max = 1 }, .5},
		{func(a *Autoscaler) { a.Rounds = 0 }, .5},
		{func(*Autoscaler) {}, math.NaN()},
	} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			a := good
			c.change(&a)
			if n, err := a.Step(3, c.utility, func(int) float64 { return 0 }); err == nil || n != 3 {
				t.Errorf("%d nodes, %v", n, err)
			}
		})
	}
	for nodes, want := range map[int]int{1: 2, 9: 4} {
		if n, err := good.Step(nodes, .5, nil); err != nil || n != want {
			t.Errorf("from %d outside the range: %d, %v", nodes, n, err)
		}
	}
}
