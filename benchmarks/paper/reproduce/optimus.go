package reproduce

import (
	"fmt"
	"slices"

	"optimus/scheduler/place"
	"optimus/scheduler/policy"
	"optimus/scheduler/sim"
	"optimus/scheduler/sim/optimus"
	"optimus/scheduler/trace"
)

// optimus regenerates the Optimus paper.
func (r *report) optimus() error {
	tables, err := r.speeds()
	if err != nil {
		return err
	}
	truths, err := optimus.NewTruths(tables)
	if err != nil {
		return err
	}
	s := &study{truths, r.Seeds}
	for _, part := range []func() error{
		r.lossFigures, func() error { return r.speedFigures(tables) }, r.section4, r.fig10, r.fig12, r.table3,
		func() error { return r.comparisons(s) },
		func() error { return r.fig15(s) },
		func() error { return r.ablations(s) },
	} {
		if err := firstError(r.ctx.Err()); err != nil {
			return err
		}
		if err := part(); err != nil {
			return err
		}
	}
	r.cannot([][2]string{
		{"Fig 1", "a training run of ResNext-110 over 100 epochs; train it with `optimus train resnext-110`"},
		{"Fig 2", "hours on one TITAN X Pascal"},
		{"Fig 3", "a drawing"},
		{"Fig 14, CPU use", "the truth has no model of CPU use, and the paper does not print what its containers ask for"},
		{"Figs 20, 21, steps/s", "they need the paper's cluster; the sizes and requests that explain them stand under Table 3"},
		{"scaling overhead of 2.54 %", "it is the input from which the cost of a restart is taken"},
	})
	return nil
}

func (r *report) speeds() ([]trace.SpeedTable, error) {
	const name = "speed/testbed_speed.csv"
	f, err := r.Data.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	tables, _, err := trace.ReadSpeeds(name, f)
	return tables, err
}

// comparison is a figure that compares Optimus with its baselines on one kind of workload.
type comparison struct {
	name, title    string
	load           optimus.Workload
	jct, makespan  [3]float64 // of the paper, relative to Optimus: Optimus, DRF, Tetris
	withTasks      bool       // also Fig 14
	seconds, spans [3]float64 // of the paper, where it prints them
}

// comparisons are Figs 11, 13, 14, 16 and 17.
func (r *report) comparisons(s *study) error {
	for _, c := range published() {
		if err := r.compare(s, c); err != nil {
			return err
		}
	}
	return nil
}

func published() []comparison {
	uniform, poisson, google := trace.Uniform(12000), trace.Poisson(3, 600), trace.Google(7*3600, 600, 15)
	return []comparison{
		{name: "fig11", title: "Figs 11, 13 and 14: both training modes, uniform arrivals", load: optimus.Workload{Arrivals: uniform},
			jct: [3]float64{1, 2.39, 1.74}, makespan: [3]float64{1, 1.63, 1.22}, withTasks: true,
			seconds: [3]float64{1161, 2780, 2016}, spans: [3]float64{14835, 24255, 18127}},
		{name: "fig16-async", title: "Fig 16: asynchronous training", load: optimus.Workload{Arrivals: uniform, Modes: []optimus.Mode{optimus.Async}},
			jct: [3]float64{1, 1.97, 1.64}, makespan: [3]float64{1, 1.36, 1.11}},
		{name: "fig16-sync", title: "Fig 16: synchronous training", load: optimus.Workload{Arrivals: uniform, Modes: []optimus.Mode{optimus.Sync}},
			jct: [3]float64{1, 2.29, 1.91}, makespan: [3]float64{1, 1.45, 1.21}},
		{name: "fig17-poisson", title: "Fig 17: Poisson arrivals, 3 per interval", load: optimus.Workload{Arrivals: poisson},
			jct: [3]float64{1, 2.15, 1.82}, makespan: [3]float64{1, 1.40, 1.15}},
		{name: "fig17-google", title: "Fig 17: arrivals like a Google cluster's, 7 h", load: optimus.Workload{Arrivals: google},
			jct: [3]float64{1, 2.21, 1.78}, makespan: [3]float64{1, 1.46, 1.24}},
	}
}

var compared = []string{"optimus", "drf", "tetris", "fifo", "optimus-paper"}

func (r *report) compare(s *study, c comparison) error {
	policies, err := named(compared...)
	if err != nil {
		return err
	}
	var settings []setting
	for _, p := range policies {
		settings = append(settings, setting{policy: p, load: c.load})
	}
	out, err := s.run(r.ctx, settings...)
	if err != nil {
		return err
	}
	f := figure{name: c.name, title: c.title}
	paper := func(v [3]float64, i int) float64 {
		if i < len(v) && v[i] > 0 {
			return v[i]
		}
		return none
	}
	for i, o := range out {
		f.mean(compared[i]+": JCT relative to optimus", paper(c.jct, i), ratios(o.jct, out[0].jct))
		f.mean(compared[i]+": makespan relative to optimus", paper(c.makespan, i), ratios(o.makespan, out[0].makespan))
		f.mean(compared[i]+": JCT, s", paper(c.seconds, i), o.jct)
		f.mean(compared[i]+": makespan, s", paper(c.spans, i), o.makespan)
		if c.withTasks {
			f.mean(compared[i]+": running tasks, mean over time", paper([3]float64{18, 37.9, 34.1}, i), o.tasks)
			f.mean(compared[i]+": running tasks, most", paper([3]float64{60, 60, 54}, i), o.most)
		}
	}
	f.plot = relative(c.title, f.rows, compared[:3])
	if err := r.show(f); err != nil {
		return err
	}
	r.order("JCT", []string{"optimus", "tetris", "drf", "fifo"}, out[0].jct, out[2].jct, out[1].jct, out[3].jct)
	r.order("makespan", []string{"optimus", "tetris", "drf", "fifo"}, out[0].makespan, out[2].makespan, out[1].makespan, out[3].makespan)
	return nil
}

