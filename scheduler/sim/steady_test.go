package sim

import (
	"fmt"
	"math"
	"testing"

	"optimus/scheduler/place"
	"optimus/scheduler/policy"
)

// steady is a job of so many GPU·seconds that gets them done one by one.
type steady struct {
	work, left float64
	gpus       int // least and most
	stuck      bool
}

func (s *steady) Advance(a Allocation, seconds float64) (float64, bool) {
	rate := float64(a.Tasks.Total()[place.Worker]) * a.Pace()
	if s.stuck {
		rate = 0
	}
	if s.left > rate*seconds {
		s.left -= rate * seconds
		return seconds, false
	}
	ran := s.left / rate
	s.left = 0
	return ran, true
}

func (s *steady) Show(j *policy.Job) {
	j.Ring, j.Demand[place.Worker] = true, place.Vector{1}
	j.Min[place.Worker], j.Max[place.Worker] = s.gpus, s.gpus
	j.Remaining, j.Progress = s.left, 1-s.left/s.work
	j.Speed = policy.SpeedFunc(func(_, w int) float64 { return float64(w) })
}

func (s *steady) Clone() Process { c := *s; return &c }

// job makes a job that runs for so many seconds on so many GPUs.
func job(name string, submit, seconds float64, gpus int) Job {
	work := seconds * float64(gpus)
	return Job{Name: name, Submit: submit, Process: &steady{work: work, left: work, gpus: gpus}}
}

// nodes returns n nodes of 4 GPUs.
func nodes(n int) []place.Node {
	out := make([]place.Node, n)
	for i := range out {
		out[i] = place.Node{ID: fmt.Sprintf("n%d", i), Capacity: place.Vector{4}}
	}
	return out
}

// gang starts every job with its GPUs as soon as they fit.
var gang = policy.Policy{Name: "gang", Planner: policy.Tiresias{}}

// plan is a policy that is a function.
type plan func(r *policy.Round) []policy.Plan

func (plan) Check(*policy.Job) error              { return nil }
func (p plan) Plan(r *policy.Round) []policy.Plan { return p(r) }

func run(t *testing.T, cfg Config, jobs ...Job) *Result {
	t.Helper()
	r, err := Run(cfg, jobs)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// near holds the numbers that a test reads off a result to those expected.
func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if !(math.Abs(got-want) <= 1e-9*max(1, math.Abs(want))) {
		t.Errorf("%s is %v, want %v", what, got, want)
	}
}
