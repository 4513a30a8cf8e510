package optim

import (
	"math"

	"optimus/internal/level"
)

// vector runs the update over all whole vectors and returns how many elements
// that are. The lengths have been checked.
func (c Config) vector(k *scalars, u Update) int {
	const width = 8
	n := len(u.Params) &^ (width - 1)
	if n == 0 {
		return 0
	}
	w, out, sum := &u.Params[0], &u.Out[0], &u.Grad[0]
	switch {
	case c.Kind == Adam:
		adamAVX(n, &k.weight, w, out, sum, &u.State[0][0], &u.StateOut[0][0], &u.State[1][0], &u.StateOut[1][0])
	case c.Kind == RMSProp:
		rmspropAVX(n, &k.weight, w, out, sum, &u.State[0][0], &u.StateOut[0][0])
	case c.Momentum != 0:
		momentumAVX(n, &k.weight, w, out, sum, &u.State[0][0], &u.StateOut[0][0])
	default:
		sgdAVX(n, &k.weight, w, out, sum)
	}
	return n
}

// squares is squaresGo at a level of instructions.
func squares(x []float32, by float64, name string) (one, rest int64, most float64) {
	n := len(x) &^ 7
	if name == level.Plain || n == 0 {
		return squaresGo(x, by)
	}
	var lanes [12]uint64
	squaresAVX2(n, by, &x[0], &lanes[0])
	one, rest, most = squaresGo(x[n:], by)
	for i := range 4 {
		one += int64(lanes[i] - uint64(n/4)*oneBits)
		rest += int64(lanes[4+i] - uint64(n/4)*restBits)
		most = max(most, math.Float64frombits(lanes[8+i]))
	}
	return one, rest, most
}
