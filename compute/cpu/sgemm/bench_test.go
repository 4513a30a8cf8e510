package sgemm

import (
	"fmt"
	"testing"

	"optimus/internal/level"
)

// shapes are the products of the workloads: squares, cnn-rand's convolution by
// im2col and its gradients, PTB's recurrent and output products, a 1x1 convolution.
var shapes = []trial{
	{m: 64, n: 64, k: 64},
	{m: 512, n: 512, k: 512},
	{m: 2700, n: 100, k: 900, transB: true},
	{m: 100, n: 900, k: 2700, transA: true},
	{m: 2700, n: 900, k: 100},
	{m: 20, n: 2600, k: 650},
	{m: 20, n: 650, k: 2600, transB: true},
	{m: 650, n: 2600, k: 20, transA: true},
	{m: 700, n: 10000, k: 650},
	{m: 64, n: 3136, k: 576},
	{m: 256, n: 196, k: 2304},
}

func BenchmarkGemm(b *testing.B) {
	for i, p := range shapes {
		p.make(uint64(i))
		kernel := func(name string, kn Kernel) {
			b.Run(fmt.Sprintf("%dx%dx%d%s/%s", p.m, p.n, p.k, p.letters(), name), func(b *testing.B) {
				for b.Loop() {
					kn.Gemm(p.transA, p.transB, p.m, p.n, p.k, p.a, p.lda, p.b, p.ldb, p.accumulate, p.c, p.ldc)
				}
				b.ReportMetric(2*float64(p.m)*float64(p.n)*float64(p.k)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
			})
		}
		for _, name := range level.Present() {
			kn, err := For(name)
			if err != nil {
				b.Fatal(err)
			}
			kernel(name, kn)
		}
	}
}

func (p *trial) letters() string {
	s := ""
	if p.transA {
		s += "ta"
	}
	if p.transB {
		s += "tb"
	}
	return s
}

// TestNoAllocation: after the first call of a shape, calls allocate nothing.
func TestNoAllocation(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector empties pools")
	}
	each(t, func(t *testing.T, kn Kernel) {
		for kind := range 4 {
			p := trial{m: 45, n: 101, k: 400, transA: kind&1 != 0, transB: kind&2 != 0}
			p.make(1)
			c := append([]float32(nil), p.c...)
			var b Packed
			if n := testing.AllocsPerRun(20, func() {
				kn.Gemm(p.transA, p.transB, p.m, p.n, p.k, p.a, p.lda, p.b, p.ldb, p.accumulate, c, p.ldc)
				kn.Pack(&b, p.transB, p.n, p.k, p.b, p.ldb)
				GemmPacked(p.transA, p.m, p.a, p.lda, &b, p.accumulate, c, p.ldc)
			}); n != 0 {
				t.Errorf("%v: %v allocations", &p, n)
			}
		}
	})
}
