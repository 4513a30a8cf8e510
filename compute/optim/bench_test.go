package optim

import (
	"fmt"
	"testing"
)

// BenchmarkApply runs from one version to the next, in the second level cache
// and in memory; ns/elem is what a server pays for each parameter.
func BenchmarkApply(b *testing.B) {
	for _, c := range configs() {
		for _, n := range []int{16 << 10, 4 << 20} {
			b.Run(fmt.Sprintf("%s/%d", label(c), n), func(b *testing.B) {
				u := update(c, n)
				b.ReportAllocs()
				for b.Loop() {
					if err := c.Apply(u); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/elem")
				b.SetBytes(int64(n) * 4 * int64(3+2*c.Slots()))
			})
		}
	}
	b.Run("copy/4194304", func(b *testing.B) {
		x, y := make([]float32, 4<<20), make([]float32, 4<<20)
		for b.Loop() {
			copy(y, x)
		}
		b.SetBytes(8 * 4 << 20)
	})
}

func configs() []Config {
	plain := Default(SGD)
	plain.Momentum = 0
	full := Default(SGD)
	full.WeightDecay, full.Clip = 1e-4, 5
	return []Config{plain, Default(SGD), full, Default(RMSProp), Default(Adam)}
}

func label(c Config) string {
	s := c.Kind
	if c.Momentum != 0 {
		s += "+momentum"
	}
	if c.Clip != 0 {
		s += "+clip"
	}
	if c.WeightDecay != 0 {
		s += "+decay"
	}
	return s
}

// update returns a first update of n elements with all buffers apart.
func update(c Config, n int) Update {
	u := Update{T: 1, LR: c.LR, Decay: true, Weight: 3, Params: make([]float32, n), Out: make([]float32, n), Grad: make([]float32, n)}
	Init{Kind: Uniform, Scale: 1}.Fill(1, 0, 0, u.Params)
	Init{Kind: Normal, Scale: 2}.Fill(2, 0, 0, u.Grad)
	for range c.Slots() {
		u.State = append(u.State, make([]float32, n))
		u.StateOut = append(u.StateOut, make([]float32, n))
	}
	return u
}
