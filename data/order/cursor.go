package order

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
)

// ErrOtherPlan is in the chain of the error for a job that would go on from a
// cursor with another order of the examples.
var ErrOtherPlan = errors.New("another order of the examples")

// Cursor is a job's place in its data: all that must be kept, beside the
// parameters, to go on without an example lost or repeated. A synchronous job's
// is the number of steps that are done, since its batches are a function of that;
// an asynchronous job's is its [Ledger]. A checkpoint holds it.
//
// It marshals to {"plan": …, "steps": k}, or to what the Ledger marshals to.
type Cursor struct {
	plan   Plan
	steps  int64
	ledger *Ledger
}

// StepCursor returns the place of a synchronous job after so many steps.
func StepCursor(plan Plan, steps int64) (Cursor, error) {
	c := Cursor{plan: plan, steps: steps}
	return c, c.validate()
}

// LedgerCursor returns the place of an asynchronous job. It holds l itself:
// marshal it before l moves on.
func LedgerCursor(l *Ledger) Cursor { return Cursor{plan: l.s.Plan, ledger: l} }

func (c Cursor) validate() error {
	if err := c.plan.Validate(); err != nil {
		return err
	}
	if c.steps < 0 {
		return fmt.Errorf("cursor: %w: %d steps done, want 0 or more", ErrInvalid, c.steps)
	}
	if c.steps/c.plan.StepsPerEpoch() >= math.MaxInt64/int64(c.plan.Examples) {
		return fmt.Errorf("cursor: %w: %d steps with %d examples are more than can be counted", ErrInvalid, c.steps, c.plan.Examples)
	}
	return nil
}

// Steps returns the number of steps that are done; 0 with a ledger.
func (c Cursor) Steps() int64 { return c.steps }

// Ledger returns the account of an asynchronous job, nil for a synchronous one.
func (c Cursor) Ledger() *Ledger { return c.ledger }

// Done returns how many examples are done, over all epochs. A short last batch
// counts with what it had.
func (c Cursor) Done() int64 {
	if c.ledger != nil {
		done, _ := c.ledger.Progress()
		return done
	}
	epoch, lo, _ := c.plan.Positions(c.steps + 1)
	return int64(epoch)*int64(c.plan.Examples) + int64(lo)
}

// Fits returns [ErrOtherPlan] if a job of this plan cannot go on from here,
// since its next examples would be others than those that are left.
func (c Cursor) Fits(plan Plan) error {
	if c.plan == plan {
		return nil
	}
	return fmt.Errorf("go on: %w: it was seed %d, %d examples, batch %d, and is seed %d, %d examples, batch %d; go on with the same data, --seed and --batch",
		ErrOtherPlan, c.plan.Seed, c.plan.Examples, c.plan.Batch, plan.Seed, plan.Examples, plan.Batch)
}

// stepState is a synchronous job's cursor as JSON.
type stepState struct {
	Plan  Plan   `json:"plan"`
	Steps *int64 `json:"steps"`
}

// MarshalJSON writes the place.
func (c Cursor) MarshalJSON() ([]byte, error) {
	if c.ledger != nil {
		return c.ledger.MarshalJSON()
	}
	return json.Marshal(stepState{c.plan, &c.steps})
}

// UnmarshalJSON reads what MarshalJSON wrote, or a Ledger alone, and refuses
// what cannot be a place in any job.
func (c *Cursor) UnmarshalJSON(b []byte) error {
	var s struct {
		stepState
		Size *json.RawMessage `json:"chunk_size"` // only a ledger has one
	}
	if err := json.Unmarshal(b, &s); err != nil {
		return fmt.Errorf("cursor: %w; the checkpoint may be damaged", err)
	}
	switch {
	case s.Size != nil && s.Steps != nil:
		return fmt.Errorf("cursor: %w: it counts steps and has a ledger; the checkpoint may be damaged", ErrInvalid)
	case s.Size != nil:
		l := new(Ledger)
		if err := l.UnmarshalJSON(b); err != nil {
			return err
		}
		*c = LedgerCursor(l)
		return nil
	case s.Steps == nil:
		return fmt.Errorf("cursor: %w: it has neither steps nor a ledger; the checkpoint may be damaged", ErrInvalid)
	}
	next, err := StepCursor(s.Plan, *s.Steps)
	if err == nil {
		*c = next
	}
	return err
}
