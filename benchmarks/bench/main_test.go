package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"optimus/benchmarks/step"
	"optimus/internal/failure"
	"optimus/scheduler/policy"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestRatio(t *testing.T) {
	for _, tt := range []struct {
		ours, theirs []float64
		want         float64
	}{
		{nil, nil, 0},
		{[]float64{1}, nil, 0},
		{[]float64{2}, []float64{1}, 0.5},
		{[]float64{1, 2}, []float64{2, 8}, 3},
		// The machine becomes ten times slower in the middle; each pair says 2.
		{[]float64{1, 1, 10, 10, 10}, []float64{2, 2, 20, 20, 20}, 2},
		// One disturbed turn does not count.
		{[]float64{1, 1, 1}, []float64{3, 300, 3}, 3},
	} {
		if got := ratio(tt.ours, tt.theirs); got != tt.want {
			t.Errorf("ratio of %v to %v is %v, want %v", tt.ours, tt.theirs, got, tt.want)
		}
	}
}

// scripted is a side whose steps take as long as it is told.
type scripted struct {
	name  string
	log   *[]string
	times []step.Turn // of one step
	steps []int
}

func (s *scripted) Turn(n int) (step.Turn, error) {
	*s.log = append(*s.log, s.name)
	if len(s.steps) == len(s.times) {
		return step.Turn{}, io.ErrUnexpectedEOF
	}
	turn := s.times[len(s.steps)]
	s.steps = append(s.steps, n)
	return step.Turn{Steps: n, CPU: time.Duration(n) * turn.CPU, Wall: time.Duration(n) * turn.Wall}, nil
}

// TestAlternate: the sides take turns, the first round only sets the number of
// steps, and the clock asked for counts.
func TestAlternate(t *testing.T) {
	const ms = time.Millisecond
	var log []string
	sides := func() (ours, theirs *scripted) {
		log = nil
		ours = &scripted{name: "ours", log: &log, times: []step.Turn{{CPU: 100 * ms, Wall: 150 * ms}, {CPU: 125 * ms, Wall: 250 * ms}, {CPU: 250 * ms, Wall: 500 * ms}}}
		theirs = &scripted{name: "theirs", log: &log, times: []step.Turn{{CPU: 900 * ms, Wall: time.Second}, {CPU: 500 * ms, Wall: time.Second}, {CPU: 750 * ms, Wall: time.Second}}}
		return ours, theirs
	}
	ours, theirs := sides()
	got, err := alternate(t.Context(), 2, "cpu", ours, theirs)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([][]float64{{0.125, 0.25}, {0.5, 0.75}}, [][]float64{got.ours, got.theirs}); diff != "" || len(got.peaks) != 2 {
		t.Errorf("seconds per step of ours and theirs, %d peaks: %s", len(got.peaks), diff)
	}
	if diff := cmp.Diff([]string{"ours", "theirs", "ours", "theirs", "ours", "theirs"}, log); diff != "" {
		t.Errorf("turns: %s", diff)
	}
	if diff := cmp.Diff([][]int{{1, 3, 3}, {1, 1, 1}}, [][]int{ours.steps, theirs.steps}); diff != "" {
		t.Errorf("steps per turn: %s", diff)
	}
	ours, _ = sides()
	if got, err = alternate(t.Context(), 1, "wall", ours, nil); err != nil || len(got.theirs) != 0 || len(got.ours) != 1 || got.ours[0] != 0.25 {
		t.Errorf("alone, by the wall clock: %+v, %v", got, err)
	}
	ours, theirs = sides()
	if _, err := alternate(t.Context(), 3, "cpu", ours, theirs); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a side that fails: error %v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := alternate(ended, 3, "cpu", ours, theirs); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: error %v", err)
	}
}

// TestModel measures a small model without PyTorch, as a table and as JSON.
func TestModel(t *testing.T) {
	args := []string{"model", "resnext-110", "--size", "tiny", "--batch", "2", "--rounds", "1"}
	var text strings.Builder
	if err := run(t.Context(), append(args, "-o", "json"), &text, io.Discard); err != nil {
		t.Fatal(err)
	}
	var got report
	if err := json.Unmarshal([]byte(text.String()), &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Rows) != 1 || got.Rows[0].Ours != got.Models[0].Ours.Examples || got.Rows[0].Peer != 0 || got.Rows[0].PeerName != "" {
		t.Errorf("rows %+v of the model %+v", got.Rows, got.Models)
	}
	if len(got.Models) != 1 || got.Gemm != nil || got.Conv != nil {
		t.Fatalf("report %+v, want one model and nothing else", got)
	}
	m := got.Models[0]
	if m.Workload != "resnext-110" || m.Batch != 2 || m.Threads != 1 || m.Clock != "cpu" || m.Ours.Examples <= 0 || m.GFLOPS <= 0 ||
		m.PyTorch != nil || !strings.Contains(m.Absent, "train.py") || m.Memory.Heap <= 0 || m.Allocations > 1 {
		t.Errorf("report of the model %+v", m)
	}
	text.Reset()
	if err := run(t.Context(), args, &text, io.Discard); err != nil || !strings.Contains(text.String(), "\nresnext-110  2 ") || !strings.Contains(text.String(), "Without comparison: ") {
		t.Errorf("table %q, error %v", text.String(), err)
	}
}

