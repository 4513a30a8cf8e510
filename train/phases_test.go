package train

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"

	"optimus/elastic"
	"optimus/spec"
)

// victim is the member that dies, by its part in the rescale.
type victim struct {
	name string
	role elastic.Role
	id   int
	up   bool // the rescale is (2,3) to (3,5), else back
}

var (
	victims = []victim{
		{"new worker", elastic.Worker, 4, true},
		{"new server", elastic.Server, 2, true},
		{"staying worker", elastic.Worker, 1, true},
		{"staying server", elastic.Server, 0, true},
		{"leaving worker", elastic.Worker, 4, false},
		{"leaving server", elastic.Server, 2, false},
	}
	phases = []elastic.Phase{"launch", "prepare", "switch", "commit"}
)

// TestKilledInEachPhase: whoever dies in whichever phase of a transition, the
// job goes on by itself to the end of an undisturbed run.
func TestKilledInEachPhase(t *testing.T) {
	long(t)
	defer goleak.VerifyNone(t)
	for _, v := range victims {
		for _, phase := range phases {
			t.Run(fmt.Sprintf("%s in %s", v.name, phase), func(t *testing.T) { killedInPhase(t, spec.InProc, v, phase) })
		}
	}
}

// TestProcessKilledInEachPhase is the same with processes and kill -9. The short
// list has one case of each outcome in design.md section 5; make soak runs all.
func TestProcessKilledInEachPhase(t *testing.T) {
	live(t)
	short := []string{"new worker in launch", "new server in switch", "staying server in prepare", "staying worker in commit", "leaving server in switch"}
	for _, v := range victims {
		for _, phase := range phases {
			name := fmt.Sprintf("%s in %s", v.name, phase)
			if soak() || slices.Contains(short, name) {
				t.Run(name, func(t *testing.T) { killedInPhase(t, spec.Process, v, phase) })
			}
		}
	}
}

func killedInPhase(t *testing.T, launch spec.Launch, v victim, phase elastic.Phase) {
	const steps = 150
	from, to := [2]int{2, 3}, [2]int{3, 5}
	if !v.up {
		from, to = to, from
	}
	j := newExact(t, launch, from[0], from[1], steps)
	j.o.Tune.Retry = 500 * time.Millisecond
	killed := make(chan elastic.Member, 1)
	j.o.reach = func(c *coordinator) {
		seen := 0
		c.watch = also(c.watch, func(e elastic.Event) {
			if e.Kind != elastic.PhaseBegan || e.Phase != phase {
				return
			}
			if seen++; seen == 2 { // the first transition is the start
				c.killSoon(v, killed)
			}
		})
	}
	j.start(t.Context())
	j.until("first checkpoint", func(s spec.Status) bool { return s.LastCheckpoint != "" })
	rep, err := Rescale(t.Context(), j.o.Root, "job", to[0], to[1])
	t.Logf("rescale: %+v, %v", rep, err)
	j.until("death of the victim", func(spec.Status) bool { return len(killed) > 0 })
	j.hurry()
	j.finish()
}

// also calls both; the first may be nil.
func also(first, second func(elastic.Event)) func(elastic.Event) {
	return func(e elastic.Event) {
		if first != nil {
			first(e)
		}
		second(e)
	}
}

// killSoon ends the victim at once, or, where it is yet to be launched, as soon
// as it is. The coordinator's goroutine calls it.
func (c *coordinator) killSoon(v victim, killed chan<- elastic.Member) {
	for m := range c.running {
		if m.Role == v.role && m.ID == v.id {
			c.starter.kill(m)
			killed <- m
			return
		}
	}
	go func() {
		time.Sleep(time.Millisecond)
		c.post(func() { c.killSoon(v, killed) })
	}()
}
