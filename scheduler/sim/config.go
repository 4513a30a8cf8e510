package sim

import (
	"fmt"
	"math"

	"optimus/scheduler/place"
	"optimus/scheduler/policy"
)

// Config says what is simulated. Times are in seconds from the start of the workload.
type Config struct {
	Policy   policy.Policy
	Nodes    []place.Node
	Interval float64 // between rounds; 0 is 60
	Reactive bool    // rounds also when a job arrives or ends, and when a node fails or comes back
	Restart  float64 // what each change of a job's allocation costs it

	// Charged is the index of the resource type whose use is a job's service, for example the GPUs.
	Charged int
	// Interference is the part of its speed that a job on several nodes loses while it shares one of them with
	// another such job, 0 to below 1.
	Interference float64
	Failures     []Failure
	// Checkpoint is the running time between two checkpoints of a job. One is also taken at each change of its
	// allocation, and 0 means no other. A job that loses a node goes on from its last checkpoint.
	Checkpoint float64
	Stragglers []Straggler
	// SpeedError and RemainingError are the relative errors of the estimates that the policy is shown. A job's steps
	// left are (1 ± e·(1−progress)) times the true ones with a sign for each job, its speeds likewise with a sign for
	// each number of tasks (the Optimus paper, Fig 15).
	SpeedError, RemainingError float64
	Seed                       uint64 // of the signs

	// Patience is how long no job may get on before the simulation gives up; 0 is 30 days.
	Patience float64
	// Stopwatch is the time in seconds on any clock, for Result.Durations; nil if it does not matter.
	Stopwatch func() float64
}

// Failure takes a node away.
type Failure struct {
	Node string
	At   float64
	Back float64 // 0 if it stays away
}

// Straggler makes the tasks on a node slower for some time.
type Straggler struct {
	Node   string
	At     float64
	Until  float64
	Factor float64 // how many times slower, at least 1
}

const (
	defaultInterval = 60
	defaultPatience = 30 * 24 * 3600
	shortest        = 1e-3 // time between events that recur
	longest         = 1e12 // time that is a time
)

// checked returns the config with defaults filled in and its nodes, or an error that names the first thing wrong.
func (c Config) checked() (Config, *place.Space, error) {
	if c.Interval == 0 {
		c.Interval = defaultInterval
	}
	if c.Patience == 0 {
		c.Patience = defaultPatience
	}
	if c.Stopwatch == nil {
		c.Stopwatch = func() float64 { return 0 }
	}
	if c.Policy.Planner == nil {
		return c, nil, fmt.Errorf("simulate: policy %q has no planner; use policy.ByName", c.Policy.Name)
	}
	space, err := place.NewSpace(c.Nodes)
	if err != nil {
		return c, nil, fmt.Errorf("simulate: %w", err)
	}
	if types := len(space.Capacity()); c.Charged < 0 || c.Charged >= types {
		return c, nil, fmt.Errorf("simulate: resource %d is to be charged, but nodes have %d; count from 0", c.Charged, types)
	}
	for _, v := range []struct {
		name         string
		value, least float64
		none         bool // 0 stands for none
	}{
		{"interval", c.Interval, shortest, false}, {"checkpoint interval", c.Checkpoint, shortest, true},
		{"restart cost", c.Restart, 0, false}, {"patience", c.Patience, shortest, false},
	} {
		if !(v.value >= v.least) && !(v.none && v.value == 0) || v.value > longest {
			return c, nil, fmt.Errorf("simulate: %s is %v s; it must be from %v to %v", v.name, v.value, v.least, float64(longest))
		}
	}
	for _, v := range []struct {
		name  string
		value float64
	}{{"interference", c.Interference}, {"error of the speed", c.SpeedError}, {"error of the steps left", c.RemainingError}} {
		if !(v.value >= 0 && v.value < 1) {
			return c, nil, fmt.Errorf("simulate: %s is %v; it must be from 0 to below 1", v.name, v.value)
		}
	}
	return c, space, c.checkDisturbances(space)
}

func (c Config) checkDisturbances(space *place.Space) error {
	for i, f := range c.Failures {
		if _, ok := space.Index(f.Node); !ok || !(f.At >= 0) || !(f.Back == 0 || f.Back > f.At) {
			return fmt.Errorf("simulate: failure %d (node %q from %v to %v s): the node must exist and come back, if it does, after it failed",
				i, f.Node, f.At, f.Back)
		}
	}
	for i, s := range c.Stragglers {
		if _, ok := space.Index(s.Node); !ok || !(s.At >= 0) || !(s.Until > s.At) || !(s.Factor >= 1) || math.IsInf(s.Factor, 1) {
			return fmt.Errorf("simulate: straggler %d (node %q from %v to %v s, %v times slower): the node must exist, the time and the factor not be negative or below 1",
				i, s.Node, s.At, s.Until, s.Factor)
		}
	}
	return nil
}
