package optimus

import (
	"fmt"
	"math"
	"slices"

	"optimus/scheduler/estimate"
	"optimus/scheduler/place"
	"optimus/scheduler/sim"
	"optimus/scheduler/trace"
)

// Mode is how the workers of a job exchange parameters.
type Mode int

// The two modes.
const (
	Sync Mode = iota
	Async
)

// String returns "sync" or "async".
func (m Mode) String() string {
	if m == Sync {
		return "sync"
	}
	return "async"
}

// truth is the true speed of a kind in a mode.
type truth struct {
	mode              Mode
	compute, transfer *grid // seconds of a step by [p][w]
	inter, intra      float64
	reference         *grid // what load says of the placement for which transfer holds

	// What the scheduler fits to measured speeds, and the configurations that it has probed.
	form   estimate.Form
	design []estimate.Probe
}

// Truths are the true speeds of all kinds.
type Truths struct {
	kinds []Kind
	of    [][2]*truth // by kind, then mode
}

// Errors of predicting each measurement from the others: with a stretch of 1, 2.5 to 6 % on the models of the testbed and
// 3.1 % on Fig 9; with 3, 2.8 to 6.6 % and 2.6 %.
const testbedStretch, fig9Stretch = 1, 3

// servers is how many servers the testbed had, over which Kubernetes spread tasks.
const servers = 13

// NewTruths makes the truths of all kinds from the measured tables of synchronous jobs, as trace.ReadSpeeds returns
// them, and from Fig 9. It fails if a table is missing or too small.
func NewTruths(tables []trace.SpeedTable) (*Truths, error) {
	t := &Truths{kinds: Kinds()}
	async, err := interpolate(fig9Points(), fig9Stretch)
	if err != nil {
		return nil, fmt.Errorf("truth of asynchronous jobs: %w", err)
	}
	asyncDesign := design(estimate.Async())
	spread, err := spreads()
	if err != nil {
		return nil, err
	}
	var resnet50 *Kind
	for i := range t.kinds {
		if t.kinds[i].Name == "ResNet-50" {
			resnet50 = &t.kinds[i]
		}
	}
	for _, k := range t.kinds {
		total, err := synchronous(tables, k.Sync.Model)
		if err != nil {
			return nil, fmt.Errorf("truth of %s: %w", k.Name, err)
		}
		base := slices.IndexFunc(t.kinds, func(o Kind) bool { return o.Sync == measured(k.Sync.Model) })
		sync := divide(total, t.kinds[base].Compute, k.Sync.Compute, k.Sync.Transfer)
		other := divide(async, fig9Compute, k.Compute/resnet50.Compute, k.MB/resnet50.MB)
		other.slowDown(sync.step(1, 1) / other.step(1, 1))
		sync.form, other.form = estimate.Sync(k.Batch), estimate.Async()
		sync.design, other.design = design(sync.form), asyncDesign
		for mode, m := range []*truth{Sync: sync, Async: other} {
			m.mode, m.inter, m.intra = Mode(mode), k.Inter, k.Intra
			m.reference = &grid{}
			for p := range m.reference {
				for w := range m.reference[p] {
					m.reference[p][w] = m.load(spread[p][w])
				}
			}
		}
		t.of = append(t.of, [2]*truth{sync, other})
	}
	return t, nil
}

// synchronous returns the step times measured of a model.
func synchronous(tables []trace.SpeedTable, model string) (*grid, error) {
	i := slices.IndexFunc(tables, func(t trace.SpeedTable) bool { return t.Model == model && t.Mode == "dist_sync" })
	if i < 0 {
		return nil, fmt.Errorf("there are no measured speeds of %q; give a table that has them", model)
	}
	var points []point
	for _, p := range tables[i].Probes {
		points = append(points, point{float64(p.Servers), float64(p.Workers), 1 / p.Speed})
	}
	return interpolate(points, testbedStretch)
}

