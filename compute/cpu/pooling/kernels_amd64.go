package pooling

import "optimus/internal/level"

// The assembly counts in bytes. Its callers have cut the slices to what it touches.
const size = 4

var avx2 = kernels{
	maximum: func(n, kh, kw int, y, x []float32, row, step int) {
		maximumAVX2(n, kh, kw, &y[0], &x[0], size*row, size*step)
	},
	maximumGrad: func(n, kh, kw int, dx, dy, y, x []float32, rowDX, row, step int) {
		maximumGradAVX2(n, kh, kw, &dx[0], &dy[0], &y[0], &x[0], size*rowDX, size*row, size*step)
	},
	mean: func(n, kh, kw int, y, x []float32, row, step int, count float32) {
		meanAVX2(n, kh, kw, &y[0], &x[0], size*row, size*step, count)
	},
	meanGrad: func(n, kh, kw int, dx, dy []float32, rowDX, step int, count float32) {
		meanGradAVX2(n, kh, kw, &dx[0], &dy[0], size*rowDX, size*step, count)
	},
}

var avx512 = kernels{
	maximum: func(n, kh, kw int, y, x []float32, row, step int) {
		maximumAVX512(n, kh, kw, &y[0], &x[0], size*row, size*step)
	},
	maximumGrad: func(n, kh, kw int, dx, dy, y, x []float32, rowDX, row, step int) {
		maximumGradAVX512(n, kh, kw, &dx[0], &dy[0], &y[0], &x[0], size*rowDX, size*row, size*step)
	},
	mean: func(n, kh, kw int, y, x []float32, row, step int, count float32) {
		meanAVX512(n, kh, kw, &y[0], &x[0], size*row, size*step, count)
	},
	meanGrad: func(n, kh, kw int, dx, dy []float32, rowDX, step int, count float32) {
		meanGradAVX512(n, kh, kw, &dx[0], &dy[0], size*rowDX, size*step, count)
	},
}

func kernelsAt(name string) *kernels {
	switch name {
	case level.AVX512:
		return &avx512
	case level.AVX2:
		return &avx2
	}
	return &plain
}
