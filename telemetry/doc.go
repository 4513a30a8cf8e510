// Package telemetry holds the records that a job writes about itself while it
// runs, and that estimators, checks and plots read afterwards.
//
// # Idea
//
// A job's telemetry is one append-only file of JSON lines. Each line is one
// record and says its kind: a training step, an evaluation, the start of a
// generation, a transition, a checkpoint, a lost member, a skipped step, a
// staleness count, the end of a run. The file is never rewritten: where a job
// falls back to an earlier step, the steps it lost stay in the file and a later
// [GenerationStart] voids them. [History] applies that rule and returns the
// steps that really shaped the parameters, so "every example exactly once per
// epoch" can be checked from the outside ([Coverage]).
//
// Loss points carry what an estimator needs to be right through rescales: the
// generation they were measured in, the examples consumed so far, the weight
// that the mean is over, the learning rate and the global batch. Speeds are only
// comparable within one generation; see the design of the scheduler.
//
// A process that dies leaves at most its last line torn; [Read] forgives that
// line and no other.
//
// The package imports only the standard library. The format has a page of its
// own: docs/formats/telemetry.md.
package telemetry
