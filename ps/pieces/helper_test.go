package pieces

import (
	"math"
	"testing"

	"optimus/compute/optim"
	"optimus/internal/failure"
)

// lin1 is the fixture of the trials: one weight that starts at 0, prediction
// w·1, squared error, plain SGD at rate 0.1.
func lin1(mode Mode) Config {
	return Config{Params: []optim.Param{{Name: "w", Shape: []int{1}}}, Optimizer: optim.Config{Kind: optim.SGD, LR: 0.1}, Mode: mode}
}

var theWeight = ID{0, 0, 1}

// lin1Push is a worker's summed gradient at weight w over its targets.
func lin1Push(generation int, step int64, worker int, w float64, targets ...float64) Push {
	var sum float64
	for _, y := range targets {
		sum += 2 * (w - y)
	}
	return Push{Generation: generation, Step: step, From: Worker{worker, 1}, Sequence: step, Piece: theWeight,
		Values: []float32{float32(sum)}, Weight: int64(len(targets))}
}

func workers(n int) []Worker {
	list := make([]Worker, n)
	for i := range list {
		list[i] = Worker{ID: i, Incarnation: 1}
	}
	return list
}

// wholes returns one piece per block and auxiliary array.
func wholes(cfg Config) []ID {
	var ids []ID
	for i, p := range cfg.Params {
		ids = append(ids, ID{i, 0, p.Size()})
	}
	for i, p := range cfg.Aux {
		ids = append(ids, ID{len(cfg.Params) + i, 0, p.Size()})
	}
	return ids
}

// open returns a store with whole blocks, initialised, at generation 1 and version 0.
func open(t testing.TB, cfg Config, w int) *Store {
	t.Helper()
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	install(t, s, Generation{Number: 1, Workers: workers(w), Pieces: wholes(cfg)})
	check(t, s.Init(1, 7, 0))
	check(t, s.Commit(1))
	return s
}

func install(t testing.TB, s *Store, g Generation) {
	t.Helper()
	check(t, s.Install(g))
}

// failer is what testing.TB and *rapid.T have in common here.
type failer interface {
	Helper()
	Fatal(args ...any)
}

func check(t failer, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// resize moves a store to a new generation of w workers and the same pieces.
func resize(t testing.TB, s *Store, number, w int, boundary int64) {
	t.Helper()
	install(t, s, Generation{Number: number, Workers: workers(w), Pieces: wholes(s.cfg)})
	check(t, s.FillLocal(number, boundary))
	check(t, s.Commit(number))
}

func push(t testing.TB, s *Store, u Push, want Outcome) {
	t.Helper()
	got, err := s.Push(u)
	if got != want || (err != nil) != (want == Refused) {
		t.Fatalf("push of step %d by %v: %v (%v), want %v", u.Step, u.From, got, err, want)
	}
}

// pullNow asks for a piece and fails unless it is answered at once.
func pullNow(t testing.TB, s *Store, r Request) Answer {
	t.Helper()
	var got *Answer
	s.Pull(r, func(a Answer) { got = &a })
	if got == nil {
		t.Fatalf("pull of %v at %d was parked", r.Piece, r.Step)
	}
	return *got
}

// weight returns the fixture's weight at a version.
func weight(t testing.TB, s *Store, generation int, version int64) float64 {
	t.Helper()
	a := pullNow(t, s, Request{Generation: generation, Step: version, Piece: theWeight})
	if a.Outcome != Served {
		t.Fatalf("pull of version %d: %v", version, a.Outcome)
	}
	return float64(a.Values[0])
}

// near fails unless got is want as closely as float32 parameters can say.
func near(t testing.TB, what string, got, want float64) {
	t.Helper()
	if !(math.Abs(got-want) <= 2e-7*max(1, math.Abs(want))) {
		t.Fatalf("%s = %.9f, want %.9f", what, got, want)
	}
}

func kindIs(t testing.TB, err error, want failure.Kind) {
	t.Helper()
	if got := failure.KindOf(err); got != want {
		t.Fatalf("error %v has kind %q, want %q", err, got, want)
	}
}