func TestRefused(t *testing.T) {
	for args, want := range map[string]string{
		"":                           "missing what to measure",
		"gem":                        `did you mean "gemm"?`,
		"gemm conv":                  `unexpected argument "conv"`,
		"model":                      "missing NAME",
		"model resnet50":             `did you mean "resnet-50"?`,
		"gemm --rounds 0":            "--rounds 0",
		"gemm --batch -1":            "--batch is -1",
		"gemm --threads 1,0":         "--threads is [1 0]",
		"gemm -o yaml":               `--output is "yaml"`,
		"gemm --fast":                "--fast",
		"model cnn-rand --size huge": `no size "huge"`,
	} {
		var out strings.Builder
		err := run(t.Context(), strings.Fields(args), &out, io.Discard)
		if err == nil || !strings.Contains(err.Error(), want) || out.Len() > 0 {
			t.Errorf("bench %s: output %q, error %v, want %q", args, out.String(), err, want)
		}
		if code := failure.ExitCode(err); code != 2 && !strings.Contains(args, "huge") {
			t.Errorf("bench %s: exit status %d, want 2", args, code)
		}
	}
	nowhere := filepath.Join(t.TempDir(), "python")
	if err := run(t.Context(), []string{"model", "cnn-rand", "--python", nowhere}, io.Discard, io.Discard); err == nil || !strings.Contains(err.Error(), nowhere+": not there") {
		t.Errorf("an interpreter that does not exist: error %v", err)
	}
}

func TestLoad(t *testing.T) {
	if _, err := os.Stat("/proc/loadavg"); err != nil {
		t.Skip(err)
	}
	if x := load(); x < 0 || x > 1e6 {
		t.Errorf("load %v", x)
	}
	if name := processor(); strings.TrimSpace(name) != name || name == "" {
		t.Errorf("processor %q", name)
	}
}

// TestScheduler measures a small round, and shows that the rows carry the figures.
func TestScheduler(t *testing.T) {
	p, err := policy.ByName("optimus")
	if err != nil {
		t.Fatal(err)
	}
	var d decisions
	for _, size := range [][2]int{{20, 40}, {40, 80}, {80, 160}} {
		r, err := measureRound(t.Context(), p, fig12View(size[0], size[1]), 3)
		if err != nil {
			t.Fatal(err)
		}
		if r.Jobs != size[0] || r.Nodes != size[1] || r.Tasks < 2 || r.Tasks > 16 || r.Seconds <= 0 || r.Seconds > 1 {
			t.Errorf("round %+v", r)
		}
		r.Paper, r.Ratio = 1, 1/r.Seconds
		d.Optimus = append(d.Optimus, r)
	}
	for i := range d.Optimus { // as if it cost exactly 7 ns for each n log n
		d.Optimus[i].Seconds = 7e-9 * d.Optimus[i].nLogN()
	}
	d.Growth = growth(d.Optimus)
	if math.Abs(d.Growth-1) > 1e-9 {
		t.Errorf("growth %v, want 1", d.Growth)
	}
	pollux, err := policy.ByName("pollux")
	if err != nil {
		t.Fatal(err)
	}
	r, err := polluxRound(t.Context(), pollux, 10, 4, 1)
	if err != nil || r.Jobs != 10 || r.Tasks < 0.5 || r.Tasks > 1.6 || r.Seconds <= 0 {
		t.Errorf("round of pollux %+v, %v", r, err)
	}
	d.Pollux = append(d.Pollux, r)
	rep := report{Scheduler: &d}
	rows := rep.rows()
	if len(rows) != 5 || rows[4].Ours != r.Seconds || rows[4].Peer != 0 || rows[0].Ours != d.Optimus[0].Seconds || rows[0].Unit != "s" || rows[0].Peer != 1 || rows[0].PeerName != fig12Peer || rows[0].Ratio != d.Optimus[0].Ratio {
		t.Errorf("rows %+v", rows)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := measureRound(ended, p, fig12View(2, 2), 1); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: error %v", err)
	}
}
