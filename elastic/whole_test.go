package elastic

import (
	"maps"
	"slices"
)

// findCheckpoint answers as a shell does that reads what is on disk.
func (w *world) findCheckpoint(gen int) {
	for _, dir := range slices.Backward(w.whole) {
		if w.rotten[dir] = w.rotten[dir] || w.rot && w.rng.IntN(2) == 0; !w.rotten[dir] {
			w.ctl.CheckpointFound(gen, &Newest{w.saved[dir].step, dir, w.saved[dir].ledger}, "")
			return
		}
	}
	w.ctl.CheckpointFound(gen, nil, "all are damaged")
}

// checkPushes checks, where the pieces are cut, that each push of a worker that
// lives is on all servers of the generation or on none (asp, ssp).
func (w *world) checkPushes() {
	t := w.ctl.next
	if t == nil || t.source == FromInit || t.source == FromCheckpoint {
		return
	}
	for _, a := range w.ctl.gen.Servers {
		for _, b := range w.ctl.gen.Servers {
			x, y := w.servers[a.Member], w.servers[b.Member]
			if x == nil || y == nil {
				continue // dead, and not yet found so
			}
			for p := range x.cur.took {
				if w.ctl.peers[p.from] != nil && !y.cur.took[p] {
					w.fatalf("push %d of %s is on %s and not on %s", p.seq, p.from, a.Member, b.Member)
				}
			}
		}
	}
}

// checkSaved checks a snapshot of a job without common steps: each push is on all
// elements or on none, and the ledger knows exactly those that there are.
func (w *world) checkSaved(s SnapshotTaken, values map[elem]uint64) {
	if w.cfg.Mode == BSP {
		return
	}
	w.checkSums(values)
	var want int64
	for _, n := range w.counted[s.ID] {
		want += int64(n)
	}
	if got, _ := s.Ledger.Progress(); got != want && !w.lostAny {
		w.fatalf("snapshot %d: %d positions are done by its ledger, %d were", s.ID, got, want)
	}
}

// checkSums checks that all elements hold the same pushes (asp, ssp). One that
// was lost may have left a push on some of them.
func (w *world) checkSums(values map[elem]uint64) {
	sums := map[uint64]bool{}
	for e, v := range values {
		sums[v-w.value(e, 0)] = true
	}
	if len(sums) != 1 && !w.lostAny {
		w.fatalf("the elements hold %d different sums of pushes", len(sums))
	}
}

// checkWork checks that an asynchronous job made its steps exactly, or did every
// position of every epoch: once, if nobody was lost. Then too each push is on
// every element, once, wherever that has moved in the meantime.
func (w *world) checkWork() {
	all := map[elem]uint64{}
	for _, a := range w.ctl.gen.Servers {
		if s := w.servers[a.Member]; s != nil {
			maps.Copy(all, s.cur.now)
		}
	}
	w.checkSums(all)
	if w.history > w.cfg.Steps {
		w.fatalf("%d pushes of at most %d", w.history, w.cfg.Steps)
	}
	for epoch := range w.cfg.Epochs {
		for i := range w.cfg.Plan.Examples {
			switch n := w.counts[[2]int{epoch, i}]; {
			case n == 0 && w.history < w.cfg.Steps:
				w.fatalf("position %d of epoch %d was left out after %d of %d steps", i, epoch, w.history, w.cfg.Steps)
			case n > 1 && !w.lostAny:
				w.fatalf("position %d of epoch %d was done %d times", i, epoch, n)
			}
		}
	}
}
