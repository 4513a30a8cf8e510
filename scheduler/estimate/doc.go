// Package estimate predicts, from what a job has shown so far, how much training is
// left and how fast any configuration would do it. The scheduler divides the one
// by the other. The methods are those of Optimus (Peng et al., EuroSys 2018, §3),
// with the gaps of the paper filled in; equation, table and figure numbers are its.
//
// A job's loss falls as l = 1/(β₀k + β₁) + β₂ (Eqn 1). [History] takes one loss per
// step and keeps a bounded summary: outliers are replaced, long runs are averaged,
// a drop of the learning rate begins a new curve. [Convergence] fits the curve to
// it and solves for the epoch from which the loss falls by less than the owner's
// threshold; its [Forecast] says when, with an interval. The axis is examples, told
// in epochs, so a change of batch or workers does not bend the curve.
//
// The time of a step is linear in a few terms of p servers and w workers (Eqns 3
// and 4, [Async] and [Sync]; [Ring] without servers). [FitSpeed] finds their
// coefficients from measured configurations, [NextProbe] says which one to measure
// next, and [Refine] adds the smooth deviation from the form that the measurements
// show.
//
// A job that may change its batch is judged by its goodput, the examples per second that
// count (Pollux, Qiao et al., OSDI 2021, §3). [NoiseScale] follows how much a larger
// batch is worth, [Profile] keeps the times of a job's passes, [FitThroughput] fits a
// model of seven parameters to them, and [Goodput] joins the two: its Best says how fast
// the job learns on any number of GPUs and nodes, and with which batch. [Unmeasured]
// stands for it in a job's first round; [ScaleOut] and [Autoscaler] choose the number of
// nodes by it.
//
// The fits rest on [NNLS], least squares with coefficients ≥ 0, whose result
// carries the proof that it is the minimum.
//
// Everything here is a pure function of its arguments, or a plain value that can be
// stored as JSON and restored: no clock, goroutine, file or socket.
package estimate
