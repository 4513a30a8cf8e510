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

// A job reports the times of its passes and the noise of its gradients; the model then tells what more GPUs are worth,
// and which batch suits them.
func ExampleGoodput_Best() {
	measured := func(gpus, m int) (grad, last, sync float64) { // seconds, of a job with pass and exchange in turn
		grad, sync = 0.02+0.003*float64(m), 0.04+0.002*float64(max(gpus-2, 0))
		if gpus == 1 {
			sync = 0
		}
		return grad, grad + sync, sync
	}
	var profile estimate.Profile
	for _, c := range [][2]int{{1, 64}, {1, 128}, {2, 64}, {4, 64}} {
		grad, last, sync := measured(c[0], c[1])
		if err := profile.Add(1, c[0], estimate.Batch{PerGPU: c[1]}, grad, last, sync); err != nil {
			fmt.Println(err)
			return
		}
	}
	fit, err := estimate.FitThroughput(profile.Records())
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("assumed:", fit.Assumed)

	noise := estimate.NoiseScale{InitBatch: 128}
	_ = noise.Add(estimate.GradientNorms{Batch: 256, Count: 2, Local: []float64{1.8}, Total: []float64{1}})
	limits := estimate.Limits{InitBatch: 128, MaxBatch: 4096, MinPerGPU: 32, MaxPerGPU: 256, Accumulate: true}
	goodput := estimate.NewGoodput(fit.Throughput, noise, limits)
	for _, gpus := range []int{1, 2, 4, 8} {
		v, batch := goodput.Best(1, gpus)
		fmt.Printf("%d GPU: %.0f useful examples/s with a batch of %d\n", gpus, v, batch.Total(gpus))
	}
	// Output:
	// assumed: [α_node β_node]
	// 1 GPU: 317 useful examples/s with a batch of 128
	// 2 GPU: 524 useful examples/s with a batch of 212
	// 4 GPU: 904 useful examples/s with a batch of 300
	// 8 GPU: 1459 useful examples/s with a batch of 456
}
