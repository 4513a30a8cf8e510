package rnn

import "optimus/internal/level"

var avx2 = kernels{
	lstm: func(gates, prev, c, h []float32) {
		lstmAVX2(len(c), &gates[0], &prev[0], &c[0], &h[0])
	},
	lstmGrad: func(dgates, gates, prev, c, dc, dh []float32) {
		lstmGradAVX2(len(dc), &dgates[0], &gates[0], &prev[0], &c[0], &dc[0], &dh[0])
	},
	gru: func(x, u, prev, h []float32) { gruAVX2(len(h), &x[0], &u[0], &prev[0], &h[0]) },
	gruGrad: func(dx, du, x, u, prev, dprev, dh []float32) {
		gruGradAVX2(len(dh), &dx[0], &du[0], &x[0], &u[0], &prev[0], &dprev[0], &dh[0])
	},
}

var avx512 = kernels{
	lstm: func(gates, prev, c, h []float32) {
		lstmAVX512(len(c), &gates[0], &prev[0], &c[0], &h[0])
	},
	lstmGrad: func(dgates, gates, prev, c, dc, dh []float32) {
		lstmGradAVX512(len(dc), &dgates[0], &gates[0], &prev[0], &c[0], &dc[0], &dh[0])
	},
	gru: func(x, u, prev, h []float32) { gruAVX512(len(h), &x[0], &u[0], &prev[0], &h[0]) },
	gruGrad: func(dx, du, x, u, prev, dprev, dh []float32) {
		gruGradAVX512(len(dh), &dx[0], &du[0], &x[0], &u[0], &prev[0], &dprev[0], &dh[0])
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
