package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"optimus/benchmarks/pytorch"
	"optimus/benchmarks/step"
)

// model is what was measured of one workload with one number of threads.
type model struct {
	Workload    string         `json:"workload"`
	Batch       int            `json:"batch"`
	Threads     int            `json:"threads"`
	Parameters  int            `json:"parameters"`
	Clock       string         `json:"clock"` // what times are of: cpu (of the process) or wall
	Ours        speed          `json:"ours"`
	GFLOPS      float64        `json:"gflops"`        // of ours, products only
	Share       float64        `json:"share_of_peak"` // of that, in the peak of as many cores measured in the same turn
	Allocations float64        `json:"allocations_per_step"`
	Memory      step.Memory    `json:"memory"`
	PyTorch     *speed         `json:"pytorch,omitempty"`
	Ratio       float64        `json:"ratio,omitempty"` // ours to PyTorch's: median over pairs of turns
	Setup       *pytorch.Setup `json:"pytorch_setup,omitempty"`
	Absent      string         `json:"pytorch_absent,omitempty"` // why there is no comparison
	Doubt       string         `json:"doubt,omitempty"`          // why the figures should not be trusted
}

// speed is the median over the turns.
type speed struct {
	Milliseconds float64 `json:"ms_per_step"`
	Examples     float64 `json:"examples_per_s"`
}

func speedOf(perStep []float64, batch int) speed {
	t := median(perStep)
	return speed{Milliseconds: t * 1e3, Examples: float64(batch) / t}
}

// side takes turns.
type side interface {
	Turn(n int) (step.Turn, error)
}

// slice is the least length of a turn; one step may take longer.
const slice = 300 * time.Millisecond

func measureModels(ctx context.Context, o options, rep *report) error {
	var python string
	absent := errors.New("train.py has the models of the paper's size only")
	if o.size == "" {
		python, absent = pytorch.Find(ctx, o.python)
	}
	if absent != nil && (o.python != "" || ctx.Err() != nil) {
		return absent
	}
	for _, threads := range o.threads {
		for _, name := range o.models {
			fmt.Fprintf(o.progress, "measuring %s, threads: %d\n", name, threads)
			m, err := measureModel(ctx, o, name, threads, python, absent)
			if err != nil {
				return err
			}
			if threads > 1 && !rep.Machine.quiet() {
				m.Doubt = fmt.Sprintf("other processes were running (load %.1f); wall time is theirs, too", rep.Machine.LoadBefore)
			}
			rep.Models = append(rep.Models, m)
		}
	}
	return nil
}

func measureModel(ctx context.Context, o options, name string, threads int, python string, absent error) (m model, err error) {
	s, err := step.New(step.Options{Workload: name, Size: o.size, Batch: o.batch, Threads: threads})
	if err != nil {
		return model{}, err
	}
	defer s.Close()
	m = model{Workload: name, Batch: s.Batch, Threads: threads, Parameters: s.Program.Parameters(), Clock: "wall", Memory: s.Memory}
	if threads == 1 {
		m.Clock = "cpu"
	}
	theirs, err := opponent(ctx, s, threads, python, absent)
	if err != nil {
		return model{}, err
	}
	if theirs.Trainer != nil {
		defer func() { err = errors.Join(err, theirs.Close()) }()
		m.Setup = &theirs.Setup
	}
	m.Absent = theirs.absent
	turns, err := alternate(ctx, o.rounds, m.Clock, s, theirs.side())
	if err != nil {
		return model{}, err
	}
	m.Ours = speedOf(turns.ours, s.Batch)
	m.GFLOPS = s.FLOP() / (m.Ours.Milliseconds * 1e6)
	if p := median(turns.peaks) * float64(threads); p > 0 {
		m.Share = m.GFLOPS / p
	}
	if theirs.Trainer != nil {
		their := speedOf(turns.theirs, s.Batch)
		m.PyTorch, m.Ratio = &their, ratio(turns.ours, turns.theirs)
	}
	m.Allocations, err = s.Allocations(3)
	return m, err
}

// rival is PyTorch's side, or why there is none.
type rival struct {
	*pytorch.Trainer
	absent string
}

func (r rival) side() side {
	if r.Trainer == nil {
		return nil
	}
	return r.Trainer
}

// opponent starts PyTorch with the model and the batch of s.
func opponent(ctx context.Context, s *step.Step, threads int, python string, absent error) (rival, error) {
	if absent != nil {
		return rival{absent: absent.Error()}, nil
	}
	t, err := pytorch.Start(ctx, python, pytorch.Config{
		Model: s.Workload.Name, Batch: s.Batch, Threads: threads, Inputs: s.Inputs(), Optimizer: s.Optimizer,
	})
	if errors.Is(err, pytorch.ErrNoModel) {
		return rival{absent: err.Error()}, nil
	}
	if err != nil {
		return rival{}, err
	}
	if ours := s.Program.Parameters(); t.Setup.Parameters != ours {
		err := fmt.Errorf("compare %s: PyTorch's model has %d parameters, ours %d; nets.py must describe the same model", s.Workload.Name, t.Setup.Parameters, ours)
		return rival{}, errors.Join(err, t.Close())
	}
	return rival{Trainer: t}, nil
}

// turns are seconds per step in each round, and the peaks of the rounds.
type turns struct{ ours, theirs, peaks []float64 }

// alternate lets the sides take turns: ours, theirs, ours, … Theirs may be nil.
func alternate(ctx context.Context, rounds int, clock string, ours, theirs side) (t turns, err error) {
	play := func(s side, into *[]float64) error {
		if err := ctx.Err(); err != nil || s == nil {
			return err
		}
		n := 1
		if len(*into) > 0 {
			n = max(1, min(1000, int(math.Round(slice.Seconds()/(*into)[0]))))
		}
		turn, err := s.Turn(n)
		if err != nil {
			return err
		}
		took := turn.Wall
		if clock == "cpu" {
			took = turn.CPU
		}
		*into = append(*into, took.Seconds()/float64(n))
		return nil
	}
	for range rounds + 1 {
		p, err := peak()
		if err != nil {
			return t, err
		}
		if err := errors.Join(play(ours, &t.ours), play(theirs, &t.theirs)); err != nil {
			return t, err
		}
		t.peaks = append(t.peaks, p)
	}
	// The first round was to learn how many steps a turn has.
	t.ours, t.peaks = t.ours[1:], t.peaks[1:]
	if theirs != nil {
		t.theirs = t.theirs[1:]
	}
	return t, nil
}

// ratio is how much faster ours is: the median over the pairs of turns, so that
// a machine whose speed drifts does not decide.
func ratio(ours, theirs []float64) float64 {
	q := make([]float64, min(len(ours), len(theirs)))
	for i := range q {
		q[i] = theirs[i] / ours[i]
	}
	return median(q)
}

// median is the middle value, the mean of both middle ones, 0 of none.
func median(x []float64) float64 {
	if len(x) == 0 {
		return 0
	}
	x = slices.Sorted(slices.Values(x))
	return (x[(len(x)-1)/2] + x[len(x)/2]) / 2
}
