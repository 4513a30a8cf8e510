package pollux

import "optimus/scheduler/trace"

// curve is a training run at one total batch size.
type curve struct {
	batch  int
	epochs []trace.PolluxEpoch
}

// between interpolates over the batch size, between the two nearest runs, a value of an epoch. Outside of the runs'
// batch sizes it is that of the nearest.
func (a *App) between(batch float64, value func(c *curve) float64) float64 {
	i := 0
	for i < len(a.curves) && float64(a.curves[i].batch) < batch {
		i++
	}
	switch {
	case i == len(a.curves):
		return value(&a.curves[i-1])
	case i == 0 || float64(a.curves[i].batch) == batch:
		return value(&a.curves[i])
	}
	lo, hi := &a.curves[i-1], &a.curves[i]
	part := (batch - float64(lo.batch)) / float64(hi.batch-lo.batch)
	return value(lo) + (value(hi)-value(lo))*part
}

// gradient returns the squared norm of the mean gradient and its variance at M₀, in an epoch at a total batch size.
func (a *App) gradient(batch float64, epoch int) (sqr, variance float64) {
	return a.between(batch, func(c *curve) float64 { return c.epochs[epoch].Sqr }),
		a.between(batch, func(c *curve) float64 { return c.epochs[epoch].Var })
}

// iterations returns how many were run at a total batch size by the end of an epoch.
func (a *App) iterations(batch float64, epoch int) float64 {
	return a.between(batch, func(c *curve) float64 { return c.epochs[epoch].Iterations })
}

// BestMetric returns the best validation metric that a run at a total batch size has reached before an epoch, and false
// before the first.
func (a *App) BestMetric(batch float64, epoch int) (float64, bool) {
	if epoch < 1 || epoch > a.Epochs {
		return 0, false
	}
	return a.between(batch, func(c *curve) float64 {
		best := c.epochs[0].Metric
		for _, e := range c.epochs[:epoch] {
			if a.MetricFalls {
				best = min(best, e.Metric)
			} else {
				best = max(best, e.Metric)
			}
		}
		return best
	}), true
}
