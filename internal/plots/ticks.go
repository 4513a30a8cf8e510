package plots

import (
	"math"
	"strconv"

	"gonum.org/v1/plot"
)

// ticks marks an axis at multiples of 1, 2 or 5 times a power of ten.
type ticks struct{}

// Ticks implements plot.Ticker.
func (ticks) Ticks(low, high float64) []plot.Tick {
	const about = 6
	if !(high > low) {
		return []plot.Tick{{Value: low, Label: format(low, 0)}}
	}
	step := math.Pow(10, math.Floor(math.Log10((high-low)/about)))
	for _, f := range []float64{1, 2, 5, 10} {
		if (high-low)/(f*step) <= about {
			step *= f
			break
		}
	}
	decimals := max(0, -int(math.Floor(math.Log10(step)+1e-9)))
	var out []plot.Tick
	const hair = 1e-9 // of a step, for rounding
	for k := math.Ceil(low/step - hair); k <= high/step+hair; k++ {
		out = append(out, plot.Tick{Value: k * step, Label: format(k*step, decimals)})
	}
	return out
}

// format writes large numbers with powers of ten.
func format(v float64, decimals int) string {
	if math.Abs(v) >= 1e6 {
		return strconv.FormatFloat(v, 'g', 3, 64)
	}
	return strconv.FormatFloat(v+0, 'f', decimals, 64)
}
