package optim

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
