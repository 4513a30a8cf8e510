package vec

// Exp writes y = exp(x) element by element. Here and below, the arrays are equally
// long, or the function panics; y may be one of the others but not overlap it otherwise.
func Exp(y, x []float32) { unary("Exp", kernelsAt(Level()).exp, Exp32, y, x) }

// Log writes y = log(x).
func Log(y, x []float32) { unary("Log", kernelsAt(Level()).log, Log32, y, x) }

// Tanh writes y = tanh(x).
func Tanh(y, x []float32) { unary("Tanh", kernelsAt(Level()).tanh, Tanh32, y, x) }

// Sigmoid writes y = 1/(1+exp(-x)).
func Sigmoid(y, x []float32) { unary("Sigmoid", kernelsAt(Level()).sigmoid, Sigmoid32, y, x) }

// ReLU writes y = max(x, 0). NaN stays NaN and -0 becomes +0.
func ReLU(y, x []float32) { unary("ReLU", kernelsAt(Level()).relu, relu, y, x) }

// ReLUGrad writes dx = dy where y > 0, else 0.
func ReLUGrad(dx, dy, y []float32) {
	binary("ReLUGrad", kernelsAt(Level()).reluGrad, reluGrad, dx, dy, y)
}

// TanhGrad writes dx = dy·(1-y²) for y = tanh(x).
func TanhGrad(dx, dy, y []float32) {
	binary("TanhGrad", kernelsAt(Level()).tanhGrad, tanhGrad, dx, dy, y)
}

// Mul writes y = a·b.
func Mul(y, a, b []float32) { binary("Mul", kernelsAt(Level()).mul, mul, y, a, b) }

// Greater puts x into y, and at into place, where x is greater or NaN: called for one
// row after the other it finds the maxima of columns and, of equals, the first row.
func Greater(y []float32, place []int32, x []float32, at int32) {
	greaterAt(kernelsAt(Level()), y, place, x, at)
}

func greaterAt(k *kernels, y []float32, place []int32, x []float32, at int32) {
	same("Greater", len(y), len(place))
	same("Greater", len(y), len(x))
	if len(y) > 0 && k.greater != nil {
		k.greater(len(y), &y[0], &place[0], &x[0], at)
		return
	}
	for i, v := range x {
		if v > y[i] || v != v {
			y[i], place[i] = v, at
		}
	}
}

func relu(x float32) float32 { return max(x, 0) }

func reluGrad(dy, y float32) float32 {
	if y > 0 {
		return dy
	}
	return 0
}

func tanhGrad(dy, y float32) float32 { return dy * (1 - float32(y*y)) }
func mul(a, b float32) float32       { return a * b }

// unary runs a kernel, or applies one to each element where there is none.
func unary(op string, kernel func(n int, y, x *float32), one func(float32) float32, y, x []float32) {
	same(op, len(y), len(x))
	if len(x) > 0 && kernel != nil {
		kernel(len(x), &y[0], &x[0])
		return
	}
	for i, v := range x {
		y[i] = one(v)
	}
}

func binary(op string, kernel func(n int, y, a, b *float32), one func(a, b float32) float32, y, a, b []float32) {
	same(op, len(y), len(a))
	same(op, len(y), len(b))
	if len(y) > 0 && kernel != nil {
		kernel(len(y), &y[0], &a[0], &b[0])
		return
	}
	for i, v := range a {
		y[i] = one(v, b[i])
	}
}
