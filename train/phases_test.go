package train

import (
	"fmt"
	"testing"
	"time"

	"go.uber.org/goleak"

	"optimus/elastic"
	"optimus/spec"
	"optimus/telemetry"
)

// victims picks the member that dies, by its part in the rescale.
var victims = map[string]struct {
	role elastic.Role
	id   int
	up   bool // the rescale is (2,3) to (3,5), else back
}{
	"new worker":     {elastic.Worker, 4, true},
	"new server":     {elastic.Server, 2, true},
	"staying worker": {elastic.Worker, 1, true},
	"staying server": {elastic.Server, 0, true},
	"leaving worker": {elastic.Worker, 4, false},
	"leaving server": {elastic.Server, 2, false},
}

// TestKilledInEachPhase: whoever dies in whichever phase of a transition, the
// job goes on by itself to its end, and its surviving history holds every step
// and every example once.
func TestKilledInEachPhase(t *testing.T) {
	long(t)
	defer goleak.VerifyNone(t)
	for name, v := range victims {
		for _, phase := range []elastic.Phase{"launch", "prepare", "switch", "commit"} {
			t.Run(fmt.Sprintf("%s in %s", name, phase), func(t *testing.T) {
				const steps = 150
				from, to := [2]int{2, 3}, [2]int{3, 5}
				if !v.up {
					from, to = to, from
				}
				j := newJob(t, spec.InProc, from[0], from[1], steps)
				j.spec.Workload, j.o.Task, j.spec.CheckpointEvery, j.spec.Epochs = "", wideTask(), 10, 3
				j.o.Slow = func(int) func() { return func() { time.Sleep(2 * time.Millisecond) } }
				killed := make(chan elastic.Member, 1)
				j.o.reach = func(c *coordinator) {
					first := 0
					c.watch = func(e elastic.Event) {
						if e.Kind != elastic.PhaseBegan || string(e.Phase) != string(phase) {
							return
						}
						if first++; first != 2 { // the first transition is the start
							return
						}
						for m := range c.running {
							if m.Role == v.role && m.ID == v.id {
								c.starter.kill(m)
								killed <- m
								return
							}
						}
						// A newcomer is launched after its phase begins.
						go func() {
							time.Sleep(5 * time.Millisecond)
							c.post(func() {
								for m := range c.running {
									if m.Role == v.role && m.ID == v.id {
										c.starter.kill(m)
										killed <- m
									}
								}
							})
						}()
					}
				}
				j.start(t.Context())
				j.step(25)
				rep, err := Rescale(t.Context(), j.o.Root, "job", to[0], to[1])
				t.Logf("rescale: %+v, %v", rep, err)
				if _, err := j.wait(); err != nil {
					t.Fatal(err)
				}
				if len(killed) == 0 {
					t.Fatal("nobody was killed")
				}
				got := history(t, j.o.Root, "job")
				if len(got) != steps {
					t.Fatalf("%d steps in the history, want %d", len(got), steps)
				}
				for epoch := range 3 {
					if err := telemetry.Coverage(got, epoch, 1000); err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
}
