package elastic

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"optimus/data/order"
)

// pushingWorker is a worker of generation 1 in the midst of a push.
func pushingWorker(t *testing.T, mode Mode) (*WorkerMember, Directive) {
	t.Helper()
	self := Member{Role: Worker, ID: 0, Incarnation: 1}
	w := &WorkerMember{Self: self, Mode: mode, Epoch: 10, Steps: 100}
	g := &Generation{Number: 1, Workers: []Address{{Member: self}}}
	w.Receive(Message{Kind: Prepare, Gen: 1, Next: g})
	w.Receive(Message{Kind: Commit, Gen: 1})
	w.Asked()
	w.Receive(Message{Kind: GiveWork, Gen: 1, Chunk: &Work{Chunk: order.Chunk{Hi: 8}, Batch: 2, Most: 4}})
	d := w.Next()
	if d.Task != TrainWork || !w.Pushing(d) {
		t.Fatalf("%s at %+v", self, d)
	}
	return w, d
}

// A push that has begun is finished, whatever comes, and only then is a halt
// answered.
func TestPushIsWhole(t *testing.T) {
	halted := []Message{{Kind: Halted, Gen: 1}}
	for _, mode := range []Mode{ASP, SSP} {
		w, d := pushingWorker(t, mode)
		for _, m := range []Message{{Kind: Evaluate, Gen: 1}, {Kind: Halt, Gen: 1, Source: FromPeers},
			{Kind: Prepare, Gen: 2, Next: &Generation{Number: 2}}, {Kind: Halt, Gen: 1, Source: FromSelf}} {
			for _, a := range w.Receive(m) {
				if a.Kind == Halted {
					t.Errorf("%s: %s is answered in the midst of a push", mode, m.Kind)
				}
			}
			if w.Next() != d {
				t.Fatalf("%s: %s ends a push that has begun: %+v", mode, m.Kind, w.Next())
			}
		}
		if diff := cmp.Diff(halted, w.Pushed()); diff != "" {
			t.Errorf("%s: after the push (-want +got):\n%s", mode, diff)
		}
		if n := w.Next(); n.Task != Wait || w.Pushing(d) {
			t.Errorf("%s: a halted worker is at %+v and may push", mode, n)
		}
		if a := w.Receive(Message{Kind: Halt, Gen: 1, Source: FromPeers}); !cmp.Equal(halted, a) {
			t.Errorf("%s: asked again: %+v", mode, a)
		}
	}
}

// The loss of a server voids a push, which may wait for that server; so does a
// dismissal. A halt that waited for the push is answered then.
func TestPushIsGivenUp(t *testing.T) {
	for _, mode := range []Mode{ASP, SSP} {
		w, d := pushingWorker(t, mode)
		w.Receive(Message{Kind: Halt, Gen: 1, Source: FromPeers})
		if a := w.Receive(Message{Kind: Halt, Gen: 1, Source: FromCheckpoint}); !cmp.Equal([]Message{{Kind: Halted, Gen: 1}}, a) {
			t.Errorf("%s: a server is lost: %+v", mode, a)
		}
		if w.Next() == d {
			t.Errorf("%s: goes on to push to a lost server", mode)
		}
		w, d = pushingWorker(t, mode)
		w.Receive(Message{Kind: Dismiss})
		if w.Next() == d {
			t.Errorf("%s: goes on to push when dismissed", mode)
		}
	}
}

// A worker that does not drain in time is named, and lost: the others go on.
func TestDrainDeadline(t *testing.T) {
	for _, save := range []bool{false, true} {
		w := newWorld(t, 1, Config{Mode: ASP, Plan: order.Plan{Seed: 1, Examples: 100, Batch: 4}, Steps: 100, Epochs: 2, Chunk: 8,
			Sizes: []int{6, 4}, Detect: 1000, PhaseLimit: 50})
		s := &script{t: t, w: w}
		s.do([]string{"start", "2", "3"})
		s.do([]string{"run", "until=6"})
		deaf := s.member([]string{"worker", "1"})
		if save {
			s.do([]string{"checkpoint"})
		} else {
			s.do([]string{"rescale", "1", "3"})
		}
		s.play(func() bool { return w.ctl.next != nil && w.ctl.next.phase == phaseDrain })
		k := w.workers[deaf]
		delete(w.workers, deaf) // takes nothing in, and is not known to be dead
		delete(w.up, deaf)
		beat := func() { w.ctl.Receive(Message{Kind: Beat, From: deaf}) }
		for range 40 {
			for w.step() {
			}
			beat()
			w.tick()
		}
		if got := w.ctl.Waiting(); got != "phase drain waits for "+deaf.String() {
			t.Fatalf("save %v: it waits for: %q", save, got)
		}
		w.lostAny = true
		for range 40 {
			beat()
			w.tick()
		}
		w.workers[deaf] = k
		shown := s.output()
		if !strings.Contains(shown, "lost "+deaf.String()+": did not finish phase drain within 50 ticks") {
			t.Fatalf("save %v: %s", save, shown)
		}
		s.play(func() bool { return false })
		if state, why := w.ctl.State(); state != Finished {
			t.Errorf("save %v: %s (%s)", save, state, why)
		}
		w.checkEnd(Finished)
	}
}

// The digest of an old owner that leaves may come after those of all new owners:
// the commit waits for it, and does not come if it differs.
func TestCommitWaitsForDigests(t *testing.T) {
	for _, mode := range []Mode{BSP, ASP} {
		for _, damage := range []bool{false, true} {
			w := newWorld(t, 1, Config{Mode: mode, Plan: order.Plan{Seed: 1, Examples: 100, Batch: 4}, Steps: 60, Epochs: 4, Chunk: 8, Sizes: []int{6, 4}, Detect: 1000})
			s := &script{t: t, w: w}
			s.do([]string{"start", "3", "2"})
			s.do([]string{"run", "until=6"})
			leaver := s.member([]string{"server", "2"})
			s.do([]string{"rescale", "2", "2"})
			s.play(func() bool { return w.ctl.next != nil && w.ctl.next.phase == phaseSwitch })
			var held []Message
			for range 300 {
				held = append(held, w.up[leaver]...)
				delete(w.up, leaver)
				w.step()
			}
			if t := w.ctl.next; t == nil || t.phase != phaseSwitch || len(t.waiting) != 1 || !t.waiting[leaver] {
				w.fatalf("%s: the commit does not wait for the digest of %s", mode, leaver)
			}
			for i := range held {
				if held[i].Kind == Extracted && damage {
					held[i].Params++
				}
			}
			w.up[leaver] = append(held, w.up[leaver]...)
			s.output()
			s.play(func() bool { return w.ctl.next == nil })
			if shown := s.output(); strings.Contains(shown, "gen 2: aborted") != damage || strings.Contains(shown, "gen 2: committed") == damage {
				t.Errorf("%s, damage %v:\n%s", mode, damage, shown)
			}
		}
	}
}
