package estimate_test

import (
	"errors"
	"fmt"

	"optimus/scheduler/estimate"
)

// The first probes follow the design; then the fit predicts any configuration.
func ExampleFitSpeed() {
	speed := func(p, w float64) float64 { return 1 / (1.02*40/w + 2.78 + 4.92*w/p + 0.02*p) }
	form := estimate.Sync(40)
	var candidates, probes []estimate.Probe
	for p := 1; p < 20; p++ {
		for w := 1; p+w <= 20; w++ {
			candidates = append(candidates, estimate.Probe{Servers: p, Workers: w})
		}
	}
	for range 5 {
		next, _ := estimate.NextProbe(form, probes, candidates)
		next.Speed = speed(float64(next.Servers), float64(next.Workers)) // measure
		probes = append(probes, next)
	}
	fit, err := estimate.FitSpeed(form, probes)
	if err != nil {
		fmt.Println(err)
		return
	}
	f, _ := fit.At(12, 8)
	fmt.Printf("%.4f steps/s\n", f)
	// Output: 0.0877 steps/s
}

// Probes on the diagonal p = w cannot tell the terms 1 and w/p apart, nor w and p.
func ExampleRankError() {
	probes := []estimate.Probe{{Servers: 1, Workers: 1, Speed: .02}, {Servers: 2, Workers: 2, Speed: .03}, {Servers: 4, Workers: 4, Speed: .05}, {Servers: 8, Workers: 8, Speed: .08}}
	_, err := estimate.FitSpeed(estimate.Sync(40), probes)
	var rank *estimate.RankError
	fmt.Println(errors.As(err, &rank))
	fmt.Println(err)
	// Output:
	// true
	// speed fit: 4 usable measurements determine 3 of the 5 coefficients of sync (Eqn 4); measure p=1, w=2 next
}

func ExampleConvergence() {
	c := estimate.Convergence{History: estimate.History{EpochExamples: 1000}, Threshold: 0.002}
	for step := int64(1); step <= 200; step++ {
		epoch := float64(step) / 10
		_ = c.Add(estimate.LossPoint{Step: step, Examples: 100 * step, Weight: 100, Loss: 2.3 * (1/(0.2*epoch+1) + 0.1)})
	}
	f, err := c.Forecast()
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%.0f epochs done, about %.0f more\n", c.Done(), f.Remaining)
	// Output: 20 epochs done, about 26 more
}
