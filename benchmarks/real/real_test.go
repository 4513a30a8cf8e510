package main

import (
	"context"
	"slices"
	"testing"

	"optimus/data"
	"optimus/internal/shared"
)

// TestRows: every row names a workload and a set that are there, and its job is valid.
func TestRows(t *testing.T) {
	b := &bench{data: shared.Dir(t, "sets")}
	for _, r := range rows {
		shared.Dir(t, "sets", r.set)
		j := r.complete(b, 1)
		j.Name, j.Servers.Count, j.Workers.Count = "row", 2, 2
		if err := j.Validate(); err != nil {
			t.Errorf("%s: %v", r.Name, err)
		}
	}
	if _, err := chosen([]string{"mr", "nothing"}); err == nil {
		t.Error("a row that is not there was chosen")
	}
}

// TestOverfit runs the way of a row from end to end, on little: sentences are
// learned by heart.
func TestOverfit(t *testing.T) {
	r := row{Name: "few", set: "mr", job: rows[0].job, bar: 0.99, above: true}
	r.job.Overfit, r.job.Epochs = 100, 8
	o, err := r.measure(context.Background(), &bench{data: shared.Dir(t, "sets"), state: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	if !o.Reached || o.Metric != "accuracy" || o.Steps != 16 {
		t.Errorf("%v", o)
	}
}

// TestStrangers: each id's surroundings are those of exactly one other id.
func TestStrangers(t *testing.T) {
	for _, n := range []int{7, 10, 1000, 66376} {
		e := &estranged{length(n)}
		ids := make([]int, n)
		for i := range ids {
			ids[i] = i
		}
		others := e.others(ids)
		slices.Sort(others)
		if !slices.Equal(others, ids) {
			t.Errorf("%d ids: not a permutation", n)
		}
	}
}

// length is a split of so many examples that cannot be read.
type length int

func (n length) Len() int                            { return int(n) }
func (n length) Fill(ids []int, b *data.Batch) error { panic("not read") }
