package trace

import (
	"fmt"
	"math"
	"slices"

	"optimus/internal/rng"
)

// Arrivals is a process by which jobs are submitted.
type Arrivals struct {
	Name string
	draw func(n int, key rng.Key) []float64
}

// Draw returns the times of n submissions in seconds, in increasing order; the same for the same seed.
func (a Arrivals) Draw(n int, seed uint64) []float64 {
	times := a.draw(n, rng.NewKey(seed, uint64(len(a.Name)), 0xa221))
	slices.Sort(times)
	return times
}

// Uniform draws each time uniformly from [0, seconds].
func Uniform(seconds float64) Arrivals {
	return Arrivals{"uniform", func(n int, key rng.Key) []float64 {
		times := make([]float64, n)
		for i := range times {
			times[i] = seconds * key.Float64(uint64(i))
		}
		return times
	}}
}

// Poisson draws exponential gaps, so that perInterval jobs come in the mean in an interval of so many seconds.
func Poisson(perInterval, interval float64) Arrivals {
	return Arrivals{"poisson", func(n int, key rng.Key) []float64 {
		times, now := make([]float64, n), 0.0
		for i := range times {
			now -= math.Log(1-key.Float64(uint64(i))) * interval / perInterval
			times[i] = now
		}
		return times
	}}
}

// spike is how many times more jobs than in a usual slot come in a spike, as the simulator of Optimus's author has it in
// the second slot of its trace of a Google cluster.
const spike = 22

// Google draws times in the manner of a Google cluster's trace: of the slots that fill so many seconds each has a rate
// uniform in 0 to 1, but the second has a spike. At most maxPerSlot jobs come in a slot; those over go to the next.
func Google(seconds, slot float64, maxPerSlot int) Arrivals {
	return Arrivals{"google", func(n int, key rng.Key) []float64 {
		slots := max(2, int(seconds/slot))
		rates, total := make([]float64, slots), 0.0
		for i := range rates {
			rates[i] = key.Float64(uint64(i))
			if i == 1 {
				rates[i] = spike / 2.0
			}
			total += rates[i]
		}
		key = rng.NewKey(uint64(key), 1)
		counts := make([]int, slots)
		for i := range n {
			at, u := 0, key.Float64(uint64(i))*total
			for ; at < slots-1 && u >= rates[at]; at++ {
				u -= rates[at]
			}
			counts[at]++
		}
		key = rng.NewKey(uint64(key), 2)
		var times []float64
		for i := 0; len(times) < n; i++ {
			over := 0
			if i < slots-1 {
				over = max(0, counts[i]-maxPerSlot)
				counts[i+1] += over
			}
			for range counts[i] - over {
				times = append(times, slot*(float64(i)+key.Float64(uint64(len(times)))))
			}
		}
		return times
	}}
}

// Named returns the arrival process of a name as the Optimus paper has it: "uniform" in 12,000 s, "poisson" with 3 jobs
// an interval of 600 s, "google" over 7 h.
func Named(name string) (Arrivals, error) {
	all := []Arrivals{Uniform(12000), Poisson(3, 600), Google(7*3600, 600, 15)}
	var names []string
	for _, a := range all {
		if a.Name == name {
			return a, nil
		}
		names = append(names, a.Name)
	}
	return Arrivals{}, fmt.Errorf("trace: there is no arrival process %q; choose one of %q", name, names)
}
