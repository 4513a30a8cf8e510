package sim_test

import (
	"fmt"

	"optimus/scheduler/place"
	"optimus/scheduler/policy"
	"optimus/scheduler/sim"
)

// download is a job of a single task that gets so many bytes at 10 bytes/s.
type download struct{ bytes, left float64 }

func (d *download) Advance(a sim.Allocation, seconds float64) (float64, bool) {
	rate := 10 * a.Pace()
	if ran := d.left / rate; ran <= seconds {
		d.left = 0
		return ran, true
	}
	d.left -= rate * seconds
	return seconds, false
}

func (d *download) Show(j *policy.Job) {
	j.Ring, j.Max, j.Demand[place.Worker] = true, place.Counts{0, 1}, place.Vector{1}
	j.Remaining, j.Progress = d.left, 1-d.left/d.bytes
	j.Speed = policy.SpeedFunc(func(_, w int) float64 { return 10 })
}

func (d *download) Clone() sim.Process { c := *d; return &c }

// The shortest of the jobs that are there goes first.
func ExampleRun() {
	srtf, err := policy.ByName("srtf")
	if err != nil {
		fmt.Println(err)
		return
	}
	r, err := sim.Run(sim.Config{
		Policy:   srtf,
		Nodes:    []place.Node{{ID: "a", Capacity: place.Vector{1}}},
		Reactive: true,
		Restart:  5,
	}, []sim.Job{
		{Name: "long", Submit: 0, Process: &download{1000, 1000}},
		{Name: "short", Submit: 20, Process: &download{100, 100}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, s := range r.Timeline {
		fmt.Printf("%3.0f to %3.0f s: %s on %s\n", s.Start, s.End, s.Job, s.Nodes[0].Node)
	}
	fmt.Printf("mean %.1f s, makespan %.0f s\n", r.MeanJCT, r.Makespan)
	// Output:
	//   0 to  20 s: long on a
	//  20 to  35 s: short on a
	//  35 to 125 s: long on a
	// mean 70.0 s, makespan 125 s
}
