package elastic

import (
	"testing"

	"optimus/data/order"
)

// A step that the servers have promised at a halt, and that one of them then vetoes,
// is left out; before the halt is answered a veto changes nothing.
func TestPromiseIsBroken(t *testing.T) {
	w := newWorld(t, 1, Config{Mode: BSP, Plan: order.Plan{Seed: 1, Examples: 40, Batch: 4}, Steps: 12, Epochs: 2, Chunk: 8,
		Sizes: []int{6, 4}, Detect: 100, LeaseTicks: 3})
	s := &script{t: t, w: w}
	if err := w.ctl.Start(2, 2, nil); err != nil {
		t.Fatal(err)
	}
	w.drain()
	s.play(func() bool { return w.ctl.Done() >= 5 })
	server := s.member([]string{"server", "0"})
	w.kill(s.member([]string{"worker", "1"}), false)
	w.drain()
	veto := func(step int64) *transition {
		w.ctl.Receive(Message{Kind: Vetoed, From: server, Gen: w.ctl.gen.Number, Step: step, Culprit: -1, Block: "b"})
		return w.ctl.next
	}
	halting := w.ctl.next
	if halting.phase != phaseHalt || veto(6) != halting {
		t.Fatalf("in phase %s a veto began another transition", halting.phase)
	}
	s.play(func() bool { return w.ctl.next.phase == phaseSwitch })
	promised := w.ctl.next.rewind
	next := veto(promised)
	if next == halting || next.skip != promised || next.phase != phaseHalt {
		t.Fatalf("transition %+v, want one that skips step %d", next, promised)
	}
	if veto(promised) != next {
		t.Fatal("the same veto again began another transition")
	}
}
