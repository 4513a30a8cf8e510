package order

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
)

// asyncJob is a job in mode asp or ssp: workers take chunks from a ledger and
// push batches in any order.
type asyncJob struct {
	draws
	plan    Plan
	ledger  *Ledger
	barrier bool
	crew    []*hand
	named   int // incarnations so far
	ids     []int
	progress
	saved struct {
		cursor []byte
		progress
	}
}

// progress is what the parameters hold.
type progress struct {
	applied  []int // examples, as epoch·N + id
	reported int   // positions that the ledger knows to be done
	inFlight int   // positions that the dead had applied and not reported
	kills    int
}

// hand is one incarnation of a worker.
type hand struct {
	name      string
	chunk     Chunk // empty: it has none
	told, at  int   // reported, and applied, up to here
	exhausted bool  // no work is left for it
}

func (h *hand) busy() bool { return h.chunk.Len() > 0 }

func (j *asyncJob) hire() *hand {
	j.named++
	return &hand{name: fmt.Sprint("worker/", j.named)}
}

// staff replaces the crew by n newcomers.
func (j *asyncJob) staff(n int) {
	j.crew = nil
	for range n {
		j.crew = append(j.crew, j.hire())
	}
}

// turn lets a worker do the next thing: report its push, push, or ask for work.
func (j *asyncJob) turn(h *hand) error {
	switch {
	case h.at > h.told:
		return j.report(h)
	case h.busy():
		j.push(h)
		return nil
	}
	chunk, wait, done := j.ledger.Lease(h.name)
	if held := j.ledger.Held(); wait && held == 0 || done && held > 0 || wait && done {
		return fmt.Errorf("wait %v, done %v with %d leases out", wait, done, held)
	}
	h.exhausted = done
	if wait || done {
		return nil
	}
	if before := chunk.Epoch * j.plan.Examples; j.barrier && j.reported < before {
		return fmt.Errorf("%v is leased while %d positions of the epochs before are not done", chunk, before-j.reported)
	}
	*h = hand{name: h.name, chunk: chunk, told: chunk.Lo, at: chunk.Lo}
	return nil
}

// push applies a worker's share of a batch.
func (j *asyncJob) push(h *hand) {
	share := max(1, j.plan.Batch/len(j.crew))
	upTo := min(h.at+share, h.chunk.Hi)
	j.ids = j.plan.Range(h.chunk.Epoch, h.at, upTo, j.ids)
	for _, id := range j.ids {
		j.applied = append(j.applied, h.chunk.Epoch*j.plan.Examples+id)
	}
	h.at = upTo
}

func (j *asyncJob) report(h *hand) error {
	if err := j.ledger.Done(h.name, h.chunk, h.at); err != nil {
		return err
	}
	j.reported += h.at - h.told
	h.told = h.at
	if h.at == h.chunk.Hi {
		h.chunk, h.told, h.at = Chunk{}, 0, 0
	}
	return nil
}

// drain lets every worker report what it has pushed.
func (j *asyncJob) drain() error {
	for _, h := range j.crew {
		if h.at > h.told {
			if err := j.report(h); err != nil {
				return err
			}
		}
	}
	return nil
}

// kill ends a worker, whose late report must be refused.
func (j *asyncJob) kill(i int) error {
	h := j.crew[i]
	j.crew[i] = j.hire()
	j.inFlight += h.at - h.told
	j.kills++
	if back := j.ledger.Release(h.name); back != h.chunk.Hi-h.told {
		return fmt.Errorf("%d positions of %v came back, reported up to %d", back, h.chunk, h.told)
	}
	if !h.busy() {
		return nil
	}
	if err := j.ledger.Done(h.name, h.chunk, h.chunk.Hi); !errors.Is(err, ErrNotLeased) {
		return fmt.Errorf("a late report of the dead gave %v", err)
	}
	return nil
}

// disband drains the job and has its workers leave in peace.
func (j *asyncJob) disband() error {
	if err := j.drain(); err != nil {
		return err
	}
	for _, h := range j.crew {
		j.ledger.Return(h.name)
	}
	return nil
}

