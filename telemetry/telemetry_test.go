package telemetry_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"optimus/telemetry"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// all has a record of every kind with every field set.
func all() []telemetry.Record {
	at := time.Date(2026, 11, 30, 7, 4, 5, 6000000, time.UTC)
	member := telemetry.Member{Role: "worker", ID: 1, Incarnation: 3, PID: 99, Node: "n1", Device: "cpu"}
	phases := telemetry.Phases{Total: 0.5, Compute: 0.3, Push: 0.1, Pull: 0.05, Update: 0.02, Wait: 0.03}
	return []telemetry.Record{
		telemetry.GenerationStart{Time: at, Number: 1, Step: 0, Servers: 2, Workers: 3, Members: []telemetry.Member{member}, Source: telemetry.SourceCheckpoint, Origin: "/c"},
		telemetry.Step{Time: at, Generation: 1, Step: 1, Epoch: 0, Examples: 48, BatchExamples: 48, Weight: 480, Loss: 1.25, LearningRate: 0.1, M: 64,
			Servers: 2, Workers: 3, Phases: phases, PerWorker: []telemetry.Phases{phases, {}}, IDs: []int{5, 0, 3}},
		telemetry.Evaluation{Time: at, Generation: 1, Step: 1, Epoch: 0, Set: "test", Examples: 10, Loss: 2, Metrics: map[string]telemetry.Float{"accuracy": 0.5}, Seconds: 1},
		telemetry.Transition{Time: at, Generation: 2, Step: 1, From: telemetry.Size{Servers: 2, Workers: 3}, To: telemetry.Size{Servers: 1, Workers: 4},
			PhasesMS: map[string]float64{"prepare": 12.5}, PauseMS: 3, Elements: 100, Bytes: 800, Digest: "ab", Reason: "asked", Error: "lost"},
		telemetry.Checkpoint{Time: at, Generation: 1, Step: 1, Sequence: 7, Dir: "/c/7", Bytes: 9, Seconds: 0.1, ParamsSHA256: "cd", Error: "full"},
		telemetry.Lost{Time: at, Generation: 1, Step: 1, Member: member, Cause: "killed"},
		telemetry.Skipped{Time: at, Generation: 1, Step: 1, Worker: 1, Block: "w", Cause: "NaN"},
		telemetry.Staleness{Time: at, Generation: 1, Step: 1, Bound: 2, Counts: []int64{3, 0, 1}},
		telemetry.End{Time: at, Generation: 1, Step: 1, Epoch: 0, Examples: 48, Loss: 1.25, Seconds: 9, Reason: "done", ParamsSHA256: "ef", Error: "none"},
		telemetry.Unknown{Name: "future", Line: []byte(`{"kind":"future","x":1}`)},
	}
}

