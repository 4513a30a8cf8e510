package optim

import (
	"errors"
	"fmt"

	"optimus/internal/level"
)

// ErrUpdate is the error that Apply and Average wrap.
var ErrUpdate = errors.New("invalid update")

// Update is one step on one piece: version s in, version s+1 out. Out may be
// Params and StateOut[i] may be State[i] (an update in place); otherwise the
// arrays must not overlap.
type Update struct {
	T        int64       // count of updates of this piece, this one included: from 1 on
	LR       float64     // learning rate of this step, already scheduled (Config.Rate)
	Decay    bool        // apply Config.WeightDecay to this block
	Params   []float32   // parameters at version s
	Out      []float32   // parameters at version s+1
	State    [][]float32 // the Config.Slots arrays at version s; all zeros before the first update
	StateOut [][]float32 // and at version s+1
	Grad     []float32   // sum of the gradients; not read if Weight is 0
	Weight   int64       // number of examples (or tokens) in the sum; 0: nothing was contributed
	Excess   float64     // above 1: the mean gradient is divided by it (Squares.Excess); else 0 or 1
}

// Apply computes version s+1 from version s, in one pass and without
// allocation. With weight 0 it copies version s and leaves out the optimizer's
// decay of its state too: such a step is no update and does not count in T.
//
// An error, which wraps ErrUpdate, means that the update does not fit the
// configuration or itself; nothing was written then.
func (c Config) Apply(u Update) error {
	if err := c.fits(u); err != nil {
		return err
	}
	if u.Weight == 0 {
		copy(u.Out, u.Params)
		for i, s := range u.State {
			copy(u.StateOut[i], s)
		}
		return nil
	}
	name, err := level.Current()
	if err != nil {
		return fmt.Errorf("apply update: %w", err)
	}
	c.apply(u, name)
	return nil
}

// apply runs the loops at a level of instructions; all give the same bits.
func (c Config) apply(u Update, name string) {
	k := c.scalars(u)
	done := 0
	if name != level.Plain {
		done = c.vector(&k, u)
	}
	w, out, sum := u.Params[done:], u.Out[done:], u.Grad[done:]
	in := func(slot int) ([]float32, []float32) { return u.State[slot][done:], u.StateOut[slot][done:] }
	switch {
	case c.Kind == Adam:
		a, aout := in(0)
		s, sout := in(1)
		k.adam(w, out, sum, a, aout, s, sout)
	case c.Kind == RMSProp:
		s, sout := in(0)
		k.rmsprop(w, out, sum, s, sout)
	case c.Momentum != 0:
		v, vout := in(0)
		k.momentum(w, out, sum, v, vout)
	default:
		k.sgd(w, out, sum)
	}
}

// fits checks everything that the loops rely on.
func (c Config) fits(u Update) error {
	n, slots := len(u.Params), c.Slots()
	switch {
	case c.Kind != SGD && c.Kind != RMSProp && c.Kind != Adam:
		return fmt.Errorf("%w: optimizer kind %q is unknown; call Config.Validate first", ErrUpdate, c.Kind)
	case u.Weight < 0:
		return fmt.Errorf("%w: weight %d is negative; it counts examples", ErrUpdate, u.Weight)
	case u.Weight > 0 && u.T < 1:
		return fmt.Errorf("%w: T is %d; updates count from 1", ErrUpdate, u.T)
	case len(u.Out) != n:
		return fmt.Errorf("%w: %d parameters in, room for %d out; both must be the whole piece", ErrUpdate, n, len(u.Out))
	case u.Weight > 0 && len(u.Grad) != n:
		return fmt.Errorf("%w: %d parameters but %d gradients; both must be the whole piece", ErrUpdate, n, len(u.Grad))
	case len(u.State) != slots || len(u.StateOut) != slots:
		return fmt.Errorf("%w: %d state arrays in, %d out; %s keeps %d", ErrUpdate, len(u.State), len(u.StateOut), c.Kind, slots)
	}
	for i := range slots {
		if len(u.State[i]) != n || len(u.StateOut[i]) != n {
			return fmt.Errorf("%w: state array %d has %d elements in, %d out; the piece has %d", ErrUpdate, i, len(u.State[i]), len(u.StateOut[i]), n)
		}
	}
	return nil
}

// Average computes version s+1 of an auxiliary array (batch norm's running
// statistics): out = momentum·running + (1−momentum)·sum/weight. sum adds up
// the contributions' statistics, each multiplied by its weight. out may be
// running; with weight 0 it is a copy. Errors wrap ErrUpdate.
func Average(out, running, sum []float32, weight int64, momentum float64) error {
	n := len(running)
	switch {
	case weight < 0:
		return fmt.Errorf("%w: weight %d is negative; it counts examples", ErrUpdate, weight)
	case !(momentum >= 0 && momentum <= 1):
		return fmt.Errorf("%w: momentum of the average is %v; it must lie in [0,1]", ErrUpdate, momentum)
	case len(out) != n || weight > 0 && len(sum) != n:
		return fmt.Errorf("%w: running average of %d elements, %d out, %d in the sum; all must be equal", ErrUpdate, n, len(out), len(sum))
	case weight == 0:
		copy(out, running)
		return nil
	}
	keep, take, by := float32(momentum), float32(1-momentum), float32(weight)
	sum, out = sum[:n], out[:n]
	for i, x := range running {
		out[i] = float32(keep*x) + float32(take*(sum[i]/by))
	}
	return nil
}
