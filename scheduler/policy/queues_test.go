package policy

import (
	"fmt"
	"testing"

	"optimus/scheduler/place"
)

// scaling is a job whose speed is that of its workers, and which needs so many seconds alone.
func scaling(id string, seconds float64) Job {
	return containerJob(id, seconds, SpeedFunc(func(_, w int) float64 { return float64(w) }))
}

func TestTetris(t *testing.T) {
	saturated := containerJob("saturated", 1000, SpeedFunc(func(_, w int) float64 { return float64(min(w, 2)) }))
	for _, c := range []struct {
		name string
		gpus int
		jobs []Job
		want string // workers
	}{
		{"the job with less work left first", 20, []Job{scaling("long", 90000), scaling("short", 12000)}, "[1 9]"},
		{"no more than MaxBundles", 60, []Job{scaling("long", 90000), scaling("short", 30000)}, "[14 16]"},
		{"no bundle in vain", 20, []Job{saturated, scaling("long", 90000)}, "[2 8]"},
		{"one that ends in this round comes after the others", 20, []Job{scaling("long", 9000), scaling("ending", 500)}, "[9 1]"},
		{"one that will end with what it got leaves the rest", 20, []Job{scaling("long", 9000), scaling("short", 1500)}, "[7 3]"},
		{"but nothing stays idle", 20, []Job{scaling("a", 100), scaling("b", 200)}, "[9 1]"},
		{"the least of those with a better score first", 4, []Job{scaling("long", 9000), scaling("b", 3000), scaling("c", 2000)}, "[0 1 1]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []int
			for i, a := range (Tetris{Round: 600}).Allocate(c.jobs, containers(t, c.gpus)) {
				got = append(got, a.Tasks[place.Worker])
				if a.Reason == "" || a.Tasks[place.PS] != a.Tasks[place.Worker] {
					t.Errorf("%s: %v, reason %q", c.jobs[i].ID, a.Tasks, a.Reason)
				}
			}
			if fmt.Sprint(got) != c.want {
				t.Errorf("got %v workers, want %s", got, c.want)
			}
		})
	}
}
