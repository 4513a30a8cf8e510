package policy_test

import (
	"fmt"

	"optimus/scheduler/place"
	"optimus/scheduler/policy"
)

// Two jobs of ResNet-50 (Table 2 of the paper, synchronous) on five servers of four containers each.
func ExampleStep() {
	resnet := policy.SpeedFunc(func(p, w int) float64 {
		P, W := float64(p), float64(w)
		return 1 / (1.02*40/W + 2.78 + 4.92*W/P + 0.02*P)
	})
	var view policy.View
	for i := range 5 {
		view.Nodes = append(view.Nodes, place.Node{ID: fmt.Sprintf("node-%d", i), Capacity: place.Vector{4}})
	}
	for id, steps := range map[string]float64{"long": 1000, "short": 200} {
		view.Jobs = append(view.Jobs, policy.Job{ID: id, Demand: [2]place.Vector{{1}, {1}}, Remaining: steps, Speed: resnet})
	}
	optimus, err := policy.ByName("optimus")
	if err != nil {
		fmt.Println(err)
		return
	}
	_, decisions, err := policy.Step(optimus, policy.State{}, view)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, d := range decisions {
		fmt.Printf("%s: %s with %v: %s\n", d.Job, d.Action, d.Tasks, d.Reason)
	}
	// Output:
	// long: start with 8 ps + 6 workers: gain 1.014e+04 s per share, ps 7→8; no room for more
	// short: start with 3 ps + 3 workers: gain 9760 s per share, ps 2→3; no room for more
}