// write returns the bytes of records.
func write(t testing.TB, cfg telemetry.Config, records ...telemetry.Record) []byte {
	t.Helper()
	var buf bytes.Buffer
	w := telemetry.NewWriter(&buf, cfg)
	for _, r := range records {
		if err := w.Write(r); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func TestRoundTrip(t *testing.T) {
	b := write(t, telemetry.Config{IDs: true}, all()...)
	got, err := telemetry.Read(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(all(), got); diff != "" {
		t.Error(diff)
	}
	for i, line := range strings.Split(strings.TrimSpace(string(b)), "\n") {
		if want := fmt.Sprintf(`{"kind":%q,`, all()[i].Kind()); !strings.HasPrefix(line, want) {
			t.Errorf("line %d is %s", i+1, line)
		}
	}
}

func TestIDsAreLeftOutUnlessAsked(t *testing.T) {
	s := telemetry.Step{Step: 1, IDs: []int{1, 2}}
	if b := write(t, telemetry.Config{}, s); strings.Contains(string(b), "ids") {
		t.Errorf("%s", b)
	}
	if len(s.IDs) != 2 {
		t.Error("the caller's record was changed")
	}
}

func TestLossThatIsNotFinite(t *testing.T) {
	for _, v := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		b := write(t, telemetry.Config{}, telemetry.Step{Loss: telemetry.Float(v)})
		got, err := telemetry.Read(bytes.NewReader(b))
		if err != nil {
			t.Fatal(err)
		}
		if loss := float64(got[0].(telemetry.Step).Loss); !math.IsNaN(loss) {
			t.Errorf("%v came back as %v", v, loss)
		}
	}
}

func TestOnlyTheLastLineMayBeTorn(t *testing.T) {
	first, second := write(t, telemetry.Config{}, telemetry.Step{Step: 1}), write(t, telemetry.Config{}, telemetry.Step{Step: 2})
	for n := range len(second) {
		got, err := telemetry.Read(bytes.NewReader(append(bytes.Clone(first), second[:n]...)))
		want := 1
		if n == len(second)-1 { // only the newline is missing
			want = 2
		}
		if err != nil || len(got) != want {
			t.Fatalf("cut at %d: %d records, %v", n, len(got), err)
		}
	}
	for _, bad := range []string{"{\"kind\":\"step\",\"st\n", "[]\n", "{}\n", "{\"kind\":\"step\",\"step\":\"x\"}\n", "\x00\x00\n"} {
		got, err := telemetry.Read(strings.NewReader(string(first) + bad + string(second)))
		if err == nil || !strings.Contains(err.Error(), "line 2") || len(got) != 1 {
			t.Errorf("%q: %d records, %v", bad, len(got), err)
		}
	}
	if got, err := telemetry.Read(strings.NewReader("\n" + string(first) + "\n\n" + strings.TrimSpace(string(second)))); err != nil || len(got) != 2 {
		t.Errorf("empty lines and a last line without its end: %d records, %v", len(got), err)
	}
}

// signal tells when it was first written to.
type signal struct {
	once    sync.Once
	written chan struct{}
}

func (s *signal) Write(p []byte) (int, error) {
	s.once.Do(func() { close(s.written) })
	return len(p), nil
}

func TestRecordsDoNotWaitForMore(t *testing.T) {
	out := &signal{written: make(chan struct{})}
	w := telemetry.NewWriter(out, telemetry.Config{FlushEvery: time.Millisecond})
	if err := w.Write(telemetry.Step{}); err != nil {
		t.Fatal(err)
	}
	<-out.written // or the test's own timeout
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := w.Write(telemetry.Step{}); err == nil {
		t.Error("a closed writer accepted a record")
	}
}

type broken struct{}

var errBroken = errors.New("broken")

func (broken) Write([]byte) (int, error) { return 0, errBroken }

func TestFailureOfTheStreamIsKept(t *testing.T) {
	w := telemetry.NewWriter(broken{}, telemetry.Config{FlushEvery: time.Hour})
	if err := w.Write(telemetry.Step{}); err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{w.Flush(), w.Write(telemetry.Step{}), w.Close()} {
		if !errors.Is(err, errBroken) {
			t.Errorf("got %v", err)
		}
	}
}

func TestHistory(t *testing.T) {
	start := func(number int, step int64) telemetry.Record {
		return telemetry.GenerationStart{Number: number, Step: step}
	}
	step := func(generation int, step int64, ids ...int) telemetry.Record {
		return telemetry.Step{Generation: generation, Step: step, BatchExamples: len(ids), Weight: int64(len(ids)), IDs: ids}
	}
	type short struct {
		Generation int
		Step       int64
		Examples   int
	}
	for _, c := range []struct {
		name    string
		records []telemetry.Record
		want    []short
		fails   string
	}{
		{name: "nothing"},
		{name: "one generation", records: []telemetry.Record{start(1, 0), step(1, 1, 0, 1), step(1, 2, 2)}, want: []short{{1, 1, 2}, {1, 2, 1}}},
		{name: "a rescale voids nothing", records: []telemetry.Record{start(1, 0), step(1, 1, 0), start(2, 1), step(2, 2, 1)}, want: []short{{1, 1, 1}, {2, 2, 1}}},
		{name: "a restore voids what came after its checkpoint", records: []telemetry.Record{
			start(1, 0), step(1, 1, 0), step(1, 2, 1), step(1, 3, 2), start(2, 1), step(2, 2, 1)}, want: []short{{1, 1, 1}, {2, 2, 1}}},
		{name: "over two generations", records: []telemetry.Record{
			start(1, 0), step(1, 1), step(1, 2), start(2, 2), step(2, 3), start(3, 1), step(3, 2), start(4, 2), step(4, 3)}, want: []short{{1, 1, 0}, {3, 2, 0}, {4, 3, 0}}},
		{name: "records may come late", records: []telemetry.Record{
			start(1, 0), step(1, 1), start(2, 1), step(1, 2), step(2, 2)}, want: []short{{1, 1, 0}, {2, 2, 0}}},
		{name: "a skipped step used nothing", records: []telemetry.Record{
			start(1, 0), step(1, 1, 7, 8), telemetry.Skipped{Generation: 1, Step: 1}, step(1, 2, 9)}, want: []short{{1, 1, 0}, {1, 2, 1}}},
		{name: "a voided step's skip is void", records: []telemetry.Record{
			start(1, 0), step(1, 1, 7), telemetry.Skipped{Generation: 1, Step: 1}, start(2, 0), step(2, 1, 7)}, want: []short{{2, 1, 1}}},
		{name: "applied twice", records: []telemetry.Record{start(1, 0), step(1, 1), step(1, 1)}, fails: "step 1 was applied twice"},
		{name: "numbers go back", records: []telemetry.Record{start(2, 0), start(2, 0)}, fails: "must grow"},
	} {
		t.Run(c.name, func(t *testing.T) {
			steps, err := telemetry.History(c.records)
			if c.fails != "" {
				if err == nil || !strings.Contains(err.Error(), c.fails) {
					t.Fatalf("got %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var got []short
			for _, s := range steps {
				if s.BatchExamples != len(s.IDs) || s.Weight != int64(len(s.IDs)) {
					t.Errorf("step %d: %+v", s.Step, s)
				}
				got = append(got, short{s.Generation, s.Step, s.BatchExamples})
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestCoverage(t *testing.T) {
	step := func(step int64, epoch int, ids ...int) telemetry.Step {
		return telemetry.Step{Step: step, Epoch: epoch, BatchExamples: len(ids), IDs: ids}
	}
	good := []telemetry.Step{step(1, 0, 2, 0), step(2, 0, 1), step(3, 1, 0)}
	if err := telemetry.Coverage(good, 0, 3); err != nil {
		t.Error(err)
	}
	for want, err := range map[string]error{
		"example 1 0 times":               telemetry.Coverage(good, 1, 3),
		"example 3 0 times":               telemetry.Coverage(good, 0, 4),
		"used example 2; the":             telemetry.Coverage(good, 0, 2),
		"example 0 2 times (steps [1 9])": telemetry.Coverage(append(good, step(9, 0, 0)), 0, 3),
		"lists 0":                         telemetry.Coverage([]telemetry.Step{{BatchExamples: 2}}, 0, 2),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

// A job of random rescales and restores, played against a plain list of steps.
func TestHistoryProperty(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		records := []telemetry.Record{telemetry.GenerationStart{Number: 1}}
		var alive []telemetry.Step
		generation := 1
		for range rapid.IntRange(0, 40).Draw(rt, "actions") {
			if rapid.IntRange(0, 4).Draw(rt, "kind") > 0 {
				s := telemetry.Step{Generation: generation, Step: int64(len(alive) + 1)}
				alive = append(alive, s)
				records = append(records, s)
				continue
			}
			keep := rapid.IntRange(0, len(alive)).Draw(rt, "back to")
			alive = alive[:keep:keep]
			generation += rapid.IntRange(1, 3).Draw(rt, "numbers")
			records = append(records, telemetry.GenerationStart{Number: generation, Step: int64(keep)})
		}
		got, err := telemetry.History(records)
		if err != nil {
			rt.Fatal(err)
		}
		if len(got) != len(alive) || len(alive) > 0 && !cmp.Equal(alive, got) {
			rt.Fatal(cmp.Diff(alive, got))
		}
	})
}

func FuzzRead(f *testing.F) {
	for _, r := range all() {
		line, err := telemetry.Encode(r)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(append(line, '\n'))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		records, err := telemetry.Read(bytes.NewReader(b))
		if err != nil {
			return
		}
		again, err := telemetry.Read(bytes.NewReader(write(t, telemetry.Config{IDs: true}, records...)))
		if err != nil || len(again) != len(records) {
			t.Fatalf("%d records became %d, %v", len(records), len(again), err)
		}
		_, _ = telemetry.History(records) // any records: no panic
	})
}

func Example() {
	file, err := os.CreateTemp("", "telemetry")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.Remove(file.Name())
	defer file.Close()

	w := telemetry.NewWriter(file, telemetry.Config{IDs: true})
	for _, r := range []telemetry.Record{
		telemetry.GenerationStart{Number: 1, Source: telemetry.SourceInit},
		telemetry.Step{Generation: 1, Step: 1, BatchExamples: 2, IDs: []int{0, 3}},
		telemetry.Step{Generation: 1, Step: 2, BatchExamples: 2, IDs: []int{1, 2}},
		// The job loses a server and restarts from its checkpoint of step 1.
		telemetry.GenerationStart{Number: 2, Step: 1, Source: telemetry.SourceCheckpoint},
		telemetry.Step{Generation: 2, Step: 2, BatchExamples: 2, IDs: []int{1, 2}},
	} {
		if err := w.Write(r); err != nil {
			fmt.Println(err)
			return
		}
	}
	fmt.Println("close:", w.Close())

	data, _ := os.ReadFile(file.Name())
	records, err := telemetry.Read(bytes.NewReader(data))
	if err != nil {
		fmt.Println(err)
		return
	}
	steps, err := telemetry.History(records)
	fmt.Println(len(records), "records,", len(steps), "steps,", err)
	fmt.Println("each example once:", telemetry.Coverage(steps, 0, 4) == nil)
	// Output:
	// close: <nil>
	// 5 records, 2 steps, <nil>
	// each example once: true
}
