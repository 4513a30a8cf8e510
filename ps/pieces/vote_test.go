package pieces

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"optimus/compute/optim"
	"optimus/internal/failure"
)

// pair are two stores that hold an element each of the block w and vote on steps
// whose gradient is longer than 1. Their votes are delivered by the test.
type pair struct {
	t      *testing.T
	stores [2]*Store
	votes  [2]chan Vote
	vetoes chan Veto
}

var halves = [2]ID{{0, 0, 1}, {0, 1, 1}}

func newPair(t *testing.T, aux ...optim.Param) *pair {
	p := &pair{t: t, vetoes: make(chan Veto, 10)}
	for k := range p.stores {
		p.votes[k] = make(chan Vote, 10)
		cfg := Config{Params: []optim.Param{{Name: "w", Shape: []int{2}}}, Aux: aux, Optimizer: optim.Config{Kind: optim.SGD, LR: 1, ClipNorm: 1},
			NonFinite: func(v Veto) { p.vetoes <- v }, Vote: func(v Vote) { p.votes[k] <- v }}
		s, err := New(cfg)
		check(t, err)
		p.stores[k] = s
	}
	p.begin(1, 0)
	return p
}

// begin has generation number of one worker begin at a version.
func (p *pair) begin(number int, boundary int64) {
	p.t.Helper()
	for k, s := range p.stores {
		ids := []ID{halves[k]}
		if len(s.cfg.Aux) > 0 && k == 0 {
			ids = append(ids, ID{1, 0, 1})
		}
		install(p.t, s, Generation{Number: number, Workers: workers(1), Pieces: ids, Voters: []int{0, 1}, Server: k})
		if number == 1 {
			check(p.t, s.Init(1, 0, 0))
		} else {
			check(p.t, s.FillLocal(number, boundary))
		}
	}
	for _, s := range p.stores {
		check(p.t, s.Commit(number))
	}
}

// push gives store k its gradient, summed over a weight of 10.
func (p *pair) push(number, k int, step int64, sum float32) {
	p.t.Helper()
	push(p.t, p.stores[k], Push{Generation: number, Step: step, From: workers(1)[0], Piece: halves[k], Values: []float32{sum}, Weight: 10}, Accepted)
}

// deliver brings the next vote of store k to the other.
func (p *pair) deliver(k int, want Outcome) {
	p.t.Helper()
	select {
	case v := <-p.votes[k]:
		if out, err := p.stores[1-k].Vote(v); out != want {
			p.t.Fatalf("vote %+v: %v (%v), want %v", v, out, err, want)
		}
	default:
		p.t.Fatalf("store %d has not voted", k)
	}
}

// at fails unless store k is at a version with a value, and promises another.
func (p *pair) at(k int, version, promised int64, value float64) {
	p.t.Helper()
	s := p.stores[k]
	part, err := s.Extract(halves[k], version)
	check(p.t, err)
	if lowest, _ := s.Versions(); lowest != version || s.Promised() != promised {
		p.t.Fatalf("store %d is at version %d and promises %d, want %d and %d", k, lowest, s.Promised(), version, promised)
	}
	near(p.t, "w", float64(part.Params[0]), value)
}

// TestVoteScales: a step is made once both stores have voted, by the whole gradient
// scaled down to norm 1; a shorter one is not scaled.
func TestVoteScales(t *testing.T) {
	p := newPair(t)
	p.push(1, 0, 1, -30)
	p.at(0, 0, 1, 0)
	if diff := cmp.Diff([]int{1}, p.stores[0].Awaited(1, 1)); diff != "" {
		t.Error(diff)
	}
	p.push(1, 1, 1, -40)
	p.deliver(0, Accepted)
	p.at(1, 1, 1, 0.8)
	p.at(0, 0, 1, 0)
	p.deliver(1, Accepted)
	p.at(0, 1, 1, 0.6)
	if missing := p.stores[0].Awaited(1, 1); missing != nil {
		t.Errorf("votes of %v are awaited for a step that is made", missing)
	}
	p.push(1, 0, 2, -3)
	p.push(1, 1, 2, -4)
	p.deliver(1, Accepted)
	p.deliver(0, Accepted)
	p.at(0, 2, 2, 0.9)
	p.at(1, 2, 2, 1.2)
}

