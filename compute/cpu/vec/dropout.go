package vec

import (
	"fmt"
	"math"

	"optimus/internal/rng"
)

// DropoutMask writes a dropout mask: element i is 0 where value first+i of the stream key, uniform
// in [0,1), is below rate, else 1/(1-rate). It panics unless 0 ≤ rate < 1.
//
// It draws what key.Float64 returns, in vectors and without a branch that no
// processor could predict.
func DropoutMask(mask []float32, key rng.Key, first uint64, rate float64) {
	if !(rate >= 0 && rate < 1) {
		panic(fmt.Sprintf("vec: DropoutMask: the rate is %v; it must be in [0,1)", rate))
	}
	dropoutAt(kernelsAt(Level()), mask, key, first, rate)
}

func dropoutAt(k *kernels, mask []float32, key rng.Key, first uint64, rate float64) {
	// Float64 is n/2⁵³ for an integer n, and n/2⁵³ ≥ rate where n > below.
	below := int64(math.Ceil(rate*(1<<53))) - 1
	scale := float32(1 / (1 - rate))
	if len(mask) > 0 && k.dropout != nil {
		const golden = 0x9e3779b97f4a7c15 // the step of rng's counter
		k.dropout(len(mask), &mask[0], uint64(key)+first*golden, below, scale)
		return
	}
	ones := math.Float32bits(scale)
	for i := range mask {
		n := int64(key.Uint64(first+uint64(i)) >> 11)
		mask[i] = math.Float32frombits(ones & uint32((below-n)>>63))
	}
}
