package reproduce

import (
	"context"
	"encoding/csv"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"

	"go.uber.org/goleak"

	"optimus/internal/shared"
	"optimus/scheduler/sim/optimus"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestByHand: what can be worked out by hand from the papers must be equal, but where the paper itself is wrong.
func TestByHand(t *testing.T) {
	var text strings.Builder
	dir := t.TempDir()
	r := &report{Options: Options{Out: dir, Seeds: 2}, ctx: t.Context(), w: &text}
	for _, part := range []func() error{r.section4, r.fig10, r.table3, r.doubling} {
		if err := part(); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		file   string
		rows   int
		exempt string // rows in which the paper is not reproduced, and why that is right
	}{
		{"section4.csv", 24, "none"},
		{"fig10.csv", 7, "none"},
		{"table3.csv", 8, "difference"}, // the paper's script misreads MXNet's rule; PAA's gap is printed with one digit
		{"doubling.csv", 8, "none"},
	} {
		f, err := os.Open(filepath.Join(dir, c.file))
		if err != nil {
			t.Fatal(err)
		}
		records, err := csv.NewReader(f).ReadAll()
		f.Close()
		if err != nil || len(records) != c.rows+1 {
			t.Fatalf("%s: %d records, %v; want a header and %d", c.file, len(records), err, c.rows)
		}
		for _, row := range records[1:] {
			if row[1] != "" && row[4] != "1" && !strings.Contains(row[0], c.exempt) {
				t.Errorf("%s: %v", c.file, row)
			}
		}
	}
	if !strings.Contains(text.String(), "paper 3.6e+06") && !strings.Contains(text.String(), "paper 3600000") {
		t.Errorf("Table 3 is not printed beside the paper's numbers:\n%s", text.String())
	}
}

// TestCompare is one figure from end to end, on two small workloads.
func TestCompare(t *testing.T) {
	var text strings.Builder
	dir := t.TempDir()
	r := &report{Options: Options{Out: dir, Seeds: 2, Data: os.DirFS(shared.Dir(t))}, ctx: t.Context(), w: &text}
	tables, err := r.speeds()
	if err != nil {
		t.Fatal(err)
	}
	truths, err := optimus.NewTruths(tables)
	if err != nil {
		t.Fatal(err)
	}
	c := published()[0]
	c.load.Jobs = 15
	if err := r.compare(&study{truths, 2}, c); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"drf: JCT relative to optimus", "paper 2.39", "JCT: optimus < tetris by"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("%q is missing in\n%s", want, text.String())
		}
	}
	for _, name := range []string{"fig11.csv", "fig11.svg"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Size() < 500 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestRunErrors(t *testing.T) {
	for _, c := range []struct {
		o    Options
		want string
	}{
		{Options{Paper: "tiresias", Data: fstest.MapFS{}}, `there is no paper "tiresias"; choose one of ["optimus" "ring" "pollux"]`},
		{Options{Paper: "optimus", Data: fstest.MapFS{}}, "speed/testbed_speed.csv"},
		{Options{Paper: "ring", Data: fstest.MapFS{}}, "simulation_throughputs.json"},
		{Options{Paper: "pollux", Data: fstest.MapFS{}}, "models.json"},
		{Options{Paper: "ring", Seeds: 1}, "an interval needs at least 2"},
	} {
		if err := Run(t.Context(), c.o, &strings.Builder{}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.o, err, c.want)
		}
	}
}

func TestParallel(t *testing.T) {
	boom := errors.New("boom")
	var began atomic.Int32
	err := parallel(t.Context(), 1000, func(i int) error {
		began.Add(1)
		if i == 3 {
			return boom
		}
		return nil
	})
	if !errors.Is(err, boom) || began.Load() == 1000 {
		t.Errorf("%v after %d pieces of work", err, began.Load())
	}
	began.Store(0)
	if err := parallel(t.Context(), 100, func(int) error { began.Add(1); return nil }); err != nil || began.Load() != 100 {
		t.Errorf("%v after %d pieces of work", err, began.Load())
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if err := parallel(cancelled, 10, func(int) error { return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestInterval(t *testing.T) {
	// Student's t of two degrees of freedom is 4.3027 at 97.5 %.
	if mean, plus := interval([]float64{1, 2, 3}); mean != 2 || math.Abs(plus-4.3027/math.Sqrt(3)) > 1e-4 {
		t.Errorf("%v ± %v", mean, plus)
	}
}