// order says whether the means increase in the order given, and how sure each step is.
func (r *report) order(what string, names []string, values ...[]float64) {
	for i := 1; i < len(values); i++ {
		gap := make([]float64, len(values[i]))
		for k := range gap {
			gap[k] = values[i][k] - values[i-1][k]
		}
		mean, plus := interval(gap)
		verdict := "as in the paper"
		switch {
		case mean <= 0:
			verdict = "NOT as in the paper"
		case mean < plus:
			verdict = "as in the paper, but within the interval"
		}
		r.say("%s: %s < %s by %s ± %s s: %s", what, names[i-1], names[i], number(mean), number(plus), verdict)
	}
}

// relative draws the rows that are relative to Optimus, ours and the paper's.
func relative(title string, rows []row, names []string) func(string) error {
	groups := []string{"JCT", "makespan"}
	var all []series
	for _, n := range names {
		ours, paper := series{name: n}, series{name: n + " (paper)", dash: true}
		for _, g := range groups {
			i := slices.IndexFunc(rows, func(l row) bool { return l.what == n+": "+g+" relative to optimus" })
			ours.y, paper.y = append(ours.y, rows[i].ours), append(paper.y, rows[i].paper)
		}
		all = append(all, ours, paper)
	}
	return bars(title, "relative to optimus", groups, all)
}

// fig15 injects errors into what the scheduler knows.
func (r *report) fig15(s *study) error {
	paper := map[string][]float64{
		"convergence: JCT":      {1, 1.027, 1.129, 1.254, 1.312, 1.340},
		"convergence: makespan": {1, 1.015, 1.039, 1.057, 1.067, 1.076},
		"speed: JCT":            {1, 1.074, 1.284, 1.357, 1.471, 1.460},
		"speed: makespan":       {1, 1.059, 1.118, 1.157, 1.177, 1.177},
	}
	p, err := policy.ByName("optimus")
	if err != nil {
		return err
	}
	load := optimus.Workload{Arrivals: trace.Uniform(12000), Known: true}
	f := figure{name: "fig15", title: "Fig 15: errors of the estimates, relative to none"}
	var all []series
	for _, kind := range []string{"convergence", "speed"} {
		var settings []setting
		for e := range 6 {
			settings = append(settings, setting{p, load, func(c *sim.Config) {
				if kind == "speed" {
					c.SpeedError = float64(e) / 10
				} else {
					c.RemainingError = float64(e) / 10
				}
			}})
		}
		out, err := s.run(r.ctx, settings...)
		if err != nil {
			return err
		}
		for _, what := range []string{"JCT", "makespan"} {
			ours, theirs := series{name: kind + ": " + what}, series{name: kind + ": " + what + " (paper)", dash: true}
			for e, o := range out {
				v, base := o.jct, out[0].jct
				if what == "makespan" {
					v, base = o.makespan, out[0].makespan
				}
				published := paper[ours.name][e]
				f.mean(fmt.Sprintf("%s, error %d %%", ours.name, 10*e), published, ratios(v, base))
				ours.x, ours.y = append(ours.x, float64(10*e)), append(ours.y, f.rows[len(f.rows)-1].ours)
				theirs.x, theirs.y = append(theirs.x, float64(10*e)), append(theirs.y, published)
			}
			all = append(all, ours, theirs)
		}
	}
	f.plot = lines(f.title, "error, %", "relative to no error", all)
	return r.show(f)
}

// ablations are Figs 18 and 19.
func (r *report) ablations(s *study) error {
	best := policy.Optimus{Options: policy.Best()}
	for _, c := range []struct {
		name, title   string
		policies      []policy.Policy
		jct, makespan []float64
	}{
		{"fig18", "Fig 18: allocation swapped, Optimus's placement kept", []policy.Policy{
			mixed("optimus", best, place.Optimus{}), mixed("tetris", policy.Tetris{Round: optimusInterval}, place.Optimus{}), mixed("drf", policy.DRF{}, place.Optimus{}),
		}, []float64{1, 1.33, 1.62}, []float64{1, 1.14, 1.31}},
		{"fig19", "Fig 19: placement swapped, Optimus's allocation kept", []policy.Policy{
			mixed("optimus", best, place.Optimus{}), mixed("pack (Tetris)", best, place.Pack{}), mixed("spread (DRF)", best, place.Spread{}),
		}, []float64{1, 1.12, 1.17}, []float64{1, 1.09, 1.13}},
	} {
		var settings []setting
		for _, p := range c.policies {
			settings = append(settings, setting{policy: p, load: optimus.Workload{Arrivals: trace.Uniform(12000)}})
		}
		out, err := s.run(r.ctx, settings...)
		if err != nil {
			return err
		}
		f := figure{name: c.name, title: c.title}
		var names []string
		for i, o := range out {
			names = append(names, c.policies[i].Name)
			f.mean(names[i]+": JCT relative to optimus", c.jct[i], ratios(o.jct, out[0].jct))
			f.mean(names[i]+": makespan relative to optimus", c.makespan[i], ratios(o.makespan, out[0].makespan))
		}
		f.plot = relative(c.title, f.rows, names)
		if err := r.show(f); err != nil {
			return err
		}
		r.order("JCT", names, out[0].jct, out[1].jct, out[2].jct)
		r.order("makespan", names, out[0].makespan, out[1].makespan, out[2].makespan)
	}
	return nil
}