// divide cuts step times into computation, at most so many seconds, and the rest, and scales both. Of the computation
// no more is assumed than what the fastest number of ps leaves room for.
func divide(total *grid, compute, scaleCompute, scaleTransfer float64) *truth {
	t := &truth{compute: &grid{}, transfer: &grid{}}
	for w := 1; w <= MaxTasks; w++ {
		c := compute
		for p := 1; p <= MaxTasks; p++ {
			c = min(c, total[p][w])
		}
		for p := 1; p <= MaxTasks; p++ {
			t.compute[p][w] = scaleCompute * c
			t.transfer[p][w] = scaleTransfer * (total[p][w] - c)
		}
	}
	return t
}

// step returns the time of a step where the tables were measured; in an asynchronous job one worker's.
func (t *truth) step(p, w int) float64 { return t.compute[p][w] + t.transfer[p][w] }

// StepsPerSecond returns f(p,w) where the tables were measured. It makes the truth a policy.Speed.
func (t *truth) StepsPerSecond(p, w int) float64 {
	if p < 1 || w < 1 || p > MaxTasks || w > MaxTasks {
		return math.NaN()
	}
	if t.mode == Async {
		return float64(w) / t.step(p, w)
	}
	return 1 / t.step(p, w)
}

// slowDown makes steps as many times longer.
func (t *truth) slowDown(factor float64) {
	for p := range t.compute {
		for w := range t.compute[p] {
			t.compute[p][w] *= factor
			t.transfer[p][w] *= factor
		}
	}
}

// spreads returns the placements for which the tables hold, by p and w.
func spreads() ([MaxTasks + 1][MaxTasks + 1]place.Placement, error) {
	var out [MaxTasks + 1][MaxTasks + 1]place.Placement
	nodes := make([]place.Node, servers)
	for i := range nodes {
		nodes[i] = place.Node{ID: fmt.Sprintf("server-%02d", i), Capacity: place.Vector{2 * MaxTasks}}
	}
	for p := 1; p <= MaxTasks; p++ {
		for w := 1; w <= MaxTasks; w++ {
			s, err := place.NewSpace(nodes)
			if err != nil {
				return out, err
			}
			out[p][w] = place.Spread{}.Place(s, &place.Job{ID: "job", Tasks: place.Counts{p, w}, Demand: [2]place.Vector{{1}, {1}}})
		}
	}
	return out, nil
}

// load is the time of a step's transfers per MB that two tasks exchange: the slowest task's in a synchronous job, the
// mean of the workers' in an asynchronous one, which wait for the slowest ps but not for each other.
func (t *truth) load(at place.Placement) float64 {
	total := at.Total()
	time := func(all, own int) float64 { return float64(all-own)/t.inter + float64(own)/t.intra }
	ps := 0.0
	for _, s := range at {
		if s.Tasks[place.PS] > 0 {
			ps = max(ps, time(total[place.Worker], s.Tasks[place.Worker]))
		}
	}
	slowest, sum := ps, 0.0
	for _, s := range at {
		if n := s.Tasks[place.Worker]; n > 0 {
			worker := max(ps, time(total[place.PS], s.Tasks[place.PS]))
			slowest, sum = max(slowest, worker), sum+float64(n)*worker
		}
	}
	if t.mode == Sync || total[place.Worker] == 0 {
		return slowest
	}
	return sum / float64(total[place.Worker])
}

// speed returns the true f in steps/s: of all workers together in an asynchronous job.
func (t *truth) speed(at place.Placement) float64 {
	p, w := at.Total()[place.PS], at.Total()[place.Worker]
	step := t.compute[p][w] + t.transfer[p][w]*t.load(at)/t.reference[p][w]
	if t.mode == Async {
		return float64(w) / step
	}
	return 1 / step
}

// pace is what slow nodes and neighbours leave of the speed: in an asynchronous job a slow worker slows only itself.
func (t *truth) pace(a *sim.Allocation) float64 {
	if t.mode == Sync || a.Slow == nil {
		return a.Pace()
	}
	workers, ps := 0.0, 1.0
	for i, s := range a.Tasks {
		workers += float64(s.Tasks[place.Worker]) / a.Slow[i]
		if s.Tasks[place.PS] > 0 {
			ps = max(ps, a.Slow[i])
		}
	}
	return (1 - a.Slowdown) * min(workers/float64(a.Tasks.Total()[place.Worker]), 1/ps)
}
