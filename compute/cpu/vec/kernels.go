package vec

// kernels are the assembly functions of a level; at the level plain there are none.
// Each takes any positive length: what is left over behind the last group of 16 elements is done under a
// mask. index alone takes multiples of 16.
type kernels struct {
	exp, log, tanh, sigmoid, relu func(n int, y, x *float32)
	reluGrad, tanhGrad, mul       func(n int, y, a, b *float32)

	sum              func(n int, x *float32) float64
	dot              func(n int, x, y *float32) float64
	expSum, expTotal func(n int, y, x *float32, top float32) float64
	maximum          func(n int, x *float32) float32
	index            func(n int, x *float32, v float32) int // the elements from the first group that holds v
	dropout          func(n int, mask *float32, z uint64, below int64, scale float32)
	greater          func(n int, y *float32, place *int32, x *float32, at int32)
}

var plain kernels
