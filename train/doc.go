// Package train assembles one job and runs it: data and model, a controller
// (package elastic), servers (ps) and workers (worker) as goroutines or child
// processes, checkpoints, telemetry, and a control service through which
// `optimus rescale`, `status` and `checkpoint` reach the job while it runs.
//
// The parts decide nothing here: what happens when a member dies or counts change
// is in elastic, how gradients meet is in ps/pieces. This package carries out
// what they order.
//
// Run is the entry for programs and for the command line. A job that trains a
// model of its own gives a Task; the workloads of package models are opened by
// Open.
package train
