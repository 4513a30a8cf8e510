package elastic

import (
	"errors"
	"fmt"
	"time"

	"optimus/data/order"
	"optimus/paa"
)

// Mode is how the servers combine pushes.
type Mode string

// The modes: bulk synchronous, asynchronous, stale synchronous.
const (
	BSP Mode = "bsp"
	ASP Mode = "asp"
	SSP Mode = "ssp"
)

// Config is what a controller must know about its job. Durations are in ticks:
// the machine has no clock.
type Config struct {
	Tick   time.Duration // how long a tick takes, for what people read; 0: they read ticks
	Mode   Mode
	Plan   order.Plan // which examples form a step
	Steps  int64      // the job's length; asp and ssp: pushes at most
	Epochs int        // passes over the data (asp, ssp)
	Chunk  int        // examples in a chunk that is leased to a worker (asp, ssp)

	Rule  string // assignment rule of package paa, for a first start
	Sizes []int  // elements of each block, model order
	Aux   []int  // elements of each auxiliary array

	MinWorkers int // below this the job pauses; at least 1

	Evaluate        bool  // evaluate after each epoch and at the end
	CheckpointEvery int64 // steps; 0 means only on demand and at the end

	StopOnNonFinite bool // a non-finite gradient ends the job instead of skipping its step
	SkipLimit       int  // so many steps skipped in a row end the job

	Detect       int // a member silent for so long is lost
	StartLimit   int // a newcomer must say Hello within
	PhaseLimit   int // a phase of a transition may stand still so long
	LeaseTicks   int // a lease should last about this long
	RestartLimit int // losses without one step in between that end the job

	// First numbers to use: one above those of the run that is resumed.
	FirstGeneration  int
	FirstIncarnation uint64
	FirstSnapshot    int64
}

// Validate fills defaults in and names the first impossible field.
func (c *Config) Validate() error {
	if c.Mode == "" {
		c.Mode = BSP
	}
	if c.Mode != BSP && c.Mode != ASP && c.Mode != SSP {
		return fmt.Errorf("elastic config: mode %q: want bsp, asp or ssp", c.Mode)
	}
	if err := c.Plan.Validate(); err != nil {
		return fmt.Errorf("elastic config: %w", err)
	}
	if len(c.Sizes) == 0 {
		return errors.New("elastic config: the model has no blocks")
	}
	if c.Steps < 1 {
		return fmt.Errorf("elastic config: %d steps: want at least 1", c.Steps)
	}
	if c.Rule == "" {
		c.Rule = paa.RulePAA
	}
	for field, dflt := range map[*int]int{
		&c.MinWorkers: 1, &c.SkipLimit: 10, &c.Detect: 100, &c.StartLimit: 600,
		&c.PhaseLimit: 600, &c.LeaseTicks: 5, &c.RestartLimit: 5, &c.FirstGeneration: 1,
		&c.Chunk: max(1, c.Plan.Batch),
	} {
		if *field <= 0 {
			*field = dflt
		}
	}
	c.FirstIncarnation = max(c.FirstIncarnation, 1)
	c.FirstSnapshot = max(c.FirstSnapshot, 1)
	return nil
}

// State is what a job is doing.
type State string

// The states; the last three are final.
const (
	Starting   State = "starting"
	Running    State = "running"
	Rescaling  State = "rescaling"
	Recovering State = "recovering"
	Paused     State = "paused"
	Finishing  State = "finishing"
	Finished   State = "finished"
	Stopped    State = "stopped"
	Broken     State = "failed"
)

// Final reports whether nothing comes after s.
func (s State) Final() bool { return s == Finished || s == Stopped || s == Broken }
