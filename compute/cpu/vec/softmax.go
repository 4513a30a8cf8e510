package vec

import "math"

// Softmax writes y = exp(x) / Σ exp(x), for one row. y may be x.
func Softmax(y, x []float32) {
	same("Softmax", len(y), len(x))
	softmaxAt(Level(), y, x)
}

// CrossEntropy returns -log softmax(x)[label] for one row and the index of the greatest
// element of x. It writes the gradient dx = softmax(x) - onehot(label), unless dx is nil; dx may be x.
//
// The loss is log Σ exp(x-max) - (x[label]-max), which cannot overflow; exp is that
// of float32, everything else is done in float64. The gradient at the label is minus the share of the other classes,
// so it keeps its digits when that is small.
func CrossEntropy(dx, x []float32, label int) (loss float64, best int) {
	if dx != nil {
		same("CrossEntropy", len(dx), len(x))
	}
	return crossEntropyAt(Level(), dx, x, label)
}

func softmaxAt(name string, y, x []float32) {
	k := kernelsAt(name)
	top, _ := maxAt(k, x)
	scaleAt(name, y, float32(1/expSumAt(k, y, x, top)))
}

func crossEntropyAt(name string, dx, x []float32, label int) (float64, int) {
	k := kernelsAt(name)
	top, best := maxAt(k, x)
	at := x[label] - top
	sum := expSumAt(k, dx, x, top)
	if dx != nil {
		others := sum - float64(dx[label])
		scaleAt(name, dx, float32(1/sum))
		dx[label] = float32(-others / sum)
	}
	return math.Log(sum) - float64(at), best
}

// expSumAt returns the sum of exp(x-top) and writes its terms to y, unless y is nil.
func expSumAt(k *kernels, y, x []float32, top float32) float64 {
	switch {
	case len(x) == 0:
		return 0
	case k.expSum != nil && y != nil:
		return k.expSum(len(x), &y[0], &x[0], top)
	case k.expTotal != nil && y == nil:
		return k.expTotal(len(x), nil, &x[0], top)
	}
	var s [lanes]float64
	for i, v := range x {
		e := Exp32(v - top)
		if y != nil {
			y[i] = e
		}
		s[i%lanes] += float64(e)
	}
	return total(&s)
}
