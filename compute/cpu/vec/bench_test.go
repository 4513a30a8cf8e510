package vec

import (
	"testing"

	"optimus/compute/cpu/internal/turns"
	"optimus/internal/rng"
)

// BenchmarkKernels compares the levels on arrays that fit into the first cache.
func BenchmarkKernels(b *testing.B) {
	const n = 4096
	x, y, z, places := fill(1, n), fill(2, n), make([]float32, n), make([]int32, n)
	for _, o := range []struct {
		op  string
		run func(name string, k *kernels)
	}{
		{"exp", func(_ string, k *kernels) { unary("", k.exp, Exp32, z, x) }},
		{"log", func(_ string, k *kernels) { unary("", k.log, Log32, z, x) }},
		{"tanh", func(_ string, k *kernels) { unary("", k.tanh, Tanh32, z, x) }},
		{"sigmoid", func(_ string, k *kernels) { unary("", k.sigmoid, Sigmoid32, z, x) }},
		{"relu", func(_ string, k *kernels) { unary("", k.relu, relu, z, x) }},
		{"relugrad", func(_ string, k *kernels) { binary("", k.reluGrad, reluGrad, z, x, y) }},
		{"mul", func(_ string, k *kernels) { binary("", k.mul, mul, z, x, y) }},
		{"greater", func(_ string, k *kernels) { greaterAt(k, z, places, x, 1) }},
		{"sum", func(_ string, k *kernels) { sumAt(k, x) }},
		{"dot", func(_ string, k *kernels) { dotAt(k, x, y) }},
		{"max", func(_ string, k *kernels) { maxAt(k, x) }},
		{"softmax", func(name string, _ *kernels) { softmaxAt(name, z, x) }},
		{"crossentropy", func(name string, _ *kernels) { crossEntropyAt(name, z, x, 7) }},
		{"dropout", func(_ string, k *kernels) { dropoutAt(k, z, rng.NewKey(3), 0, 0.3) }},
	} {
		b.Run(o.op, func(b *testing.B) { turns.Levels(b, n, func(name string) { o.run(name, kernelsAt(name)) }) })
	}
}
