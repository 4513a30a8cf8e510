// Package recorded is the truth of jobs that a cluster's trace has recorded: each runs on
// the GPUs that it had there, for the time that it took there or that its steps take at
// a measured speed. What it would do on other GPUs nobody has measured, so no policy can
// give it more or fewer.
package recorded

import (
	"fmt"

	"optimus/scheduler/place"
	"optimus/scheduler/policy"
	"optimus/scheduler/sim"
	"optimus/scheduler/trace"
)

// Philly makes the jobs of a Philly trace, named philly-0 and so on as listed. Each runs
// for its recorded duration.
func Philly(jobs []trace.PhillyJob) []sim.Job {
	out := make([]sim.Job, len(jobs))
	for i, j := range jobs {
		out[i] = sim.Job{Name: fmt.Sprintf("philly-%d", i), Submit: j.Submit, Process: &process{gpus: j.GPUs, seconds: j.Duration}}
	}
	return out
}

// Gavel makes the jobs of a trace of the Gavel or Shockwave simulators, named gavel-0 and
// so on as listed. Each takes its steps at the speed measured on GPUs of a type; one
// whose configuration was not measured there, or does not fit, is impossible. It fails
// if nothing was measured on that type.
func Gavel(jobs []trace.GavelJob, speeds []trace.GavelSpeed, gpu string) ([]sim.Job, error) {
	type configuration struct {
		kind trace.GavelKind
		gpus int
	}
	measured := map[configuration]float64{}
	for _, s := range speeds {
		if s.GPU == gpu {
			measured[configuration{s.Kind, s.GPUs}] = s.Speed
		}
	}
	if len(measured) == 0 {
		return nil, fmt.Errorf("recorded: there is no speed measured on GPUs of type %q", gpu)
	}
	out := make([]sim.Job, len(jobs))
	for i, j := range jobs {
		out[i] = sim.Job{Name: fmt.Sprintf("gavel-%d", i), Submit: j.Submit}
		speed, known := measured[configuration{j.Kind, j.GPUs}]
		switch {
		case !known:
			out[i].Impossible = fmt.Sprintf("the speed of %v with %d GPUs of type %s was not measured", j.Kind, j.GPUs, gpu)
		case speed == 0:
			out[i].Impossible = fmt.Sprintf("%v with %d GPUs does not fit into the memory of type %s", j.Kind, j.GPUs, gpu)
		default:
			out[i].Process = &process{gpus: j.GPUs, seconds: float64(j.Steps) / speed}
		}
	}
	return out, nil
}

// process is a job under way. A step of it is a second at its speed.
type process struct {
	gpus    int
	seconds float64 // in all
	done    float64
}

// Clone implements [sim.Process].
func (p *process) Clone() sim.Process {
	c := *p
	return &c
}

// Advance implements [sim.Process].
func (p *process) Advance(a sim.Allocation, seconds float64) (ran float64, done bool) {
	if a.Tasks.Total()[place.Worker] != p.gpus {
		return seconds, false
	}
	pace := a.Pace()
	if left := p.seconds - p.done; left <= seconds*pace {
		p.done = p.seconds
		if pace == 0 { // nothing was left
			return 0, true
		}
		return left / pace, true
	}
	p.done += seconds * pace
	return seconds, false
}

// Show implements [sim.Process].
func (p *process) Show(j *policy.Job) {
	j.Ring = true
	j.Demand[place.Worker] = place.Vector{1}
	j.Min[place.Worker], j.Max[place.Worker] = p.gpus, p.gpus
	j.Remaining = p.seconds - p.done
	j.Progress = 1
	if p.seconds > 0 {
		j.Progress = p.done / p.seconds
	}
	j.Speed = policy.SpeedFunc(func(_, w int) float64 {
		if w != p.gpus {
			return 0
		}
		return 1
	})
}
