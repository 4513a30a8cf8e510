package reproduce

import (
	"fmt"
	"math"

	"optimus/scheduler/place"
	"optimus/scheduler/policy"
	"optimus/scheduler/sim"
	"optimus/scheduler/sim/optimus"
	"optimus/scheduler/trace"
)

// ring regenerates what is known of the ring paper.
func (r *report) ring() error {
	if err := r.doubling(); err != nil {
		return err
	}
	const name = "traces/gavel/simulation_throughputs.json"
	f, err := r.Data.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	speeds, err := trace.ReadGavelSpeeds(name, f)
	if err != nil {
		return err
	}
	for _, batch := range []int{128, 16} {
		t, err := optimus.NewRingTruth(speeds, trace.GavelKind{Model: "ResNet-18", Batch: batch}, "p100")
		if err != nil {
			return err
		}
		if err := r.strategies(t, batch); err != nil {
			return err
		}
	}
	r.cannot([][2]string{
		{"Table 1", "forward and backward times on 1, 2, 4 and 8 GPUs: the numbers are not known to us, and they need those GPUs"},
		{"Table 2", "its text and its numbers contradict each other: a baseline of 126 min and savings of 50 and 36 min do not give 104 and 113 min"},
		{"Table 3", "the paper's numbers are not known to us; the strategies above are simulated without them"},
		{"Eqns 2 to 4", "the printed coefficients of the three all-reduce algorithms are not known to us; Eqn 5, which covers them, is fitted"},
	})
	return nil
}

// doubling is the heuristic on cases that can be worked out by hand.
func (r *report) doubling() error {
	f := figure{name: "doubling", title: "§3: the doubling heuristic on cases worked out by hand, GPUs of the first job (and of the second)"}
	root := func(w int) float64 { return math.Sqrt(float64(w)) }
	kink := func(w int) float64 {
		if w > 8 && w < 16 {
			return 7
		}
		return float64(w)
	}
	for _, c := range []struct {
		what  string
		gpus  int64
		speed func(int) float64
		want  []float64
	}{
		{"one job, 64 GPUs", 64, root, []float64{64}},
		{"two equal jobs, 64 GPUs", 64, root, []float64{32, 32}},
		{"f(9) < f(8) < f(16), 16 GPUs", 16, kink, []float64{16}},
		{"two equal jobs, 12 GPUs", 12, root, []float64{8, 4}},
		{"two equal jobs, 11 GPUs", 11, root, []float64{4, 4}},
	} {
		s, err := place.NewSpace([]place.Node{{ID: "gpus", Capacity: place.Vector{c.gpus}}})
		if err != nil {
			return err
		}
		var jobs []policy.Job
		for i := range c.want {
			jobs = append(jobs, policy.Job{ID: fmt.Sprint(i), Ring: true, Demand: [2]place.Vector{{0}, {1}}, Remaining: 1000,
				Speed: policy.SpeedFunc(func(_, w int) float64 { return c.speed(w) })})
		}
		for i, a := range (policy.Ring{}).Allocate(jobs, s) {
			f.add(fmt.Sprintf("%s: job %d", c.what, i+1), c.want[i], float64(a.Tasks[place.Worker]))
		}
	}
	return r.show(f)
}

// strategies simulates the paper's strategies on 64 GPUs.
func (r *report) strategies(t *optimus.RingTruth, batch int) error {
	f := figure{name: fmt.Sprintf("strategies-%d", batch), title: fmt.Sprintf(
		"§4: mean job time in h on 64 GPUs, %d images per GPU; measured speed-up from 4 to 8 GPUs %.2f (the paper has 1.89)",
		batch, t.BatchesPerSecond(8)/t.BatchesPerSecond(4))}
	var nodes []place.Node
	for i := range 8 {
		nodes = append(nodes, place.Node{ID: fmt.Sprintf("node-%d", i), Capacity: place.Vector{8}})
	}
	groups := []string{"extreme", "moderate", "none"}
	var all []series
	for _, c := range []struct{ title, policy string }{
		{"Precompute", "ring"}, {"Precompute, any step", "ring-any"}, {"Exploratory", "ring-explore"},
		{"Eight", "ring-eight"}, {"Four", "ring-four"}, {"Two", "ring-two"}, {"One", "ring-one"},
	} {
		p, err := policy.ByName(c.policy)
		if err != nil {
			return err
		}
		s := series{name: c.title}
		for i, contention := range []struct {
			gap  float64 // mean seconds between arrivals
			jobs int
		}{{250, 206}, {500, 114}, {1000, 44}} {
			hours := make([]float64, r.Seeds)
			err := parallel(r.ctx, r.Seeds, func(seed int) error {
				explore := c.policy == "ring-explore"
				cfg := sim.Config{Policy: p, Nodes: nodes, Interval: 600, Reactive: true, Restart: 10}
				if explore { // its rounds are 2.5 minutes on each number of GPUs
					cfg.Interval, cfg.Reactive = 150, false
				}
				out, err := sim.Run(cfg, t.Ring(contention.jobs, trace.Poisson(1, contention.gap), !explore, uint64(seed)))
				if err != nil {
					return err
				}
				hours[seed] = out.MeanJCT / 3600
				return nil
			})
			if err != nil {
				return err
			}
			f.mean(fmt.Sprintf("%s, contention %s", c.title, groups[i]), none, hours)
			s.y = append(s.y, f.rows[len(f.rows)-1].ours)
		}
		all = append(all, s)
	}
	f.plot = bars(fmt.Sprintf("Strategies, %d images per GPU", batch), "hours", groups, all)
	if err := r.show(f); err != nil {
		return err
	}
	doubling, eight := all[0].y, all[3].y
	r.say("Eight takes %.2f times as long as Precompute under extreme contention, %.2f under moderate; the paper has more than 2 under moderate.",
		eight[0]/doubling[0], eight[1]/doubling[1])
	return nil
}
