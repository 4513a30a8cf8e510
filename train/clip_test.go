package train

import (
	"math"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"optimus/compute"
	"optimus/elastic"
	"optimus/internal/faultnet"
	"optimus/internal/wire"
	"optimus/spec"
	"optimus/telemetry"
	"optimus/transport"
	"optimus/worker"
)

// clipNorm is about the norm of exact's gradients: it shortens some and not others.
const clipNorm = 1400

// newClipped is a job of exact whose servers vote on the norm of each step.
func newClipped(t *testing.T, launch spec.Launch, p, w, steps int) *job {
	j := newExact(t, launch, p, w, steps)
	j.spec.Optimizer.ClipNorm = clipNorm
	return j
}

// TestClipNormWhateverTheCounts: a job that is clipped by the norm ends with the same
// bits under any counts, also if they change on the way.
func TestClipNormWhateverTheCounts(t *testing.T) {
	defer goleak.VerifyNone(t)
	const steps = 120
	plain, always := undisturbedRun(t, steps, 0), undisturbedRun(t, steps, 1)
	if sha := undisturbedRun(t, steps, clipNorm).sha; sha == plain.sha || sha == always.sha {
		t.Fatal("the bound has no effect, or nothing else has")
	}
	for _, counts := range [][2]int{{2, 2}, {1, 3}, {3, 1}} {
		j := newClipped(t, spec.InProc, counts[0], counts[1], steps)
		j.hurry()
		j.start(t.Context())
		j.finish()
	}
	j := newClipped(t, spec.InProc, 2, 2, steps)
	j.start(t.Context())
	j.step(1)
	for _, counts := range [][2]int{{3, 4}, {1, 2}, {2, 3}} {
		if _, err := Rescale(t.Context(), j.o.Root, "job", counts[0], counts[1]); err != nil {
			t.Fatalf("to %v: %v", counts, err)
		}
	}
	j.hurry()
	if r := j.finish(); len(r.Rescales) != 3 {
		t.Errorf("%d rescales", len(r.Rescales))
	}
}

// onVote does something at the first vote on a step, which is held back for a while
// like all votes on it.
func onVote(step int64, act func()) faultnet.Rule {
	var once sync.Once
	return func(d faultnet.Direction, f *wire.Frame) faultnet.Action {
		if f.Kind != wire.Vote || d != faultnet.ToListener || f.Step != step {
			return faultnet.Action{}
		}
		once.Do(act)
		return faultnet.Action{After: 100 * time.Millisecond}
	}
}

// TestKilledWhileVoting: a server or a worker dies when the pushes of a step are
// answered and its votes are under way.
func TestKilledWhileVoting(t *testing.T) {
	for role, want := range map[elastic.Role]telemetry.GenerationStart{
		elastic.Server: {Step: 40, Source: telemetry.SourceCheckpoint},
		elastic.Worker: {Step: 50, Source: telemetry.SourceTransition}, // no vote was lost
	} {
		t.Run(string(role), func(t *testing.T) {
			defer goleak.VerifyNone(t)
			j := newClipped(t, spec.InProc, 3, 2, 100)
			kill := j.killer()
			j.o.network = faultnet.Wrap(transport.InProcess(), onVote(50, func() { kill(role, 1) }))
			j.start(t.Context())
			j.step(60)
			j.hurry()
			j.finish()
			for _, r := range records(t, j.o.Root, "job") {
				if g, ok := r.(telemetry.GenerationStart); ok && g.Number == 2 && (g.Step != want.Step || g.Source != want.Source) {
					t.Errorf("generation 2 begins at step %d from a %s, want step %d, %s", g.Step, g.Source, want.Step, want.Source)
				}
			}
			lost := slices.ContainsFunc(records(t, j.o.Root, "job"), func(r telemetry.Record) bool { _, ok := r.(telemetry.Lost); return ok })
			if !lost {
				t.Error("nobody was lost")
			}
		})
	}
}

// spoiled is exact, one element of whose gradient is not a number for shares with a
// certain example.
type spoiled struct{ exact }

func (m *spoiled) Train(seed uint64, epoch int, ids []int) (compute.Result, error) {
	r, err := m.exact.Train(seed, epoch, ids)
	if slices.Contains(ids, 333) {
		m.g[0][len(m.g[0])-1] = float32(math.NaN())
	}
	return r, err
}

// TestVetoWhileVoting: a step that one server vetoes, while the others have voted on
// it, is left out under any counts.
func TestVetoWhileVoting(t *testing.T) {
	defer goleak.VerifyNone(t)
	var first string
	for _, counts := range [][2]int{{1, 1}, {3, 2}} {
		j := newClipped(t, spec.InProc, counts[0], counts[1], exactEpoch)
		model := j.o.Task.New
		j.o.Task.New = func(n int) (worker.Model, error) {
			m, err := model(n)
			return &spoiled{*m.(*exact)}, err
		}
		j.hurry()
		j.start(t.Context())
		r, err := j.wait()
		if err != nil {
			t.Fatal(err)
		}
		skipped := 0
		for _, rec := range records(t, j.o.Root, "job") {
			if _, ok := rec.(telemetry.Skipped); ok {
				skipped++
			}
		}
		if skipped != 1 {
			t.Errorf("%v: %d steps were skipped, want 1", counts, skipped)
		}
		if first == "" {
			first = r.ParamsSHA256
		}
		if r.ParamsSHA256 != first {
			t.Errorf("%v: parameters %s, one server and worker have %s", counts, r.ParamsSHA256, first)
		}
	}
}