// TestVoteWithoutWeight: a step to which nobody contributed is voted on too.
func TestVoteWithoutWeight(t *testing.T) {
	p := newPair(t)
	for k := range p.stores {
		push(t, p.stores[k], Push{Generation: 1, Step: 1, From: workers(1)[0], Piece: halves[k]}, Accepted)
	}
	p.deliver(0, Accepted)
	p.deliver(1, Accepted)
	p.at(0, 1, 1, 0)
	p.at(1, 1, 1, 0)
}

// TestVoteComesEarly: a vote may come before the generation's commit, and that on the
// next step before the one at hand is decided.
func TestVoteComesEarly(t *testing.T) {
	p := newPair(t)
	install(t, p.stores[0], Generation{Number: 2, Workers: workers(1), Pieces: []ID{halves[0]}, Voters: []int{0, 1}})
	check(t, p.stores[0].FillLocal(2, 0))
	vote := func(step int64, of float32) {
		v := Vote{Generation: 2, Step: step, Server: 1}
		v.Squares.Add([]float32{of}, 10, 1)
		if out, err := p.stores[0].Vote(v); out != Accepted {
			t.Fatalf("%v, %v", out, err)
		}
	}
	vote(1, -40)
	p.push(2, 0, 1, -30) // is set aside
	vote(2, -40)
	check(t, p.stores[0].Commit(2))
	p.at(0, 1, 1, 0.6)
	p.push(2, 0, 2, -30)
	p.at(0, 2, 2, 1.2)
}

// TestAuxWaitsForVote: auxiliary arrays keep step with the learned pieces, so that no
// piece is two steps ahead of another and a step can always be taken back.
func TestAuxWaitsForVote(t *testing.T) {
	p := newPair(t, optim.Param{Name: "mean", Shape: []int{1}})
	mean := func(step int64) Push {
		return Push{Generation: 1, Step: step, From: workers(1)[0], Piece: ID{1, 0, 1}, Values: []float32{50}, Weight: 10}
	}
	push(t, p.stores[0], mean(1), Accepted)
	push(t, p.stores[0], mean(2), Accepted)
	p.push(1, 0, 1, -30)
	p.push(1, 0, 2, -30) // set aside
	if _, highest := p.stores[0].Versions(); highest != 0 {
		t.Fatalf("a piece is at version %d without a vote", highest)
	}
	p.push(1, 1, 1, -40)
	p.deliver(1, Accepted)
	p.at(0, 1, 2, 0.6) // and the second step is voted on
	p.deliver(0, Accepted)
	p.push(1, 1, 2, -40)
	p.deliver(1, Accepted)
	p.at(0, 2, 2, 1.2)
	check(t, p.stores[0].Rewind(1))
	part, err := p.stores[0].Extract(ID{1, 0, 1}, 1)
	check(t, err)
	near(t, "mean", float64(part.Params[0]), 5)
}

// TestPromisedStepIsMade: when the job is halted and both stores have voted on a step,
// it is made although one of them takes no more pushes; if one has not, the other
// takes its own back.
func TestPromisedStepIsMade(t *testing.T) {
	p := newPair(t)
	p.push(1, 0, 1, -30)
	p.push(1, 1, 1, -40)
	for _, s := range p.stores {
		check(t, s.Rewind(1)) // both have promised it
	}
	p.deliver(0, Accepted)
	p.deliver(1, Accepted)
	p.at(0, 1, 1, 0.6)
	p.at(1, 1, 1, 0.8)
	p.begin(2, 1)

	p.push(2, 0, 2, -30)
	p.at(1, 1, 1, 0.8)
	for _, s := range p.stores {
		check(t, s.Rewind(1))
	}
	p.at(0, 1, 1, 0.6)
	p.begin(3, 1)
	p.deliver(0, Refresh) // of generation 2
	p.push(3, 0, 2, -3)   // another share of the batch
	p.push(3, 1, 2, -4)
	p.deliver(0, Accepted)
	p.deliver(1, Accepted)
	p.at(0, 2, 2, 0.9)
	p.at(1, 2, 2, 1.2)
}

