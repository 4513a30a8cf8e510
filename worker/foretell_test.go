package worker_test

import (
	"context"
	"slices"
	"testing"

	"optimus/elastic"
	"optimus/worker"
)

// told is a model that wants to know what comes.
type told struct{ *model }

func (m told) Next(epoch int, ids []int) {
	m.add(context.Background(), call{What: "next", Epoch: epoch, IDs: slices.Clone(ids)})
}

func curious(w *running, c *worker.Config) { c.Model = told{w.model} }

// Before each synchronous step a model is told what the next one will train on, and
// before the last that there is none.
func TestForetellsSteps(t *testing.T) {
	for rank := range members() {
		w := begin(t, rank, curious)
		g := generation(1, members()...)
		w.rule(nil, g, 0)
		w.lease(g, steps)
		var want []call
		for n := int64(1); n <= steps; n++ {
			next := call{What: "next"}
			if n < steps {
				next = call{What: "next", Epoch: plan.Epoch(n + 1)}
				for _, c := range step(1, n+1, rank, len(members())) {
					if c.What == "train" {
						next.IDs = c.IDs
					}
				}
			}
			want = append(want, next)
			w.next(elastic.Progress)
		}
		w.dismiss()
		same(t, "foretold", want, w.recorded("next"))
	}
}

// In a leased chunk what follows is told, as far as the lease allows, and behind its
// end that nothing is known: what was said of a lease that is lost must not go on.
func TestForetellsLeases(t *testing.T) {
	for _, m := range []elastic.Mode{elastic.ASP, elastic.SSP} {
		w := begin(t, 0, mode(m), curious)
		w.rule(nil, generation(1, members()[0]), 0)
		w.next(elastic.WantChunk)
		var want []call
		for _, lease := range []struct {
			given elastic.Message
			next  [][2]int // foretold before each push
		}{
			{give(0, 5, 10), [][2]int{{2, 4}, {4, 5}, {}}},
			{give(5, 11, 2), [][2]int{{7, 9}, {}}}, // one more push only
			{give(9, 11, 1), [][2]int{{}}},
		} {
			w.tell(lease.given)
			for _, n := range lease.next {
				want = append(want, call{What: "next", Epoch: 2, IDs: plan.Range(2, n[0], n[1], nil)})
				w.next(elastic.Progress)
			}
			w.next(elastic.WantChunk)
		}
		w.dismiss()
		same(t, string(m)+": foretold", want, w.recorded("next"))
	}
}