// save writes a checkpoint: its ledger is one in which nothing is leased.
func (j *asyncJob) save() error {
	if err := j.drain(); err != nil {
		return err
	}
	at, err := again(LedgerCursor(j.ledger))
	if err != nil {
		return err
	}
	for _, h := range j.crew {
		at.Ledger().Return(h.name)
	}
	if at.Done() != int64(j.reported) {
		return fmt.Errorf("the cursor counts %d positions; %d were reported", at.Done(), j.reported)
	}
	j.saved.progress = j.progress
	j.saved.cursor, err = json.Marshal(at)
	return err
}

// restore goes back to the last checkpoint with other workers.
func (j *asyncJob) restore() error {
	var at Cursor
	if err := at.UnmarshalJSON(j.saved.cursor); err != nil {
		return err
	}
	j.ledger, j.progress = at.Ledger(), j.saved.progress
	j.staff(1 + j.draws(16))
	return at.Fits(j.plan)
}

func (j *asyncJob) suffer(f fate) error {
	switch f {
	case rescale:
		if err := j.disband(); err != nil {
			return err
		}
		j.staff(1 + j.draws(16))
	case save:
		return j.save()
	case workerDies:
		return j.kill(j.draws(len(j.crew)))
	case serverDies:
		return j.restore()
	case resume:
		return errors.Join(j.save(), j.restore())
	}
	return nil
}

// play runs the job to its end.
func (j *asyncJob) play(epochs int) error {
	pushes := epochs * j.plan.Examples / max(1, j.plan.Batch/len(j.crew))
	luck := newTrouble(j.draws, pushes)
	for limit := 1000 * (pushes + 1000); limit > 0; limit-- {
		if err := j.suffer(luck.next()); err != nil {
			return err
		}
		h := j.crew[j.draws(len(j.crew))]
		if err := j.turn(h); err != nil {
			return err
		}
		if j.plan.Examples < 100 {
			if err := j.ledger.s.validate(); err != nil {
				return err
			}
		}
		if h.exhausted {
			return j.account(epochs)
		}
	}
	return errors.New("the job comes to no end")
}

// account checks that every position was applied, and again only what was in
// flight when a worker died.
func (j *asyncJob) account(epochs int) error {
	n := epochs * j.plan.Examples
	times := make([]uint8, n)
	distinct := 0
	for _, i := range j.applied {
		if times[i] == 0 {
			distinct++
		}
		times[i] = min(times[i]+1, math.MaxUint8-1)
	}
	repeats := len(j.applied) - distinct
	switch bound := j.ledger.Repeats(); {
	case distinct != n:
		return fmt.Errorf("%d of %d examples were lost", n-distinct, n)
	case repeats != j.inFlight:
		return fmt.Errorf("%d examples were repeated; %d were in flight at a death", repeats, j.inFlight)
	case int64(repeats) > bound || bound > int64(j.kills*j.plan.Batch):
		return fmt.Errorf("%d repeats, counted %d, %d deaths with batches of %d", repeats, bound, j.kills, j.plan.Batch)
	}
	if done, total := j.ledger.Progress(); done != total || total != int64(n) || j.ledger.Epoch() != epochs || j.reported != n {
		return fmt.Errorf("progress %d of %d, epoch %d of %d, %d reported", done, total, j.ledger.Epoch(), epochs, j.reported)
	}
	return nil
}

// onceAsynchronous plays one job that leases chunks.
func onceAsynchronous(d draws, most int) error {
	workers, n := size(d, most)
	return onceLeased(d, workers, Plan{Seed: uint64(d(1 << 30)), Examples: n, Batch: 1 + d(n+3)})
}

func onceLeased(d draws, workers int, p Plan) error {
	epochs, chunk := epochsOf(d, p.Examples), 1+d(5*p.Batch)
	ledger, err := NewLedger(p, chunk, epochs)
	if err != nil {
		return err
	}
	j := &asyncJob{draws: d, plan: p, ledger: ledger, barrier: d(2) == 0}
	ledger.SetBarrier(j.barrier)
	j.staff(workers)
	if err = j.save(); err == nil {
		err = j.play(epochs)
	}
	if err != nil {
		return fmt.Errorf("%+v, chunks of %d, %d epochs, %d workers, barrier %v: %w", p, chunk, epochs, workers, j.barrier, err)
	}
	return nil
}
