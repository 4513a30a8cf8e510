package reproduce

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"slices"

	"optimus/scheduler/policy"
	"optimus/scheduler/sim"
	"optimus/scheduler/sim/pollux"
	"optimus/scheduler/trace"
)

// polluxConfig is the Pollux simulator's: a decision every minute, and 30 s for a restart.
func polluxConfig(name string) (sim.Config, error) {
	p, err := policy.ByName(name)
	return sim.Config{Policy: p, Nodes: pollux.Cluster(pollux.MaxNodes), Interval: 60, Restart: 30}, err
}

// polluxData is the measured data, and what the authors' simulator made of it.
type polluxData struct {
	files  fs.FS
	models pollux.Models
	// published are the mean JCTs in s by experiment, then by workload.
	published map[string]map[string]struct {
		Mean float64 `json:"avg_jct"`
	}
}

func (r *report) polluxData() (*polluxData, error) {
	d := &polluxData{}
	var err error
	if d.files, err = fs.Sub(r.Data, "pollux"); err != nil {
		return nil, err
	}
	if d.models, err = pollux.Load(d.files); err != nil {
		return nil, err
	}
	raw, err := fs.ReadFile(d.files, "expected/jct.json")
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(raw, &d.published); err != nil {
		return nil, fmt.Errorf("expected/jct.json: %w", err)
	}
	return d, nil
}

// pollux regenerates the simulations of the Pollux paper, whose authors have published each job's completion time. Means
// are over the workloads that are here.
func (r *report) pollux() error {
	d, err := r.polluxData()
	if err != nil {
		return err
	}
	for _, part := range []func(*polluxData) error{r.polluxLoad, r.polluxInterval, r.polluxInterference} {
		if err := part(d); err != nil {
			return err
		}
	}
	r.cannot([][2]string{
		{"testbed results", "they need 64 GPUs; the simulator's are above"},
		{"training curves and batch sizes", "they need training runs on GPUs"},
		{"two of the eight workloads", "they are held back; both columns are means over the other six"},
	})
	return nil
}

// polluxLoad compares three policies under four loads.
func (r *report) polluxLoad(d *polluxData) error {
	f := figure{name: "load", title: "Job load: mean JCT, h"}
	var all []series
	var groups []string
	loads := [][2]string{{"0.5", "workloads-0.5"}, {"1.0", "workloads"}, {"1.5", "workloads-1.5"}, {"2.0", "workloads-2.0"}}
	for _, l := range loads {
		groups = append(groups, "load "+l[0])
	}
	for _, p := range [][2]string{{"pollux", "pollux"}, {"tiresias", "tiresias"}, {"optimus+oracle", "optimus"}} { // our name and theirs
		cfg, err := polluxConfig(p[0])
		if err != nil {
			return err
		}
		ours, theirs := series{name: p[0]}, series{name: p[0] + " (paper)", dash: true}
		for _, l := range loads {
			paper, mean, err := r.polluxMean(d, fmt.Sprintf("jobload/%s-%s", p[1], l[0]), l[1], cfg)
			if err != nil {
				return err
			}
			f.add(fmt.Sprintf("%s, load %s", p[0], l[0]), paper, mean)
			ours.y, theirs.y = append(ours.y, mean), append(theirs.y, paper)
		}
		all = append(all, ours, theirs)
	}
	f.plot = bars(f.title, "hours", groups, all)
	return r.show(f)
}

// polluxInterval decides more and less often.
func (r *report) polluxInterval(d *polluxData) error {
	f := figure{name: "interval", title: "Scheduling interval: mean JCT under Pollux, h"}
	for _, c := range []struct {
		name    string
		seconds float64
	}{{"30s", 30}, {"2m", 120}, {"4m", 240}, {"8m", 480}} {
		cfg, err := polluxConfig("pollux")
		if err != nil {
			return err
		}
		cfg.Interval = c.seconds
		paper, mean, err := r.polluxMean(d, "period/pollux-"+c.name, "workloads", cfg)
		if err != nil {
			return err
		}
		f.add(c.name, paper, mean)
	}
	return r.show(f)
}

// polluxInterference lets jobs that span nodes share them.
func (r *report) polluxInterference(d *polluxData) error {
	f := figure{name: "interference", title: "Interference, not avoided: mean JCT under Pollux, h"}
	for _, c := range []struct {
		name string
		loss float64
	}{{"noavoid", 0}, {"inter25", .25}, {"inter50", .5}} {
		cfg, err := polluxConfig("pollux")
		if err != nil {
			return err
		}
		p, ok := cfg.Policy.Planner.(policy.Pollux)
		if !ok {
			return fmt.Errorf("the policy pollux is a %T, not policy.Pollux", cfg.Policy.Planner)
		}
		p.Overlap = true
		cfg.Policy.Planner, cfg.Interference = p, c.loss
		paper, mean, err := r.polluxMean(d, "inter/"+c.name, "workloads", cfg)
		if err != nil {
			return err
		}
		f.add(fmt.Sprintf("loss of %.0f %%", 100*c.loss), paper, mean)
	}
	return r.show(f)
}

// polluxMean returns the mean JCT over the workloads of an experiment in h, as published and as simulated.
func (r *report) polluxMean(d *polluxData, experiment, folder string, cfg sim.Config) (paper, ours float64, err error) {
	want := d.published[experiment]
	if len(want) < 2 {
		return 0, 0, fmt.Errorf("expected/jct.json has no results of %q", experiment)
	}
	names := slices.Sorted(maps.Keys(want))
	hours := make([]float64, len(names))
	err = parallel(r.ctx, len(names), func(i int) (err error) {
		hours[i], err = d.run(folder+"/"+names[i]+".csv", cfg)
		return err
	})
	for _, n := range names {
		paper += want[n].Mean / 3600 / float64(len(names))
	}
	ours, _ = interval(hours)
	return paper, ours, err
}

// run returns the mean JCT of one workload in h.
func (d *polluxData) run(file string, cfg sim.Config) (float64, error) {
	in, err := d.files.Open(file)
	if err != nil {
		return 0, err
	}
	defer in.Close()
	workload, err := trace.ReadPollux(file, in, d.models.Names())
	if err != nil {
		return 0, err
	}
	jobs, err := pollux.Jobs(d.models, workload, pollux.KindFor(cfg.Policy.Name))
	if err != nil {
		return 0, err
	}
	out, err := sim.Run(cfg, jobs)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", file, err)
	}
	return out.MeanJCT / 3600, nil
}
