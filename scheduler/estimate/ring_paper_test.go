package estimate

import (
	"math"
	"testing"
)

func TestRingPaper(t *testing.T) {
	t.Run("Eqn 5: four points of w = 1, 2, 4, 8", func(t *testing.T) {
		const batch, bytes, constant = 128.0, 6.9e6, .03
		step := func(w float64) float64 { // with the constant that Ring expresses by its other terms
			return .002*batch/w + .001*(w-1) + 4e-9*bytes*(w-1)/w + constant
		}
		var probes []Probe
		for _, w := range []int{1, 2, 4, 8} {
			probes = append(probes, Probe{1, w, 1 / step(float64(w))})
		}
		fit, err := FitSpeed(Ring(batch, bytes), probes)
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range []int{1, 2, 3, 4, 5, 8, 16, 64} {
			f, se := fit.At(1, w)
			if want := 1 / step(float64(w)); math.Abs(f-want) > 1e-9*want || se <= 0 {
				t.Errorf("w = %d: %v ± %v, want %v", w, f, se, want)
			}
		}
	})
}
