package reproduce

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"optimus/paa"
	"optimus/scheduler/place"
	"optimus/scheduler/policy"
)

// Table 2's speeds, as the paper prints them.
func table2Sync(p, w int) float64 {
	m := float64(w)
	return 1 / (1.02*fig9Batch/m + 2.78 + 4.92*m/float64(p) + .02*float64(p))
}

func table2Async(p, w int) float64 {
	return float64(w) / (2.83 + 3.92*float64(w)/float64(p) + .11*float64(p))
}

// section4 is the allocation of one job with Table 2's speeds: what the rule of §4.1 gives, worked out by hand from the
// paper.
func (r *report) section4() error {
	f := figure{name: "section4", title: "§4.1: one ResNet-50 job by the greedy rule and Table 2 (the paper's numbers are worked out from its rule)"}
	for _, c := range []struct {
		mode     string
		speed    policy.SpeedFunc
		capacity int64
		p, w     float64
	}{
		{"sync", table2Sync, 6, 3, 3}, {"sync", table2Sync, 10, 5, 5}, {"sync", table2Sync, 20, 12, 8}, {"sync", table2Sync, 30, 19, 11},
		{"sync", table2Sync, 40, 27, 13}, {"sync", table2Sync, 100, 75, 25}, {"sync", table2Sync, 400, 78, 25},
		{"async", table2Async, 6, 3, 3}, {"async", table2Async, 10, 5, 5}, {"async", table2Async, 20, 9, 11}, {"async", table2Async, 40, 17, 23}, {"async", table2Async, 100, 35, 65},
	} {
		s, err := place.NewSpace([]place.Node{{ID: "containers", Capacity: place.Vector{c.capacity}}})
		if err != nil {
			return err
		}
		job := policy.Job{ID: "job", Demand: [2]place.Vector{{1}, {1}}, Remaining: 1000, Speed: c.speed}
		got := policy.Optimus{}.Allocate([]policy.Job{job}, s)[0].Tasks
		f.add(fmt.Sprintf("%s, %d containers: p", c.mode, c.capacity), c.p, float64(got[place.PS]))
		f.add(fmt.Sprintf("%s, %d containers: w", c.mode, c.capacity), c.w, float64(got[place.Worker]))
	}
	return r.show(f)
}

// fig10 is the transfer time of three placements of 2 ps and 4 workers, and that of the rule's own.
func (r *report) fig10() error {
	f := figure{name: "fig10", title: "Fig 10: transfers of a step, 2 ps and 4 workers on 3 servers of 3 slots"}
	f.add("a", 3, float64(place.Traffic(place.Placement{{Node: 0, Tasks: place.Counts{1, 1}}, {Node: 1, Tasks: place.Counts{1, 1}}, {Node: 2, Tasks: place.Counts{0, 2}}})))
	f.add("b", 3, float64(place.Traffic(place.Placement{{Node: 0, Tasks: place.Counts{2, 1}}, {Node: 1, Tasks: place.Counts{0, 3}}})))
	f.add("c", 2, float64(place.Traffic(place.Placement{{Node: 0, Tasks: place.Counts{1, 2}}, {Node: 1, Tasks: place.Counts{1, 2}}})))
	var nodes []place.Node
	for i := range 3 {
		nodes = append(nodes, place.Node{ID: fmt.Sprint(i), Capacity: place.Vector{3}})
	}
	for _, rule := range []place.Strategy{place.Optimus{Paper: true}, place.Optimus{}, place.Spread{}, place.Pack{}} {
		s, err := place.NewSpace(nodes)
		if err != nil {
			return err
		}
		paper := none
		if _, ours := rule.(place.Optimus); ours {
			paper = 2
		}
		at := rule.Place(s, &place.Job{ID: "job", Tasks: place.Counts{2, 4}, Demand: [2]place.Vector{{1}, {1}}})
		f.add("by rule "+rule.Name(), paper, float64(place.Traffic(at)))
	}
	return r.show(f)
}

// fig12 times one round of the scheduler, allocation and placement with the estimates given. `optimus bench scheduler`
// has the whole figure.
func (r *report) fig12() error {
	f := figure{name: "fig12", title: "Fig 12: one round of the scheduler, s (least of five)"}
	p, err := policy.ByName("optimus")
	if err != nil {
		return err
	}
	for _, c := range []struct {
		jobs, nodes int
		paper       float64
	}{{1000, 1000, .91}, {1000, 16000, 2.42}, {4000, 16000, 4.20}, {8000, 64000, 11.82}} {
		v := fig12View(c.jobs, c.nodes)
		least := math.Inf(1)
		for range 5 {
			start := time.Now()
			if _, _, err := policy.Step(p, policy.State{}, v); err != nil {
				return err
			}
			least = min(least, time.Since(start).Seconds())
		}
		f.add(fmt.Sprintf("%d jobs, %d nodes", c.jobs, c.nodes), c.paper, least)
	}
	return r.show(f)
}

// fig12View is jobs of the two kinds of Table 2 on equal nodes of 16 cores and 80 GB, with tasks of 2 cores and 10 GB.
func fig12View(jobs, nodes int) policy.View {
	rng := rand.New(rand.NewPCG(12, uint64(jobs)))
	v := policy.View{Nodes: make([]place.Node, nodes), Jobs: make([]policy.Job, jobs)}
	for i := range v.Nodes {
		v.Nodes[i] = place.Node{ID: fmt.Sprintf("node-%05d", i), Capacity: place.Vector{16, 80}}
	}
	for i := range v.Jobs {
		speed := policy.SpeedFunc(table2Sync)
		if rng.IntN(2) == 0 {
			speed = table2Async
		}
		v.Jobs[i] = policy.Job{ID: fmt.Sprintf("job-%05d", i), Submitted: float64(i), Demand: [2]place.Vector{{2, 10}, {2, 10}},
			Remaining: 1000 * (1 + 9*rng.Float64()), Speed: speed}
	}
	return v
}

// table3 is how ResNet-50 is divided among 10 servers.
func (r *report) table3() error {
	f := figure{name: "table3", title: "Table 3 and what explains Figs 20 and 21: ResNet-50 on 10 ps"}
	m, err := paa.Lookup("resnet-50")
	if err != nil {
		return err
	}
	paper := map[string][3]float64{paa.RuleMXNet: {3.6e6, 43, 247}, paa.RulePAA: {.1e6, 1, 157}}
	for _, rule := range paa.Rules() {
		a, err := paa.Assign(rule, m.Sizes, 10)
		if err != nil {
			return err
		}
		s := a.Stats()
		f.add(rule+": difference of parameter sizes", paper[rule][0], float64(s.SizeGap))
		f.add(rule+": difference of requests", paper[rule][1], float64(s.RequestGap))
		f.add(rule+": total requests", paper[rule][2], float64(s.Requests))
		f.add(rule+": fullest server over the mean", none, s.MaxOverMean)
	}
	if err := r.show(f); err != nil {
		return err
	}
	r.say("The paper's first two numbers for MXNet come from a script that gives all blocks of one size the same key; MXNet itself does not.")
	return nil
}