// TestRedoneStepIsVotedOnAgain: a step that is taken back in its generation.
func TestRedoneStepIsVotedOnAgain(t *testing.T) {
	p := newPair(t)
	for _, late := range []bool{false, true} { // the votes of the first try come in the second
		p.push(1, 0, 1, -30)
		p.push(1, 1, 1, -40)
		if !late {
			p.deliver(0, Accepted)
			p.deliver(1, Accepted)
		}
		for _, s := range p.stores {
			check(t, s.Rewind(0))
		}
		p.at(0, 0, 0, 0)
		p.at(1, 0, 0, 0)
	}
	p.deliver(0, Accepted)
	p.at(1, 0, 0, 0)
	p.push(1, 1, 1, -40)
	p.push(1, 0, 1, -30)
	for range 2 {
		p.deliver(1, Accepted)
	}
	p.deliver(0, Accepted)
	p.at(0, 1, 1, 0.6)
	p.at(1, 1, 1, 0.8)
}

// TestVetoedStepIsNotVotedOn: nor one whose sum overflows.
func TestVetoedStepIsNotVotedOn(t *testing.T) {
	p := newPair(t)
	p.push(1, 0, 1, float32(math.NaN()))
	p.push(1, 1, 1, -40)
	p.deliver(1, Accepted)
	if v := <-p.vetoes; v.Worker != 0 || v.Step != 1 || len(p.votes[0]) != 0 || p.stores[0].Promised() != 0 {
		t.Fatalf("veto %+v, %d votes, promised %d", v, len(p.votes[0]), p.stores[0].Promised())
	}
	for _, s := range p.stores {
		check(t, s.Relabel(0, 1))
	}
	p.at(0, 1, 1, 0)
	p.begin(2, 1)
	p.push(2, 0, 2, -30)
	p.push(2, 1, 2, -40)
	p.deliver(0, Accepted)
	p.deliver(1, Accepted)
	p.at(1, 2, 2, 0.8)

	cfg := lin1(BSP)
	cfg.Optimizer.ClipNorm = 1
	cfg.NonFinite = func(v Veto) { p.vetoes <- v }
	s := open(t, cfg, 2)
	for w := range 2 {
		push(t, s, Push{Generation: 1, Step: 1, From: Worker{w, 1}, Piece: theWeight, Values: []float32{math.MaxFloat32}, Weight: 1}, Accepted)
	}
	if v := <-p.vetoes; v.Worker != -1 || s.Promised() != 0 {
		t.Fatalf("veto %+v, promised %d", v, s.Promised())
	}
}

// TestVotesRefused: what no server of this job sends.
func TestVotesRefused(t *testing.T) {
	p := newPair(t)
	s := p.stores[0]
	for name, v := range map[string]Vote{
		"own":       {Generation: 1, Step: 1, Server: 0},
		"stranger":  {Generation: 1, Step: 1, Server: 2},
		"negative":  {Generation: 1, Step: 1, Server: -1},
		"far ahead": {Generation: 1, Step: 99, Server: 1},
	} {
		if name == "far ahead" {
			for step := range int64(maxAhead) {
				_, err := s.Vote(Vote{Generation: 1, Step: step + 1, Server: 1})
				check(t, err)
			}
		}
		out, err := s.Vote(v)
		if out != Refused {
			t.Errorf("%s: %v", name, out)
		}
		kindIs(t, err, failure.InvalidArgument)
	}
	if out, _ := s.Vote(Vote{Generation: 2, Step: 1, Server: 1}); out != Refresh {
		t.Errorf("another generation's: %v", out)
	}
	plain := open(t, lin1(BSP), 1)
	if out, err := plain.Vote(Vote{Generation: 1, Step: 1, Server: 1}); out != Refused || err == nil {
		t.Errorf("where nobody votes: %v, %v", out, err)
	}
	for _, voters := range [][]int{{1}, {0, 0}, {0, 1, 1}} {
		if err := s.Install(Generation{Number: 2, Workers: workers(1), Pieces: []ID{halves[0]}, Voters: voters}); err == nil {
			t.Errorf("voters %v were taken", voters)
		}
	}
}
