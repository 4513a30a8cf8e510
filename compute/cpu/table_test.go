package cpu

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"optimus/compute/optim"
)

// TestTable runs random batches against a map of the whole block: rows keep their
// values while they are needed, and are forgotten when they are not.
func TestTable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const limit, width = 6, 2
		tab := newTable(optim.Param{Shape: []int{1 << 30, width}, Rows: true}, limit)
		known := map[int32][]float32{}
		for range rapid.IntRange(1, 20).Draw(t, "batches") {
			ids := rapid.SliceOfN(rapid.Int32Range(0, 9), 0, limit).Draw(t, "ids")
			tab.begin()
			tab.want(ids)
			rows := tab.commit()
			want := slices.Compact(slices.Sorted(slices.Values(ids)))
			if diff := cmp.Diff(append([]int32{}, want...), append([]int32{}, rows...)); diff != "" {
				t.Fatalf("rows (-want +got):\n%s", diff)
			}
			for row := range known {
				if !slices.Contains(want, row) {
					delete(known, row)
				}
			}
			for _, row := range rapid.SliceOf(rapid.Int32Range(0, 9)).Draw(t, "set") {
				v := []float32{rapid.Float32().Draw(t, "v"), float32(row)}
				tab.set(row, 0, v)
				if slices.Contains(want, row) {
					known[row] = v
				}
			}
			for i, row := range rows {
				v, ok := known[row]
				if ok != tab.seats[i].have || ok && !slices.Equal(v, tab.row(i)) {
					t.Fatalf("row %d holds %v (set: %v), want %v (set: %v)", row, tab.row(i), tab.seats[i].have, v, ok)
				}
			}
			if row, missing := tab.missing(); missing != (len(known) < len(rows)) {
				t.Fatalf("missing() = %d, %v with %d of %d rows set", row, missing, len(known), len(rows))
			}
		}
	})
}
