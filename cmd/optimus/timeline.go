package main

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"optimus/internal/chrometrace"
	"optimus/internal/plots"
	"optimus/scheduler/place"
)

// writeTimeline writes who had what when, by job and by node, for every policy.
func writeTimeline(path string, s *scenario, all []simulated) error {
	var t chrometrace.Trace
	for _, one := range all {
		t.Processes = append(t.Processes, jobLines(one), nodeLines(one, s.config.Nodes))
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	err = t.Write(f)
	return cmp.Or(err, f.Close())
}

// jobLines has a line for each job, and how many run and wait.
func jobLines(s simulated) chrometrace.Process {
	spans := map[string][]chrometrace.Span{}
	changes := counting{}
	for _, x := range s.result.Timeline {
		var on []string
		for _, n := range x.Nodes {
			on = append(on, fmt.Sprintf("%s: %v", n.Node, n.Tasks))
		}
		spans[x.Job] = append(spans[x.Job], chrometrace.Span{Name: x.Tasks.String(), Start: x.Start, End: x.End,
			Args: map[string]string{"nodes": strings.Join(on, ", "), "reason": x.Reason}})
		changes.add(x.Start, "running", 1)
		changes.add(x.End, "running", -1)
		changes.add(x.Start, "waiting", -1)
		changes.add(x.End, "waiting", 1)
	}
	p := chrometrace.Process{Name: s.Policy + ": jobs"}
	for _, j := range s.result.Jobs {
		p.Threads = append(p.Threads, chrometrace.Thread{Name: j.Name, Spans: spans[j.Name]})
		if j.Finish >= 0 {
			changes.add(j.Submit, "waiting", 1)
			changes.add(j.Finish, "waiting", -1)
		}
	}
	p.Counters = []chrometrace.Counter{{Name: "jobs", Samples: changes.samples()}}
	return p
}

// nodeLines has the jobs on each node, on as many lines as are there at once.
func nodeLines(s simulated, nodes []place.Node) chrometrace.Process {
	spans := map[string][]chrometrace.Span{}
	for _, x := range s.result.Timeline {
		for _, n := range x.Nodes {
			spans[n.Node] = append(spans[n.Node], chrometrace.Span{Name: x.Job, Start: x.Start, End: x.End, Args: map[string]string{"tasks": n.Tasks.String()}})
		}
	}
	p := chrometrace.Process{Name: s.Policy + ": nodes"}
	for _, n := range nodes {
		for _, lane := range chrometrace.Lanes(spans[n.ID]) {
			p.Threads = append(p.Threads, chrometrace.Thread{Name: n.ID, Spans: lane})
		}
	}
	return p
}

// counting are changes of counts over time.
type counting map[float64]map[string]float64

func (c counting) add(at float64, what string, by float64) {
	if c[at] == nil {
		c[at] = map[string]float64{}
	}
	c[at][what] += by
}

// samples are the counts after each change.
func (c counting) samples() []chrometrace.Sample {
	var out []chrometrace.Sample
	now := map[string]float64{}
	for _, at := range slices.Sorted(maps.Keys(c)) {
		for what, by := range c[at] {
			now[what] += by
		}
		out = append(out, chrometrace.Sample{At: at, Values: maps.Clone(now)})
	}
	return out
}

// plotSimulations draws the policies side by side: their means relative to the first,
// how the completion times are distributed, and how much of the cluster is used.
func plotSimulations(dir string, s *scenario, all []simulated) error {
	summary := plots.Chart{Title: "Relative to " + all[0].Policy, Y: "ratio", Groups: []string{"mean JCT", "99th percentile", "makespan"}}
	times := plots.Chart{Title: "Job completion times", X: "seconds", Y: "part of the jobs", LogX: true}
	used := plots.Chart{Title: "Use of the cluster", X: "seconds", Y: "part of the " + s.unit}
	for _, one := range all {
		summary.Bars = append(summary.Bars, plots.Bars{Name: one.Policy, Values: []float64{
			ratioTo(one.MeanJCT, all[0].MeanJCT), ratioTo(one.P99JCT, all[0].P99JCT), ratioTo(one.Makespan, all[0].Makespan)}})
		times.Curves = append(times.Curves, distribution(one))
		used.Curves = append(used.Curves, s.use(one))
	}
	for name, c := range map[string]plots.Chart{"summary": summary, "completion": times, "use": used} {
		if err := c.Save(dir, name); err != nil {
			return err
		}
	}
	return nil
}

// ratioTo is 1 where both are nothing.
func ratioTo(x, base float64) float64 {
	if base == 0 {
		return 1
	}
	return x / base
}

// distribution is the part of the jobs that took at most so long.
func distribution(s simulated) plots.Curve {
	c := plots.Curve{Name: s.Policy, Step: true}
	for _, j := range s.result.Jobs {
		if j.JCT >= 0 {
			c.X = append(c.X, j.JCT)
		}
	}
	slices.Sort(c.X)
	for i := range c.X {
		c.Y = append(c.Y, float64(i+1)/float64(len(s.result.Jobs)))
	}
	return c
}

// use is the part of the charged resource that is taken over time.
func (s *scenario) use(one simulated) plots.Curve {
	changes := counting{}
	for _, x := range one.result.Timeline {
		taken := 0.0
		for role, demand := range one.demand[x.Job] {
			if n := x.Tasks[role]; n > 0 {
				taken += float64(n) * float64(demand[s.charged])
			}
		}
		changes.add(x.Start, "used", taken)
		changes.add(x.End, "used", -taken)
	}
	c := plots.Curve{Name: one.Policy, Step: true, X: []float64{0}, Y: []float64{0}}
	for _, at := range changes.samples() {
		c.X, c.Y = append(c.X, at.At), append(c.Y, at.Values["used"]/s.capacity())
	}
	return c
}
